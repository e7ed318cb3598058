"""Non-maximum suppression of a few boxes, in Python and with sets of boxes as the bits of integers.

On so few boxes a call of NumPy takes longer than its work: all overlaps are computed at once, and the rest is Python.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.boxes import Overlaps

_MOST_SCORES, _MOST_PAIRS = 64, 1 << 11

Kept = tuple[float, int, int]
"""The score of a box that is kept, its row (the class of an image) and its number in the image."""


Candidates = Sequence[tuple[list[float], list[int]]]
"""For each row the scores of all boxes, and the numbers of the candidates from the highest to the lowest score."""


def are_few(scores: Array) -> bool:
    """Return whether scores [images, classes, boxes] are so few that the functions of this module are faster."""
    images, _, boxes = scores.shape
    return 0 < scores.size <= _MOST_SCORES and images * boxes * boxes <= _MOST_PAIRS


def excluded_boxes(overlaps: Overlaps, images: int, count: int, threshold: float) -> list[list[int]]:
    """Return for each box of each image the set of boxes that it overlaps by more than a threshold (float32).

    ``overlaps`` takes the numbers of boxes, counted through all images.
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
