"""Transform and clip boxes, and compute the intersection over union of upright and rotated boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.arrays import Array

Overlaps = Callable[[Array, Array], Array]
"""Map indices of n boxes and of m boxes to the overlap of each pair, [n, m]."""

# Pairs of rotated boxes per block; each pair takes a few kilobytes.
_PAIRS = 1 << 11
# A corner counts as inside a rotated box up to this distance from it, relative to its size. Otherwise rounding could
# drop a corner that lies on an edge, and a corner of the intersection would be missing.
_SLACK = 1e-9


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
    edges = np.ascontiguousarray(edges)
    add = edges.dtype.type(margin)
    areas: Array = (edges[2] - edges[0] + add) * (edges[3] - edges[1] + add)
    areas[areas <= 0] = np.inf  # so that their share in anything is 0

    def overlaps(some: Array, others: Array) -> Array:
        first, second = edges.take(some, axis=1)[:, :, np.newaxis], edges.take(others, axis=1)
        common, width = (_common(first, second, axis, add, bridged) for axis in (0, 1))
        common *= width
        union = areas.take(some)[:, np.newaxis] + areas.take(others)
        union -= common
        common /= union
        return common

    return overlaps


def _common(first: Array, second: Array, axis: int, margin: Any, bridged: bool) -> Array:
    """Return the length that boxes have in common along an axis."""
    length: Array = np.minimum(first[axis + 2], second[axis + 2])
    length -= np.maximum(first[axis], second[axis])
    if margin:
        if not bridged:
            length[length < 0] = -np.inf
        length += margin
    return np.maximum(length, 0, out=length)


# --------------------------------------------------------------------------- rotated boxes
# A point is a complex number here: turning is multiplication, and the cross product of two vectors an imaginary part.


def rotated_overlaps(boxes: Array) -> Overlaps:
    """Return how much rotated boxes [n, 5] overlap each other; see ``rotated_iou``."""
    return lambda some, others: rotated_iou(boxes.take(some, axis=0), boxes.take(others, axis=0))


def rotated_iou(first: Array, second: Array) -> Array:
    """Compute the intersection over union of every box of ``first`` [n, 5] with every box of ``second`` [m, 5].

    A box is center x, center y, width, height and the angle in radians by which it is turned from x towards y. A box
    without area overlaps nothing.
    """
    a, b = first.astype(np.float64).T, second.astype(np.float64).T
    area_a, area_b = a[2] * a[3], b[2] * b[3]
    result = np.zeros((a.shape[1], b.shape[1]))
    # Only boxes whose circumscribed circles meet can overlap.
    distance = np.hypot(a[0][:, np.newaxis] - b[0], a[1][:, np.newaxis] - b[1])
    near = distance <= (np.hypot(a[2], a[3])[:, np.newaxis] + np.hypot(b[2], b[3])) / 2
    near &= (area_a[:, np.newaxis] > 0) & (area_b > 0)
    i, j = near.nonzero()
    for start in range(0, i.size, _PAIRS):
        p, q = i[start : start + _PAIRS], j[start : start + _PAIRS]
        common = _intersections(a[:, p], b[:, q])
        result[p, q] = common / (area_a[p] + area_b[q] - common)
    return result


def _intersections(a: Array, b: Array) -> Array:
    """Return the area that each rotated box of ``a`` [5, n] has in common with the box of ``b`` at the same position.

    The intersection is a convex polygon. Its corners are corners of one box inside the other, and points where edges
    cross.
    """
    # Numbers near 0 are the most precise, so the center of b becomes the origin.
    center, none = a[0] - b[0] + 1j * (a[1] - b[1]), np.zeros(a.shape[1])
    ends_a, ends_b = _ends(center, *a[2:]), _ends(none, *b[2:])
    edges_a, edges_b = (np.roll(ends, -1, axis=1) - ends for ends in (ends_a, ends_b))

    start, along = ends_a[:, :, np.newaxis], edges_a[:, :, np.newaxis]
    gap, other = ends_b[:, np.newaxis] - start, edges_b[:, np.newaxis]
    slope = _cross(along, other)
    parallel = abs(slope) <= _SLACK * abs(along) * abs(other)
    slope[parallel] = 1
    t, u = _cross(gap, other) / slope, _cross(gap, along) / slope
    crossing = ~parallel & (abs(t - 0.5) <= 0.5 + _SLACK) & (abs(u - 0.5) <= 0.5 + _SLACK)

    points = np.concatenate([(start + t * along).reshape(-1, 16), ends_a, ends_b], axis=1)
    is_corner = np.concatenate(
        [crossing.reshape(-1, 16), _within(ends_a, none, *b[2:]), _within(ends_b, center, *a[2:])], axis=1
    )
    # Points that are no corners move onto a corner, where they add no area.
    points = np.where(is_corner, points, np.take_along_axis(points, is_corner.argmax(axis=1)[:, np.newaxis], axis=1))
    points -= points.mean(axis=1, keepdims=True)
    points = np.take_along_axis(points, np.angle(points).argsort(axis=1), axis=1)
    area: Array = _cross(points, np.roll(points, -1, axis=1)).sum(axis=1) / 2
    return area


def _ends(center: Array, width: Array, height: Array, angle: Array) -> Array:
    """Return the corners of rotated boxes in order, [n, 4]."""
    corner, turn = (width + 1j * height) / 2, np.exp(1j * angle)
    mirrored = corner.conj()
    return np.stack([center + turn * offset for offset in (corner, -mirrored, -corner, mirrored)], axis=1)


def _within(points: Array, center: Array, width: Array, height: Array, angle: Array) -> Array:
    """Return which of the points [n, 4] lie in the n-th rotated box."""
    seen = (points - center[:, np.newaxis]) * np.exp(-1j * angle)[:, np.newaxis]
    reach = (0.5 + _SLACK) * (width + 1j * height)[:, np.newaxis]
    return (abs(seen.real) <= reach.real) & (abs(seen.imag) <= reach.imag)


def _cross(a: Array, b: Array) -> Array:
    return (a.conj() * b).imag
