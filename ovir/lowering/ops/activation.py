"""SoftSign and Gelu."""

from __future__ import annotations

from math import pi, sqrt

from ovir import opset6 as ops
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import older, scalar
from ovir.ops.activation import Gelu7, SoftSign


@lowers("SoftSign", 9)
def softsign(op: SoftSign, data: Port) -> Layer:
    return ops.divide(data, ops.add(ops.abs(data), scalar(1, data.element_type)))


@lowers("Gelu", 7)
def gelu_7(op: Gelu7, data: Port) -> Layer:
    """Keep Gelu-2 for erf; compute x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) for tanh."""
    if op.approximation_mode == "erf":
        return older(op, 2, data)
    cube = ops.multiply(ops.power(data, scalar(3, data.element_type)), scalar(0.044715, data.element_type))
    inner = ops.tanh(ops.multiply(ops.add(data, cube), scalar(sqrt(2 / pi), data.element_type)))
    half = ops.multiply(data, scalar(0.5, data.element_type))
    return ops.multiply(half, ops.add(inner, scalar(1, data.element_type)))
