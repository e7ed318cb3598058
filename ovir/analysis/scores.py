"""The highest scores of rows of numbers, as classifiers give them, be they probabilities or not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array


class Score(NamedTuple):
    """A class, which is a position on the last axis, and its value."""

    number: int
    value: float


def top_scores(array: Array, count: int) -> list[list[Score]] | None:
    """Return the ``count`` highest values of each row; None for a tensor that is no row or table of scores.

    Axes of size 1 at the end are left out, and the axes before the last are taken as one. Among equal values the first
    comes first; NaN comes last.
    """
    if array.dtype.kind in "TUSOb":
        return None
    shape = list(array.shape)
    while len(shape) > 1 and shape[-1] == 1:
        shape.pop()
    if not shape or shape[-1] < 2 or not array.size:
        return None
    rows = as_numbers(array).reshape(-1, shape[-1])
    if rows.dtype.kind not in "fiu":
        return None
    keys = -rows if rows.dtype.kind == "f" else np.invert(rows)  # -rows of integers may overflow
    best = np.argsort(keys, axis=1, kind="stable")[:, :count]
    return [[Score(int(c), rows[i, c].item()) for c in classes] for i, classes in enumerate(best)]
