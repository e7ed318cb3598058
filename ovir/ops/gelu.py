"""Gelu: each element multiplied by the probability that a normally distributed number is below it."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.erf import gelu_passes
from ovir.kernels.fast_calls import Call
from ovir.kernels.passes import Spare, number
from ovir.ops.activation import UnaryActivationBase
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator


@operator("Gelu", opset=2)
class Gelu2(UnaryActivationBase):
    """x / 2 * (1 + erf(x / sqrt(2))).

    Source: Gelu-2
    """

    arguments = "node:data"
    real_only = True

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return gelu_passes(x, y, spare)


@operator("Gelu", opset=7)
class Gelu7(Gelu2):
    """Gelu-2, or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), depending on ``approximation_mode``.

    Source: Gelu-7
    """

    arguments = "data approximation_mode"
    approximation_mode: str = attribute(default="erf", choices=("erf", "tanh"))

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        if self.approximation_mode == "erf":
            return super().calls(x, y, spare)
        # (1 + tanh(t)) / 2 is 1 / (1 + e^(-2t)), which is faster and does not cancel where x is negative.
        return [
            (np.multiply, (x, x, y)),
            (np.multiply, (y, number(-2 * 0.044715 * sqrt(2 / pi), x), y)),
            (np.subtract, (y, number(2 * sqrt(2 / pi), x), y)),
            (np.multiply, (x, y, y)),
            (np.exp, (y, y)),
            (np.add, (y, number(1, x), y)),
            (np.divide, (x, y, y)),
        ]
