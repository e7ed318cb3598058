"""Identity and ErfInv."""

from __future__ import annotations

from math import pi, sqrt

from ovir import opset7 as ops
from ovir.core.element_types import f32, f64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import scalar, tensor
from ovir.lowering.registry import lowers
from ovir.ops.unary import ErfInv, Identity


@lowers("Identity", 16)
def identity(op: Identity, data: Port) -> Port:
    return data


_A = 0.147
"""The constant of Winitzki's approximation of the error function by an exponential."""


@lowers("ErfInv", 17)
def erf_inv(op: ErfInv, data: Port) -> LayerOrPort:
    """Improve Winitzki's approximation by steps of Newton's method."""
    wide = data.element_type if data.element_type in (f32, f64) else f32
    x = ops.convert(data, wide) if wide != data.element_type else data

    def of(value: float) -> Layer:
        return scalar(value, wide)

    # ln(1 - x^2) in two terms, because 1 - x^2 loses the digits of x near 1
    log = ops.add(ops.log(ops.subtract(of(1), x)), ops.log(ops.add(of(1), x)))
    half = ops.add(ops.multiply(log, of(0.5)), of(2 / (pi * _A)))
    inner = ops.sqrt(ops.subtract(ops.multiply(half, half), ops.multiply(log, of(1 / _A))))
    result = ops.multiply(ops.sign(x), ops.sqrt(ops.subtract(inner, half)))
    for _ in range(3):
        slope = ops.multiply(ops.exp(ops.negative(ops.multiply(result, result))), of(2 / sqrt(pi)))
        step = ops.divide(ops.subtract(ops.erf(result), x), slope)
        result = ops.subtract(result, step)
    at_end = ops.greater_equal(ops.abs(x), of(1))
    limit = ops.multiply(ops.sign(x), ops.divide(of(1), ops.subtract(of(1), ops.minimum(ops.abs(x), of(1)))))
    beyond = ops.select(ops.greater(ops.abs(x), of(1)), of(float("nan")), limit)
    found = ops.select(at_end, beyond, result)
    return found if tensor(found).element_type == data.element_type else ops.convert(found, data.element_type)
