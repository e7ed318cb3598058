"""The types that kernels compute in, and conversions to them and back: results are rounded once.

In C, the conversion of a number beyond an integer type depends on the processor. So real numbers that may be NaN or
beyond a type become integers here only.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from ovir.core import float16
from ovir.core.arrays import Array

_SMALL_INTEGERS = tuple(np.dtype(t) for t in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.uint2))


_INT32 = np.dtype(np.int32)
_WIDE = {np.dtype(t): np.dtype(np.int64) for t in (np.uint32, np.int64, np.uint64)}
"""The integers that real numbers become first, by type; ``_INT32`` for all others."""


@cache
def native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which NumPy computes elements of ``dtype``; integers stay integers."""
    if dtype in _SMALL_INTEGERS:
        return np.dtype(np.int16)
    return np.dtype(np.float32) if dtype == np.float16 or is_foreign(dtype) else dtype


@cache
def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which real-valued functions of elements of ``dtype`` are computed."""
    if dtype in (np.float32, np.float64):
        return dtype
    is_integer = dtype.kind in "iub" or "int" in dtype.name
    return np.dtype(np.float64 if is_integer else np.float32)


@cache
def is_integer(dtype: np.dtype[Any]) -> bool:
    """Return whether a type of NumPy or ml_dtypes is an integer type."""
    return dtype.kind in "iu" or "int" in dtype.name


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
    return float16.converted(forwards(data), compute_dtype(data.dtype))


def as_native(data: Array) -> Array:
    """Return the data in the type in which NumPy computes elements of its type (``native_dtype``)."""
    return float16.converted(forwards(data), native_dtype(data.dtype))


def forwards(data: Array) -> Array:
    """Return the data in an order for which NumPy has vector code; without it the last bits of functions differ."""
    return data.copy() if data.ndim and min(data.strides) < 0 else data


def as_f32(data: Array) -> Array:
    """Return the data in f32, for a kernel that computes in f32 whatever the tensor's type."""
    return float16.converted(data, np.dtype(np.float32))


def stored(result: Array, dtype: np.dtype[Any]) -> Array:
    """Return a computed result as an array of type ``dtype``, in C order."""
    if result.dtype == dtype:
        return np.asarray(result, order="C")
    out = np.empty(result.shape, dtype)
    if result.dtype.kind == "f" and is_integer(dtype):
        fill_integers(result, out)
    else:
        float16.copy(result, out)
    return out


def rounded(result: Array, dtype: np.dtype[Any]) -> Array:
    """Return real results as an array of type ``dtype``, each rounded once; integers to the nearest, ties to even."""
    if result.dtype == dtype:
        return np.asarray(result)
    has_integers = compute_dtype(dtype) == np.float64 != dtype
    return stored(np.asarray(np.rint(result)), dtype) if has_integers else np.asarray(result).astype(dtype, copy=False)


@cache
def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which elements of ``dtype`` are multiplied and summed: at least f32 for floats, int64 for
    integers, which wrap around."""
    native = native_dtype(dtype)
    return np.dtype(np.int64) if native.kind in "iu" else native


def from_sums(sums: Array, dtype: np.dtype[Any]) -> Array:
    """Return sums as an array of type ``dtype``: floats are rounded once, integers wrap around."""
    if sum_dtype(dtype).kind == "i" and sums.dtype.kind == "f":
        sums = to_integers(sums, np.dtype(np.int64))
    return sums.astype(dtype, copy=False)


def to_integers(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers as integers; for real ones see ``fill_integers``."""
    if is_integer(x.dtype):
        return x.astype(dtype)
    out = np.empty(x.shape, dtype)
    fill_integers(x, out)
    return out


def fill_integers(x: Array, out: Array) -> None:
    """Fill an array of integers with real numbers, truncated, as OpenVINO's reference converts them on x86.

    Numbers are converted to i32, to i64 for u32 and 64-bit types, of which the type takes the low bits. NaN and what
    these do not hold become their least number. u64 also holds the numbers from 2^63 on; larger ones become 0.
    """
    if x.dtype.char not in "fd":
        x = x.astype(np.float32)
    dtype, wide = out.dtype, _WIDE.get(out.dtype, _INT32)
    whole = out if dtype == wide else out.view(wide) if dtype == np.uint64 else np.empty(x.shape, wide)
    try:
        with np.errstate(invalid="raise"):
            np.copyto(whole, x, casting="unsafe")
    except FloatingPointError:
        limit = x.dtype.type(2.0 ** (8 * wide.itemsize - 1))
        x = np.asarray(np.trunc(x))
        np.copyto(whole, np.where((x >= -limit) & (x < limit), x, -limit), casting="unsafe")
        if dtype == np.uint64:
            beyond = x >= limit
            rest = np.where(x < 2 * limit, x - limit, 0)[beyond].astype(np.uint64)
            out[beyond] = np.where(x[beyond] < 2 * limit, rest + np.uint64(1 << 63), np.uint64(0))
    if whole is not out:
        np.copyto(out, whole, casting="unsafe")


def fill_saturated(x: Array, out: Array) -> None:
    """Fill an array of integers with real numbers, truncated; the nearest number of the type stands for those beyond
    it, and 0 for NaN."""
    low, high = integer_range(out.dtype)
    above = x >= x.dtype.type(high + 1)  # ``high`` itself may not be a number of this type
    np.copyto(out, np.where(above | np.isnan(x), 0, np.maximum(x, low)), casting="unsafe")
    if above.any():
        out[above] = high
