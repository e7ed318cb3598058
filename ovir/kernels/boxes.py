"""How much boxes overlap: intersection over union of upright and of rotated boxes."""

from __future__ import annotations

import numpy as np

from ovir.arrays import Array

# Pairs of rotated boxes that are looked at together: each takes a few kilobytes.
_PAIRS = 1 << 11
# So much, of its own size, a corner may lie outside a rotated box and count as within. A corner that lies on an edge
# must not be lost to rounding: a corner of the intersection would be missing.
_SLACK = 1e-9


def corners(boxes: Array) -> Array:
    """Of boxes [n, 4], two opposite corners each, the least and then the largest coordinates, as [4, n]."""
    first, second = boxes[:, :2].T, boxes[:, 2:].T
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)])


def corners_of_centered(boxes: Array) -> Array:
    """The same of boxes [n, 4] that are given by x and y of their centers, width and height. Axis 0 is y, as above."""
    center, half = boxes[:, 1::-1].T, boxes[:, :1:-1].T / 2
    return np.concatenate([center - half, center + half])


def iou(first: Array, second: Array, margin: float = 0, *, bridged: bool = True) -> Array:
    """Intersection over union of each of the boxes ``first`` [4, n] with each of ``second`` [4, m].

    The rows are least and largest coordinates: y, x, y, x, or with the axes exchanged. ``margin`` is added to each
    length: 1 where the coordinates are those of pixels, and the last one belongs to the box. Boxes that are no more
    apart than the margin overlap then, unless they are not ``bridged``. A box without area overlaps nothing.
    """
    common, width = (_common(first[:, :, np.newaxis], second, axis, margin, bridged) for axis in (0, 1))
    common *= width
    union = _areas(first, margin)[:, np.newaxis] + _areas(second, margin)
    union -= common
    common /= union
    return common


def _common(first: Array, second: Array, axis: int, margin: float, bridged: bool) -> Array:
    """The length along an axis that boxes have in common."""
    length: Array = np.minimum(first[axis + 2], second[axis + 2])
    length -= np.maximum(first[axis], second[axis])
    apart = length < 0 if margin and not bridged else None
    length += length.dtype.type(margin)
    if apart is not None:
        length[apart] = 0
    return np.maximum(length, 0, out=length)


def _areas(boxes: Array, margin: float) -> Array:
    """The areas of boxes [4, n]; infinite where there is none, so that its share in anything is 0."""
    add = boxes.dtype.type(margin)
    areas: Array = (boxes[2] - boxes[0] + add) * (boxes[3] - boxes[1] + add)
    areas[areas <= 0] = np.inf
    return areas


# --------------------------------------------------------------------------- rotated boxes
# A point is a complex number here: turning is multiplication, and the cross product of two vectors an imaginary part.


def rotated_iou(first: Array, second: Array) -> Array:
    """Intersection over union of each of the boxes ``first`` [n, 5] with each of ``second`` [m, 5].

    A box is x and y of its center, width, height, and the angle in radians by which it is turned from x to y. One
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
    """The area that each of the rotated boxes ``a`` [5, n] has in common with that of ``b``.

    It is a convex polygon. Its corners are corners of one box within the other, and places where their edges cross.
    """
    # Numbers near 0 are the most exact: the center of b is the origin.
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
    found = np.concatenate(
        [crossing.reshape(-1, 16), _within(ends_a, none, *b[2:]), _within(ends_b, center, *a[2:])], axis=1
    )
    # What is no corner is put on one, where it adds nothing.
    points = np.where(found, points, np.take_along_axis(points, found.argmax(axis=1)[:, np.newaxis], axis=1))
    points -= points.mean(axis=1, keepdims=True)
    points = np.take_along_axis(points, np.angle(points).argsort(axis=1), axis=1)
    area: Array = _cross(points, np.roll(points, -1, axis=1)).sum(axis=1) / 2
    return area


def _ends(center: Array, width: Array, height: Array, angle: Array) -> Array:
    """The corners of rotated boxes, in turn, as [n, 4]."""
    corner, turn = (width + 1j * height) / 2, np.exp(1j * angle)
    mirrored = corner.conj()
    return np.stack([center + turn * offset for offset in (corner, -mirrored, -corner, mirrored)], axis=1)


def _within(points: Array, center: Array, width: Array, height: Array, angle: Array) -> Array:
    """Which of the points [n, 4] lie in the n-th rotated box."""
    seen = (points - center[:, np.newaxis]) * np.exp(-1j * angle)[:, np.newaxis]
    reach = (0.5 + _SLACK) * (width + 1j * height)[:, np.newaxis]
    return (abs(seen.real) <= reach.real) & (abs(seen.imag) <= reach.imag)


def _cross(a: Array, b: Array) -> Array:
    return (a.conj() * b).imag
