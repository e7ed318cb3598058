"""Writes the .bin: each distinct constant once, at a multiple of the size of its elements."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from ovir.core.element_types import ElementType
from ovir.ir.writing.sources import CHUNK, Source

_MOST_HELD = 1 << 25
"""Bytes of constants after which the memory of those that have been written is released."""
_SMALL = 1 << 12
"""Constants of up to so many bytes are compared by their bytes; of larger ones, samples are compared first."""
_SAMPLES = 8  # places, of 64 bytes each


@dataclass
class BlobWriter:
    """Appends constants to a file and keeps a record of where they are."""

    file: BinaryIO
    position: int = 0
    crc32: int = 0
    """The checksum of all that has been written."""
    _small: dict[bytes, int] = field(default_factory=dict)
    _large: dict[tuple[int, bytes], list[tuple[Source, int]]] = field(default_factory=dict)
    _held: list[tuple[Source, int, int]] = field(default_factory=list)
    _held_bytes: int = 0

    def add(self, source: Source, element_type: ElementType) -> int:
        """Write a constant, unless an equal one has been written; return where it is."""
        if source.size <= _SMALL:
            data = source.piece(0, source.size).tobytes()
            offset = self._small.get(data)
            if offset is None:
                offset = self._small[data] = self._align(element_type)
                self._write(data)
            return offset
        known = self._large.setdefault((source.size, _sampled(source)), [])
        for other, offset in known:
            if _are_equal(source, other):
                return offset
        offset = self._align(element_type)
        known.append((source, offset))
        for start, stop in _chunks(source.size):
            self._write(source.piece(start, stop))
            self._release_later(source, start, stop)
        return offset

    def _release_later(self, source: Source, start: int, stop: int) -> None:
        """Collect pieces until they take much memory, then release it; small models stay for the next save."""
        self._held.append((source, start, stop))
        self._held_bytes += stop - start
        if self._held_bytes > _MOST_HELD:
            for held in self._held:
                held[0].release(*held[1:])
            self._held.clear()
            self._held_bytes = 0

    def _align(self, element_type: ElementType) -> int:
        """Fill the file up to a multiple of the size of an element, so that readers need not copy the constant."""
        alignment = max(-(-element_type.bits // 8), 1)
        if padding := -self.position % alignment:
            self._write(bytes(padding))
        return self.position

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


def _are_equal(one: Source, other: Source) -> bool:
    for start, stop in _chunks(one.size, _SMALL):
        equal = np.array_equal(one.piece(start, stop), other.piece(start, stop))
        one.release(start, stop)
        other.release(start, stop)
        if not equal:
            return False
    return True
