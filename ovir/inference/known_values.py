"""Known values of outputs, computed when an operation asks for them, and the cache of inferred types."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ovir.core.element_types import string
from ovir.core.tensor_types import Evaluation, TensorType
from ovir.core.values import Value, is_small
from ovir.diagnostics.codes import INTERNAL, OUTSIDE_SPEC, Severity
from ovir.diagnostics.errors import Diagnostics, OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layers import Layer
from ovir.ops.base.operator import Operator, can_evaluate, can_fold
from ovir.ops.base.traits import ALL


class ValueLog:
    """Records faults of known values, which may be computed long after their layer was inferred."""

    def __init__(self, diagnostics: Diagnostics, *, follow_reported: bool = True) -> None:
        self._diagnostics = diagnostics
        self._follow_reported = follow_reported
        """Whether to use values about which a kernel issues a warning, because devices differ."""
        self.left_out = False
        """Whether a value was not used because of such a warning."""

    def report_failure(self, layer: Layer, error: Exception) -> None:
        """Report an exception that a kernel should not have raised, as a warning: types and shapes are right without
        the value."""
        message = f"ovir failed to compute the known value of the outputs: {type(error).__name__}: {error}"
        self._diagnostics.report(INTERNAL, message, layer.place, layer.fault_hint(error), severity=Severity.WARNING)

    def accepts(self, layer: Layer, reports: Sequence[str]) -> bool:
        """Return whether to use a value although the kernel issued a warning about it; if not, report the warning."""
        if self._follow_reported:
            return True
        self._diagnostics.report(OUTSIDE_SPEC, reports[-1], layer.place, severity=Severity.INFO)
        self.left_out = True
        return False


def with_known_values(
    layer: Layer, op: Operator, inputs: Sequence[TensorType], found: Inferred, log: ValueLog
) -> tuple[TensorType, ...]:
    """Return the outputs, with deferred known values if anything can be known of them."""
    known = tuple([tensor.may_have_value for tensor in inputs])
    follows = found.follows.get(known)
    if follows is None:
        follows = found.follows[known] = _can_follow(op, inputs, found.outputs)
    if not follows:
        return found.outputs
    evaluation = Evaluation(inputs, partial(_known_values, layer, op, found, log))
    return tuple([tensor.deferred(evaluation, index) for index, tensor in enumerate(found.outputs)])


def _can_follow(op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> bool:
    """Return whether anything may be known of the outputs: it depends on which inputs may be known, not on their
    values."""
    if not all(is_small(tensor.shape) and not tensor.element_type.is_dynamic for tensor in outputs):
        return False
    read = op.with_elements_read(inputs)
    if read and not any(tensor.may_have_value for tensor in read):
        return False
    return not any(tensor.may_have_value for tensor in outputs) and can_evaluate(op, inputs, outputs)


def _known_values(
    layer: Layer, op: Operator, found: Inferred, log: ValueLog, inputs: Sequence[TensorType]
) -> Sequence[Value | None]:
    """Return the known values of all outputs of a layer, those of an equal layer if its inputs have equal values."""
    nothing = (None,) * len(found.outputs)
    key = _identities(inputs) if op.opset else None  # the instances of a user's class may have any state
    if key in found.values:
        return found.values[key]
    reports: list[str] = []
    try:
        with np.errstate(all="ignore"), reporting_to(lambda code, message, effect: reports.append(message)):
            values = _values_of(op, inputs, found.outputs)
    except OperatorError:
        return nothing  # a run of the layer reports it with the values
    except MemoryError:
        raise  # of the whole inference, not of this layer
    except Exception as error:
        log.report_failure(layer, error)
        return nothing
    if reports:
        return nothing if values is None or not log.accepts(layer, reports) else values
    values = nothing if values is None else values
    if key is not None:
        found.values[key] = values
    return values


def _identities(inputs: Sequence[TensorType]) -> Hashable:
    """Return an object that is equal for inputs of equal known values; None if comparing these takes too long."""
    if any(tensor.may_have_value and tensor.shape.least_size > _MAX_COMPARED for tensor in inputs):
        return None
    values = [tensor.value for tensor in inputs]
    return tuple([None if value is None else value.identity for value in values])


def infer_with_values(op: Operator, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Infer an operation that belongs to no model; return its outputs with deferred known values."""
    layer = Layer(0, "", op.type, "")  # stands in for the layer in messages, which nobody reads
    return with_known_values(layer, op, inputs, inferred(op.infer(*inputs)), ValueLog(Diagnostics()))


def _values_of(
    op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
) -> Sequence[Value | None] | None:
    applied = op.applied(inputs, outputs)
    if inputs and can_fold(op, inputs, outputs):
        result = applied.run(*(tensor.constant for tensor in inputs))
        return [Value(array) for array in (result if isinstance(result, tuple) else (result,))]
    if not all(t.shape.is_static and t.element_type != string for t in outputs):  # strings have no bounds
        return None
    values = applied.infer_value(*inputs)
    return values if values is None or isinstance(values, tuple) else (values,)


_MAX_COMPARED = 64
"""The number of elements up to which known values are compared; an inference that reads a larger one is not cached."""


class Inferred(NamedTuple):
    """The inferred outputs of an operation."""

    outputs: tuple[TensorType, ...]
    follows: dict[tuple[bool, ...], bool]
    """Whether anything can be known of the outputs, by whether anything may be known of each input."""
    values: dict[Hashable, Sequence[Value | None]]
    """The known values of the outputs, by those of the inputs."""


class InferenceCache:
    """The results of one inference of a model."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Inferred] = {}
        self._operators: dict[Operator, int] = {}
        self._equal_operators: dict[Hashable, int] = {}
        """Numbers of operations, equal for operations of one class with equal attributes."""

    def infer(self, op: Operator, inputs: Sequence[TensorType]) -> Inferred:
        """Return the outputs of an operation, from the cache if it has been inferred on equal inputs."""
        key = self._key(op, inputs)
        found = self._found.get(key) if key is not None else None
        if found is None:
            result = op.infer(*inputs)
            if not op.opset:  # a user's may compute something else than the known value of an input that it returns
                result = tuple(x.with_value(None) if any(x is y for y in inputs) else x for x in as_tuple(result))
            found = inferred(result)
            if key is not None and _can_be_shared(op, inputs, found.outputs):
                self._found[key] = found
        return found

    def _key(self, op: Operator, inputs: Sequence[TensorType]) -> Hashable | None:
        """Return a key that is equal for equal operations on equal inputs; None if comparing the inputs takes too
        long."""
        reads = op.value_inputs
        parts: list[object] = [self._operators.get(op) or self._number(op)]
        for index, tensor in enumerate(inputs):
            parts += tensor.element_type, tensor.shape.identity
            if reads and (index in reads or reads == ALL) and tensor.may_have_value:
                if tensor.shape.least_size > _MAX_COMPARED:
                    return None
                value = tensor.value
                if value is not None:
                    parts.append((index, value.identity))
        return tuple(parts)

    def _number(self, op: Operator) -> int:
        equal = (type(op), *[getattr(op, field) for field in op.fields])
        number = self._operators[op] = self._equal_operators.setdefault(equal, len(self._equal_operators) + 1)
        return number


def as_tuple(result: TensorType | tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Return the outputs of ``infer`` as a tuple, even if there is only one; raise OperatorError for anything else."""
    outputs = result if isinstance(result, tuple) else (result,)
    for output in outputs:
        if not isinstance(output, TensorType):
            hint = "infer returns a TensorType, or a tuple with one for each output"
            raise OperatorError(f"infer returned {_described(output)} instead of a TensorType", hint=hint)
    return outputs


def _described(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def inferred(result: TensorType | tuple[TensorType, ...]) -> Inferred:
    """Return the result of ``infer``, with nothing known of its values yet."""
    return Inferred(as_tuple(result), {}, {})


def _can_be_shared(op: Operator, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> bool:
    if any(tensor.may_have_value for tensor in outputs):
        return False
    if all(tensor.shape.is_static for tensor in outputs):
        return True
    known = {0, *_symbols_of_shapes(inputs)}
    for index, tensor in enumerate(inputs):
        if op.reads_value(index) and tensor.value is not None and tensor.value.has_symbols:
            known.update(np.unique(tensor.value.symbols).tolist())
    return known.issuperset(_symbols_of_shapes(outputs))


def _symbols_of_shapes(tensors: Iterable[TensorType]) -> set[int]:
    return {dim.symbol for tensor in tensors if tensor.shape.rank is not None for dim in tensor.shape.dims}
