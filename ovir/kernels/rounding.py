"""Real numbers as whole ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.arrays import Array

# What is beyond it is as far away as can be, and integers can be added to it.
_FAR = 2.0**62


def round_half_away(x: NDArray[Any]) -> NDArray[Any]:
    """The nearest whole numbers, of two the one further from 0."""
    # 0.5 itself would carry its predecessor to 1.
    half = np.nextafter(x.dtype.type(0.5), x.dtype.type(0))
    whole: NDArray[Any] = np.trunc(x + np.copysign(half, x))
    return whole


def as_index(whole: Array) -> NDArray[np.int64]:
    """Whole numbers as integers; infinite ones are far away, and what is no number is far below 0."""
    within = np.clip(whole, -_FAR, _FAR)  # several times faster than fmin and fmax, which would replace NaN
    is_nan = np.isnan(within)
    if is_nan.any():
        within[is_nan] = -_FAR
    return within.astype(np.int64)
