"""Transform and clip boxes, and compute the intersection over union of upright boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.fast_calls import clip

Overlaps = Callable[[Array, Array], Array]
"""Map numbers of boxes [..., n] and [..., m] to the overlap of each pair, [..., n, m].

If both are the same array, only the overlaps of boxes with earlier ones are needed.
"""


# --------------------------------------------------------------------------- moved and clipped


def decoded(center: Array, size: Array, shift: Array, stretch: Array) -> tuple[Array, Array]:
    """Return the lower and upper edges of boxes shifted by ``shift * size`` and scaled by ``exp(stretch)``.

    The arrays are broadcast; they hold one axis, or both axes along a last dimension.
    """
    center = shift * size + center
    reach = np.exp(stretch) * size / 2
    return center - reach, center + reach


def moved(boxes: Array, deltas: Array, margin: float, most: Any) -> Array:
    """Apply the deltas [dx, dy, dw, dh] to ``boxes`` [x0, y0, x1, y1] and return the new boxes [..., 4].

    ``margin`` is 1 if the last pixel belongs to a box, else 0. ``most`` is the upper limit of dw and dh. See
    ``decoded``.
    """
    number = boxes.dtype.type
    start = boxes[..., :2]
    size = boxes[..., 2:] - start + number(margin)
    stretch = np.minimum(deltas[..., 2:], number(most))
    low, high = decoded(start + size / 2, size, deltas[..., :2], stretch)
    return np.concatenate([low, high - number(margin)], axis=-1)


def clipped(coordinates: Array, ends: Any) -> Array:
    """Clip coordinates to [0, ends]; the result is 0 where an end is negative."""
    inside: Array = np.maximum(np.minimum(coordinates, ends), 0)
    return inside


# --------------------------------------------------------------------------- upright boxes
# The edges of boxes are [4, n]: the least and then the largest coordinates, y, x, y, x, or with the axes exchanged.


def edges_of_corners(boxes: Array) -> Array:
    """Return the edges of boxes [n, 4] given by any two opposite corners."""
    first, second = boxes[:, :2].T, boxes[:, 2:].T
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)])


def edges_of_centered(boxes: Array) -> Array:
    """Return the edges, y first, of boxes [n, 4] given by center x, center y, width and height."""
    center, half = boxes[:, 1::-1].T, boxes[:, :1:-1].T / 2
    return np.concatenate([center - half, center + half])


def upright_overlaps(edges: Array, margin: float = 0, *, bridged: bool = True) -> Overlaps:
    """Compute the intersection over union of upright boxes.

    ``margin`` is added to each length: 1 where coordinates are pixel numbers and the last pixel belongs to the box.
    Unless ``bridged`` is False, boxes whose gap is smaller than the margin overlap. A box without area overlaps
    nothing.
    """
    add = edges.dtype.type(margin)
    none, infinite = np.zeros((), edges.dtype), np.array(np.inf, edges.dtype)
    table = np.empty((5, edges.shape[1]), edges.dtype)  # the edges and the area of each box
    table[:4] = edges
    lengths = table[2:4] - table[:2]
    if margin:
        lengths += add
    areas = np.multiply(lengths[0], lengths[1], out=table[4])
    np.putmask(areas, areas <= 0, infinite)  # so that their share in anything is 0

    def overlaps(some: Array, others: Array) -> Array:
        first = table.take(some, axis=1)
        second = first if others is some else table.take(others, axis=1)
        first, second = first[..., np.newaxis], second[..., np.newaxis, :]
        common = np.minimum(first[2:4], second[2:4])  # the lengths along both axes
        common -= np.maximum(first[:2], second[:2])
        if margin:
            if not bridged:
                np.putmask(common, common < 0, -infinite)
            common += add
        clip(common, none, infinite, common)
        area: Array = np.multiply(common[0], common[1], out=common[0])
        union = np.add(first[4], second[4], out=common[1])
        union -= area
        area /= union
        return area

    return overlaps
