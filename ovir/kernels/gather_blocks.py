"""The blocks of a gather: indices are cut so that they, positions and results stay in a cache; and how each is taken.

The indices are known to be in range; see ``gather``.
"""

from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks

Mode = Literal["clip", "wrap"]

# A block's indices, positions and results should stay in a cache, and yet be so many that handing over the GIL around
# each call of NumPy, which may mean to be woken from sleep, does not count.
_BLOCK_ENTRIES = 1 << 17
_BLOCK_BYTES = 1 << 20
# Data of this size are still in a core's cache when they are read again; a block is not made narrower than that for it.
_CACHE_BYTES = 1 << 18
_MIN_COLUMNS = 1 << 8
# What a thread should have to write at least before it pays to wake another one. An entry counts as 16 bytes if it
# has less: its index has to be read, checked and followed all the same.
BYTES_PER_THREAD = 1 << 21
_MIN_ENTRY_BYTES = 16

UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


class Spread(Enum):
    """How far indices reach: to [0, size-1], to [-size, size-1], or further."""

    PLAIN = auto()
    NEGATIVE = auto()
    OUTSIDE = auto()


MODES: dict[Spread, Mode] = {Spread.PLAIN: "clip", Spread.NEGATIVE: "wrap"}


@dataclass(frozen=True, slots=True)
class Layout:
    """How indices [outer, count, inner] into data [outer, size, inner] are cut in blocks [slabs, rows, columns].

    Entry e of any block reads the row `index[e] * inner + offsets[e]` of the flattened data after the block's base.
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
    """None where all are 0."""

    @property
    def length(self) -> int:
        return self.slabs * self.rows * self.columns

    @property
    def blocks(self) -> int:
        return -(-self.outer // self.slabs) * -(-self.inner // self.columns) * -(-self.count // self.rows)

    @property
    def span(self) -> int:
        """So many rows of data are within a block's reach."""
        return self.slabs * self.size * self.inner

    def block(self, number: int) -> tuple[tuple[slice, slice, slice], int]:
        """Where it is in the indices, and its base in the data. Blocks that read the same data are neighbours."""
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
    # Few columns, so that all the data they come from stay in a core's cache until the last row; if that is too much
    # to ask, many, so that blocks are contiguous.
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
    """out[o, i, k] = the row data[o, index, k] of flattened data, for flat indices that are not outside."""
    size, inner, span, offsets = layout.size, layout.inner, layout.span, layout.offsets
    indices = indices.reshape(layout.outer, layout.count, inner)
    unsigned = UNSIGNED[layout.position_type.itemsize]
    convert = indices.dtype != layout.position_type
    # Where a block reads all of one slab, what is before the slab's begin is what take wraps around.
    wrap = layout.slabs == 1 and layout.columns == inner
    mode = MODES[spread if wrap else Spread.PLAIN]
    fold = spread is Spread.NEGATIVE and not wrap

    def run(first: int, last: int) -> None:
        scratch = np.empty(layout.length, layout.position_type)
        spare = np.empty((layout.length, *out.shape[3:]), out.dtype)
        for number in range(first, last):
            block, base = layout.block(number)
            positions, result = indices[block], out[block]
            buffer = scratch[: positions.size].reshape(positions.shape)
            if convert:
                np.copyto(buffer, positions, casting="unsafe")
                positions = buffer
            if fold:
                # As unsigned numbers, the smaller one is the one that is not negative.
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
                result[...] = source.take(positions, 0, spare[: positions.size].reshape(result.shape), mode)

    run_blocks(run, layout.blocks, _blocks_per_thread(layout.length, layout.row_bytes))


def take_cells(data: Array, positions: Array, out: Array, mode: Mode = "clip") -> None:
    """out[o, i] = data[o, positions[i]] for rows; no position is outside, and none negative unless mode is "wrap"."""
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
            data[o : o + lines].take(positions[i : i + columns], 1, out[o : o + lines, i : i + columns], mode)

    run_blocks(run, cells, _blocks_per_thread(lines * columns, row_bytes))


def _entries_per_block(row_bytes: int) -> int:
    return max(1, min(_BLOCK_ENTRIES, _BLOCK_BYTES // row_bytes))


def _blocks_per_thread(entries: int, row_bytes: int) -> int:
    """How many blocks of so many entries a thread should have at least."""
    return -(-BYTES_PER_THREAD // (entries * max(row_bytes, _MIN_ENTRY_BYTES)))
