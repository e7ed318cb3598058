"""Convert between float16 and float32 in passes over blocks; NumPy converts one element at a time.

A float16 is a float32 with fewer exponent and fraction bits. Shifted into place, its bits represent the same number
times 2^-112, also below the normal range, so one exact multiplication completes the conversion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.arrays import Array

# Below this size the extra NumPy calls cost more than they gain.
_SMALL = 1 << 10
OFFSET = np.float32(2.0**112)
"""The factor that undoes the scaling of ``shift``."""
_SIGN_AND_DIGITS = np.int32(-0x70002000)  # all bits that a 16-bit number shifted by 13 can occupy
_LEAST_NORMAL = np.float32(2.0**-14)
_TOO_LARGE = np.float32(2.0**16)
_NAN = np.float32(1.5 * 2.0**16)  # its bits, rounded as if it were a number, are a NaN's


def copy(source: Array, target: Array) -> None:
    """Copy like ``np.copyto(target, source, casting="unsafe")``, but faster."""
    if source.size >= _SMALL and source.shape == target.shape:
        if source.dtype == np.float16 and target.dtype == np.float32:
            return _widen(source, target)
        if source.dtype == np.float32 and target.dtype == np.float16:
            return _narrow(source, target)
        if target.dtype == np.float16 and source.dtype not in (np.float16, np.float64):
            return _narrow(source.astype(np.float32), target)  # what f32 cannot hold is infinite in f16
    np.copyto(target, source, casting="unsafe")
    return None


def converted(source: Array, dtype: np.dtype[Any]) -> Array:
    """Return ``source.astype(dtype, copy=False)``, computed faster for float16 and float32."""
    if source.dtype == dtype:
        return source
    if source.dtype != np.float16 or dtype != np.float32:
        return source.astype(dtype)
    result = np.empty(source.shape, dtype)
    copy(source, result)
    return result


def shift(source: Array, target: Array) -> None:
    """Fill an f32 array with 2^-112 of finite f16."""
    bits = target.view(np.int32)
    np.copyto(bits, source.view(np.int16))
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _SIGN_AND_DIGITS, out=bits)


def _widen(source: Array, target: Array) -> None:
    shift(source, target)
    bits = target.view(np.int32)
    if source.view(np.int16).max() >= 0x7C00 or source.view(np.uint16).max() >= 0xFC00:  # infinities and NaN
        # Only the exponents of infinities and NaN overflow, into a bit from which the missing ones are made.
        overflow = np.add(bits, np.int32(0x00800000))
        np.bitwise_and(overflow, np.int32(0x10000000), out=overflow)
        np.multiply(overflow, np.int32(7), out=overflow)
        np.bitwise_or(bits, overflow, out=bits)
    with np.errstate(invalid="ignore"):  # signalling NaN
        np.multiply(target, OFFSET, out=target)


def _narrow(source: Array, target: Array) -> None:
    size = np.abs(source)
    if not size.max() < _TOO_LARGE:  # or NaN
        np.clip(size, 0, _TOO_LARGE, out=size)
        np.minimum(size.view(np.int32), _NAN.view(np.int32), out=size.view(np.int32))
    # The sum with 2^13 times the number's own power of two ends in the 11 digits that are kept, rounded to the nearest,
    # ties to even; above them stands the exponent. Twice the power more makes up for the difference of the formats'
    # exponents when both are put together.
    exponent = np.bitwise_and(size.view(np.int32), np.int32(0x7F800000))
    power = exponent.view(np.float32)
    np.clip(power, _LEAST_NORMAL, _TOO_LARGE, out=power)
    np.multiply(power, np.float32(2**13 + 2), out=power)
    np.add(size, power, out=size)
    digits, bits = size.view(np.int32), exponent
    np.right_shift(digits, 13, out=bits)
    np.add(bits, digits, out=bits)
    sign = np.right_shift(source.view(np.int32), 16, out=digits)
    np.bitwise_and(sign, np.int32(-0x8000), out=sign)
    # Bits above the lowest 16 are discarded.
    np.bitwise_or(bits, sign, out=bits)
    np.copyto(target.view(np.int16), bits, casting="unsafe")
