"""Blocks of a gather: cut the indices so that indices, positions and results stay in a cache.

The indices are known to be in range; see ``ovir.fast.gather``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ovir.core.arrays import Array
from ovir.core.parallel import run_blocks

Mode = Literal["clip", "wrap"]

_BLOCK_ENTRIES, _BLOCK_BYTES = 1 << 17, 1 << 20
"""A block's indices, positions and results should stay in a cache. Yet a block should be large enough that handing over
the GIL around each NumPy call, which may wake a sleeping thread, is negligible."""
_CACHE_BYTES, _MIN_COLUMNS = 1 << 18, 1 << 8
"""Data of this size are still in a core's cache when they are read again; narrower blocks gain nothing."""
_BYTES_PER_THREAD, _MIN_ENTRY_BYTES = 1 << 21, 16
"""The fewest bytes that justify waking another thread, and the bytes as which an entry counts at least, because its
index has to be read, checked and followed."""
_REDUCED_BYTES_PER_THREAD = 1 << 23
"""The same for indices that are only checked: a reduction reads bytes much faster than a gather moves them."""

UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


class Spread(Enum):
    """The range of indices: [0, size-1], [-size, size-1], or beyond."""

    PLAIN = auto()
    NEGATIVE = auto()
    OUTSIDE = auto()


_MODES: dict[Spread, Mode] = {Spread.PLAIN: "clip", Spread.NEGATIVE: "wrap"}


def spread_of(indices: Array, size: int) -> Spread:
    """Return the range that the indices cover, computed in their own type."""
    flat = indices.ravel()
    if _reduced(np.maximum, flat.view(UNSIGNED[flat.itemsize])) < size:
        return Spread.PLAIN
    if flat.dtype.kind == "i" and _reduced(np.maximum, flat) < size and _reduced(np.minimum, flat) >= -size:
        return Spread.NEGATIVE
    return Spread.OUTSIDE


def _reduced(function: np.ufunc, array: Array) -> int:
    """Reduce a flat array, on several threads if it is long."""
    if array.nbytes < 2 * _REDUCED_BYTES_PER_THREAD:
        return int(function.reduce(array))
    parts: list[int] = []
    run_blocks(
        lambda start, stop: parts.append(function.reduce(array[start:stop])),
        array.size,
        _REDUCED_BYTES_PER_THREAD // array.itemsize,
    )
    return int(function.reduce(parts))


@dataclass(frozen=True, slots=True)
class Layout:
    """The blocks [slabs, rows, columns] of indices [outer, count, inner] into data [outer, size, inner].

    Entry e of a block reads the row `index[e] * inner + offsets[e]` of the flattened data behind the block's base.
    """

    outer: int
    size: int
    count: int
    inner: int
    row_bytes: int
    slabs: int
    rows: int
    columns: int
    position_type: np.dtype[Any]
    offsets: Array | None
    """The offsets of the entries; None if all are 0."""

    @property
    def length(self) -> int:
        return self.slabs * self.rows * self.columns

    @property
    def blocks(self) -> int:
        return -(-self.outer // self.slabs) * -(-self.inner // self.columns) * -(-self.count // self.rows)

    @property
    def span(self) -> int:
        """Return the number of rows of data within a block's reach."""
        return self.slabs * self.size * self.inner

    def block(self, number: int) -> tuple[tuple[slice, slice, slice], int]:
        """Return the block's slice of the indices and its base in the data. Blocks that read the same data are
        neighbors."""
        number, row = divmod(number, -(-self.count // self.rows))
        slab, column = divmod(number, -(-self.inner // self.columns))
        o, i, k = slab * self.slabs, row * self.rows, column * self.columns
        return (
            slice(o, o + self.slabs),
            slice(i, i + self.rows),
            slice(k, k + self.columns),
        ), o * self.size * self.inner + k


@lru_cache(maxsize=16)
def layout_of(outer: int, size: int, count: int, inner: int, row_bytes: int, index_type: np.dtype[Any]) -> Layout:
    entries = _entries_per_block(row_bytes)
    columns = min(inner, entries)
    # Few columns keep all the data they read in a core's cache until the last row. If that is impossible, many columns
    # keep blocks contiguous.
    cached = _CACHE_BYTES // (size * row_bytes)
    if count > 1 and _MIN_COLUMNS <= cached < columns:
        columns = -(-inner // -(-inner // cached))
    rows = max(1, min(count, entries // columns))
    slabs = max(1, min(outer, entries // (count * inner))) if columns == inner else 1

    # Narrow arithmetic is twice as fast, but wide indices would have to be narrowed first.
    narrow = index_type == np.int32 and slabs * size * inner <= np.iinfo(np.int32).max
    position_type: np.dtype[Any] = np.dtype(np.int32 if narrow else np.intp)
    offsets: Array | None = None
    if slabs > 1 or columns > 1:
        offsets = np.empty((slabs, rows, columns), position_type)
        offsets[...] = np.arange(columns)
        offsets += (np.arange(slabs, dtype=position_type) * (size * inner))[:, None, None]
    return Layout(outer, size, count, inner, row_bytes, slabs, rows, columns, position_type, offsets)


def take_blocks(data: Array, indices: Array, spread: Spread, layout: Layout, out: Array) -> None:
    """Compute out[o, i, k] = data[o, index, k] on flattened data, for flat indices in range."""
    size, inner, span, offsets = layout.size, layout.inner, layout.span, layout.offsets
    indices = indices.reshape(layout.outer, layout.count, inner)
    unsigned = UNSIGNED[layout.position_type.itemsize]
    convert = indices.dtype != layout.position_type
    # If a block reads all of one slab, take wraps negative positions around to the end of the slab.
    wrap = layout.slabs == 1 and layout.columns == inner
    mode = _MODES[spread if wrap else Spread.PLAIN]
    fold = spread is Spread.NEGATIVE and not wrap

    def run(first: int, last: int) -> None:
        scratch = np.empty(layout.length, layout.position_type)
        for number in range(first, last):
            block, base = layout.block(number)
            positions, result = indices[block], out[block]
            buffer = scratch[: positions.size].reshape(positions.shape)
            if convert:
                np.copyto(buffer, positions, casting="unsafe")
                positions = buffer
            if fold:
                # Read as unsigned numbers, the smaller of the two is the one that is not negative.
                np.minimum(positions.view(unsigned), (positions + size).view(unsigned), out=buffer.view(unsigned))
                positions = buffer
            if inner > 1:
                positions = np.multiply(positions, inner, out=buffer)
            if offsets is not None:
                slabs, rows, columns = positions.shape
                positions = np.add(positions, offsets[:slabs, :rows, :columns], out=buffer)
            source = data[base : base + span]
            if result.flags.c_contiguous:
                source.take(positions, 0, result, mode)
            else:
                result[...] = source.take(positions, 0, mode=mode)

    run_blocks(run, layout.blocks, _blocks_per_thread(layout.length, layout.row_bytes))


def take_cells(data: Array, positions: Array, out: Array, spread: Spread) -> None:
    """Compute out[o, i] = data[o, positions[i]] for rows; positions are in range."""
    outer, count, inner = out.shape
    row_bytes = inner * out.itemsize
    entries = _entries_per_block(row_bytes)
    columns = min(count, entries)
    lines = max(1, min(outer, entries // columns))
    cells_per_line = -(-count // columns)
    cells = -(-outer // lines) * cells_per_line

    def run(first: int, last: int) -> None:
        for cell in range(first, last):
            line, part = divmod(cell, cells_per_line)
            o, i = line * lines, part * columns
            data[o : o + lines].take(positions[i : i + columns], 1, out[o : o + lines, i : i + columns], _MODES[spread])

    run_blocks(run, cells, _blocks_per_thread(lines * columns, row_bytes))


def _entries_per_block(row_bytes: int) -> int:
    return max(1, min(_BLOCK_ENTRIES, _BLOCK_BYTES // row_bytes))


def _blocks_per_thread(entries: int, row_bytes: int) -> int:
    """Return the least number of blocks, of so many entries each, that a thread should have."""
    return -(-_BYTES_PER_THREAD // (entries * max(row_bytes, _MIN_ENTRY_BYTES)))
