"""Elementwise functions of one input.

``ovir.kernels.erf`` explains the formulas of the error function.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.element_types import f32, f64, i8
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.kernels.erf import ERF_FAR, ERF_NEAR
from ovir.kernels.precision import integer_range
from ovir.ops import unary as ops

# ----- integers of integers


@exports(ops.Abs, to="Abs")
def absolute(graph: Graph, op: ops.Abs, data: Tensor) -> Tensor:
    return graph.Abs(_above_least(graph, data))


@exports(ops.Negative, to="Neg; unsigned integers: Sub")
def negative(graph: Graph, op: ops.Negative, data: Tensor) -> Tensor:
    if data.element_type.kind == "unsigned":
        difference = graph.Sub(np.zeros((), data.element_type.to_dtype()), data)
        return graph.wrapped(difference, op.output_types[0])
    return graph.Neg(_above_least(graph, data))


def _above_least(graph: Graph, data: Tensor) -> Tensor:
    return graph.Max(data, -127) if data.element_type == i8 else data


@exports(ops.Sign, to="Sign")
def sign(graph: Graph, op: ops.Sign, data: Tensor) -> Tensor:
    """Export as Sign; that of onnxruntime makes 0 of a NaN of 16 bits."""
    return graph.Sign(graph.cast(data, data.real_type) if data.element_type.is_real else data)


@exports(ops.Floor, to="Floor; integers: Identity")
@exports(ops.Ceiling, to="Ceil; integers: Identity")
def floor_or_ceiling(graph: Graph, op: ops.RoundingBase, data: Tensor) -> Tensor:
    """Export as Floor or Ceil; integers stay as they are."""
    if not data.element_type.is_real:
        return data
    return graph.Floor(data) if isinstance(op, ops.Floor) else graph.Ceil(data)


@exports(ops.Round, to="Round; half_away_from_zero: Abs, Add, Floor, Mul")
def rounded(graph: Graph, op: ops.Round, data: Tensor) -> Tensor:
    """Export as Round, or as the floor of the magnitude plus a half, with the sign of data."""
    if not data.element_type.is_real:
        return data
    return graph.Round(data) if op.mode == "half_to_even" else graph.rounded_away(data)


# ----- real functions


def _hyperbolic_cosine(graph: Graph, x: Tensor) -> Tensor:
    return graph.Mul(graph.Add(graph.Exp(x), graph.Exp(graph.Neg(x))), 0.5)


def _inverse_hyperbolic_sine(graph: Graph, x: Tensor) -> Tensor:
    size = graph.Abs(x)
    near = graph.Min(size, _FAR)
    square = graph.Mul(near, near)
    excess = graph.Div(square, graph.Add(graph.Sqrt(graph.Add(square, 1)), 1))  # the root of 1 + square, minus 1
    return graph.Mul(graph.Sign(x), _logarithm(graph, graph.Add(near, excess), size))


def _inverse_hyperbolic_cosine(graph: Graph, x: Tensor) -> Tensor:
    above = graph.Sub(graph.Min(x, _FAR), 1)
    root = graph.Mul(graph.Sqrt(above), graph.Sqrt(graph.Add(above, 2)))
    return _logarithm(graph, graph.Add(above, root), x)


_FAR = 2.0**30
"""A number whose square swallows 1; that of larger ones may be infinite."""


def _logarithm(graph: Graph, near: Tensor, x: Tensor) -> Tensor:
    """Return the logarithm of 1 + near, and of the factor by which x is larger than ``_FAR``."""
    return graph.Add(logarithm_above_one(graph, near), graph.Log(graph.Max(graph.Mul(x, 1 / _FAR), 1)))


def _inverse_hyperbolic_tangent(graph: Graph, x: Tensor) -> Tensor:
    size = graph.Abs(x)
    quotient = graph.Div(graph.Mul(size, 2), graph.Sub(1, size))
    return graph.Mul(graph.Sign(x), graph.Mul(logarithm_above_one(graph, quotient), 0.5))


def logarithm_above_one(graph: Graph, x: Tensor) -> Tensor:
    """Return the logarithm of 1 + x, also of small x, of which the sum keeps few digits.

    Its logarithm is multiplied by the quotient of x and what the sum keeps of it.
    """
    total = graph.Add(x, 1)
    kept = graph.Sub(total, 1)
    correction = graph.Where(graph.Less(x, 1), graph.Div(x, kept), 1)
    return graph.Where(graph.Equal(kept, 0), x, graph.Mul(graph.Log(total), correction))


# ----- the error function in f64, for which onnxruntime has no kernel


def erf(graph: Graph, x: Tensor) -> Tensor:
    """Return the error function of each element."""
    size = graph.Clip(graph.Abs(x), 0, 6)
    square = graph.Mul(size, size)
    above, below = (_polynomial(graph, coefficients, square) for coefficients in ERF_NEAR)
    near = graph.Div(graph.Mul(size, above), below)
    quotient = graph.Div(*(_polynomial(graph, coefficients, size) for coefficients in ERF_FAR))
    far = graph.Sub(1, graph.Mul(graph.Exp(graph.Neg(square)), quotient))
    return graph.Mul(graph.Sign(x), graph.Where(graph.Less(size, 1), near, far))


def _polynomial(graph: Graph, coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """Return the sum of coefficients[i] * x^i."""
    *rest, last = coefficients
    result = graph.Mul(x, last)
    for coefficient in rest[:0:-1]:
        result = graph.Mul(graph.Add(result, coefficient), x)
    return graph.Add(result, rest[0])


# ----- exporters of real functions

_IN_F64: dict[type[ops.UnaryBase], Callable[[Graph, Tensor], Tensor]] = {
    ops.Tan: lambda graph, x: graph.Div(graph.Sin(x), graph.Cos(x)),
    # a difference of exponentials loses small numbers
    ops.Sinh: lambda graph, x: graph.Mul(graph.Tanh(x), _hyperbolic_cosine(graph, x)),
    ops.Cosh: _hyperbolic_cosine,
    ops.Asinh: _inverse_hyperbolic_sine,
    ops.Acosh: _inverse_hyperbolic_cosine,
    ops.Atanh: _inverse_hyperbolic_tangent,
    ops.Erf: erf,
}
"""Functions that onnxruntime has in f32 only, written with functions that it has in f64, too."""

_SMALL = (ops.Asin, ops.Acos, ops.Atan, ops.Erf)
"""Functions whose integral results are the same if they are computed in f32."""


@exports(ops.Sqrt, ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Asin, ops.Acos, ops.Atan)
@exports(ops.Tan, to="{}; f64: Div of Sin and Cos")
@exports(ops.Sinh, ops.Cosh, to="{}; f64: a formula with Exp")
@exports(ops.Asinh, ops.Acosh, to="{}; f64: a formula with Log and Sqrt")
@exports(ops.Erf, to="{}; f64: polynomials and Exp")
def unary(graph: Graph, op: ops.UnaryBase, data: Tensor) -> Tensor:
    """Export as the operator that means the same; integers are computed in f64, and rounded or truncated."""
    element_type = data.element_type
    if element_type.is_real:
        return _of_reals(graph, op, graph.cast(data, data.real_type))
    result = _of_reals(graph, op, graph.cast(data, f32 if isinstance(op, _SMALL) else f64))
    if not (op.truncates and op.output_types[0].bits >= 32):
        result = graph.Round(result)
    whole = graph.saturated(result, element_type) if element_type.bits == 8 else graph.cast(result, element_type)
    return graph.wrapped(whole, op.output_types[0])


def _of_reals(graph: Graph, op: ops.UnaryBase, x: Tensor) -> Tensor:
    if x.element_type == f64 and type(op) in _IN_F64:
        return _IN_F64[type(op)](graph, x)
    return graph.node(op.type, x)[0]


@exports(ops.Atanh, to="Atanh; f64: a formula with Log; integers: Where")
def inverse_hyperbolic_tangent(graph: Graph, op: ops.Atanh, data: Tensor) -> Tensor:
    """Export as Atanh; nonzero integers give the limits of their type."""
    if data.element_type.is_real:
        return unary(graph, op, data)
    low, high = integer_range(op.output_types[0].to_dtype())
    least, zero, most = (graph.number(value, data.element_type) for value in (low, 0, high))
    return graph.Where(graph.Greater(data, 0), most, graph.Where(graph.Less(data, 0), least, zero))
