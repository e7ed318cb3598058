"""Compute the intersection over union of rotated boxes."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.boxes import Overlaps

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
    """Return which share of half an edge lies within an upright box of half the size ``reach`` [2, n] around the
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
