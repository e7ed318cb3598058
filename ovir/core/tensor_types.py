"""What inference knows of a tensor: its element type, its shape and, where it is small, its known value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.values import Value, bounds_dtype, is_small


@dataclass(frozen=True)
class TensorType:
    """Element type, partial shape and, where some of its content is known, the value of a tensor."""

    element_type: ElementType
    shape: PartialShape
    value: Value | None = field(default=None, compare=False)

    @property
    def has_value(self) -> bool:
        """Whether anything is known of the content."""
        return self.value is not None

    @property
    def constant(self) -> NDArray[Any] | None:
        """The content when it is wholly known."""
        return self.value.constant if self.value is not None else None

    def bounds_or_unknown(self) -> Value | None:
        """The value, or an unbounded one where the shape is static and small; None otherwise."""
        if self.value is not None or not self.shape.is_static:
            return self.value
        if not is_small(self.shape):
            return None
        shape = self.shape.to_tuple()
        dtype = bounds_dtype(self.element_type)
        return Value(None, np.full(shape, -np.inf, dtype), np.full(shape, np.inf, dtype))

    def with_value(self, value: Value | None) -> TensorType:
        return TensorType(self.element_type, self.shape, value)

    def __str__(self) -> str:
        return f"{self.element_type}{self.shape}"


def constant_type(array: NDArray[Any], element_type: ElementType | None = None) -> TensorType:
    """The type of a known array; ``element_type`` where the dtype alone does not tell (u1, nf4)."""
    return TensorType(element_type or ElementType.from_dtype(array.dtype), PartialShape(array.shape), Value(array))
