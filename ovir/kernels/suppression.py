"""Non-maximum suppression: which of many overlapping boxes are kept, given how much any two overlap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.boxes import Overlaps

# Boxes compared with each other at a time, and kept boxes that they are compared with at a time.
_BLOCK, _KEPT_BLOCK = 128, 256
_MANY = 1 << 10
_EARLIER = np.tri(_BLOCK, k=-1, dtype=np.bool_)


def ranked(scores: Array, eligible: Array, most: int | None = None) -> Iterator[tuple[int, Array]]:
    """Return, for each row of the float32 ``scores``, the indices of its eligible elements in descending order of
    score.

    Of equal scores the first comes first. Each row has at most ``most`` indices; rows without any are left out.
    """
    length = scores.shape[1]
    flat = scores.reshape(-1)
    places = np.flatnonzero(eligible)
    ends = np.searchsorted(places, np.arange(len(scores) + 1) * length)
    for row in np.flatnonzero(np.diff(ends)).tolist():
        chosen = places[ends[row] : ends[row + 1]]
        indices = (chosen - row * length)[descending(flat[chosen])[:most]]
        if indices.size:
            yield row, indices


def ranked_one(scores: Array, eligible: Array | None = None, most: int | None = None) -> Array:
    """Return the indices that ``ranked`` returns for a single row; without ``eligible`` all elements are eligible."""
    if eligible is None:
        return descending(scores)[:most]
    indices = np.flatnonzero(eligible)
    return indices[descending(scores[indices])[:most]]


def descending(scores: Array) -> Array:
    """Return the stable descending order of real numbers; NaN is last.

    A float32 and its index are sorted as one integer, which is several times faster than a stable sort of many numbers.
    """
    if scores.dtype != np.float32 or scores.size < _MANY:
        return np.argsort(-scores, kind="stable")
    bits = (scores + np.float32(0)).view(np.int32)  # -0 counts as 0
    # Read as integers, the bits of floats are in the order of the floats, except that negative ones are reversed.
    bits = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    is_nan = np.isnan(scores)
    if is_nan.any():
        bits[is_nan] = np.iinfo(np.int32).min
    keys = ((~bits).astype(np.int64) << 32) | np.arange(scores.size)
    keys.sort()
    order: Array = keys & 0xFFFFFFFF
    return order


def keep_apart(count: int, most: int, overlaps: Overlaps, threshold: float | Array) -> Array:
    """Return the indices of the boxes that are kept, at most ``most`` of ``count``, in descending order of their
    scores.

    A box is kept unless it overlaps a kept one by more than the threshold (float32): one number, or item k for the k-th
    kept box.
    """
    most = min(most, count)
    limits = np.asarray(threshold, np.float32)
    limits = limits[:most] if limits.ndim else np.full(most, limits)
    kept, taken = np.empty(most, np.intp), 0
    for start in range(0, count, _BLOCK):
        if taken == most:
            break
        block = np.arange(start, min(start + _BLOCK, count))
        for begin in range(0, taken, _KEPT_BLOCK):
            before = slice(begin, min(begin + _KEPT_BLOCK, taken))
            block = block[~(overlaps(block, kept[before]) > limits[before]).any(axis=1)]
        chosen = block[_apart(overlaps(block, block), limits[taken:])]
        kept[taken : taken + chosen.size] = chosen
        taken += chosen.size
    return kept[:taken]


def _apart(overlap: Array, limits: Array) -> Array:
    """Return which boxes of a block ``keep_apart`` keeps, given how they overlap each other.

    Boxes that overlap no earlier box are kept. The rest is decided one by one, on sets represented as bits of an
    integer.
    """
    limits = limits[: len(overlap)]
    lowest = limits.min(initial=np.inf)
    excluding = (overlap > lowest) & _EARLIER[: len(overlap), : len(overlap)]
    kept = ~excluding.any(axis=1)
    contested = np.flatnonzero(~kept)
    if contested.size and (limits == lowest).all():
        sets = np.packbits(excluding[contested], axis=1, bitorder="little")
        chosen = int.from_bytes(np.packbits(kept, bitorder="little").tobytes(), "little")
        for i, others in zip(contested.tolist(), sets, strict=True):
            if not chosen & int.from_bytes(others.tobytes(), "little"):
                chosen |= 1 << i
                kept[i] = True
    else:
        for i in contested.tolist():
            before = np.flatnonzero(kept[:i])[: limits.size]
            kept[i] = not (overlap[i, before] > limits[: before.size]).any()
    return np.flatnonzero(kept)[: limits.size]


def soften(
    scores: Array, overlaps: Overlaps, sigma: float, *, least: float, limit: int, removing: float = np.inf
) -> tuple[Array, Array]:
    """Run Soft-NMS: return the indices of at most ``limit`` boxes, and their scores at the time they were the highest.

    Each box that is taken multiplies the scores of the others by exp(-overlap**2 / (2 * sigma)). A box is not taken if
    its score is at most ``least``, or if it overlaps a taken box by more than ``removing``.
    """
    indices, final = np.empty(limit, np.intp), np.empty(limit, scores.dtype)
    scale = scores.dtype.type(-0.5 / sigma)
    rest, taken = np.arange(scores.size), 0
    while taken < limit:
        alive = scores > least
        if not alive.all():
            rest, scores = rest[alive], scores[alive]
        if not rest.size:
            break
        best = scores.argmax()
        indices[taken], final[taken] = rest[best], scores[best]
        taken += 1
        overlap = overlaps(rest[best : best + 1], rest)[0]
        scores = scores * np.exp(overlap * overlap * scale)
        scores[overlap > removing] = -np.inf
        scores[best] = -np.inf
    return indices[:taken], final[:taken]
