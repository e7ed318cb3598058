"""Boxes moved and resized by what a network has predicted for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.arrays import Array


def moved(boxes: Array, deltas: Array, margin: float, most: Any) -> Array:
    """[..., 4] boxes of ``boxes`` and ``deltas`` [..., 4], which are broadcast.

    Boxes are [x0, y0, x1, y1]; ``margin`` is 1 where the last pixel belongs to the box, 0 where it does not. (dx *
    width, dy * height) of the deltas [dx, dy, dw, dh] is added to the center, and (exp dw, exp dh), with dw and dh at
    ``most`` so large, multiplies the size.
    """
    number = boxes.dtype.type
    start, end = boxes[..., :2], boxes[..., 2:]
    size = end - start + number(margin)
    center = deltas[..., :2] * size + (start + number(0.5) * size)
    reach = number(0.5) * (np.exp(np.minimum(deltas[..., 2:], number(most))) * size)
    return np.concatenate([center - reach, center + reach - number(margin)], axis=-1)
