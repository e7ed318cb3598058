"""The type of a tensor as inference knows it: its element type, its shape and, if it is small, its known value.

A known value is deferred: it is computed when an operation first needs it. An ``Evaluation`` computes the known
values of all outputs of one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.element_types import ElementType
from ovir.core.shapes import DimensionLike, PartialShape, as_shape
from ovir.core.values import Value, bounds_dtype, is_small, limits


class Evaluation:
    """The known values of an operation's outputs, computed at most once, from the known values of its inputs."""

    __slots__ = ("_compute", "inputs", "values")

    def __init__(
        self, inputs: Sequence[TensorType], compute: Callable[[Sequence[TensorType]], Sequence[Value | None]]
    ) -> None:
        """Keep the inputs and the function that computes the known value of each output, or None.

        ``compute`` is called when the values of the inputs are known.
        """
        self._compute = compute
        self.inputs = inputs
        """The tensors whose known values are computed first; none once the values are there."""
        self.values: Sequence[Value | None] | None = None

    def value(self, index: int) -> Value | None:
        """Return the known value of one output, or None.

        Chains of layers are longer than Python's stack is deep, so the way back through them is a list.
        """
        waiting = [self]
        while waiting:
            latest = waiting[-1]
            missing = [] if latest.values is not None else [t.pending for t in latest.inputs if t.pending is not None]
            if missing:
                waiting.extend(missing)
                continue
            if latest.values is None:
                latest.values = latest._compute(latest.inputs)
                latest.inputs = ()
            waiting.pop()
        assert self.values is not None
        return self.values[index]


class TensorType:
    """Element type, partial shape and, if any of its elements are known, the known value of a tensor. Immutable.

    Two are equal if they agree in element type and shape.
    """

    __slots__ = ("_evaluation", "_index", "_value", "element_type", "shape")

    def __init__(
        self,
        element_type: ElementType | str,
        shape: PartialShape | Sequence[DimensionLike] | str,
        value: Value | None = None,
    ) -> None:
        """Set the type and shape, given as such or as ``"f32"`` and ``[1, -1]``. Raise ValueError for others."""
        self.element_type = element_type if isinstance(element_type, ElementType) else ElementType.parse(element_type)
        """The element type, which may be ``dynamic``."""
        self.shape = shape if isinstance(shape, PartialShape) else as_shape(shape)
        """The shape, of which the rank or sizes may be unknown."""
        self._value = value
        self._evaluation: Evaluation | None = None
        self._index = 0

    @property
    def value(self) -> Value | None:
        """Return the known value, or None; it is computed on first use."""
        if self._evaluation is not None:
            self._value = self._evaluation.value(self._index)
            self._evaluation = None
        return self._value

    @property
    def may_have_value(self) -> bool:
        """Return whether anything may be known of the elements, without computing it."""
        return self._evaluation is not None or self._value is not None

    @property
    def pending(self) -> Evaluation | None:
        """Return the evaluation that has yet to compute the value; None if there is nothing to compute."""
        evaluation = self._evaluation
        return evaluation if evaluation is not None and evaluation.values is None else None

    @property
    def constant(self) -> NDArray[Any] | None:
        """Return the array if all elements are known, else None."""
        value = self.value
        return value.constant if value is not None else None

    def bounds_or_unknown(self) -> Value | None:
        """Return the known value, or an unbounded one if the shape is static and small, else None."""
        value = self.value
        if value is not None or not self.shape.is_static:
            return value
        if not is_small(self.shape):
            return None
        shape = self.shape.to_tuple()
        dtype = bounds_dtype(self.element_type)
        least, greatest = limits(self.element_type)
        return Value(None, np.full(shape, least, dtype), np.full(shape, greatest, dtype))

    def with_value(self, value: Value | None) -> TensorType:
        """Return the tensor with this known value."""
        return TensorType(self.element_type, self.shape, value)

    def deferred(self, evaluation: Evaluation, index: int) -> TensorType:
        """Return the tensor with the known value that an evaluation will give for its output ``index``."""
        tensor = TensorType(self.element_type, self.shape)
        tensor._evaluation = evaluation
        tensor._index = index
        return tensor

    def refined(self, element_type: ElementType, shape: PartialShape) -> TensorType:
        """Return the same tensor, with its known value, where its type or shape is known better."""
        tensor = TensorType(element_type, shape, self._value)
        tensor._evaluation = self._evaluation
        tensor._index = self._index
        return tensor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorType):
            return NotImplemented
        return self.element_type == other.element_type and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.element_type, self.shape))

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out a deferred value, as inference computes it again."""
        return TensorType, (self.element_type, self.shape, self._value)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"{self.element_type}{self.shape}"


Outputs = TensorType | tuple[TensorType, ...]
"""What ``infer`` returns: the type of the only output, or a tuple of the types of all outputs."""


def type_name(dtype: np.dtype[Any]) -> str:
    """Return a NumPy type's name for messages: the one of its element type, or NumPy's own if there is none."""
    try:
        return str(ElementType.from_dtype(dtype))
    except ValueError:
        return str(dtype)


def array_text(array: NDArray[Any] | np.generic) -> str:
    """Return the type and shape of an array for messages, as in ``f32[2,3]``."""
    return f"{type_name(array.dtype)}{PartialShape(array.shape)}"


def constant_type(array: NDArray[Any], element_type: ElementType | None = None) -> TensorType:
    """Return the type of a constant; ``element_type`` is needed if the dtype does not determine it (u1, nf4)."""
    return TensorType(element_type or ElementType.from_dtype(array.dtype), PartialShape(array.shape), Value(array))
