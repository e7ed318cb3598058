"""The rule about constants that kernels refuse, such as lengths beyond an axis; only for untrusted files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ovir.analysis.random_inputs import arranged
from ovir.checks.rule import Context, Found, rule
from ovir.core.arrays import Array
from ovir.core.element_types import string
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.diagnostics.codes import Code, Severity
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layers import Layer
from ovir.inference.known_values import inferred
from ovir.ops.base.domains import Axis, Between, Coordinates, Divisor, Domain, DomainRule, Index, Length
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
        shapes = context.shapes_before_choice[layer]
        inputs = [
            TensorType(port.element_type, _largest(shape)) for port, shape in zip(layer.inputs, shapes, strict=True)
        ]
        is_tried = all(shape.is_static and shape.rank is not None for shape in shapes)
        if is_tried:
            time += op.work(inputs, [port.type for port in layer.outputs])
        if is_tried and time <= _MOST_TIME:
            message = _refusal(context, layer, op, inputs, constants)
        else:
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


def _refusal(
    context: Context, layer: Layer, op: Operator, inputs: list[TensorType], constants: Mapping[int, Array]
) -> str | None:
    """Return why the kernel refuses the constants, although it accepts others.

    The least and the greatest numbers that suit it take the place of other inputs, one after the other.
    """
    known = [None if port.source is None else context.owners.computed(port.source) for port in layer.inputs]
    for is_greatest in (False, True):
        suited = [_suited(op, inputs, index, is_greatest=is_greatest) for index in range(len(inputs))]
        given = [
            s if array is None or array.shape != s.shape else array for array, s in zip(known, suited, strict=True)
        ]
        others = [suited[index] if index in constants else array for index, array in enumerate(given)]
        if _error_of(op, inputs, others) is None and (message := _error_of(op, inputs, given)) is not None:
            return message
    return None


def _suited(op: Operator, inputs: list[TensorType], index: int, *, is_greatest: bool) -> Array:
    """Return an array of the least or the greatest number that an input may hold, 0 if all numbers are allowed."""
    shape, dtype = inputs[index].shape.to_tuple(), inputs[index].element_type.to_dtype()
    if inputs[index].element_type == string:
        return np.full(shape, "", dtype)
    domain = op.domain_of(index, inputs)
    number = None if domain is None else domain.high if is_greatest else domain.low
    return arranged(np.full(shape, number or 0, dtype), domain).astype(dtype)


def _error_of(op: Operator, inputs: list[TensorType], arrays: list[Array]) -> str | None:
    """Return why an operation refuses arrays; None if it does not."""
    types = [TensorType(t.element_type, t.shape, Value(array)) for t, array in zip(inputs, arrays, strict=True)]
    try:
        outputs = inferred(op.infer(*types)).outputs
        with np.errstate(all="ignore"), reporting_to(lambda code, message, effect: None):
            op.applied(types, outputs).run(*arrays)
    except OperatorError as error:
        return error.message
    return None


def _largest(shape: PartialShape) -> PartialShape:
    """Return the largest sizes that a shape allows, for those of a caller very large ones."""
    if shape.rank is None:
        return shape
    return PartialShape([Dimension(size, size) for size in (_ANY if d.upper is None else d.upper for d in shape)])


_ANY = 1 << 40


def _beyond(op: Operator, inputs: list[TensorType], index: int, values: Array) -> str | None:
    """Return which of the lengths or offsets no allowed shape makes possible."""
    name = input_names(type(op))[index]
    if not isinstance(op.domains[name], Length) or (domain := op.domain_of(index, inputs)) is None:
        return None
    high = np.inf if domain.high is None else domain.high
    outside = values[(values < 0) | (values > high)]
    if outside.size:
        return f"{name} holds {outside.flat[0]}, which is outside of {Domain(0, domain.high)}"
    if domain.order in ("sorted", "offsets") and (values[..., 1:] < values[..., :-1]).any():
        return f"{name} decreases"
    return None
