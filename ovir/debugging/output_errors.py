"""The distance of the outputs of two runs, as one number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.kernels.blas import single_thread

_BLOCK = 1 << 18
"""The number of elements that are compared at a time."""


def output_error(outputs: Sequence[Array], reference: Sequence[Array]) -> float:
    """Return the largest error of an output."""
    return max((tensor_error(one, other) for one, other in zip(outputs, reference, strict=True)), default=0.0)


def tensor_error(array: Array, reference: Array) -> float:
    """Return the error of a tensor as a share of the reference.

    For real numbers it is the root mean square of the difference, divided by the one of the reference. Elements where
    the reference is not finite, and equal, do not count; a NaN or an infinity elsewhere makes the error infinite. For
    other types it is the share of elements that differ. Tensors of different shapes have an infinite error.
    """
    if array.shape != reference.shape:
        return math.inf
    if not reference.size:
        return 0.0
    if array.dtype.kind in "TUSObiu":
        return float(np.count_nonzero(array != reference)) / reference.size
    difference = norm = 0.0
    one, other = array.reshape(-1), reference.reshape(-1)
    for start in range(0, one.size, _BLOCK):
        got = as_numbers(one[start : start + _BLOCK]).astype(np.float64)
        wanted = as_numbers(other[start : start + _BLOCK]).astype(np.float64)
        finite = np.isfinite(wanted)
        if not finite.all():
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
            if not (same | finite).all():
                return math.inf
            got, wanted = got[finite], wanted[finite]
        error = got - wanted
        with single_thread:
            difference += float(error @ error)
            norm += float(wanted @ wanted)
    if not math.isfinite(difference):
        return math.inf
    if not norm:
        return 0.0 if not difference else math.inf
    return math.sqrt(difference / norm)
