"""The bytes of a saved .bin: constants are produced piece by piece, and each distinct one is written once."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

import numpy as np

from ovir.core.element_types import ElementType
from ovir.core.encoding import Bytes, encode
from ovir.diagnostics.codes import NO_WEIGHTS, PAST_END
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError, ReadError
from ovir.graph.layers import Layer
from ovir.ir.weights import Constant, checksum, mapping_of, release_pages
from ovir.ops.infrastructure import Const
from ovir.system.progress import counted

CHUNK = 1 << 22
"""Bytes that are read, converted and written at a time."""


class Source(Protocol):
    """The bytes of one constant."""

    @property
    def size(self) -> int:
        """Return the number of bytes."""

    def piece(self, start: int, stop: int) -> Bytes:
        """Return the bytes [start, stop); both are multiples of 8, or the end."""

    def release(self, start: int, stop: int) -> None:
        """Let the system take back the memory of these bytes, if they come from a file."""


@dataclass(eq=False)
class RawSource:
    """Bytes that are written as they are."""

    data: Bytes
    constant: Constant | None = None
    """The constant of a .bin that the bytes are, if they are one."""

    @property
    def size(self) -> int:
        return int(self.data.size)

    def piece(self, start: int, stop: int) -> Bytes:
        return self.data[start:stop]

    def release(self, start: int, stop: int) -> None:
        release_pages(self.data[start:stop])


def source_of(layer: Layer, op: Const, whole: set[int]) -> Source:
    """Return the bytes of a constant, as its file has them if it has a file.

    ``whole`` has the ids of the arrays of files that have been checked, and gets the id of this one.
    """
    data: Any = op.constant_data
    if isinstance(data, Constant):
        if id(data.data) not in whole:
            _require_whole(data.data, layer)
            whole.add(id(data.data))
        return RawSource(data.data[data.offset : data.offset + data.size], data)
    if hasattr(data, "piece"):
        found: Source = data
        return found
    if not op.has_data:
        raise ModelError(diagnose(NO_WEIGHTS, "the constant has no data", layer.data_place))
    return RawSource(encode(op.data, op.element_type))


def _require_whole(data: Bytes, layer: Layer) -> None:
    """Raise ReadError if the memory-mapped file of ``data`` is shorter than when it was opened.

    Access to the bytes that it has lost would end the process.
    """
    mapped = mapping_of(data)
    if mapped is not None and mapped.size() < len(mapped):
        message = f"the file of the weights has shrunk from {len(mapped)} to {mapped.size()} bytes since it was opened"
        raise ReadError(diagnose(PAST_END, message, layer.data_place))


_MOST_HELD = 1 << 25
"""Bytes of constants after which the memory of those that have been written is released."""
_SMALL = 1 << 12
"""Constants of up to so many bytes are compared by their bytes; of larger ones, samples are compared first."""
_SAMPLES = 8  # places, of 64 bytes each


@dataclass
class BlobWriter:
    """Appends constants to a file and keeps a record of where they are.

    As long as they lie as in the .bin that they come from, nothing is written: at the end, ``finish`` lets the system
    copy that file. Many edits change no constant.
    """

    file: BinaryIO
    position: int = 0
    crc32: int = 0
    """The checksum of all that has been written; known after ``finish``."""
    _small: dict[bytes, int] = field(default_factory=dict)
    _large: dict[tuple[int, bytes], list[tuple[Source, int]]] = field(default_factory=dict)
    _held: list[tuple[Source, int, int]] = field(default_factory=list)
    _held_bytes: int = 0
    _origin: Constant | None = None
    """A constant of the file whose beginning, up to ``position``, is what the new file would be so far."""

    def add(self, source: Source, element_type: ElementType) -> int:
        """Write a constant, unless an equal one has been written; return where it is."""
        if source.size <= _SMALL:
            data = source.piece(0, source.size).tobytes()
            offset = self._small.get(data)
            if offset is None:
                offset = self._small[data] = self._append(source, element_type)
            return offset
        known = self._large.setdefault((source.size, _sampled(source)), [])
        for other, offset in known:
            if are_equal(source, other):
                return offset
        offset = self._append(source, element_type)
        known.append((source, offset))
        return offset

    def finish(self) -> None:
        """Write the rest, once all constants have been added; the .xml is written after it."""
        if self._origin is not None and self.position == self._origin.data.size:
            data, file = self._origin.data, self._origin.file
            if file is not None and file.copy_to(self.file):
                self.crc32 = checksum(data) if file.crc32 is None else file.crc32
                self._origin = None
        self._leave_origin()
        self.file.flush()

    def _append(self, source: Source, element_type: ElementType) -> int:
        # Constants lie at multiples of the size of an element, so that readers need not copy them.
        padding = -self.position % max(-(-element_type.bits // 8), 1)
        offset = self.position + padding
        if self._continues_origin(source, padding):
            self.position = offset + source.size
            return offset
        self._leave_origin()
        self._write(bytes(padding))
        for start, stop in _chunks(source.size):
            self._write(source.piece(start, stop))
            self._release_later(source, start, stop)
        return offset

    def _continues_origin(self, source: Source, padding: int) -> bool:
        """Return whether the next bytes of the file that the constants come from are the padding and the constant."""
        constant = source.constant if isinstance(source, RawSource) else None
        if constant is None or constant.file is None or constant.offset != self.position + padding:
            return False
        if self._origin is None and not self.position:
            self._origin = constant
        is_same = self._origin is not None and constant.data is self._origin.data
        return is_same and not constant.data[self.position : constant.offset].any()

    def _leave_origin(self) -> None:
        """Write the bytes that were left to ``finish``."""
        if self._origin is None:
            return
        beginning = RawSource(self._origin.data[: self.position])
        self._origin, self.position = None, 0
        for start, stop in counted("writing the weights", list(_chunks(beginning.size))):
            self._write(beginning.piece(start, stop))
            beginning.release(start, stop)

    def _release_later(self, source: Source, start: int, stop: int) -> None:
        """Collect pieces until they take much memory, then release it; small models stay for the next save."""
        self._held.append((source, start, stop))
        self._held_bytes += stop - start
        if self._held_bytes > _MOST_HELD:
            for held in self._held:
                held[0].release(*held[1:])
            self._held.clear()
            self._held_bytes = 0

    def _write(self, data: Any) -> None:
        self.file.write(data)
        self.crc32 = zlib.crc32(data, self.crc32)
        self.position += len(data)


def _chunks(size: int, first: int = CHUNK) -> Iterator[tuple[int, int]]:
    start, step = 0, first
    while start < size:
        yield start, min(start + step, size)
        start, step = start + step, CHUNK


def _sampled(source: Source) -> bytes:
    """Return some of the bytes, by which most constants of equal size differ."""
    step = source.size // _SAMPLES & ~7
    return b"".join(source.piece(start, start + 64).tobytes() for start in range(0, step * _SAMPLES, step))


def are_equal(one: Source, other: Source) -> bool:
    """Return whether two sources of one size have the same bytes; they are read in pieces."""
    if isinstance(one, RawSource) and isinstance(other, RawSource) and one.constant is other.constant is not None:
        return True
    for start, stop in _chunks(one.size, _SMALL):
        equal = np.array_equal(one.piece(start, stop), other.piece(start, stop))
        one.release(start, stop)
        other.release(start, stop)
        if not equal:
            return False
    return True
