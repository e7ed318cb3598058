"""The types that kernels compute in, and conversions to them and back: results are rounded once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ovir.core import half
from ovir.core.arrays import Array

_SMALL_INTEGERS = tuple(np.dtype(t) for t in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.uint2))


def native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which NumPy computes elements of ``dtype``; integers stay integers."""
    if dtype in _SMALL_INTEGERS:
        return np.dtype(np.int16)
    return np.dtype(np.float32) if dtype == np.float16 or is_foreign(dtype) else dtype


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which real-valued functions of elements of ``dtype`` are computed."""
    if dtype in (np.float32, np.float64):
        return dtype
    is_integer = dtype.kind in "iub" or "int" in dtype.name
    return np.dtype(np.float64 if is_integer else np.float32)


def is_foreign(dtype: np.dtype[Any]) -> bool:
    """Return whether the type is defined by ml_dtypes and not by NumPy."""
    return dtype.isbuiltin == 2


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type of NumPy or ml_dtypes."""
    info = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def lowest_finite(dtype: np.dtype[Any]) -> float:
    """Return the smallest finite number of a type, an int for an integer type."""
    if native_dtype(dtype).kind == "f":
        return float(ml_dtypes.finfo(dtype).min)  # type: ignore[no-untyped-call]
    return integer_range(dtype)[0]


def as_computed(data: Array) -> Array:
    """Return the data in the type in which real-valued functions of it are computed (``compute_dtype``)."""
    return half.converted(_forwards(data), compute_dtype(data.dtype))


def as_native(data: Array) -> Array:
    """Return the data in the type in which NumPy computes elements of its type (``native_dtype``)."""
    return half.converted(_forwards(data), native_dtype(data.dtype))


def _forwards(data: Array) -> Array:
    """Return the data in an order for which NumPy has vector code; without it the last bits of functions differ."""
    return data.copy() if min(data.strides, default=0) < 0 else data


def as_f32(data: Array) -> Array:
    """Return the data in f32, for a kernel that computes in f32 whatever the tensor's type."""
    return half.converted(data, np.dtype(np.float32))


def stored(result: Array, dtype: np.dtype[Any]) -> Array:
    """Return a computed result as an array of type ``dtype``, in C order."""
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
