"""The memory that the tensors of a run use one after the other."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ovir.core.arrays import Array

_ALIGNMENT = 64
"""The bytes of a cache line: rows copied to unaligned memory can take several times as long."""
_CHUNK = 1 << 19
"""The bytes that a new chunk has at least, so that the arrays of small models lie close together."""


class Span(NamedTuple):
    """A stretch of memory in one chunk of an arena, in bytes."""

    chunk: int
    start: int
    stop: int


class Arena:
    """Gives out memory and takes it back. The lowest free stretch is used first, because it is still in a cache."""

    def __init__(self) -> None:
        _keep_freed_memory()
        self._chunks: list[Array] = []
        self._free: list[Span] = []

    @property
    def size(self) -> int:
        """Return the number of bytes that the arena has allocated."""
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


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep memory that kernels free, by freeing a large block.

    Otherwise glibc returns each block of more than 128 KB to the system, and the pages of the next one are made anew: a
    DeformableConvolution of 28x28 pixels takes 1.8 ms instead of 0.6. The size of the largest mapped block that was
    freed is where glibc draws the line, up to 32 MB.
    """
    np.empty(_LARGEST_KEPT, np.uint8)


_LARGEST_KEPT = 31 << 20


def aligned_bytes(size: int) -> Array:
    """Return new memory that begins at a cache line."""
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except ValueError as error:  # more than any address space has
        raise MemoryError(str(error)) from None
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]


class SlotMemory:
    """The stretches of an arena that the slots of a plan lie in; one is free again when no slot uses it any more."""

    def __init__(self) -> None:
        self.arena = Arena()
        self._spans: dict[int, list[Span]] = {}
        self._users: dict[Span, int] = {}

    def allocate(self, slot: int, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return a new array for a slot."""
        span, array = self.take(shape, dtype)
        self._spans[slot] = [span]
        self._users[span] = 1
        return array

    def take(self, shape: Sequence[int], dtype: np.dtype[Any]) -> tuple[Span, Array]:
        """Return a new array, and the memory to give back."""
        size = prod(shape) * dtype.itemsize
        span = self.arena.take(size)
        return span, self.arena.bytes(span, size).view(dtype).reshape(shape)

    def share(self, slot: int, others: Iterable[int]) -> None:
        """Record that a slot may be a view of the others, whose memory is kept for it."""
        spans = {span for other in others for span in self._spans.get(other, ())}
        if spans:
            self._spans[slot] = list(spans)
            for span in spans:
                self._users[span] += 1

    def release(self, slot: int) -> None:
        """Record that a slot is not used any more."""
        for span in self._spans.pop(slot, ()):
            self._users[span] -= 1
            if not self._users[span]:
                del self._users[span]
                self.arena.give(span)

    def spans(self, slot: int) -> Sequence[Span]:
        """Return the stretches of memory that a slot lies in, none if it does not lie in the arena."""
        return self._spans.get(slot, ())

    def is_alone(self, slot: int) -> bool:
        """Return whether the slot lies in the arena and no other slot shares its memory."""
        spans = self._spans.get(slot, ())
        return len(spans) == 1 and self._users[spans[0]] == 1
