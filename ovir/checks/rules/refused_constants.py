"""The rule about constants that kernels refuse, such as lengths beyond an axis; only for untrusted files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovir.analysis.random_inputs import arranged
from ovir.checks.owners import counted_sizes
from ovir.checks.rule import Context, Found, rule
from ovir.core.arrays import Array
from ovir.core.element_types import string
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.diagnostics.codes import Code, Severity
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layers import Layer
from ovir.inference.known_values import inferred
from ovir.ops.base.domains import Axis, Between, Coordinates, Divisor, Domain, DomainRule, Index
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import input_names


@rule(Code.error(18, "a kernel refuses constants of the file", danger=7.5), for_untrusted=True, of_runs=True)
def refused_constants(context: Context) -> Iterator[Found]:
    """Error. Lengths, offsets, parents, images or labels that are constants, or computed from constants, are not
    possible for the shapes of the layer. ovir refuses them when the layer runs; a device may read beyond a tensor.
        <layer id="4" name="reversed" type="ReverseSequence" version="opset1">   <!-- 9 steps of a sequence of 5 -->
    Fix: correct the constant.
    """
    time = 0.0
    for layer, op in context.usable:
        if not (constants := _restricted(context, layer, op)):
            continue
        outputs = [TensorType(port.element_type, counted_sizes(port.type.shape)) for port in layer.outputs]
        inputs = [TensorType(port.element_type, counted_sizes(port.type.shape)) for port in layer.inputs]
        if not all(tensor.shape.is_static and tensor.shape.rank is not None for tensor in (*inputs, *outputs)):
            continue
        time += (work := op.work(inputs, outputs))
        message = _refusal(context, layer, op, inputs) if time <= _MOST_TIME else None
        if message is None and time > _MOST_TIME:
            time -= work
            message = next(filter(None, (_beyond(op, inputs, *item) for item in constants.items())), None)
        if message is not None:
            yield Found(message, layer, severity=Severity.ERROR)


_MOST_TIME = 3e8
"""The nanoseconds that all kernels together may take, as ``work`` estimates them."""


def _restricted(context: Context, layer: Layer, op: Operator) -> dict[int, Array]:
    """Return the inputs, by position, whose values the file decides, and of which the kernel accepts only some."""
    found = {}
    for index, (name, port) in enumerate(zip(input_names(type(op)), layer.inputs, strict=False)):
        if name in op.domains and _is_restriction(op.domains[name]) and not op.reads_value(index):
            array = None if port.source is None else context.owners.computed(port.source)
            if array is not None and array.size:
                found[index] = array
    return found


def _is_restriction(domain: DomainRule) -> bool:
    """Return whether kernels check that values lie in a domain, and no other rule does."""
    return not isinstance(domain, Axis | Between | Coordinates | Divisor) and not (
        isinstance(domain, Index) and domain.checked
    )


def _refusal(context: Context, layer: Layer, op: Operator, inputs: list[TensorType]) -> str | None:
    """Return why the kernel refuses the constants, with numbers that suit it in place of other inputs."""
    arrays: list[Array] = []
    for index, (port, tensor) in enumerate(zip(layer.inputs, inputs, strict=True)):
        array = None if port.source is None else context.owners.computed(port.source)
        if array is None or array.shape != tensor.shape.to_tuple():
            if tensor.element_type == string or tensor.element_type.is_dynamic:
                return None
            domain = op.domain_of(index, inputs)
            least = 0 if domain is None or domain.low is None else domain.low
            array = np.full(tensor.shape.to_tuple(), least, tensor.element_type.to_dtype())
            array = arranged(array, domain).astype(array.dtype)
        arrays.append(array)
    types = [TensorType(t.element_type, t.shape, Value(array)) for t, array in zip(inputs, arrays, strict=True)]
    try:
        outputs = inferred(op.infer(*types)).outputs
    except OperatorError:
        return None  # sizes that do not fit together, which the caller may change
    try:
        with np.errstate(all="ignore"), reporting_to(lambda code, message, effect: None):
            op.applied(types, outputs).run(*arrays)
    except OperatorError as error:
        return error.message
    return None


def _beyond(op: Operator, inputs: list[TensorType], index: int, values: Array) -> str | None:
    """Return which of the values lie outside of their domain."""
    domain = op.domain_of(index, inputs) or Domain()
    outside = values[(values < 0) | (values > (np.inf if domain.high is None else domain.high))]
    if outside.size == 0:
        return None
    return f"{input_names(type(op))[index]} holds {outside.flat[0]}, which is outside of {Domain(0, domain.high)}"
