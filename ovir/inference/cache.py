"""A cache of inferred types and known values: large models repeat a few blocks many times.

``infer`` is a function of the operation, of the types of its inputs and of the known values of its ``value_inputs``. So
layers for which these are equal have equal output types, unless an output has a new symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, is_small
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import ALL

_MAX_COMPARED = 64
"""The number of elements up to which known values are compared; an inference that reads a larger one is not cached."""


class Inferred(NamedTuple):
    """The inferred outputs of an operation."""

    outputs: tuple[TensorType, ...]
    is_small: bool
    """Whether all outputs are small enough for known values."""


class InferenceCache:
    """The results of one inference of a model."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Inferred] = {}
        self._values: dict[Hashable, Sequence[Value | None]] = {}
        self._operators: dict[Operator, int] = {}
        self._equal_operators: dict[Hashable, int] = {}
        """Numbers of operations, equal for operations of one class with equal attributes."""
        self._shapes: dict[int, tuple[int, PartialShape]] = {}
        self._equal_shapes: dict[object, int] = {}
        """Numbers of shapes by identity. ``_shapes`` also keeps shapes alive, so that their ids stay unique."""

    def infer(self, op: Operator, inputs: Sequence[TensorType]) -> Inferred:
        """Return the outputs of an operation, from the cache if it has been inferred on equal inputs."""
        key = self._key(op, inputs, op.value_inputs)
        found = self._found.get(key) if key is not None else None
        if found is None:
            found = inferred(_own_types(op.infer(*inputs), inputs) if not op.opset else op.infer(*inputs))
            if key is not None and _can_be_shared(op, inputs, found.outputs):
                self._found[key] = found
        return found

    def values(
        self, op: Operator, inputs: Sequence[TensorType], compute: Callable[[], tuple[Sequence[Value | None], bool]]
    ) -> Sequence[Value | None]:
        """Return known values, from the cache if they were computed for an equal operation on equal known values.

        ``compute`` returns the known values, and whether equal operations may share them.
        """
        key = self._key(op, inputs, ALL)
        found = self._values.get(key) if key is not None else None
        if found is None:
            found, can_be_shared = compute()
            if key is not None and can_be_shared:
                self._values[key] = found
        return found

    def _key(self, op: Operator, inputs: Sequence[TensorType], reads: Sequence[int]) -> Hashable | None:
        """Return a key that is equal for equal operations on equal inputs; None if comparing the inputs takes too
        long."""
        parts: list[object] = [self._operators.get(op) or self._number(op)]
        for index, tensor in enumerate(inputs):
            parts.append(tensor.element_type)
            shape = self._shapes.get(id(tensor.shape))
            parts.append(shape[0] if shape is not None else self._number_of_shape(tensor.shape))
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

    def _number_of_shape(self, shape: PartialShape) -> int:
        number = self._equal_shapes.setdefault(shape.identity, len(self._equal_shapes))
        self._shapes[id(shape)] = number, shape
        return number


def as_tuple(result: TensorType | tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Return the outputs of ``infer`` as a tuple, even if there is only one."""
    return result if isinstance(result, tuple) else (result,)


def _own_types(result: TensorType | tuple[TensorType, ...], inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Return the types that an operation of a user infers. The type of an input, returned as it is, keeps its shape but
    not its known value, because the operation may compute something else."""
    return tuple(
        [tensor.with_value(None) if any(tensor is x for x in inputs) else tensor for tensor in as_tuple(result)]
    )


def inferred(result: TensorType | tuple[TensorType, ...]) -> Inferred:
    """Return the outputs of ``infer``, and whether they are small."""
    outputs = as_tuple(result)
    follows = all(is_small(tensor.shape) and not tensor.element_type.is_dynamic for tensor in outputs)
    return Inferred(outputs, follows)


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
