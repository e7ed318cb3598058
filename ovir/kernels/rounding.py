"""Round real numbers to whole ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.arrays import Array

# Larger numbers are all equally far away, and this one leaves room for additions.
_FAR = 2**62


def round_half_away(x: NDArray[Any]) -> NDArray[Any]:
    """Round to the nearest whole number, halves away from 0."""
    # Adding 0.5 itself would round its predecessor up to 1.
    half = np.nextafter(x.dtype.type(0.5), x.dtype.type(0))
    whole: NDArray[Any] = np.trunc(x + np.copysign(half, x))
    return whole


def as_index(whole: Array, far: int = _FAR) -> NDArray[np.int64]:
    """Convert whole numbers to integers; infinities become ``far`` away, and NaN becomes ``far`` below 0."""
    within = np.clip(whole, -far, far)  # several times faster than fmin and fmax, which would replace NaN
    is_nan = np.isnan(within)
    if is_nan.any():
        within[is_nan] = -far
    return within.astype(np.int64)
