"""Into the type that a kernel computes in, and back: a result is rounded to the type of its tensor once, at the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels import half
from ovir.kernels.blocked import compute_dtype


def as_computed(data: Array) -> Array:
    """The data in the type that real functions of it are computed in (``compute_dtype``)."""
    return half.converted(data, compute_dtype(data.dtype))


def as_f32(data: Array) -> Array:
    """The data for a kernel that computes in f32, whatever the type."""
    return half.converted(data, np.dtype(np.float32))


def work_array(shape: tuple[int, ...], dtype: np.dtype[Any], out: Array | None) -> Array:
    """Where to compute a result of type ``dtype``: ``out`` if that has the type that is computed in."""
    computed = compute_dtype(dtype)
    return out if out is not None and computed == dtype else np.empty(shape, computed)


def stored(result: Array, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    """What was computed, in a ``work_array`` or elsewhere, as the result of type ``dtype``; in ``out`` if given."""
    if result is out:
        return result
    if out is None:
        if result.dtype == dtype:
            return np.asarray(result, order="C")
        out = np.empty(result.shape, dtype)
    half.copy(result, out)
    return out
