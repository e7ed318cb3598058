"""The .bin file: memory-mapped, with checked ranges, and the mark that ties it to its .xml."""

from __future__ import annotations

import math
import mmap
import os
import re
import sys
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ovir.core.element_types import ElementType, string
from ovir.core.encoding import Bytes, decode
from ovir.core.reading import open_regular, similar_file
from ovir.core.shapes import MAX_RANK
from ovir.diagnostics import codes
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, OperatorError, ReadError
from ovir.diagnostics.wording import exact_size_text, reason_of
from ovir.system.files import copy_range
from ovir.system.progress import counted

_LFS_HEAD = b"version https://git-lfs"


class FileVersion(NamedTuple):
    """A file as it was when it was opened."""

    path: str
    size: int
    modified: int
    """The time of its last change in nanoseconds."""
    inode: int = 0
    """The number by which the system knows the file, so that another one of the same path is not taken for it."""
    crc32: int | None = None
    """The checksum of its bytes, if the .xml that it was saved with says so."""

    def is_same(self, other: FileVersion | None) -> bool:
        """Return whether another machine that finds the other file there has the same bytes."""
        return other is not None and self[:3] == other[:3]

    def overwritten(self) -> str | None:
        """Return how this very file was changed since it was opened; None if it was not, or was removed or replaced."""
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        if state.st_ino != self.inode or (state.st_size, state.st_mtime_ns) == (self.size, self.modified):
            return None
        if state.st_size == self.size:
            return f"its {self.size:,} bytes were written again"
        return f"it had {self.size:,} bytes, and now has {state.st_size:,}"

    def copy_to(self, target: BinaryIO) -> bool:
        """Let the system copy the file to the beginning of an open one, which may then share its blocks on the disk.

        Return False, with nothing written, if it is not the file any more that it was.
        """
        try:
            source = open_regular(self.path)
        except OSError:
            return False
        with source:
            state = os.fstat(source.fileno())
            if (state.st_size, state.st_mtime_ns, state.st_ino) != (self.size, self.modified, self.inode):
                return False
            for start in counted("copying the weights", range(0, self.size, _COPIED)):
                copy_range(source, target, start, min(_COPIED, self.size - start))
        return True


class WeightBytes:
    """The bytes of all constants; nothing is read before it is used."""

    def __init__(self, data: Bytes, name: str, missing: bool = False, file: FileVersion | None = None) -> None:
        self.data = data
        self.name = name
        self.missing = missing
        self.file = file
        self._constants: dict[tuple[ElementType, tuple[int, ...], int, int], Constant] = {}

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> WeightBytes:
        """Map a file; ReadError if it cannot be read or is a git-LFS pointer."""
        name = os.fsdecode(path)
        try:
            with open_regular(name) as file:
                state = os.fstat(file.fileno())
                version = FileVersion(os.path.abspath(name), state.st_size, state.st_mtime_ns, state.st_ino)
                empty = state.st_size == 0
                data: Any = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            message, hint = f"cannot read the weights: {reason_of(error)}", similar_file(name)
            raise ReadError.of_file(name, message, hint=hint) from None
        if data[: len(_LFS_HEAD)] == _LFS_HEAD:
            message, hint = "this is a git-LFS pointer, not the weights", "fetch the real file with `git lfs pull`"
            raise ReadError(diagnose(codes.WEIGHTS_LFS, message, Place(name, 1), hint=hint))
        return cls(np.frombuffer(data, np.uint8), name, file=version)

    @classmethod
    def of(cls, buffer: Any) -> WeightBytes:
        """Return weights that are in memory: an object with the buffer protocol or ``__array__``, or a tensor of
        OpenVINO, which has an array as ``data``; InputError for anything else."""
        refuse_path_as_bytes(buffer)
        data = getattr(buffer, "data", None)
        given: Any = data if isinstance(data, np.ndarray) else buffer
        try:
            array = np.asarray(given if hasattr(given, "__array__") else memoryview(given))
        except (TypeError, ValueError):
            array = np.empty(0, object)
        if array.dtype.hasobject:
            message = f"weights must be a path or a buffer (bytes or an array of u8), got {type(buffer).__name__}"
            raise InputError.usage(message)
        if not array.flags.c_contiguous:
            hint = "copy it with numpy.ascontiguousarray(array)"
            raise InputError.usage("the array given as weights must be contiguous in memory", hint=hint)
        return cls(array.reshape(-1).view(np.uint8), "weights")

    @classmethod
    def none(cls, expected: str) -> WeightBytes:
        """Return empty weights; they are an error only if a constant needs some."""
        return cls(np.empty(0, np.uint8), expected, missing=True)

    def trust(self, mark: WeightsMark, xml: str) -> None:
        """Take over the checksum of a mark, unless the .bin was changed or replaced after its .xml was."""
        if self.file is None or self.file.size != mark.size:
            return
        try:
            states = os.stat(self.file.path), os.stat(xml)
        except OSError:  # an open file that has been removed
            return
        changed, written = (max(state.st_mtime_ns, state.st_ctime_ns) for state in states)
        if changed <= written:
            self.file = self.file._replace(crc32=mark.crc32)

    def __deepcopy__(self, memo: Any) -> WeightBytes:
        return self  # immutable, and possibly large

    def check(self, element_type: ElementType, shape: tuple[int, ...], offset: int, size: int) -> None:
        """Raise OperatorError unless the bytes are present and sufficient for the shape."""
        needed = _bytes_of(element_type, shape)
        if self.missing and size:
            raise OperatorError(
                f"the constant needs {exact_size_text(size)} of weights, but there is no file {self.name}",
                codes.NO_WEIGHTS,
                hint="put the .bin next to the .xml, or give its path: --weights FILE, or weights= in Python",
            )
        if offset + size > self.data.size:
            has = f"has {self.data.size} bytes: the file is truncated, or belongs to another .xml"
            state = has if self.data.size else "is empty"
            message = f"the constant needs bytes [{offset}, {offset + size}) of {self.name}, which {state}"
            raise OperatorError(message, codes.PAST_END)
        if size < needed:
            shown = ",".join(map(str, shape))
            raise OperatorError(
                f"attribute 'size' is {size}, but {element_type}[{shown}] takes {needed} bytes", codes.TOO_FEW_BYTES
            )

    def constant(self, element_type: ElementType, shape: tuple[int, ...], offset: int, size: int) -> Constant:
        """Return the bytes of a constant, the same object for equal types and places; OperatorError if they are not
        present."""
        place = element_type, shape, offset, size
        found = self._constants.get(place)
        if found is None:
            self.check(*place)
            found = self._constants[place] = Constant(self.data, *place, file=self.file)
        return found


@lru_cache(4096)
def _bytes_of(element_type: ElementType, shape: tuple[int, ...]) -> int:
    """Return the number of bytes of a constant; OperatorError for a type or shape that no constant can have."""
    if element_type.is_dynamic:
        raise OperatorError("a constant must have an element type, not dynamic", codes.BAD_ATTRIBUTE)
    if len(shape) > MAX_RANK:
        message = f"a shape has at most {MAX_RANK} dimensions, got {len(shape)}"
        raise OperatorError(message, codes.BAD_ATTRIBUTE)
    itemsize = element_type.to_dtype().itemsize
    if math.prod(max(length, 1) for length in shape) * itemsize > sys.maxsize:  # NumPy ignores zeros in this check
        shown = ",".join(map(str, shape))
        raise OperatorError(f"{element_type}[{shown}] is larger than any memory", codes.SIZE_OVERFLOW)
    return element_type.stored_bytes(math.prod(shape))


@dataclass(slots=True, eq=False)
class Constant:
    """The bytes of one constant, checked to be present and sufficient; a ``Blob``."""

    data: Bytes
    """All weights of the file."""
    element_type: ElementType
    shape: tuple[int, ...]
    offset: int
    size: int
    file: FileVersion | None = None
    """The file that holds the bytes, if they are in one."""
    _view: NDArray[Any] | None = None

    def __deepcopy__(self, memo: Any) -> Constant:
        return self  # immutable, as the weights

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _constant_of, (self.stored().tobytes(), self.element_type, self.shape)  # the file may not exist later

    def array(self) -> NDArray[Any]:
        """Return the read-only array, a view of the file if possible."""
        if self._view is not None:
            return self._view
        array = decode(self.stored(), self.element_type, self.shape)
        if np.may_share_memory(array, self.data):
            self._view = array
        return array

    def slices(self, which: slice | NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return slices along the first axis, each of a multiple of 8 elements."""
        length, *rest = self.shape
        stride = math.prod(rest) // 8 * self.element_type.bits
        rows = self.data[self.offset : self.offset + length * stride].reshape(length, stride)[which]
        return decode(rows.reshape(-1), self.element_type, (len(rows), *rest))

    def elements(self, start: int, stop: int) -> NDArray[Any]:
        """Return a range of the flat array; ``start`` is a multiple of 8."""
        if self.element_type == string:
            return self.array().reshape(-1)[start:stop]
        bits = self.element_type.bits
        raw = self.stored()
        return decode(raw[start // 8 * bits : -(-stop // 8) * bits], self.element_type, (stop - start,))

    def stored(self) -> Bytes:
        """Return the bytes as they are in the .bin."""
        return self.data[self.offset : self.offset + self.size]


def _constant_of(data: bytes, element_type: ElementType, shape: tuple[int, ...]) -> Constant:
    return Constant(WeightBytes.of(data).data, element_type, shape, 0, len(data))


def refuse_path_as_bytes(content: Any) -> None:
    """Raise InputError for bytes that are the path of a file, because bytes are taken as content."""
    if isinstance(content, bytes) and len(content) < 4096 and os.path.isfile(content):
        message = f"bytes must be the content of a file, got the path {content!r}"
        raise InputError.usage(message, hint="pass the path as a text: os.fsdecode(path)")


def mapping_of(data: Bytes) -> mmap.mmap | None:
    """Return the memory-mapped file that an array is part of; None if it is in memory."""
    base: Any = data
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    return mapped if isinstance(mapped, mmap.mmap) else None


def release_pages(data: Bytes) -> None:
    """Drop the pages of a memory-mapped file from the memory of this process, if ``data`` is part of one.

    The system reads them again on the next access. Otherwise the whole file would be in memory after it is read once. A
    mapping that can be written to is left as it is, because it may hold data that is in no file.
    """
    mapped = mapping_of(data)
    if mapped is None or not data.size or not hasattr(mapped, "madvise"):
        return
    with memoryview(mapped) as view:
        is_read_only = view.readonly
    if is_read_only:
        whole = np.frombuffer(mapped, np.uint8)
        start = data.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, first, start + data.nbytes - first)


def checksum(weights: Bytes) -> int:
    """Return the CRC-32 of all bytes; this reads all of them."""
    crc = 0
    for start in counted("checking the weights", range(0, weights.size, _CHUNK)):
        piece = weights[start : start + _CHUNK]
        crc = zlib.crc32(piece.data, crc)
        release_pages(piece)
    return crc


class WeightsMark(NamedTuple):
    """The size and the checksum of the .bin that a .xml was saved with."""

    size: int
    """In bytes."""
    crc32: int
    """The checksum of all bytes, as ``zlib.crc32`` computes it; it reveals mistakes, not attacks."""

    @classmethod
    def find(cls, xml: bytes) -> WeightsMark | None:
        """Return the mark of the content of a .xml, None if there is none, as in files that OpenVINO has saved."""
        match = CHECKSUM.search(xml, max(len(xml) - _END, 0))
        return None if match is None else cls(int(match[1]), int(match[2], 16))

    def __str__(self) -> str:
        return f'<?ovir-weights size="{self.size}" crc32="{self.crc32:08x}"?>'

    def misfit(self, name: str, weights: Bytes) -> str | None:
        """Return a message if the weights do not have the size of the mark; see ``has_checksum``."""
        if weights.size == self.size:
            return None
        return f"{name} has {weights.size} bytes, but the .xml was saved with {self.size} bytes of weights"

    def has_checksum(self, weights: Bytes) -> bool:
        """Return whether weights have the checksum of the mark; this reads all of them."""
        return checksum(weights) == self.crc32


CHECKSUM = re.compile(rb'<\?ovir-weights size="(\d{1,19})" crc32="([0-9a-f]{8})"\?>')
_END = 4096  # bytes at the end of a file that may hold the mark
_CHUNK = 1 << 24
"""Bytes of weights that are read at a time."""
_COPIED = 1 << 27
"""Bytes that the system copies at a time."""
