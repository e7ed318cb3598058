"""Activation functions."""

from __future__ import annotations

from functools import partial
from math import pi, sqrt

import numpy as np

from ovir.core.element_types import f32, f64, i64
from ovir.export.exporters import exports
from ovir.export.nodes import of_reals, scalar, with_trailing
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.ops.unary import erf
from ovir.kernels.precision import integer_range
from ovir.ops.activation import (
    Clamp,
    Elu,
    Gelu2,
    Gelu7,
    HardSigmoid,
    HSigmoid,
    HSwish,
    Mish,
    PReLU,
    ReLU,
    Selu,
    Sigmoid,
    SoftPlus,
    SoftSign,
    Swish,
    Tanh,
    UnaryActivationBase,
)


@exports(ReLU, to="Relu; u64 and i64: Max")
def relu(graph: Graph, op: ReLU, data: Tensor) -> Tensor:
    """Export as Relu; unsigned integers stay as they are."""
    if data.element_type.kind == "unsigned":
        return data
    return graph.Max(data, 0) if data.element_type == i64 else graph.Relu(data)


@exports(Clamp, to="Clip")
def clamp(graph: Graph, op: Clamp, data: Tensor) -> Tensor:
    """Export as Clip; for integers min is rounded up and max down, within the range of the type."""
    low, high = op.min, op.max
    element_type = op.output_types[0]
    if element_type.is_integral:
        least, most = integer_range(element_type.to_dtype())
        low, high = (int(min(max(end, least), most)) for end in (np.ceil(low), np.floor(high)))
    return graph.Clip(data, low, high)


@exports(Sigmoid, Tanh)
def activation(graph: Graph, op: UnaryActivationBase, data: Tensor) -> Tensor:
    """Export as the operator that means the same; integers are computed in f64 and rounded."""
    return of_reals(graph, data, lambda x: graph.node(op.type, x)[0])


# ----- piecewise linear functions


@exports(HSigmoid, to="HardSigmoid; f64: its formula")
def h_sigmoid(graph: Graph, op: HSigmoid, data: Tensor) -> Tensor:
    return of_reals(graph, data, partial(_hard_sigmoid, graph, alpha=1 / 6, beta=0.5))


@exports(HSwish, to="HardSwish; f64: its formula")
def h_swish(graph: Graph, op: HSwish, data: Tensor) -> Tensor:

    def function(x: Tensor) -> Tensor:
        if x.element_type == f32:
            return graph.HardSwish(x)
        return graph.Mul(x, _hard_sigmoid(graph, x, 1 / 6, 0.5))

    return of_reals(graph, data, function)


@exports(HardSigmoid, to="HardSigmoid; parameters that are not constant, or f64: Mul, Add, Clip", limits="NaN is kept")
def hard_sigmoid(graph: Graph, op: HardSigmoid, data: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    a, b = scalar(alpha), scalar(beta)

    def function(x: Tensor) -> Tensor:
        if a is not None and b is not None:
            return _hard_sigmoid(graph, x, a, b)
        factor, shift = (graph.cast(t, x.element_type) for t in (alpha, beta))
        return graph.Clip(graph.Add(graph.Mul(x, factor), shift), 0, 1)

    return of_reals(graph, data, function)


def _hard_sigmoid(graph: Graph, x: Tensor, alpha: float, beta: float) -> Tensor:
    if x.element_type == f32:
        return graph.HardSigmoid(x, alpha=alpha, beta=beta)
    return graph.Clip(graph.Add(graph.Mul(x, alpha), beta), 0, 1)


# ----- functions with an exponential


@exports(Elu, to="Elu; f64: its formula")
def elu(graph: Graph, op: Elu, data: Tensor) -> Tensor:

    def function(x: Tensor) -> Tensor:
        if x.element_type == f32:
            return graph.Elu(x, alpha=op.alpha)
        return graph.Where(graph.Greater(x, 0), x, graph.Mul(_exponential(graph, x), op.alpha))

    return of_reals(graph, data, function)


@exports(Selu, to="Selu; parameters that are not constant, or f64: its formula")
def selu(graph: Graph, op: Selu, data: Tensor, alpha: Tensor, factor: Tensor) -> Tensor:
    a, b = scalar(alpha), scalar(factor)

    def function(x: Tensor) -> Tensor:
        if a is not None and b is not None and x.element_type == f32:
            return graph.Selu(x, alpha=a, gamma=b)
        first, second = (graph.Reshape(graph.cast(t, x.element_type), []) for t in (alpha, factor))
        return graph.Mul(graph.Where(graph.Greater(x, 0), x, graph.Mul(_exponential(graph, x), first)), second)

    return of_reals(graph, data, function)


def _exponential(graph: Graph, x: Tensor) -> Tensor:
    """Return e^x - 1."""
    return graph.Sub(graph.Exp(x), 1)


@exports(Swish, to="Sigmoid and Mul")
def swish(graph: Graph, op: Swish, data: Tensor, beta: Tensor | None = None) -> Tensor:

    def function(x: Tensor) -> Tensor:
        scaled = x if beta is None or scalar(beta) == 1 else graph.Mul(x, graph.cast(beta, x.element_type))
        return graph.Mul(x, graph.Sigmoid(scaled))

    return of_reals(graph, data, function)


@exports(Mish, to="Mish; before opset 18, or f64: Softplus, Tanh and Mul")
def mish(graph: Graph, op: Mish, data: Tensor) -> Tensor:

    def function(x: Tensor) -> Tensor:
        if x.element_type == f32 and graph.has("Mish"):
            return graph.Mish(x)
        return graph.Mul(x, graph.Tanh(_softplus(graph, x)))

    return of_reals(graph, data, function)


@exports(SoftPlus, to="Softplus; f64: its formula")
def soft_plus(graph: Graph, op: SoftPlus, data: Tensor) -> Tensor:
    return of_reals(graph, data, partial(_softplus, graph))


def _softplus(graph: Graph, x: Tensor) -> Tensor:
    if x.element_type == f32:
        return graph.Softplus(x)
    small = graph.Exp(graph.Neg(graph.Abs(x)))
    return graph.Add(graph.Max(x, 0), graph.Log(graph.Add(small, 1)))


@exports(SoftSign, to="Softsign; f64: Abs, Add and Div")
def soft_sign(graph: Graph, op: SoftSign, data: Tensor) -> Tensor | None:
    """Export as Softsign, which onnxruntime does not compute in f64."""
    return None if data.element_type == f64 else of_reals(graph, data, graph.Softsign)


@exports(Gelu2, Gelu7, to="Gelu; before opset 20, or f64: a formula with Erf or Tanh")
def gelu(graph: Graph, op: Gelu2 | Gelu7, data: Tensor) -> Tensor:
    is_exact = not isinstance(op, Gelu7) or op.approximation_mode == "erf"

    def function(x: Tensor) -> Tensor:
        if x.element_type == f32 and graph.has("Gelu"):
            return graph.Gelu(x, approximate=None if is_exact else "tanh")
        return (_exact if is_exact else _approximate)(graph, x)

    return of_reals(graph, data, function)


# onnxruntime recognizes these nodes, in this order, and computes them in one pass.
def _exact(graph: Graph, x: Tensor) -> Tensor:
    quotient = graph.Div(x, sqrt(2))
    part = erf(graph, quotient) if x.element_type == f64 else graph.Erf(quotient)
    return graph.Mul(graph.Mul(x, graph.Add(part, 1)), 0.5)


def _approximate(graph: Graph, x: Tensor) -> Tensor:
    cube = graph.Pow(x, 3)
    inside = graph.Mul(graph.Add(x, graph.Mul(cube, 0.044715)), sqrt(2 / pi))
    return graph.Mul(graph.Mul(x, 0.5), graph.Add(graph.Tanh(inside), 1))


@exports(
    PReLU,
    to="PRelu; one constant slope: LeakyRelu; f64: Where",
    limits="one-dimensional slopes of unknown length count as one slope per channel",
)
def prelu(graph: Graph, op: PReLU, data: Tensor, slope: Tensor) -> Tensor:
    """Export as LeakyRelu or PRelu, with the slopes of channels in a shape that is broadcast to data."""
    number = scalar(slope)

    def function(x: Tensor) -> Tensor:
        if number is not None and x.element_type == f32:
            return graph.LeakyRelu(x, alpha=number)
        slopes = graph.cast(_broadcastable(graph, data, slope), x.element_type)
        if x.element_type == f64:
            return graph.Where(graph.Less(x, 0), graph.Mul(x, slopes), x)
        if graph.needs_kernels and slopes.constant is not None and np.isfinite(slopes.constant).all():
            # onnxruntime's PRelu takes ten times as long.
            return graph.Add(graph.Relu(x), graph.Mul(graph.Min(x, 0), slopes))
        return graph.PRelu(x, slopes)

    return of_reals(graph, data, function)


def _broadcastable(graph: Graph, data: Tensor, slope: Tensor) -> Tensor:
    """Return the slopes in a shape that is broadcast to data: a single one, one per channel, or as they are."""
    if slope.shape.is_static and slope.shape.size().length == 1:
        return graph.Reshape(slope, [])
    if slope.rank == 1:
        rank = graph.rank(data)
        if rank > 1 and slope.shape[0].compatible(data.shape[1]):
            return with_trailing(graph, slope, rank - 2)
    return slope
