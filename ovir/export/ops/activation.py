"""Activation functions."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ovir.core.element_types import f32, f64, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.ops.unary import erf, logarithm_above_one
from ovir.kernels.precision import integer_range
from ovir.ops import activation as ops


@exports(ops.ReLU, to="Relu; u64 and i64: Max")
def relu(graph: Graph, op: ops.ReLU, data: Tensor) -> Tensor:
    """Export as Relu; unsigned integers stay as they are."""
    if data.element_type.kind == "unsigned":
        return data
    return graph.Max(data, 0) if data.element_type == i64 else graph.Relu(data)


@exports(ops.Clamp, to="Clip")
def clamp(graph: Graph, op: ops.Clamp, data: Tensor) -> Tensor:
    """Export as Clip; for integers min is rounded up and max down, within the range of the type."""
    low, high = op.min, op.max
    element_type = op.output_types[0]
    if element_type.is_integral:
        least, most = integer_range(element_type.to_dtype())
        low, high = (int(min(max(end, least), most)) for end in (np.ceil(low), np.floor(high)))
    return graph.Clip(data, low, high)


@exports(ops.Sigmoid, ops.Tanh, of_reals=True)
def activation(graph: Graph, op: ops.ActivationBase, x: Tensor) -> Tensor:
    """Export as the operator that means the same; integers are computed in f64 and rounded."""
    return graph.node(op.type, x)[0]


# ----- piecewise linear functions


@exports(ops.HSigmoid, to="HardSigmoid; f64: its formula", of_reals=True)
def h_sigmoid(graph: Graph, op: ops.HSigmoid, x: Tensor) -> Tensor:
    return _hard_sigmoid(graph, x, 1 / 6, 0.5)


@exports(ops.HSwish, to="HardSwish; f64: its formula", of_reals=True)
def h_swish(graph: Graph, op: ops.HSwish, x: Tensor) -> Tensor:
    if x.element_type == f32:
        return graph.HardSwish(x)
    return graph.Mul(x, _hard_sigmoid(graph, x, 1 / 6, 0.5))


@exports(
    ops.HardSigmoid,
    to="HardSigmoid; parameters that are not constant, or f64: Mul, Add, Clip",
    limits="NaN is kept",
    of_reals=True,
)
def hard_sigmoid(graph: Graph, op: ops.HardSigmoid, x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    a, b = (graph.cast(t, x.element_type) if t.number is None else t.number for t in (alpha, beta))
    return _hard_sigmoid(graph, x, a, b)


def _hard_sigmoid(graph: Graph, x: Tensor, alpha: float | Tensor, beta: float | Tensor) -> Tensor:
    if x.element_type == f32 and not isinstance(alpha, Tensor) and not isinstance(beta, Tensor):
        return graph.HardSigmoid(x, alpha=alpha, beta=beta)
    return graph.Clip(graph.Add(graph.Mul(x, alpha), beta), 0, 1)


# ----- functions with an exponential


@exports(ops.Elu, to="Elu; f64: its formula", of_reals=True)
def elu(graph: Graph, op: ops.Elu, x: Tensor) -> Tensor:
    if x.element_type == f32:
        return graph.Elu(x, alpha=op.alpha)
    return graph.Where(graph.Greater(x, 0), x, graph.Mul(_exponential(graph, x), op.alpha))


@exports(ops.Selu, to="Selu; parameters that are not constant, or f64: its formula", of_reals=True)
def selu(graph: Graph, op: ops.Selu, x: Tensor, alpha: Tensor, factor: Tensor) -> Tensor:
    a, b = alpha.number, factor.number
    if a is not None and b is not None and x.element_type == f32:
        return graph.Selu(x, alpha=a, gamma=b)
    first, second = (graph.Reshape(graph.cast(t, x.element_type), []) for t in (alpha, factor))
    return graph.Mul(graph.Where(graph.Greater(x, 0), x, graph.Mul(_exponential(graph, x), first)), second)


def _exponential(graph: Graph, x: Tensor) -> Tensor:
    """Return e^x - 1."""
    return graph.Sub(graph.Exp(x), 1)


@exports(ops.Swish, to="Sigmoid and Mul", of_reals=True)
def swish(graph: Graph, op: ops.Swish, x: Tensor, beta: Tensor | None = None) -> Tensor:
    scaled = x if beta is None or beta.number == 1 else graph.Mul(x, graph.cast(beta, x.element_type))
    return graph.Mul(x, graph.Sigmoid(scaled))


@exports(ops.Mish, to="Mish; before opset 18, or f64: Softplus, Tanh and Mul", of_reals=True)
def mish(graph: Graph, op: ops.Mish, x: Tensor) -> Tensor:
    if x.element_type == f32 and graph.has("Mish"):
        return graph.Mish(x)
    return graph.Mul(x, graph.Tanh(soft_plus(graph, op, x)))


@exports(ops.SoftPlus, to="Softplus; f64: its formula", of_reals=True)
def soft_plus(graph: Graph, op: ops.SoftPlus | ops.Mish, x: Tensor) -> Tensor:
    if x.element_type == f32:
        return graph.Softplus(x)
    small = graph.Exp(graph.Neg(graph.Abs(x)))
    return graph.Add(graph.Max(x, 0), logarithm_above_one(graph, small))


@exports(ops.SoftSign, to="Softsign; f64: Abs, Add and Div", of_reals=True)
def soft_sign(graph: Graph, op: ops.SoftSign, x: Tensor) -> Tensor | None:
    """Export as Softsign, which onnxruntime does not compute in f64."""
    return None if x.element_type == f64 else graph.Softsign(x)


@exports(ops.Gelu2, ops.Gelu7, to="Gelu; before opset 20, or f64: a formula with Erf or Tanh", of_reals=True)
def gelu(graph: Graph, op: ops.Gelu2 | ops.Gelu7, x: Tensor) -> Tensor | None:
    """Export as Gelu; onnxruntime recognizes the nodes of both formulas, in this order, and computes them in one
    pass."""
    is_exact = not isinstance(op, ops.Gelu7) or op.approximation_mode == "erf"
    if x.element_type == f32 and graph.has("Gelu"):
        return graph.Gelu(x, approximate=None if is_exact else "tanh")
    if not is_exact:
        return None
    quotient = graph.Div(x, sqrt(2))
    if x.element_type == f64:
        return graph.Mul(graph.Mul(x, 0.5), graph.Add(erf(graph, quotient), 1))  # twice the largest x is infinite
    return graph.Mul(graph.Mul(x, graph.Add(graph.Erf(quotient), 1)), 0.5)


@exports(
    ops.PReLU,
    to="PRelu; one constant slope: LeakyRelu; f64: Where",
    limits="one-dimensional slopes of unknown length count as one slope per channel",
    of_reals=True,
)
def prelu(graph: Graph, op: ops.PReLU, x: Tensor, slope: Tensor) -> Tensor:
    """Export as LeakyRelu or PRelu, with the slopes of channels in a shape that is broadcast to data."""
    if slope.number is not None and x.element_type == f32:
        return graph.LeakyRelu(x, alpha=slope.number)
    slopes = graph.cast(_broadcastable(graph, x, slope), x.element_type)
    if x.element_type == f64:
        return graph.Where(graph.Less(x, 0), graph.Mul(x, slopes), x)
    if graph.needs_kernels and slopes.constant is not None and np.isfinite(slopes.constant).all():
        # onnxruntime's PRelu takes ten times as long.
        return graph.Add(graph.Relu(x), graph.Mul(graph.Min(x, 0), slopes))
    return graph.PRelu(x, slopes)


def _broadcastable(graph: Graph, data: Tensor, slope: Tensor) -> Tensor:
    """Return the slopes in a shape that is broadcast to data: a single one, one per channel, or as they are."""
    if slope.shape.is_static and slope.shape.size().length == 1:
        return graph.Reshape(slope, [])
    if slope.rank == 1:
        rank = graph.rank(data)
        if rank > 1 and slope.shape[0].compatible(data.shape[1]):
            return graph.with_trailing(slope, rank - 2)
    return slope
