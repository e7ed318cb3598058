"""Writes the .bin: each distinct constant once, at a multiple of the size of its elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from ovir.core.element_types import ElementType
from ovir.ir.writing.sources import CHUNK, Source

_SMALL = 1 << 12
"""Constants of up to so many bytes are compared by their bytes; of larger ones, samples are compared first."""
_SAMPLES = 32  # places, of 8 bytes each


@dataclass
class BlobWriter:
    """Appends constants to a file and remembers where they are."""

    file: BinaryIO
    position: int = 0
    _small: dict[bytes, int] = field(default_factory=dict)
    _large: dict[tuple[int, bytes], list[tuple[Source, int]]] = field(default_factory=dict)

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
            source.release(start, stop)
        return offset

    def _align(self, element_type: ElementType) -> int:
        """Fill the file up to a multiple of the size of an element, so that readers need not copy the constant."""
        alignment = max(-(-element_type.bits // 8), 1)
        self._write(bytes(-self.position % alignment))
        return self.position

    def _write(self, data: Any) -> None:
        self.file.write(data)
        self.position += len(data)


def _chunks(size: int, first: int = CHUNK) -> Iterator[tuple[int, int]]:
    start, step = 0, first
    while start < size:
        yield start, min(start + step, size)
        start, step = start + step, CHUNK


def _sampled(source: Source) -> bytes:
    """Return some of the bytes, by which most constants of equal size differ."""
    step = source.size // _SAMPLES & ~7
    return b"".join(source.piece(start, start + 8).tobytes() for start in range(0, step * _SAMPLES, step))


def _are_equal(one: Source, other: Source) -> bool:
    for start, stop in _chunks(one.size, _SMALL):
        equal = np.array_equal(one.piece(start, stop), other.piece(start, stop))
        one.release(start, stop)
        other.release(start, stop)
        if not equal:
            return False
    return True
