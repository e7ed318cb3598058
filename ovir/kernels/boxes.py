"""Boxes, upright and rotated: moves, clipping and overlaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.arrays import Array

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
# NumPy takes arrays as constants faster than numbers.
_ZERO, _HALF, _INFINITE = (np.array(value, np.float32) for value in (0, 0.5, np.inf))
# The edges of boxes are [4, n]: the least and then the largest coordinates, y, x, y, x, or with the axes exchanged.


def edges_of_corners(boxes: Array) -> Array:
    """Return the edges of boxes [n, 4] given by any two opposite corners."""
    columns = boxes.T.copy()
    first, second = columns[:2], columns[2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)])


def edges_of_centered(boxes: Array) -> Array:
    """Return the edges, x first, of boxes [n, 4] given by center x, center y, width and height."""
    columns = boxes.T.copy()
    center, half = columns[:2], columns[2:] * _HALF
    return np.concatenate([center - half, center + half])


def upright_overlaps(edges: Array, margin: float = 0, *, bridged: bool = True) -> Overlaps:
    """Compute the intersection over union of upright boxes.

    ``margin`` is added to each length: 1 where coordinates are pixel numbers and the last pixel belongs to the box.
    Unless ``bridged`` is False, boxes whose gap is smaller than the margin overlap. A box without area overlaps
    nothing.
    """
    table = np.empty((5, edges.shape[1]), edges.dtype)  # the edges and the area of each box
    table[:4] = edges
    lengths = table[2:4] - table[:2]
    if margin:
        lengths += margin
    areas = np.multiply(lengths[0], lengths[1], out=table[4])
    np.putmask(areas, areas <= _ZERO, _INFINITE)  # so that their share in anything is 0

    def overlaps(some: Array, others: Array) -> Array:
        first = table.take(some, axis=1)
        second = first if others is some else table.take(others, axis=1)
        first, second = first[..., np.newaxis], second[..., np.newaxis, :]
        common = np.minimum(first[2:4], second[2:4])  # the lengths along both axes
        common -= np.maximum(first[:2], second[:2])
        if margin:
            if not bridged:
                np.putmask(common, common < _ZERO, -_INFINITE)
            common += margin
        np.maximum(common, _ZERO, out=common)
        area: Array = np.multiply(common[0], common[1], out=common[0])
        union = np.add(first[4], second[4], out=common[1])
        union -= area
        area /= union
        return area

    return overlaps


# Pairs per block; each pair takes a kilobyte.
_PAIRS = 1 << 10
# One of two boxes is made larger by this share, so that no edge lies on an edge of the other box: rounding could count
# such edges twice, or not at all.
_SLACK = 1e-9


def rotated_overlaps(boxes: Array) -> Overlaps:
    """Compute the intersection over union of rotated boxes [n, 5].

    A box is center x, center y, width, height and the angle in radians by which it is turned from x towards y. A box
    without area overlaps nothing.
    """
    x, y, width, height, angle = boxes.astype(np.float64).T
    area = width * height
    reach = np.where(area > 0, np.hypot(width, height) / 2, -np.inf)
    table = np.stack([x, y, abs(width) / 2, abs(height) / 2, np.cos(angle), np.sin(angle), area])

    def overlaps(some: Array, others: Array) -> Array:
        # Only boxes whose circumscribed circles meet can overlap.
        first, second = some[..., np.newaxis], others[..., np.newaxis, :]
        near = (x[first] - x[second]) ** 2 + (y[first] - y[second]) ** 2 <= _squared(reach[first] + reach[second])
        if others is some:
            near &= np.tri(near.shape[-1], k=-1, dtype=np.bool_)
        result = np.zeros(near.shape)
        pairs = near.nonzero()
        i, j = (np.broadcast_to(numbers, near.shape)[pairs] for numbers in (first, second))
        result[pairs] = _iou(table, i, j)
        return result

    return overlaps


def _squared(lengths: Array) -> Array:
    """Return the squares of lengths, -inf for negative ones."""
    return np.where(lengths > 0, lengths * lengths, -np.inf)


def _iou(table: Array, some: Array, others: Array) -> Array:
    """Return the overlap of each of ``some`` boxes with the box of ``others`` at the same position."""
    result = np.empty(some.size)
    for start in range(0, some.size, _PAIRS):
        place = slice(start, start + _PAIRS)
        a, b = table.take(some[place], axis=1), table.take(others[place], axis=1)
        common = _intersections(a, b)
        result[place] = common / (a[6] + b[6] - common)
    return result


def _intersections(a: Array, b: Array) -> Array:
    """Return the area that each rotated box of ``a`` [7, n] has in common with the box of ``b`` at the same position;
    ``b`` is overwritten.

    The area within a closed curve is half of the integral of the cross product of a point and its change. The
    intersection is bounded by the parts of the edges of each box that lie within the other.
    """
    shift = a[:2] - b[:2]
    b[2:4] *= 1 + _SLACK
    cosine, sine = a[4] * b[4] + a[5] * b[5], a[5] * b[4] - a[4] * b[5]  # of the angle from b to a
    share, crossed = _edges_within(_turned(shift, b), a, cosine, sine, b[2:4])
    total: Array = (share * crossed).sum(axis=(0, 1))
    share, _ = _edges_within(-_turned(shift, a), b, cosine, -sine, a[2:4])
    total += share.sum(axis=(0, 1)) * b[2] * b[3]  # seen from its center, all edges of b have the same cross product
    total /= 2
    return total


def _turned(vector: Array, frame: Array) -> Array:
    """Return vectors [2, n] as seen from boxes."""
    return np.stack([vector[0] * frame[4] + vector[1] * frame[5], vector[1] * frame[4] - vector[0] * frame[5]])


def _edges_within(center: Array, box: Array, cosine: Array, sine: Array, reach: Array) -> tuple[Array, Array]:
    """Return the share of half an edge that lies within an upright box of half the size ``reach`` [2, n] around the
    origin, and the cross product of the middle of the edge and half of the edge, both [2, 2, n].

    The edges belong to a box with a center [2, n], turned by an angle: two along its width, two along its height.
    """
    along = np.empty((2, 2, center.shape[1]))  # half of the edges: along the width and the height; x and y
    np.multiply(box[2], cosine, out=along[0, 0])
    np.multiply(box[2], sine, out=along[0, 1])
    np.multiply(box[3], -sine, out=along[1, 0])
    np.multiply(box[3], cosine, out=along[1, 1])
    aside = along[::-1] * _SIDES  # from the center to the middle of the first edge
    middle = np.stack([center + aside, center - aside])  # [edge, direction, axis, n]
    np.putmask(along, along == 0, _TINY)
    along = np.stack([along, -along])
    ends = (np.stack([-reach, reach])[:, np.newaxis, np.newaxis] - middle) / along
    first = ends.min(axis=0).max(axis=2)
    last = ends.max(axis=0).min(axis=2)
    share = np.minimum(last, 1) - np.maximum(first, -1)
    crossed = middle[:, :, 0] * along[:, :, 1] - middle[:, :, 1] * along[:, :, 0]
    return np.maximum(share, 0), crossed


# Seen from the center, the first edge along the width is at the end of the height that precedes it in the direction in
# which the corners follow each other, and the first edge along the height at the end of the width.
_SIDES = np.array([-1.0, 1.0])[:, np.newaxis, np.newaxis]
# Half an edge along an axis of the other box is this long across it, which divides without a warning.
_TINY = 1e-290
