"""The .bin file: memory-mapped, range-checked, and its packed types decoded.

Layouts are those of the IR format: values of less than a byte share bytes in an order that differs
by type. See docs/ir-format.md.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ovir.core.element_types import ElementType, boolean, f4e2m1, i4, nf4, string, u1, u2, u3, u4, u6
from ovir.core.strings import split_strings
from ovir.diagnostics.codes import (
    BAD_ATTRIBUTE,
    NO_WEIGHTS,
    PAST_END,
    SIZE_OVERFLOW,
    STRING_DATA,
    TOO_FEW_BYTES,
    UNREADABLE,
    USAGE,
    WEIGHTS_LFS,
)
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, OperatorError, ReadError

Bytes = NDArray[Any]
_LFS_HEAD = b"version https://git-lfs"


class Weights:
    """The bytes that constants point into. Nothing is read before it is used."""

    def __init__(self, data: Bytes, name: str, missing: bool = False) -> None:
        self.data = data
        self.name = name
        self.missing = missing
        self._constants: dict[tuple[ElementType, tuple[int, ...], int, int], Constant] = {}

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Weights:
        """Map a file; ReadError when it cannot be read or is a git-LFS pointer."""
        name = os.fsdecode(path)
        try:
            with open_regular(name) as file:
                empty = os.fstat(file.fileno()).st_size == 0
                data: Any = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ReadError(diagnose(UNREADABLE, f"cannot read the weights: {reason}", Place(name))) from None
        if data[: len(_LFS_HEAD)] == _LFS_HEAD:
            raise ReadError(
                diagnose(
                    WEIGHTS_LFS,
                    "this is a git-LFS pointer, a text that stands in place of the weights",
                    Place(name, 1),
                    hint="fetch the real file with `git lfs pull`",
                )
            )
        return cls(np.frombuffer(data, np.uint8), name)

    @classmethod
    def of(cls, buffer: Any) -> Weights:
        """Weights that are in memory: anything with the buffer protocol. InputError for anything else."""
        refuse_path_as_bytes(buffer)
        try:
            view = memoryview(buffer)
        except (TypeError, ValueError):
            message = f"weights are a path or a buffer, as bytes or an array of u8, got {type(buffer).__name__}"
            raise InputError(diagnose(USAGE, message)) from None
        if not view.c_contiguous:
            hint = "copy it, as with numpy.ascontiguousarray(array)"
            raise InputError(diagnose(USAGE, "the array given as weights has gaps in memory", hint=hint))
        return cls(np.frombuffer(buffer, np.uint8) if view.nbytes else np.empty(0, np.uint8), "weights")

    @classmethod
    def none(cls, expected: str) -> Weights:
        """No weights at all, which is an error only once a constant needs some."""
        return cls(np.empty(0, np.uint8), expected, missing=True)

    def __deepcopy__(self, memo: Any) -> Weights:
        return self  # it never changes, and may be large

    def check(self, element_type: ElementType, shape: tuple[int, ...], offset: int, size: int) -> None:
        """OperatorError unless the bytes are there and suffice for the shape."""
        needed = _bytes_of(element_type, shape)
        if self.missing and size:
            raise OperatorError(
                f"the constant needs {size} bytes of weights, and there is no file {self.name}",
                NO_WEIGHTS,
                hint="put the .bin beside the .xml, or give its path as the weights",
            )
        if offset + size > self.data.size:
            raise OperatorError(
                f"the constant needs bytes [{offset}, {offset + size}) of {self.name}, which has {self.data.size}: "
                "the file is truncated, or belongs to another .xml",
                PAST_END,
            )
        if size < needed:
            shown = ",".join(map(str, shape))
            raise OperatorError(
                f"attribute 'size' is {size}, but {element_type}[{shown}] takes {needed} bytes", TOO_FEW_BYTES
            )

    def constant(self, element_type: ElementType, shape: tuple[int, ...], offset: int, size: int) -> Constant:
        """The bytes of a constant; OperatorError where they are not there. Of equal place and type there is one."""
        place = element_type, shape, offset, size
        found = self._constants.get(place)
        if found is None:
            self.check(*place)
            found = self._constants[place] = Constant(self.data, *place)
        return found


@lru_cache(4096)
def _bytes_of(element_type: ElementType, shape: tuple[int, ...]) -> int:
    """How many bytes the numbers of a constant take; OperatorError for a type or shape that none can have."""
    if element_type.is_dynamic:
        raise OperatorError("a constant must have an element type, not dynamic", BAD_ATTRIBUTE)
    if len(shape) > _MAX_RANK:
        message = f"the shape has {len(shape)} dimensions; ovir's arrays have at most {_MAX_RANK}"
        raise OperatorError(message, BAD_ATTRIBUTE)
    itemsize = element_type.to_dtype().itemsize
    if math.prod(max(length, 1) for length in shape) * itemsize > sys.maxsize:  # NumPy counts without the zeros
        shown = ",".join(map(str, shape))
        raise OperatorError(f"{element_type}[{shown}] is larger than any memory", SIZE_OVERFLOW)
    return -(-math.prod(shape) * element_type.bits // 8)


@dataclass(slots=True, eq=False)
class Constant:
    """Bytes that have been checked to be there and to suffice; a ``Blob``."""

    data: Bytes
    """All of the weights."""
    element_type: ElementType
    shape: tuple[int, ...]
    offset: int
    size: int
    _view: NDArray[Any] | None = None

    def __deepcopy__(self, memo: Any) -> Constant:
        return self  # as the weights

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        own = self.data[self.offset : self.offset + self.size].tobytes()  # of a file that may not be there later
        return _constant_of, (own, self.element_type, self.shape)

    def array(self) -> NDArray[Any]:
        """The read-only array; a view wherever that is possible."""
        if self._view is not None:
            return self._view
        array = decode(self.data[self.offset : self.offset + self.size], self.element_type, self.shape)
        if not array.flags.owndata:
            self._view = array
        return array

    def slices(self, which: slice | NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Slices along the first axis, each of a multiple of 8 elements."""
        length, *rest = self.shape
        stride = math.prod(rest) // 8 * self.element_type.bits
        rows = self.data[self.offset : self.offset + length * stride].reshape(length, stride)[which]
        return decode(rows.reshape(-1), self.element_type, (len(rows), *rest))


def _constant_of(data: bytes, element_type: ElementType, shape: tuple[int, ...]) -> Constant:
    return Constant(Weights.of(data).data, element_type, shape, 0, len(data))


def decode(raw: Bytes, element_type: ElementType, shape: Sequence[int]) -> NDArray[Any]:
    """Bytes as they stand in a .bin -> a read-only array of ``element_type.to_dtype()``.

    Raises OperatorError where the bytes are no string data.
    """
    count = math.prod(shape)
    if element_type == string:
        array: NDArray[Any] = _decode_strings(raw, count)
    elif element_type in _UNPACK:
        array = _UNPACK[element_type](raw)[:count]
        array = array.view(element_type.to_dtype()) if element_type in (u2, u4, f4e2m1) else array
        array = array.astype(element_type.to_dtype()) if element_type == i4 else array
    else:
        dtype = element_type.to_dtype()
        raw = raw[: count * dtype.itemsize]
        if element_type == boolean and (raw > 1).any():
            raw = np.minimum(raw, 1)  # NumPy computes with the byte, and expects no other
        array = np.frombuffer(raw, dtype) if count else np.empty(0, dtype)
        if not array.flags.aligned:
            array = array.copy()
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


_MAX_RANK = 64  # NumPy's


def open_regular(path: str) -> BinaryIO:
    """Open a file to read it; OSError where it is none, as a pipe, on which a reader may wait for ever."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # open() has its own words for a directory
        raise OSError(errno.EINVAL, "it is a pipe or device, not a regular file")
    return open(path, "rb")


def refuse_path_as_bytes(content: Any) -> None:
    """InputError for bytes that are the path of a file: as bytes, content is given."""
    if isinstance(content, bytes) and len(content) < 4096 and os.path.isfile(content):
        message = f"bytes are taken for a file's content, and {content!r} is the path of one"
        raise InputError(diagnose(USAGE, message, hint="give it as a text, as by os.fsdecode(path)"))


# --------------------------------------------------------------------------- packed layouts


def _padded(raw: Bytes, block: int) -> Bytes:
    missing = -raw.size % block
    return np.concatenate([raw, np.zeros(missing, np.uint8)]) if missing else raw


def _unpack_u1(raw: Bytes) -> Bytes:
    return np.unpackbits(raw)  # most significant bit first


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
    """Blocks of 8 values in 3 bytes: two bytes of low pairs, one of high bits, each from the top down."""
    blocks = _padded(raw, 3).reshape(-1, 3)
    low = (blocks[:, :2, None] >> np.array([6, 4, 2, 0], np.uint8) & 3).reshape(-1, 8)
    high = np.unpackbits(blocks[:, 2:], axis=1)
    return (low | high << 2).ravel()


def _unpack_u6(raw: Bytes) -> Bytes:
    """Blocks of 4 values in 3 bytes: two bytes of low nibbles, one of high pairs, each from the top down."""
    blocks = _padded(raw, 3).reshape(-1, 3)
    low = (blocks[:, :2, None] >> np.array([4, 0], np.uint8) & 15).reshape(-1, 4)
    high = blocks[:, 2:] >> np.array([6, 4, 2, 0], np.uint8) & 3
    return (low | high << 4).ravel()


_UNPACK: dict[ElementType, Callable[[Bytes], NDArray[Any]]] = {
    u1: _unpack_u1,
    u2: _unpack_u2,
    u3: _unpack_u3,
    u4: _unpack_4,
    u6: _unpack_u6,
    i4: _unpack_i4,
    nf4: _unpack_4,
    f4e2m1: _unpack_4,
}


def _decode_strings(raw: Bytes, count: int) -> NDArray[Any]:
    """A count, count + 1 offsets (int32) and UTF-8 bytes."""
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
