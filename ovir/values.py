"""What inference knows of a tensor: its type, its shape, and where it is small, its content.

The content is a ``Value``: an interval and a symbol for each element. It is what carries a shape
computed by ShapeOf, Gather, Concat and arithmetic into Reshape, Broadcast or Range.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.types import UNKNOWN, Dimension, ElementType, PartialShape

MAX_ELEMENTS = 4096
"""A value that is not a constant of the file is followed up to this many elements."""

Bounds = NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """Per element a lower and an upper bound (float64, infinite where there is none) and a symbol.

    Bounds are float64 so that infinity needs no case of its own; every size up to 2**53 is exact.
    ``constant`` is the exact array, in its own dtype, when the content is wholly known.
    """

    constant: NDArray[Any] | None = None
    _lower: Bounds | None = field(default=None, repr=False)
    _upper: Bounds | None = field(default=None, repr=False)
    _symbols: NDArray[np.int64] | None = field(default=None, repr=False)

    @cached_property
    def lower(self) -> Bounds:
        return self._lower if self._lower is not None else self._as_bounds()

    @cached_property
    def upper(self) -> Bounds:
        return self._upper if self._upper is not None else self._as_bounds()

    @cached_property
    def symbols(self) -> NDArray[np.int64]:
        """The symbol of each element, 0 for none."""
        return np.zeros(self.lower.shape, np.int64) if self._symbols is None else self._symbols

    def _as_bounds(self) -> Bounds:
        assert self.constant is not None
        return self.constant.astype(np.float64)

    @property
    def size(self) -> int:
        return self.constant.size if self.constant is not None else self.lower.size

    def dimensions(self) -> list[Dimension]:
        """The elements as sizes, row by row; a bound below 0 counts as 0."""
        if self.constant is not None:
            return [Dimension(int(x), int(x)) for x in np.maximum(self.constant.ravel(), 0)]
        return [
            Dimension(int(max(low, 0)), int(max(high, 0)) if np.isfinite(high) else None, int(symbol))
            if np.isfinite(low)
            else UNKNOWN
            for low, high, symbol in zip(self.lower.flat, self.upper.flat, self.symbols.flat, strict=True)
        ]


def from_bounds(
    element_type: ElementType,
    lower: NDArray[Any],
    upper: NDArray[Any],
    symbols: NDArray[np.int64] | None = None,
) -> Value | None:
    """A value from bounds, constant where they meet; None when nothing at all is known."""
    lower = np.asarray(lower, np.float64)
    upper = np.asarray(upper, np.float64)
    if element_type.is_integral:
        lower, upper = np.trunc(lower), np.trunc(upper)
    if np.array_equal(lower, upper) and np.isfinite(lower).all():
        return Value(lower.astype(element_type.to_dtype()), lower, upper)
    # An operation on infinite bounds (0 * inf, inf - inf) can leave NaN: nothing is known there.
    lower = np.where(np.isnan(lower), -np.inf, lower)
    upper = np.where(np.isnan(upper), np.inf, upper)
    if np.isinf(lower).all() and np.isinf(upper).all() and (symbols is None or not symbols.any()):
        return None
    return Value(None, lower, upper, symbols)


def from_dimensions(element_type: ElementType, dims: Iterable[Dimension]) -> Value | None:
    """The value of a 1-D tensor that holds these sizes, as ShapeOf gives."""
    dims = list(dims)
    return from_bounds(
        element_type,
        np.array([d.lower for d in dims], np.float64),
        np.array([np.inf if d.upper is None else d.upper for d in dims], np.float64),
        np.array([d.symbol for d in dims], np.int64),
    )


@dataclass(frozen=True)
class TensorType:
    """Element type, partial shape and, where some of its content is known, the value of a tensor."""

    element_type: ElementType
    shape: PartialShape
    value: Value | None = field(default=None, compare=False)

    @property
    def constant(self) -> NDArray[Any] | None:
        """The content when it is wholly known."""
        return self.value.constant if self.value is not None else None

    def bounds_or_unknown(self) -> Value | None:
        """The value, or an unbounded one where the shape is static and small; None otherwise."""
        if self.value is not None or not self.shape.is_static:
            return self.value
        shape = self.shape.to_tuple()
        if int(np.prod(shape)) > MAX_ELEMENTS:
            return None
        return Value(None, np.full(shape, -np.inf), np.full(shape, np.inf))

    def with_value(self, value: Value | None) -> TensorType:
        return TensorType(self.element_type, self.shape, value)

    def __str__(self) -> str:
        return f"{self.element_type}{self.shape}"


def constant_type(array: NDArray[Any], element_type: ElementType | None = None) -> TensorType:
    """The type of a known array; ``element_type`` where the dtype alone does not tell (u1, nf4)."""
    return TensorType(element_type or ElementType.from_dtype(array.dtype), PartialShape(array.shape), Value(array))
