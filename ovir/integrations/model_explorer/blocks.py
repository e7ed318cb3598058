"""Repeated blocks in a sequence of layers, such as the identical blocks of a transformer whose names do not tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ovir.core.arrays import Array

SHORTEST = 4
"""The smallest number of layers that make a block; shorter repetitions are clearer as they are."""
_DEEPEST = 4
"""The largest number of levels of blocks in blocks."""


@dataclass
class Block:
    """A range of positions that other ranges of the same length repeat."""

    start: int
    stop: int
    inner: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class _Run:
    """A range in which every element equals the one ``period`` before it, except in the first period."""

    start: int
    stop: int
    period: int

    def repeats(self, other: _Run) -> bool:
        """Return whether this run shows the same repetition as another one, in smaller units."""
        return other.period % self.period == 0 and self.start <= other.start and other.stop <= self.stop


def find_blocks(kinds: Sequence[int], crossings: Sequence[int]) -> list[Block]:
    """Return the blocks of a sequence, from left to right, with the blocks that are in each of them.

    ``kinds`` has equal numbers for elements of a kind. ``crossings`` has for each place between two elements, and for
    both ends, the number of tensors that pass it; blocks begin where few do. The time grows with the square of the
    length, at the speed of NumPy.
    """
    return _blocks(np.asarray(kinds), np.asarray(crossings), _DEEPEST)


def _blocks(kinds: Array, crossings: Array, depth: int) -> list[Block]:
    found: list[Block] = []
    taken = np.zeros(len(kinds), bool)
    for run in sorted(_runs(kinds), key=lambda run: (run.start - run.stop, run.period)):
        if run.period < SHORTEST or taken[run.start : run.stop].any():
            continue
        taken[run.start : run.stop] = True
        first, period = _first_cut(run, crossings), run.period
        inner: list[Block] = []
        if depth > 1:
            inner = _blocks(kinds[first : first + period], crossings[first : first + period + 1], depth - 1)
        for start in range(first, run.stop - period + 1, period):
            found.append(Block(start, start + period, [_moved(block, start) for block in inner]))
    return sorted(found, key=lambda block: block.start)


def _runs(kinds: Array) -> list[_Run]:
    """Return the longest repetitions of each period that are none of a smaller one."""
    found: list[_Run] = []
    count = len(kinds)
    for period in range(1, count // 2 + 1):
        breaks = np.flatnonzero(kinds[period:] != kinds[:-period])
        ends = np.concatenate(([-1], breaks, [count - period]))
        for i in np.flatnonzero(np.diff(ends) > max(period, 2 * SHORTEST - period)):
            run = _Run(int(ends[i]) + 1, int(ends[i + 1]) + period, period)
            if not any(other.repeats(run) for other in found):
                found.append(run)
    return found


def _first_cut(run: _Run, crossings: Array) -> int:
    """Return where the first block of a run begins, so that the fewest tensors cross the borders of its blocks."""
    copies, spare = divmod(run.stop - run.start, run.period)
    borders = run.period * np.arange(copies + 1)
    return min(range(run.start, run.start + spare + 1), key=lambda start: int(crossings[start + borders].sum()))


def _moved(block: Block, distance: int) -> Block:
    inner = [_moved(item, distance) for item in block.inner]
    return Block(block.start + distance, block.stop + distance, inner)
