"""The bytes of tensors in a .bin: packed elements and strings, decoded to arrays and encoded from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.arrays import join_strings, split_strings
from ovir.core.element_types import ElementType, boolean, f4e2m1, i4, nf4, string, u1, u2, u3, u4, u6
from ovir.diagnostics.codes import STRING_DATA
from ovir.diagnostics.errors import OperatorError

Bytes = NDArray[Any]


def decode(raw: Bytes, element_type: ElementType, shape: Sequence[int]) -> NDArray[Any]:
    """Return a read-only array of ``element_type.to_dtype()`` from bytes of a .bin.

    Raises OperatorError if the bytes are not valid string data.
    """
    count = math.prod(shape)
    if element_type == string:
        array: NDArray[Any] = _decode_strings(raw, count)
    elif element_type in UNPACK:
        array = UNPACK[element_type](raw)[:count]
        array = array.view(element_type.to_dtype()) if element_type in (u2, u4, f4e2m1) else array
        array = array.astype(element_type.to_dtype()) if element_type == i4 else array
    else:
        dtype = element_type.to_dtype()
        raw = raw[: count * dtype.itemsize]
        if element_type == boolean and (raw > 1).any():
            raw = np.minimum(raw, 1)  # NumPy computes with the byte and expects only 0 and 1
        array = np.frombuffer(raw, dtype) if count else np.empty(0, dtype)
        if not array.flags.aligned:
            array = array.copy()
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _decode_strings(raw: Bytes, count: int) -> NDArray[Any]:
    """Decode a count, count + 1 offsets (int32) and UTF-8 bytes."""
    head = raw[: raw.size // 4 * 4].view("<i4") if raw.size else np.zeros(1, np.int32)
    if not head.size:
        message = f"the string data has {raw.size} bytes: it ends within the count of its strings"
        raise OperatorError(message, STRING_DATA)
    declared = int(head[0])
    if declared != count:
        raise OperatorError(f"the string data holds {declared} strings, the shape {count}", STRING_DATA)
    ends = head[1 : count + 2].astype(np.int64)
    text = raw[4 * (count + 2) :]
    if ends.size < count + 1:
        raise OperatorError(f"the string data ends within the offsets of its {count} strings", STRING_DATA)
    try:
        return split_strings(text, ends[:-1], ends[1:])
    except OperatorError as error:
        raise OperatorError(error.message, STRING_DATA) from None


def longest_string(raw: Bytes) -> int:
    """Return the bytes of the longest string, at most all of ``raw``, from the bytes of a .bin."""
    head = raw[: raw.size // 4 * 4].view("<i4")
    ends = head[1 : 2 + max(int(head[0]), 0)].astype(np.int64) if head.size else head
    return min(int(np.diff(ends).max(initial=0)), raw.size)


# --------------------------------------------------------------------------- bytes to values


def _padded(raw: Bytes, block: int) -> Bytes:
    missing = -raw.size % block
    return np.concatenate([raw, np.zeros(missing, np.uint8)]) if missing else raw


def _unpack_u2(raw: Bytes) -> Bytes:
    return (raw[:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3).ravel()


def _unpack_4(raw: Bytes) -> Bytes:
    out = np.empty(2 * raw.size, np.uint8)
    np.bitwise_and(raw, 15, out=out[0::2])
    np.right_shift(raw, 4, out=out[1::2])
    return out


def _unpack_i4(raw: Bytes) -> NDArray[np.int8]:
    codes = _unpack_4(raw).view(np.int8)
    return np.right_shift(np.left_shift(codes, 4), 4)  # the shift back extends the sign


def _unpack_u3(raw: Bytes) -> Bytes:
    """Unpack blocks of 8 values from 3 bytes: two bytes of low bit pairs, then one of high bits, most significant
    first."""
    blocks = _padded(raw, 3).reshape(-1, 3)
    low = (blocks[:, :2, None] >> np.array([6, 4, 2, 0], np.uint8) & 3).reshape(-1, 8)
    high = np.unpackbits(blocks[:, 2:], axis=1)
    return (low | high << 2).ravel()


def _unpack_u6(raw: Bytes) -> Bytes:
    """Unpack blocks of 4 values from 3 bytes: two bytes of low nibbles, then one of high bit pairs, most significant
    first."""
    blocks = _padded(raw, 3).reshape(-1, 3)
    low = (blocks[:, :2, None] >> np.array([4, 0], np.uint8) & 15).reshape(-1, 4)
    high = blocks[:, 2:] >> np.array([6, 4, 2, 0], np.uint8) & 3
    return (low | high << 4).ravel()


UNPACK: dict[ElementType, Callable[[Bytes], NDArray[Any]]] = {
    u1: np.unpackbits,  # most significant bit first
    u2: _unpack_u2,
    u3: _unpack_u3,
    u4: _unpack_4,
    u6: _unpack_u6,
    i4: _unpack_i4,
    nf4: _unpack_4,
    f4e2m1: _unpack_4,
}
"""The functions that return the values of whole bytes; the last ones may be padding."""


# --------------------------------------------------------------------------- values to bytes


def encode(array: NDArray[Any], element_type: ElementType) -> Bytes:
    """Return the bytes of a .bin for an array of ``element_type.to_dtype()``; the inverse of ``decode``."""
    if element_type == string:
        text, ends = join_strings(array)
        head = np.array([array.size, 0, *ends], "<i4")
        return np.concatenate([head.view(np.uint8), text])
    flat = np.ascontiguousarray(array).reshape(-1)
    if element_type in _PACK:
        return _PACK[element_type](flat.view(np.uint8))
    return flat.view(np.uint8)


def _filled(values: Bytes, block: int) -> Bytes:
    """Return the values in rows of whole blocks, with zeros at the end."""
    return _padded(values, block).reshape(-1, block)


def _pack_u2(values: Bytes) -> Bytes:
    shifted = (_filled(values, 4) & 3) << np.array([0, 2, 4, 6], np.uint8)
    packed: Bytes = np.bitwise_or.reduce(shifted, axis=1)
    return packed


def _pack_4(values: Bytes) -> Bytes:
    pairs = _filled(values, 2) & 15
    return pairs[:, 0] | pairs[:, 1] << 4


def _pack_u3(values: Bytes) -> Bytes:
    blocks = _filled(values, 8)
    low = (blocks & 3).reshape(-1, 2, 4) << np.array([6, 4, 2, 0], np.uint8)
    high = np.packbits(blocks >> 2 & 1, axis=1)
    return np.concatenate([np.bitwise_or.reduce(low, axis=2), high], axis=1).ravel()


def _pack_u6(values: Bytes) -> Bytes:
    blocks = _filled(values, 4)
    low = (blocks & 15).reshape(-1, 2, 2) << np.array([4, 0], np.uint8)
    high = (blocks >> 4 & 3) << np.array([6, 4, 2, 0], np.uint8)
    parts = [np.bitwise_or.reduce(low, axis=2), np.bitwise_or.reduce(high, axis=1, keepdims=True)]
    return np.concatenate(parts, axis=1).ravel()


_PACK: dict[ElementType, Callable[[Bytes], Bytes]] = {
    u1: np.packbits,
    u2: _pack_u2,
    u3: _pack_u3,
    u4: _pack_4,
    u6: _pack_u6,
    i4: _pack_4,
    nf4: _pack_4,
    f4e2m1: _pack_4,
}
