"""The selection of boxes: their order by score, and the suppression of those that overlap better ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.boxes import Overlaps

Decay = Callable[[Array, Array], Array]
"""Map how much a candidate overlaps a better one, and the greatest overlap of that one, to a factor of its score."""


class Suppression:
    """The steps that operations on boxes with scores share. The candidates of a row come in descending order of their
    scores, unless the method says otherwise, and the numbers of the rows do not decrease."""

    def descending(self, scores: Array, rows: Array | None = None) -> Array:
        """Return the stable descending order of real numbers, by row first if there are rows; NaN is last."""
        return (-scores).argsort(kind="stable") if rows is None else np.lexsort((-scores, rows))

    def ranked(self, rows: Array, scores: Array, most: int | None = None) -> Array:
        """Return the order of float32 scores by row, and in each row from the highest to the lowest.

        Rows and scores may come in any order; equal scores stay in order. Each row has at most ``most`` elements.
        """
        order = self.descending(scores, rows)
        return order if most is None else first_of_rows(order, rows, most)

    def keep_apart(self, rows: Array, most: int, overlaps: Overlaps, threshold: float | Array) -> Array:
        """Return the numbers of the candidates that are kept, at most ``most`` of each row, in ascending order.

        A candidate is kept unless it overlaps a better one of its row, which is kept, by more than the threshold
        (float32): one number, or item k for the k-th kept candidate of a row.
        """
        kept: list[Array] = [np.empty(0, np.intp)]
        for row in np.unique(rows):
            left = (rows == row).nonzero()[0]
            for limit in np.broadcast_to(np.asarray(threshold, np.float32), most):
                if not left.size:
                    break
                best, left = left[:1], left[1:]
                kept.append(best)
                left = left[~(overlaps(left, best)[:, 0] > limit)]
        return np.concatenate(kept)

    def soften(
        self,
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
        taken, and their scores at that time; candidates come in any order.

        In each step the candidate with the highest score is taken, of equal ones the first, and multiplies the scores
        of the others by exp(-overlap**2 / (2 * sigma)). A candidate is not taken if its score is at most ``least``, or
        if it overlaps a taken one by more than ``removing``.
        """
        scale = scores.dtype.type(-0.5 / sigma)
        taken, final = [], []
        for row in np.unique(rows):
            left = (rows == row).nonzero()[0]
            current = scores[left]
            for _ in range(limit):
                stays = current > least
                left, current = left[stays], current[stays]
                if not left.size:
                    break
                best = current.argmax()
                taken.append(left[best])
                final.append(current[best])
                overlap = overlaps(left[[best]], left)[0]
                current = current * np.exp(overlap * overlap * scale)
                current[overlap > removing] = current[best] = -np.inf
        return np.array(taken, np.intp), np.array(final, scores.dtype)

    def decays(self, rows: Array, overlaps: Overlaps, decay: Decay) -> Array:
        """Return the factor of the score of each candidate: the least ``decay`` by a better one of its row, at
        most 1."""
        factors = np.ones(rows.size, np.float32)
        for row in np.unique(rows):
            own = (rows == row).nonzero()[0]
            is_better = np.tri(own.size, k=-1, dtype=np.bool_)
            overlap = np.where(is_better, overlaps(own, own), np.float32(0))
            greatest = overlap.max(axis=1, initial=0)
            factors[own] = decay(overlap, greatest).min(axis=1, initial=1, where=is_better)
        return factors


def candidates(eligible: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Return rows, columns and scores of the elements of ``scores`` [rows, columns] that are eligible, row by row."""
    places = eligible.ravel().nonzero()[0]
    rows = places // max(eligible.shape[1], 1)
    return rows, places - rows * eligible.shape[1], scores.take(places)


def first_of_rows(order: Array, rows: Array, most: int) -> Array:
    """Return the first ``most`` elements of each row; ``order`` has one row after the other, ``rows`` the row of each
    element, in any order."""
    if order.size <= most:
        return order
    own = rows.take(order)
    is_first = np.ones(order.size, np.bool_)
    np.not_equal(own[most:], own[: own.size - most], out=is_first[most:])
    first: Array = order[is_first]
    return first


def ranks(rows: Array) -> Array:
    """Return the position of each element in its row; the numbers of the rows do not decrease."""
    lengths = np.bincount(rows)
    starts = lengths.cumsum() - lengths
    position: Array = np.arange(rows.size) - starts[rows]
    return position
