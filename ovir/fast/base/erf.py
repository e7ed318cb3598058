"""The error function, and what follows from it, in passes over blocks that stay in a cache."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Spare, clip
from ovir.kernels.erf import ERF_F32, erf

# For float32: the normal distribution function, (1 + erf(x / sqrt(2))) / 2, is 1 / (1 + e^(x * H(x^2))), H(t) being
# the continued fraction H0 + a0 / (t + b0 + a1 / (t + b1 + a2 / (t + b2))), for fewer passes than a polynomial takes.
_H0 = -9.499513749098389
_H = ((1017.3225806322332, 133.0254199626538), (-22.156832310043455, -24.146209657847876),
      (1097.668998258466, 37.48189424954874))  # fmt: skip


def erf_passes(x: Array, y: Array, spare: Spare) -> list[Call]:
    """Return the calls that compute ``erf(x, y)``; ``spare()`` returns an array like x for what lies between."""
    if x.dtype == np.float64:
        return [(erf, (x, y))]
    near, square = spare(), spare()
    four, minus_four, one, *coefficients = (np.array(value, np.float32) for value in (4, -4, 1, *reversed(ERF_F32)))
    calls: list[Call] = [(clip, (x, minus_four, four, near)), (np.square, (near, square))]
    calls.append((np.multiply, (square, coefficients[0], y)))
    for coefficient in coefficients[1:-1]:
        calls += [(np.add, (y, coefficient, y)), (np.multiply, (y, square, y))]
    return [
        *calls,
        (np.add, (y, coefficients[-1], y)),
        (np.multiply, (y, near, y)),
        (np.square, (y, square)),
        (np.add, (square, one, square)),
        (np.sqrt, (square, square)),
        (np.divide, (y, square, y)),
    ]


def gelu_passes(x: Array, y: Array, spare: Spare) -> list[Call]:
    """Return the calls that compute x / 2 * (1 + erf(x / sqrt(2))) for float32 or float64. ``y`` must not be ``x``.

    In float32 the absolute error is at most 1.7e-7 * |x|, and at most 3 units in the last place for positive x.
    """
    one = np.array(1, x.dtype)
    if x.dtype == np.float64:
        return [
            (np.multiply, (x, np.array(sqrt(0.5)), y)),
            (erf, (y, y)),
            (np.add, (y, one, y)),
            (np.multiply, (y, np.array(0.5), y)),
            (np.multiply, (x, y, y)),
        ]
    square = spare()
    calls: list[Call] = [(np.square, (x, square))]
    term = square
    for a, b in reversed(_H):
        if term is y:
            calls.append((np.add, (y, square, y)))
        calls += [(np.add, (term, np.array(b, np.float32), y)), (np.divide, (np.array(a, np.float32), y, y))]
        term = y
    return [
        *calls,
        (np.add, (y, np.array(_H0, np.float32), y)),
        (np.multiply, (x, y, y)),
        (np.exp, (y, y)),
        (np.add, (y, one, y)),
        (np.divide, (x, y, y)),
    ]
