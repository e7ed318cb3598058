"""Conversion between float16 and float32, which NumPy does one element at a time: here in passes over blocks.

A float16 is a float32 with fewer bits of both exponent and fraction. Shifted into place its bits mean the same number
times 2^-112, below the normal range too, so that one exact product does what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.arrays import Array

# Calls of NumPy cost more than they gain below this.
_SMALL = 1 << 10
_OFFSET = np.float32(2.0**112)
_SIGN_AND_DIGITS = np.int32(-0x70002000)  # all bits that 16 shifted by 13 can be in
_TOO_LARGE = np.float32(2.0**16)
_LEAST_NORMAL = np.float32(2.0**-14)
_INFINITE = np.int32(0x7C00)


def copy(source: Array, target: Array) -> None:
    """``np.copyto(target, source, casting="unsafe")``: the same values, sooner."""
    if source.size >= _SMALL and source.shape == target.shape:
        if source.dtype == np.float16 and target.dtype == np.float32:
            return _widen(source, target)
        if source.dtype == np.float32 and target.dtype == np.float16:
            return _narrow(source, target)
    np.copyto(target, source, casting="unsafe")
    return None


def converted(source: Array, dtype: np.dtype[Any]) -> Array:
    """``source.astype(dtype, copy=False)``."""
    if source.dtype == dtype:
        return source
    if source.dtype != np.float16 or dtype != np.float32:
        return source.astype(dtype)
    result = np.empty(source.shape, dtype)
    copy(source, result)
    return result


def _widen(source: Array, target: Array) -> None:
    bits = target.view(np.int32)
    np.copyto(bits, source.view(np.int16))
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _SIGN_AND_DIGITS, out=bits)
    np.multiply(target, _OFFSET, out=target)
    if not (target.min() > -_TOO_LARGE and target.max() < _TOO_LARGE):  # infinities and NaN have come out finite
        np.copyto(target, source)


def _narrow(source: Array, target: Array) -> None:
    # Adding 1.5 * 2^13 times its power of two leaves 10 bits of a fraction, rounded to the nearest, ties to even.
    rounder = np.bitwise_and(source.view(np.int32), np.int32(0x7F800000)).view(np.float32)
    np.clip(rounder, _LEAST_NORMAL, _TOO_LARGE, out=rounder)
    np.multiply(rounder, np.float32(1.5 * 2**13), out=rounder)
    rounded = np.add(source, rounder, out=np.empty_like(rounder))
    np.subtract(rounded, rounder, out=rounded)
    np.divide(rounded, _OFFSET, out=rounded)
    sign, bits = rounder.view(np.int32), rounded.view(np.int32)
    np.right_shift(source.view(np.int32), 16, out=sign)
    np.bitwise_and(sign, np.int32(-0x8000), out=sign)
    np.bitwise_and(bits, np.int32(0x7FFFFFFF), out=bits)
    np.right_shift(bits, 13, out=bits)
    if bits.max() > _INFINITE:  # too large numbers, infinities, NaN
        np.copyto(target, source, casting="unsafe")
        return
    np.bitwise_or(bits, sign, out=bits)
    np.copyto(target.view(np.int16), bits, casting="unsafe")
