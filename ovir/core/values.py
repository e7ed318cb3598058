"""Known values: an interval and a symbol for each element of a small tensor.

A ``Value`` is what carries a shape computed by ShapeOf, Gather, Concat and arithmetic into Reshape, Broadcast or
Range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import ElementType, f64, nf4
from ovir.core.shapes import PartialShape

MAX_ELEMENTS = 4096
"""A value that is not a constant of the file is followed up to this many elements."""

EXACT = 2.0**53
"""From here on float64 does not tell one integer from the next."""

Bounds = NDArray[np.floating[Any]]


def bounds_dtype(element_type: ElementType) -> np.dtype[np.floating[Any]]:
    """What bounds are held and computed in: of reals what kernels compute in, so that bounds that meet are a result."""
    return np.dtype(np.float32 if element_type.is_real and element_type not in (f64, nf4) else np.float64)


@dataclass(frozen=True)
class Value:
    """Per element a lower and an upper bound (infinite where there is none) and a symbol.

    Bounds are floats (see ``bounds_dtype``) so that infinity needs no case of its own. An integer of 2**53 or more is
    held as one that is at least 2**53, and likewise below 0: what bounds say is always true.
    ``constant`` is the exact array, in its own dtype, when the content is wholly known; it may be given as a function
    that reads it when it is first looked at.
    """

    _constant: NDArray[Any] | Callable[[], NDArray[Any]] | None = None
    _lower: Bounds | None = field(default=None, repr=False)
    _upper: Bounds | None = field(default=None, repr=False)
    _symbols: NDArray[np.int64] | None = field(default=None, repr=False)

    @cached_property
    def constant(self) -> NDArray[Any] | None:
        return self._constant() if callable(self._constant) else self._constant

    @cached_property
    def lower(self) -> Bounds:
        return self._lower if self._lower is not None else self._as_bounds(-np.inf, EXACT)

    @cached_property
    def upper(self) -> Bounds:
        return self._upper if self._upper is not None else self._as_bounds(-EXACT, np.inf)

    @cached_property
    def symbols(self) -> NDArray[np.int64]:
        """The symbol of each element, 0 for none."""
        return np.zeros(self.lower.shape, np.int64) if self._symbols is None else self._symbols

    @property
    def has_symbols(self) -> bool:
        return self._symbols is not None and bool(self._symbols.any())

    @cached_property
    def identity(self) -> object:
        """Equal for values that are equal in bounds and symbols; hashable."""
        if self.constant is not None:
            numbers = self.constant.tolist() if self.constant.dtype.kind == "T" else self.constant.tobytes()
            return str(numbers) if isinstance(numbers, list) else numbers
        return self.lower.tobytes(), self.upper.tobytes(), self.symbols.tobytes()

    def _as_bounds(self, below: float, above: float) -> Bounds:
        """The constant, with the two bounds given in place of integers that are too small or too large."""
        assert self.constant is not None
        element_type = ElementType.from_dtype(self.constant.dtype)
        bounds = self.constant.astype(bounds_dtype(element_type))
        if not element_type.is_integral:
            return bounds
        return np.where(bounds <= -EXACT, below, np.where(bounds >= EXACT, above, bounds))

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Which elements have no bounds. If they are real numbers they can be NaN, which no bounds hold."""
        return np.isinf(self.lower) & np.isinf(self.upper)

    @property
    def size(self) -> int:
        return self.constant.size if self.constant is not None else self.lower.size

    def dimensions(self) -> list[Dimension]:
        """The elements as sizes, row by row; a bound below 0 counts as 0."""
        if self.constant is not None:
            return [Dimension(int(x), int(x)) for x in np.maximum(self.constant.ravel(), 0)]
        columns = (part.ravel().tolist() for part in (self.lower, self.upper, self.symbols))
        return [
            Dimension(int(max(low, 0)), int(max(high, 0)) if isfinite(high) else None, symbol)
            if isfinite(low)
            else UNKNOWN
            for low, high, symbol in zip(*columns, strict=True)
        ]


def from_bounds(
    element_type: ElementType,
    lower: NDArray[Any],
    upper: NDArray[Any],
    symbols: NDArray[np.int64] | None = None,
) -> Value | None:
    """A value from computed bounds, constant where they meet; None when nothing at all is known.

    They are brought into the element type as a result is. Nothing is known of an integer that wraps around.
    """
    lower, upper = (_in_type(element_type, np.asarray(bounds)) for bounds in (lower, upper))
    # An operation on infinite bounds (0 * inf, inf - inf) can leave NaN: nothing is known there.
    lower = np.where(np.isnan(lower), -np.inf, lower)
    upper = np.where(np.isnan(upper), np.inf, upper)
    if element_type.is_integral:
        unknown = _wraps(element_type, lower) | _wraps(element_type, upper) | (lower >= EXACT) | (upper <= -EXACT)
        lower, upper = np.where(unknown, -np.inf, lower), np.where(unknown, np.inf, upper)
        lower, upper = np.where(lower <= -EXACT, -np.inf, lower), np.where(upper >= EXACT, np.inf, upper)
        symbols = None if symbols is None else np.where(unknown, 0, symbols)
    return from_moved(element_type, lower, upper, symbols)


def from_moved(
    element_type: ElementType, lower: Bounds, upper: Bounds, symbols: NDArray[np.int64] | None = None
) -> Value | None:
    """The same from bounds of elements of this type, where nothing was computed."""
    if np.array_equal(lower, upper) and np.isfinite(lower).all():
        return Value(lower.astype(element_type.to_dtype()), lower, upper)
    if np.isinf(lower).all() and np.isinf(upper).all() and (symbols is None or not symbols.any()):
        return None
    return Value(None, lower, upper, symbols)


def _in_type(element_type: ElementType, bounds: NDArray[Any]) -> Bounds:
    """Bounds as the element type holds them, integers without what is behind the point."""
    if element_type.is_integral:
        return np.trunc(bounds.astype(np.float64))
    if element_type.is_real and element_type != nf4:
        with np.errstate(over="ignore"):
            bounds = bounds.astype(element_type.to_dtype())
    return bounds.astype(bounds_dtype(element_type))


def _wraps(element_type: ElementType, bounds: Bounds) -> NDArray[np.bool_]:
    """Which bounds the integer type cannot hold; no bound is none, as sizes are taken to fit."""
    signed = element_type.kind == "signed"
    end = 2.0 ** (element_type.bits - signed)
    return np.isfinite(bounds) & ((bounds < -end * signed) | (bounds >= end))


def from_dimensions(element_type: ElementType, dims: Iterable[Dimension]) -> Value | None:
    """The value of a 1-D tensor that holds these sizes, as ShapeOf gives."""
    dims = list(dims)
    return from_bounds(
        element_type,
        np.array([d.lower for d in dims], np.float64),
        np.array([np.inf if d.upper is None else d.upper for d in dims], np.float64),
        np.array([d.symbol for d in dims], np.int64),
    )


def is_small(shape: PartialShape) -> bool:
    """Whether the content of a tensor is worth following; NumPy has no huge arrays, not even without elements."""
    if shape.rank is None or any(dim.upper is None for dim in shape.dims):
        return False
    sizes = [dim.upper or 0 for dim in shape.dims]
    return prod(sizes) <= MAX_ELEMENTS and prod(max(size, 1) for size in sizes) < _MOST_EMPTY


_MOST_EMPTY = 1 << 40
"""Of sizes of a tensor without elements, which NumPy multiplies without the zeros."""
