"""Non-maximum suppression: which of many overlapping boxes are kept, given how much any two of them overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ovir.arrays import Array

Overlaps = Callable[[Array, Array], Array]
"""Of the boxes at some indices [n] and those at others [m]: how much each overlaps each, as [n, m]."""

# Boxes that are compared with each other in one go, and those kept before that they are compared with in one.
_BLOCK, _KEPT_BLOCK = 128, 512


def ranked(scores: Array, eligible: Array, most: int | None = None) -> Iterator[tuple[int, Array]]:
    """For each row of the float32 ``scores`` the indices of its eligible elements: the highest score first, of equal
    ones the first. There are at most ``most`` of them; rows without any are left out."""
    length = scores.shape[1]
    flat = scores.reshape(-1)
    places = np.flatnonzero(eligible)
    ends = np.searchsorted(places, np.arange(len(scores) + 1) * length)
    for row in np.flatnonzero(np.diff(ends)).tolist():
        found = places[ends[row] : ends[row + 1]]
        indices = (found - row * length)[_descending(flat[found])[:most]]
        if indices.size:
            yield row, indices


def _descending(scores: Array) -> Array:
    """The stable order of float32 numbers, from the largest on.

    Score and index are sorted as one integer, several times faster than a stable sort of the scores.
    """
    bits = (scores + np.float32(0)).view(np.int32)  # -0 is 0
    # The bits of a float, taken as an integer, are in its order, but those of negative ones are in the opposite.
    bits = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    keys = ((~bits).astype(np.int64) << 32) | np.arange(scores.size)
    keys.sort()
    order: Array = keys & 0xFFFFFFFF
    return order


def keep_apart(count: int, overlaps: Overlaps, thresholds: Array) -> Array:
    """The indices of the boxes that are kept, of ``count`` boxes in descending order of their scores.

    A box is kept unless it overlaps one that was kept before by more than the threshold of that: ``thresholds[k]`` is
    the k-th kept box's. Once all have been given away no more boxes are kept.
    """
    kept = np.empty(min(len(thresholds), count), np.intp)
    found = 0
    for start in range(0, count, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, count))
        for begin in range(0, found, _KEPT_BLOCK):
            before = slice(begin, min(begin + _KEPT_BLOCK, found))
            block = block[~(overlaps(block, kept[before]) > thresholds[before]).any(axis=1)]
        among = overlaps(block, block)
        rest = np.arange(block.size)
        while rest.size:
            if found == kept.size:
                return kept
            first, rest = rest[0], rest[1:]
            kept[found] = block[first]
            rest = rest[~(among[first, rest] > thresholds[found])]
            found += 1
    return kept[:found]


def soften(
    scores: Array, overlaps: Overlaps, sigma: float, *, least: float, limit: int, removing: float = np.inf
) -> tuple[Array, Array]:
    """Soft-NMS: the indices of at most ``limit`` boxes, and their scores at the time when each was the highest.

    Each box that is taken multiplies the scores of the others by exp(-overlap**2 / (2 * sigma)). A box whose score is
    not above ``least`` is not taken, nor is one that overlaps a box taken by more than ``removing``.
    """
    indices, final = np.empty(limit, np.intp), np.empty(limit, scores.dtype)
    scale = scores.dtype.type(-0.5 / sigma)
    rest, found = np.arange(scores.size), 0
    while found < limit:
        alive = scores > least
        if not alive.all():
            rest, scores = rest[alive], scores[alive]
        if not rest.size:
            break
        best = scores.argmax()
        indices[found], final[found] = rest[best], scores[best]
        found += 1
        overlap = overlaps(rest[best : best + 1], rest)[0]
        scores = scores * np.exp(overlap * overlap * scale)
        scores[overlap > removing] = -np.inf
        scores[best] = -np.inf
    return indices[:found], final[:found]
