"""Convert to the type that a kernel computes in, and back: a result is rounded to its tensor's type once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels import half
from ovir.kernels.blocked import compute_dtype, native_dtype


def as_computed(data: Array) -> Array:
    """Return the data in the type in which real-valued functions of it are computed (``compute_dtype``)."""
    return half.converted(data, compute_dtype(data.dtype))


def as_f32(data: Array) -> Array:
    """Return the data in f32, for a kernel that computes in f32 whatever the tensor's type."""
    return half.converted(data, np.dtype(np.float32))


def stored(result: Array, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    """Return a computed result as an array of type ``dtype``, written to ``out`` if given."""
    if result is out:
        return result
    if out is None:
        if result.dtype == dtype:
            return np.asarray(result, order="C")
        out = np.empty(result.shape, dtype)
    half.copy(result, out)
    return out


def rounded(result: Array, dtype: np.dtype[Any]) -> Array:
    """Return real results as an array of type ``dtype``, each rounded once; integers to the nearest, ties to even."""
    is_integer = compute_dtype(dtype) == np.float64 != dtype
    return np.asarray(np.rint(result) if is_integer else result).astype(dtype, copy=False)


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which elements of ``dtype`` are multiplied and summed: at least f32 for floats, int64 for
    integers, which wrap around."""
    native = native_dtype(dtype)
    return np.dtype(np.int64) if native.kind in "iu" else native


def from_sums(sums: Array, dtype: np.dtype[Any]) -> Array:
    """Return sums as an array of type ``dtype``: floats are rounded once, integers wrap around."""
    if sum_dtype(dtype).kind == "i":
        sums = sums.astype(np.int64, copy=False)  # the conversion of a float outside a narrow type's range is undefined
    return sums.astype(dtype, copy=False)
