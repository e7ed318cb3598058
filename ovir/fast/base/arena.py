"""Memory for arrays that are not needed at the same time."""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

import numpy as np

from ovir.core.arrays import Array

# A cache line in bytes: rows copied to unaligned memory can take several times as long.
_ALIGNMENT = 64
# A new chunk has at least this many bytes, so that the arrays of small models lie close together.
_CHUNK = 1 << 19


class Span(NamedTuple):
    """A stretch of memory in one chunk of an arena, in bytes."""

    chunk: int
    start: int
    stop: int


class Arena:
    """Gives out memory and takes it back. The lowest free stretch is used first, because it is still in a cache."""

    def __init__(self) -> None:
        self._chunks: list[Array] = []
        self._free: list[Span] = []

    @property
    def size(self) -> int:
        """Return how many bytes the arena has allocated."""
        return sum(chunk.size for chunk in self._chunks)

    def take(self, size: int) -> Span:
        """Return memory for ``size`` bytes. Raise MemoryError if the system grants none."""
        size = max(-(-size // _ALIGNMENT), 1) * _ALIGNMENT
        for index, span in enumerate(self._free):
            if span.stop - span.start >= size:
                if span.stop - span.start == size:
                    del self._free[index]
                else:
                    self._free[index] = span._replace(start=span.start + size)
                return Span(span.chunk, span.start, span.start + size)
        chunk = max(size, _CHUNK)
        self._chunks.append(aligned_bytes(chunk))
        if chunk > size:
            insort(self._free, Span(len(self._chunks) - 1, size, chunk))
        return Span(len(self._chunks) - 1, 0, size)

    def give(self, span: Span) -> None:
        """Take memory back."""
        insort(self._free, span)
        index = self._free.index(span)
        for left in (index, index - 1):
            if left < 0 or left + 1 >= len(self._free):
                continue
            a, b = self._free[left], self._free[left + 1]
            if a.chunk == b.chunk and a.stop == b.start:
                self._free[left : left + 2] = [Span(a.chunk, a.start, b.stop)]

    def bytes(self, span: Span, size: int) -> Array:
        """Return the first ``size`` bytes of memory that has been taken."""
        return self._chunks[span.chunk][span.start : span.start + size]


def aligned_bytes(size: int) -> Array:
    """Return new memory that begins at a cache line."""
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except ValueError as error:  # more than any address space has
        raise MemoryError(str(error)) from None
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]
