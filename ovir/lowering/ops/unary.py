"""Identity and ErfInv."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import f32, f64
from ovir.graph.layers import Layer, Port
from ovir.lowering.parts import scalar
from ovir.lowering.registry import lowers
from ovir.ops.unary import ErfInv, Identity


@lowers("Identity", 16)
def identity(op: Identity, data: Port) -> Port:
    return data


# The coefficients of Giles' polynomials (Approximating the erfinv function, 2010), the highest power first.
_CENTRAL = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
    *(-0.00417768164, 0.246640727, 1.50140941),
)
_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613),
    *(0.00943887047, 1.00167406, 2.83297682),
)
_SMOOTH = 0.999
"""The magnitude up to which a step of Newton's method improves the result of f64."""


@lowers("ErfInv", 17)
def erf_inv(op: ErfInv, data: Port) -> Layer:
    """Multiply by a polynomial of ln(1 - x^2), one around its center and one at its ends."""
    computed = f64 if data.element_type == f64 else f32
    x = ops.convert(data, computed)

    def of(value: float) -> Layer:
        return scalar(value, computed)

    def polynomial(at: Layer, coefficients: Sequence[float]) -> Layer:
        total = of(coefficients[0])
        for coefficient in coefficients[1:]:
            total = ops.add(ops.multiply(total, at), of(coefficient))
        return total

    # two logarithms, because 1 - x^2 loses the digits of x near 1
    log = ops.add(ops.log(ops.subtract(of(1), x)), ops.log(ops.add(of(1), x)))
    w = ops.negative(log)
    central = polynomial(ops.subtract(w, of(2.5)), _CENTRAL)
    tail = polynomial(ops.subtract(ops.sqrt(ops.maximum(w, of(0))), of(3)), _TAIL)
    result = ops.multiply(x, ops.select(ops.less(w, of(5)), central, tail))
    if computed == f64:
        slope = ops.multiply(ops.exp(ops.negative(ops.multiply(result, result))), of(2 / sqrt(pi)))
        better = ops.subtract(result, ops.divide(ops.subtract(ops.erf(result), x), slope))
        result = ops.select(ops.less(ops.abs(x), of(_SMOOTH)), better, result)
    at_end = ops.multiply(ops.sign(x), of(np.inf))
    result = ops.select(ops.equal(ops.abs(x), of(1)), at_end, result)
    result = ops.select(ops.less_equal(ops.abs(x), of(1)), result, of(np.nan))
    return ops.convert(result, data.element_type)
