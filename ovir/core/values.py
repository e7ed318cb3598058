"""Known values: an interval and a symbol for each element of a small tensor.

A ``Value`` carries a shape that ShapeOf, Gather, Concat and arithmetic compute to the operation that uses it, such as
Reshape, Broadcast or Range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import isfinite, prod
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ovir.core.element_types import ElementType, f4e2m1, f8e8m0, f64, nf4, value_range
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, sized

MAX_ELEMENTS = 4096
"""The largest number of elements of a known value that is not a constant of the file."""

EXACT = 2.0**53
"""The first float64 from which on neighboring integers are no longer distinct."""

SIZE = -1
"""The mark of an element that is computed from sizes and small numbers only, and has no symbol."""

Bounds = NDArray[np.floating[Any]]
Ends = tuple[Bounds, Bounds]
"""A lower and an upper bound for each element."""
Mask = bool | NDArray[np.bool_]
"""Whether something holds, for each element or for all."""


def bound_text(bound: float) -> str:
    """Return the bound of an integer as messages show it. Beyond ``EXACT`` the integer itself is not known."""
    if abs(bound) < EXACT:
        return f"{bound:.0f}"
    return "2^53 or more" if bound > 0 else "-2^53 or less"


def bounds_dtype(element_type: ElementType) -> np.dtype[np.floating[Any]]:
    """Return the dtype of bounds: for real numbers that of the kernels, so that bounds that meet are exact."""
    return np.dtype(np.float32 if element_type.is_real and element_type not in (f64, nf4) else np.float64)


@dataclass(frozen=True)
class Value:
    """A lower and an upper bound (infinite where there is none) and a symbol for each element.

    Bounds are floats (see ``bounds_dtype``), so that infinity needs no special case. An integer of 2**53 or more is
    held as one that is at least 2**53, and likewise below 0, so that bounds are never wrong. ``constant`` is the exact
    array, in its own dtype, if every element is known; it may be given as a function that reads it on first use.
    """

    _constant: NDArray[Any] | Callable[[], NDArray[Any]] | None = None
    _lower: Bounds | None = field(default=None, repr=False)
    _upper: Bounds | None = field(default=None, repr=False)
    _marks: NDArray[np.int64] | None = field(default=None, repr=False)

    @cached_property
    def constant(self) -> NDArray[Any] | None:
        return self._constant() if callable(self._constant) else self._constant

    @cached_property
    def lower(self) -> Bounds:
        return self._lower if self._lower is not None else self._ends_of_constant[0]

    @cached_property
    def upper(self) -> Bounds:
        return self._upper if self._upper is not None else self._ends_of_constant[1]

    @cached_property
    def marks(self) -> NDArray[np.int64]:
        """Return the symbol of each element; without one, ``SIZE`` for data computed from sizes, 0 for other data."""
        return np.zeros(self.lower.shape, np.int64) if self._marks is None else self._marks

    @cached_property
    def symbols(self) -> NDArray[np.int64]:
        """Return the symbol of each element, 0 for none."""
        return np.asarray(np.maximum(self.marks, 0))

    @property
    def has_symbols(self) -> bool:
        return self._marks is not None and bool((self._marks > 0).any())

    @cached_property
    def is_size(self) -> NDArray[np.bool_]:
        """Return the mask of the elements that are computed from sizes, or are a number that a size may well have."""
        mask: NDArray[np.bool_] = (self.lower == self.upper) & (np.abs(self.lower) < _LARGE) | (self.marks != 0)
        return mask

    @cached_property
    def identity(self) -> object:
        """Return a hashable object that is equal for values of equal bounds and symbols."""
        if self.constant is not None:
            numbers = self.constant.tolist() if self.constant.dtype.kind == "T" else self.constant.tobytes()
            return str(numbers) if isinstance(numbers, list) else numbers
        return self.lower.tobytes(), self.upper.tobytes(), self.marks.tobytes()

    @cached_property
    def _ends_of_constant(self) -> Ends:
        """Return the constant as bounds, which differ for integers beyond the exact range."""
        assert self.constant is not None
        element_type = ElementType.from_dtype(self.constant.dtype)
        bounds = self.constant.astype(bounds_dtype(element_type))
        if not element_type.is_integral or (np.abs(bounds) < EXACT).all():
            return bounds, bounds
        far_below, far_above = bounds <= -EXACT, bounds >= EXACT
        lower = np.where(far_below, -np.inf, np.where(far_above, EXACT, bounds))
        return lower, np.where(far_above, np.inf, np.where(far_below, -EXACT, bounds))

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Return the mask of the elements without bounds; such a real number can be NaN, which no bounds contain."""
        return np.isinf(self.lower) & np.isinf(self.upper)

    def known_ends(self, element_type: ElementType) -> Ends:
        """Return the bounds, NaN for a real number of which nothing is known: it can be NaN or infinite."""
        if not element_type.is_real:
            return self.lower, self.upper
        return np.where(self.is_unknown, np.nan, self.lower), np.where(self.is_unknown, np.nan, self.upper)

    @property
    def size(self) -> int:
        return self.constant.size if self.constant is not None else self.lower.size

    def ranges(self) -> Iterable[tuple[float, float]]:
        """Return the bounds of the elements, in row-major order; a constant needs no arrays of bounds for this."""
        if self.constant is not None:
            numbers = self.constant.ravel().tolist()
            return zip(numbers, numbers, strict=True)
        return zip(self.lower.ravel().tolist(), self.upper.ravel().tolist(), strict=True)

    def dimensions(self) -> list[Dimension]:
        """Return the elements as sizes, in row-major order; a bound below 0 counts as 0."""
        if self.constant is not None:
            return [sized(int(max(x, 0))) for x in self.constant.ravel().tolist()]
        return [
            Dimension(int(max(low, 0)), int(max(high, 0)) if isfinite(high) else None, symbol)
            if isfinite(low)
            else UNKNOWN
            for (low, high), symbol in zip(self.ranges(), self.symbols.ravel().tolist(), strict=True)
        ]


def from_bounds(
    element_type: ElementType,
    lower: NDArray[Any],
    upper: NDArray[Any],
    symbols: NDArray[np.int64] | None = None,
    *,
    sizes: Mask = False,
    may_wrap: Mask = True,
) -> Value | None:
    """Return a value with computed bounds, a constant where they meet; None if nothing is known.

    The bounds are converted to the element type like a result. An element that the type may not hold, because an
    integer wraps around or a real number becomes infinite, is unknown, and one that may be rounded has no symbol.
    ``sizes`` marks the elements that are computed from sizes only: without a bound, these are taken to fit. Any other
    integer without a bound may wrap around, unless ``may_wrap`` says that the operation keeps it within its type.
    """
    may_be_rounded = np.asarray(upper) > _largest_exact(element_type)
    lower, upper = (_in_type(element_type, np.asarray(bounds)) for bounds in (lower, upper))
    # An operation on infinite bounds (0 * inf, inf - inf) can return NaN: the element is unknown.
    sizes = sizes & ~(np.isnan(lower) | np.isnan(upper))
    lower = np.where(np.isnan(lower), -np.inf, lower)
    upper = np.where(np.isnan(upper), np.inf, upper)
    unknown = _overflows(element_type, lower) | _overflows(element_type, upper)
    if element_type.is_integral:
        unknown |= (lower >= EXACT) | (upper <= -EXACT) | (may_wrap & _does_not_fit(element_type, lower, upper, sizes))
        lower, upper = np.where(lower <= -EXACT, -np.inf, lower), np.where(upper >= EXACT, np.inf, upper)
    least, greatest = limits(element_type)
    lower, upper = np.where(unknown, least, lower), np.where(unknown, greatest, upper)
    marks = None
    if symbols is not None or np.any(sizes):
        kept = np.where(may_be_rounded, 0, 0 if symbols is None else symbols)
        marks = np.where(unknown, 0, np.where(kept > 0, kept, np.where(sizes, SIZE, 0)))
    return from_moved(element_type, lower, upper, marks)


def product_bounds(element_type: ElementType, lower: Bounds, upper: Bounds, unchanged: NDArray[np.bool_]) -> Ends:
    """Return the bounds of products of integers or of powers, NaN where nothing is known.

    Sizes are taken to fit 32 bits, but products of sizes are not, unless the product leaves a size unchanged.
    """
    if not element_type.is_integral or element_type.bits != _SIZE_BITS:
        return lower, upper
    may_wrap = (np.isinf(lower) | np.isinf(upper)) & ~unchanged
    return np.where(may_wrap, np.nan, lower), np.where(may_wrap, np.nan, upper)


def from_moved(
    element_type: ElementType, lower: Bounds, upper: Bounds, marks: NDArray[np.int64] | None = None
) -> Value | None:
    """Return a value with bounds and marks that were moved, not computed, and already are of this element type."""
    if np.array_equal(lower, upper) and np.isfinite(lower).all():
        return Value(lower.astype(element_type.to_dtype()), lower, upper)
    least, greatest = limits(element_type)
    if (lower <= least).all() and (upper >= greatest).all() and (marks is None or not marks.any()):
        return None
    return Value(None, lower, upper, marks)


def _in_type(element_type: ElementType, bounds: NDArray[Any]) -> Bounds:
    """Convert bounds to the element type; integers are truncated."""
    if element_type.is_integral:
        return np.trunc(bounds.astype(np.float64))
    if element_type.holds_reals:
        with np.errstate(over="ignore"):
            bounds = bounds.astype(element_type.to_dtype())
    return bounds.astype(bounds_dtype(element_type))


def limits(element_type: ElementType) -> tuple[float, float]:
    """Return the bounds of an element of which only its type is known.

    Types of 32 bits and more have no finite bounds, because sizes are taken to fit, however large.
    """
    if not element_type.is_integral:
        return -np.inf, np.inf
    least, greatest = value_range(element_type)
    if element_type.bits < _SIZE_BITS:
        return least, greatest
    return (-np.inf if least else 0), np.inf


def _does_not_fit(element_type: ElementType, lower: Bounds, upper: Bounds, sizes: Mask) -> NDArray[np.bool_]:
    """Return the mask of the integers without a bound that are not taken to fit: those that are not computed from
    ``sizes``, and sizes that the other bound brings close to the end of the type."""
    least, greatest = value_range(element_type)
    far = (np.isinf(upper) & (lower > greatest / 2)) | (np.isinf(lower) & (upper < least / 2))
    mask: NDArray[np.bool_] = far | ((np.isinf(lower) | np.isinf(upper)) & ~np.asarray(sizes))
    return mask


def _overflows(element_type: ElementType, bounds: Bounds) -> NDArray[np.bool_]:
    """Return the mask of the bounds that the element type does not hold. Infinite ones stand for any number in types
    that are taken to hold every size."""
    if element_type.is_integral:
        least, greatest = value_range(element_type)
        # The first number beyond the range is a float64, which the last one within 64 bits is not.
        beyond: NDArray[np.bool_] = (bounds < least) | (bounds >= float(greatest + 1))
        if element_type.bits < _SIZE_BITS:
            return beyond
        return beyond & (np.isfinite(bounds) | ((bounds < 0) & (least == 0)))
    holds_sizes = not element_type.is_real or element_type == nf4 or value_range(element_type)[1] >= 2.0**_SIZE_BITS
    return np.isinf(bounds) & (not holds_sizes)


@cache
def _largest_exact(element_type: ElementType) -> float:
    """Return the largest number up to which a type holds every size exactly; sizes are taken to stay below
    ``EXACT``."""
    if not element_type.is_real:
        return np.inf
    if element_type in (nf4, f8e8m0, f4e2m1):
        return -np.inf
    largest = 2.0 ** (ml_dtypes.finfo(element_type.to_dtype()).nmant + 1)  # type: ignore[no-untyped-call]
    return largest if largest < EXACT else np.inf


_SIZE_BITS = 32
"""The number of bits of the smallest integers that are taken to hold every size."""
_LARGE = 2.0**30
"""The least number that, added to a size, may not fit the integers that hold every size."""


def from_dimensions(element_type: ElementType, dims: Iterable[Dimension]) -> Value | None:
    """Return the value of a 1-D tensor that holds these sizes, as ShapeOf returns it."""
    dims = list(dims)
    return from_bounds(
        element_type,
        np.array([d.lower for d in dims], np.float64),
        np.array([np.inf if d.upper is None else d.upper for d in dims], np.float64),
        np.array([d.symbol for d in dims], np.int64),
        sizes=True,
    )


def is_small(shape: PartialShape) -> bool:
    """Return whether values of this shape are small enough to follow; NumPy rejects huge arrays even without
    elements."""
    if shape.is_static:
        return shape.least_size <= MAX_ELEMENTS and shape.least_extent < _MOST_EMPTY
    if shape.rank is None or any(dim.upper is None for dim in shape.dims):
        return False
    sizes = [dim.upper or 0 for dim in shape.dims]
    return prod(sizes) <= MAX_ELEMENTS and prod(max(size, 1) for size in sizes) < _MOST_EMPTY


_MOST_EMPTY = 1 << 40
"""A bound on the product of the nonzero sizes of an empty tensor, which NumPy computes without the zeros."""
