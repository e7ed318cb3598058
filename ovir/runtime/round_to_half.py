"""Round f32 to the values of f16 or bf16, stored as f32, in passes over blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.arrays import Array

_BLOCK = 1 << 16
"""The number of elements that are rounded together."""

LARGEST_F16 = np.float32(65504)
_LEAST_NORMAL = np.float32(2.0**-14)
_TOO_LARGE = np.float32(2.0**16)
_EXPONENT = np.int32(0x7F800000)
_LOWER_HALF = np.uint32(0xFFFF0000)
_NAN = np.uint32(0x7FC00000)

NARROW = ("f16", "bf16")
"""The names of the element types that tensors can be rounded to."""


def narrowed(array: Array, element_type: str, out: Array | None = None) -> Array:
    """Return an f32 or f64 array rounded to f16 or bf16, to the nearest value and ties to even, in its own type.

    What exceeds the range of f16 becomes infinite. The result is written to ``out``, which may be the array itself, or
    is a new array of the same layout.
    """
    if out is None:
        out = np.empty_like(array)  # of the same order of axes
    source, target = _in_memory_order(array), _in_memory_order(out)
    if source.dtype != np.float32 or source.strides != target.strides or not source.flags.c_contiguous:
        rounded = np.array(array, np.float32, order="C")
        _round(rounded.reshape(-1), rounded.reshape(-1), element_type)
        np.copyto(out, rounded)
    else:
        _round(source.reshape(-1), target.reshape(-1), element_type)
    return out


def _in_memory_order(array: Array) -> Array:
    """Return a view of the array whose axes have falling strides."""
    return array.transpose(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))


def _round(source: Array, target: Array, element_type: str) -> None:
    round_block: Callable[[Array, Array], None] = {"f16": _round_to_f16, "bf16": _round_to_bf16}[element_type]
    for start in range(0, source.size, _BLOCK):
        round_block(source[start : start + _BLOCK], target[start : start + _BLOCK])


def _round_to_f16(source: Array, target: Array) -> None:
    # The sum of a number and 2^13 times its own power of two ends in the 11 digits that f16 has; below the normal range
    # the power is the least one, and fewer digits remain.
    size: Array = np.abs(source)
    with np.errstate(over="ignore", invalid="ignore"):
        large: Array = np.bitwise_and(source.view(np.int32), _EXPONENT).view(np.float32)
        np.clip(large, _LEAST_NORMAL, _TOO_LARGE, out=large)
        np.multiply(large, np.float32(2**13), out=large)
        np.add(size, large, out=size)
        np.subtract(size, large, out=size)
        if size.size and not size.max() <= LARGEST_F16:  # or NaN
            size[size > LARGEST_F16] = np.inf
        np.copysign(size, source, out=target)


def _round_to_bf16(source: Array, target: Array) -> None:
    bits: Any = source.view(np.uint32)
    is_nan = np.isnan(source) if source.size and np.isnan(source.max()) else None
    rounded = np.right_shift(bits, np.uint32(16))
    np.bitwise_and(rounded, np.uint32(1), out=rounded)
    np.add(rounded, np.uint32(0x7FFF), out=rounded)
    np.add(rounded, bits, out=rounded)
    np.bitwise_and(rounded, _LOWER_HALF, out=rounded)
    if is_nan is not None:
        rounded[is_nan] = _NAN
    target.view(np.uint32)[...] = rounded
