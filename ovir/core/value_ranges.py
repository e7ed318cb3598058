"""Which numbers an element type can hold."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f4e2m1


@cache
def value_range(element_type: ElementType) -> tuple[int, int] | tuple[float, float]:
    """Return the least and the greatest number of a numeric type."""
    if element_type.is_integral:
        highest = 1 << (element_type.bits - (element_type.kind == "signed"))
        return (-highest if element_type.kind == "signed" else 0), highest - 1
    limits: Any = ml_dtypes.finfo(element_type.to_dtype())  # type: ignore[no-untyped-call]
    return float(limits.min), float(limits.max)


def integers_outside(array: Array, element_type: ElementType) -> Array:
    """Return which values of an integer array an integer type cannot hold."""
    low, high = value_range(element_type)
    if array.size == 0 or low <= int(array.min()) <= int(array.max()) <= high:
        return np.zeros(array.shape, np.bool_)
    held = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
    below = array < low if held is None or held.min < low else np.False_
    above = array > high if held is None or held.max > high else np.False_
    return np.logical_or(below, above)


def lost_numbers(array: Array, converted: Array) -> Array:
    """Return which numbers a conversion to a floating-point type has made infinite or NaN, or has clipped because the
    type has neither."""
    if converted.dtype == f4e2m1.dtype:
        return ~(np.abs(array.astype(np.float64)) <= _LARGEST_ROUNDED_TO_F4)
    finite = np.isfinite(converted)
    if finite.all():
        return ~finite
    given = array.astype(np.float64)
    return ~finite & (np.isfinite(given) | (np.isinf(given) & np.isnan(converted)))


_LARGEST_ROUNDED_TO_F4 = 7.0  # half a step above 6, the largest number of f4e2m1
