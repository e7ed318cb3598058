"""Non-maximum suppression: in blocks of arrays for many boxes, with Python integers as sets for a few dozen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.boxes import Overlaps

_MOST_SCORES, _MOST_PAIRS = 64, 1 << 11

Kept = tuple[float, int, int]
"""The score of a box that is kept, its row (the class of an image) and its number in the image."""


Candidates = Sequence[tuple[list[float], list[int]]]
"""For each row the scores of all boxes, and the numbers of the candidates from the highest to the lowest score."""


def are_few(scores: Array) -> bool:
    """Return whether scores [images, classes, boxes] are so few that ``keep_few``, which works with sets, is faster."""
    images, _, boxes = scores.shape
    return 0 < scores.size <= _MOST_SCORES and images * boxes * boxes <= _MOST_PAIRS


def excluded_boxes(overlaps: Overlaps, images: int, count: int, threshold: float) -> list[list[int]]:
    """Return for each box of each image the set of boxes that it overlaps by more than a threshold (float32).

    A set is an integer that has a bit for each box. ``overlaps`` takes the numbers of boxes, counted through all
    images.
    """
    numbers = np.arange(images * count).reshape(images, count)
    # Were both arguments one array, only the overlaps with earlier boxes would be computed.
    excluding = overlaps(numbers, numbers.view()) > np.float32(threshold)
    sets = np.packbits(excluding, axis=1, bitorder="little").swapaxes(1, 2)
    data, width = sets.tobytes(), sets.shape[2]
    bits = [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]
    return [bits[i : i + count] for i in range(0, len(bits), count)]


def best_few(scores: Array, eligible: Array, most: int) -> Candidates:
    """Return at most ``most`` eligible boxes of each row of scores [rows, boxes]; equal scores stay in order."""
    found = []
    for values, flags in zip(scores.tolist(), eligible.tolist(), strict=True):
        order = [number for number, flag in enumerate(flags) if flag]
        order.sort(key=values.__getitem__, reverse=True)
        found.append((values, order[:most]))
    return found


def keep_few(candidates: Candidates, excluded: Sequence[Sequence[int]], most: int) -> list[Kept]:
    """Return the candidates that are kept, row by row and best first.

    A candidate of ``best_few`` is kept unless a better one that is kept excludes it; each row keeps at most ``most``.
    """
    classes = len(candidates) // len(excluded)
    kept: list[Kept] = []
    for row, (values, order) in enumerate(candidates):
        sets = excluded[row // classes]
        gone, stop = 0, len(kept) + most
        for number in order:
            if len(kept) == stop:
                break
            if not gone >> number & 1:
                kept.append((values[number], row, number))
                gone |= sets[number]
    return kept


_CELLS = 1 << 16
"""Pairs of candidates compared at a time."""
_BLOCK = 128
"""Candidates of a row that are compared with each other at a time."""
_FEW, _FEW_PAIRS = 64, 256
"""Undecided candidates that are decided one by one, and pairs that exclude each other that are read one by one."""
_EARLIER = np.tri(_BLOCK, k=-1, dtype=np.bool_)


def grids(rows: Array, widest: int) -> Iterator[tuple[Array, Array]]:
    """Group rows of about the same length: yield the numbers of their candidates [R, m], and which of them exist.

    ``rows`` are the row numbers of the candidates, which do not decrease. A group has few enough rows that its
    candidates can be compared with each other at a time, if no row has more than ``widest`` candidates.
    """
    if not rows.size:
        return
    lengths = np.bincount(rows)
    starts = lengths.cumsum() - lengths
    groups = [slice(0, lengths.size)]
    if lengths.size * min(int(lengths.max()), widest) ** 2 > _CELLS:
        order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
        starts, lengths = starts[order], lengths[order]
        groups = list(_groups(lengths.tolist(), widest))
    for group in groups:
        first, length = starts[group, np.newaxis], lengths[group, np.newaxis]
        columns = np.arange(length.max())
        exists = columns < length
        yield np.minimum(first + columns, rows.size - 1), exists


def _groups(lengths: list[int], widest: int) -> Iterator[slice]:
    """Yield slices of descending lengths."""
    start = 0
    while start < len(lengths):
        stop = start + max(1, _CELLS // min(lengths[start], widest) ** 2)
        yield slice(start, stop)
        start = stop


def keep_apart(rows: Array, most: int, overlaps: Overlaps, threshold: float | Array) -> Array:
    """Return the numbers of the candidates that are kept, at most ``most`` of each row, in ascending order.

    A candidate is kept unless it overlaps a better one of its row, which is kept, by more than the threshold (float32):
    one number, or item k for the k-th kept candidate of a row.
    """
    limits = np.asarray(threshold, np.float32)
    if limits.ndim and (limits == limits[:1]).all():
        limits = limits[0] if limits.size else np.zeros((), np.float32)
    kept = [part for grid in grids(rows, _BLOCK) for part in _apart(*grid, most, overlaps, limits)]
    if len(kept) == 1:
        return kept[0]
    return np.sort(np.concatenate([np.empty(0, np.intp), *kept]))


def _apart(grid: Array, exists: Array, most: int, overlaps: Overlaps, limits: Array) -> Iterator[Array]:
    """Yield the candidates of some rows that are kept, block by block; ``grid`` and ``exists`` are as in ``grids``."""
    length = grid.shape[1]
    taken = np.zeros((len(grid), 1), np.intp)
    if length > _BLOCK:
        before = np.zeros((len(grid), min(most, length)), np.intp)  # the kept candidates of each row
    for start in range(0, length, _BLOCK):
        block, alive = grid[:, start : start + _BLOCK], exists[:, start : start + _BLOCK]
        if start:
            alive = alive & (taken < most)
            if not alive.any():
                break
            alive &= ~_excluded(block, before, taken, overlaps, limits)
            block, alive = _shortened(block, alive)
        overlap = overlaps(block, block)
        chosen = _chosen(overlap, alive, limits) if limits.ndim == 0 else _chosen_by(overlap, alive, limits, taken)
        is_last = start + _BLOCK >= length
        if start or not is_last or np.count_nonzero(chosen) > most:
            rank = chosen.cumsum(axis=1) + taken
            chosen &= rank <= most
        yield block[chosen]
        if not is_last:
            row, column = chosen.nonzero()
            before[row, rank[row, column] - 1] = block[row, column]
            taken += chosen.sum(axis=1, keepdims=True)


def _excluded(block: Array, before: Array, taken: Array, overlaps: Overlaps, limits: Array) -> Array:
    """Return a mask of the candidates [R, n] that overlap the first ``taken`` [R, 1] in the rows of ``before``."""
    excluded = np.zeros(block.shape, bool)
    most = int(taken.max())
    step = max(1, _CELLS // block.size)
    for start in range(0, most, step):
        stop = min(start + step, most)
        limit = limits[start:stop] if limits.ndim else limits
        hits = overlaps(block, before[:, start:stop]) > limit
        hits &= (np.arange(start, stop) < taken)[:, np.newaxis]
        excluded |= hits.any(axis=2)
    return excluded


def _shortened(block: Array, alive: Array) -> tuple[Array, Array]:
    """Return a block without the candidates that are not alive, except where rows differ in length."""
    counts = alive.sum(axis=1, keepdims=True)
    width = int(counts.max())
    if width == block.shape[1]:
        return block, alive
    order = np.argsort(~alive, axis=1, kind="stable")[:, :width]
    return block[np.arange(len(block))[:, np.newaxis], order], np.arange(width) < counts


def _chosen(overlap: Array, alive: Array, limit: Array) -> Array:
    """Return the mask of the candidates [R, n] that are kept, given how they overlap earlier ones [R, n, n].

    Candidates that overlap no earlier one are kept. In each round, those that overlap a kept one are dropped, and
    then those that overlap no undecided one are kept. The last few are decided one by one. Sets of candidates are bits.
    """
    length = alive.shape[1]
    excluding = overlap > limit
    excluding &= _EARLIER[:length, :length]
    if np.count_nonzero(excluding) <= _FEW_PAIRS:
        return _chosen_of_pairs(excluding, alive)
    undecided = excluding.any(axis=2)
    undecided &= alive
    kept: Array = alive ^ undecided
    count = np.count_nonzero(undecided)
    sets = _bits(excluding) if count else excluding
    while count > _FEW:
        undecided &= ~(sets & _bits(kept)[:, np.newaxis]).any(axis=2)
        free = undecided & ~(sets & _bits(undecided)[:, np.newaxis]).any(axis=2)
        kept |= free
        undecided ^= free
        count = np.count_nonzero(undecided)
    if count:
        members = [int.from_bytes(bits.tobytes(), "little") for bits in _bits(kept)]
        rows, columns = undecided.nonzero()
        for row, column, others in zip(rows.tolist(), columns.tolist(), sets[rows, columns], strict=True):
            if not members[row] & int.from_bytes(others.tobytes(), "little"):
                members[row] |= 1 << column
                kept[row, column] = True
    return kept


def _chosen_of_pairs(excluding: Array, alive: Array) -> Array:
    """Return the mask of the candidates [R, n] that are kept, given the pairs [R, n, n] that exclude each other."""
    length = alive.shape[1]
    kept = alive.ravel().tolist()
    pairs = excluding.ravel().nonzero()[0]
    numbers = pairs // length
    earlier = pairs - (numbers - numbers // length) * length
    for number, other in zip(numbers.tolist(), earlier.tolist(), strict=True):
        if kept[other]:
            kept[number] = False
    return np.array(kept, bool).reshape(alive.shape)


def _bits(sets: Array) -> Array:
    return np.packbits(sets, axis=-1, bitorder="little")


def _chosen_by(overlap: Array, alive: Array, limits: Array, taken: Array) -> Array:
    """Return the same as ``_chosen``, with a limit for each kept candidate; ``taken`` [R, 1] were kept before."""
    length = alive.shape[1]
    excluding = overlap > limits.min()
    excluding &= _EARLIER[:length, :length]
    contested = excluding.any(axis=2)
    contested &= alive
    kept: Array = alive ^ contested
    for row, column in zip(*contested.nonzero(), strict=True):
        own = limits[taken[row, 0] :]
        before = kept[row, :column].nonzero()[0][: own.size]
        kept[row, column] = not (overlap[row, column, before] > own[: before.size]).any()
    return kept


def soften(
    rows: Array,
    scores: Array,
    overlaps: Overlaps,
    sigma: float,
    *,
    least: float,
    limit: int,
    removing: float = np.inf,
) -> tuple[Array, Array]:
    """Run Soft-NMS: return the numbers of at most ``limit`` candidates of each row, in the order in which they are
    taken, and their scores at that time.

    In each step the candidate with the highest score is taken, of equal ones the first, and multiplies the scores of
    the others by exp(-overlap**2 / (2 * sigma)). A candidate is not taken if its score is at most ``least``, or if it
    overlaps a taken one by more than ``removing``.
    """
    scale = scores.dtype.type(-0.5 / sigma)

    def factors(some: Array, others: Array) -> Array:
        """Return the factors by which some candidates multiply the scores of others; NaN removes them."""
        overlap = overlaps(some, others)
        factor = overlap * overlap
        factor *= scale
        np.exp(factor, out=factor)
        if removing < np.inf:
            np.putmask(factor, overlap > removing, np.nan)
        return factor

    parts = []
    for grid, exists in grids(rows, _WIDEST_SOFT):
        current = scores[grid]
        np.putmask(current, ~exists, -np.inf)
        parts.append(_softened(grid, current, factors, least, min(limit, grid.shape[1])))
    if len(parts) == 1:
        return parts[0]
    parts.append((np.empty(0, np.intp), np.empty(0, scores.dtype)))
    taken, final = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(rows[taken], kind="stable")
    return taken[order], final[order]


_WIDEST_SOFT = 16
"""The square root of the number of candidates of a row in the measure of ``grids``: a step compares each with one."""
_PAIRS_AT_ONCE = 1 << 12
"""Pairs that Soft-NMS compares before the first step, which takes as long as comparing a few in each step."""


def _softened(grid: Array, scores: Array, factors: Overlaps, least: float, steps: int) -> tuple[Array, Array]:
    """Return the candidates that Soft-NMS takes, row by row; ``scores`` [R, m] are overwritten, and -inf where there is
    no candidate."""
    starts = np.arange(0, grid.size, grid.shape[1])
    # If both arguments were one array, only the overlaps with earlier candidates would be computed.
    table = None
    if grid.size * grid.shape[1] <= _PAIRS_AT_ONCE:
        table = factors(grid, grid.copy()).reshape(grid.size, -1)
    has_nan = table is None or not table.min() > 0  # NaN removes a candidate, and infinity * 0 is NaN
    taken, final = np.zeros((len(grid), steps), np.intp), np.full((len(grid), steps), -np.inf, scores.dtype)
    numbers = grid.reshape(-1)
    for step in range(steps):
        if has_nan:
            np.putmask(scores, np.isnan(scores), -np.inf)
        best = scores.argmax(axis=1)
        best += starts
        taken[:, step] = best
        final[:, step] = highest = scores.take(best)
        if not max(highest.tolist()) > least:
            break
        scores *= factors(numbers[best, np.newaxis], grid)[:, 0] if table is None else table.take(best, axis=0)
        scores.put(best, -np.inf)
    is_taken = final > least  # a score that is no longer above the limit does not rise above it again
    return numbers[taken[is_taken]], final[is_taken]
