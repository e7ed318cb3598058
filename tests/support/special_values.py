"""The numbers and sizes that random ones never meet, for tests of kernels, fast forms, decompositions and exports."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f8e8m0, nf4, string, value_range

SIZES = (0, 1)
"""The sizes that a dimension may have without anybody thinking of it."""
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (1, 1), (0, 1), (1, 0), (2, 0), (0, 2), (2, 0, 3))
"""Shapes that consist of such sizes, and that of a scalar."""


def special_values(element_type: ElementType) -> Array:
    """Return the special values of an element type, each once, in an array of one dimension.

    For real numbers: both zeros and infinities, NaN, the largest, the smallest normal and subnormal numbers, a half and
    its neighbors, and those of 1, of either sign as far as the type has them. For integers: the least, the greatest, -1,
    0 and 1. For booleans both values, for strings an empty one and some others.
    """
    dtype = element_type.to_dtype()
    if element_type == string:
        return np.array(["", " ", "a", "ö"], dtype)
    if element_type.kind == "boolean":
        return np.array([False, True])
    if not element_type.is_real or element_type == nf4:  # which has codes
        low, high = (0, 15) if element_type == nf4 else map(int, value_range(element_type))
        return np.array([number for number in dict.fromkeys((0, 1, low, high, -1)) if low <= number <= high], dtype)
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    if element_type == f8e8m0:  # powers of 2 and NaN
        return np.array([1, 0.5, 2, float(info.min), float(info.max), np.nan]).astype(dtype)
    ends = info.max, info.tiny, info.smallest_subnormal
    digits = float(info.eps)
    middle = 0.5, 0.5 - digits / 4, 0.5 + digits / 2, 1, 1 - digits / 2, 1 + digits, 1.5, 2.5
    positive = [0.0, *map(float, ends), *middle]
    with np.errstate(all="ignore"):
        found = np.array([*positive, *(-number for number in positive), np.inf, -np.inf, np.nan]).astype(dtype)
    bits = found.view(np.dtype(f"u{dtype.itemsize}"))
    return np.asarray(found[np.sort(np.unique(bits, return_index=True)[1])])  # f8e4m3 and f4e2m1 have no infinities


def infinite_values(element_type: ElementType) -> Array:
    """Return the infinities and NaN of an element type, of which integers have none."""
    values = special_values(element_type)
    if not element_type.is_real or element_type == nf4:
        return values[:0]
    return np.asarray(values[~np.isfinite(values.astype(np.float64))])


def spread(
    array: Array, element_type: ElementType, rng: np.random.Generator, *, each: bool = True
) -> Iterator[tuple[str, Array]]:
    """Yield copies of an array with special values in random places, each with a title.

    First each special value alone in one place, or without ``each`` only infinities and NaN, which show which results
    depend on them; then all of them in random places, in one copy without infinities and NaN and in one with them. An
    array without elements has no copies.
    """
    values, infinite = special_values(element_type), infinite_values(element_type)
    if not array.size:
        return
    for value in values if each else infinite:
        changed = array.copy()
        changed.reshape(-1)[rng.integers(array.size)] = value
        yield f"one {value}", changed
    finite = values[: len(values) - len(infinite)]  # they come last
    for title, chosen in (("finite ones", finite), ("all", values)):
        drawn = chosen[rng.integers(0, len(chosen), array.shape)]
        yield title, np.where(rng.random(array.shape) < 0.5, drawn, array)
