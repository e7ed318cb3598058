"""Add, Subtract, Multiply, Divide, FloorMod, Mod, Maximum, Minimum, SquaredDifference and Power."""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import f64, i32, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.ops.normalization import BIAS, SCALE, root_mean_square, with_parameter
from ovir.ops import arithmetic as ops

_OPERATORS = {ops.Add: "Add", ops.Subtract: "Sub", ops.Maximum: "Max", ops.Minimum: "Min"}
_RELATIONS = {ops.Maximum: "Greater", ops.Minimum: "Less"}
_OF_POWERS = "the root of -inf is NaN; powers of integers are exact below 2^53"
_BY_ZERO = "onnxruntime refuses to divide an integer by 0, for which ovir gives 0"


@exports(ops.Add, to="Add; after LayerNormalization, its bias")
@exports(ops.Subtract, to="Sub")
def arithmetic(graph: Graph, op: ops.ArithmeticBase, a: Tensor, b: Tensor) -> Tensor:
    if isinstance(op, ops.Add) and (merged := with_parameter(graph, a, b, BIAS)):
        return merged
    result = graph.node(_OPERATORS[type(op)], a, b)[0]
    return graph.wrapped(result, op.output_types[0])


@exports(ops.Maximum, to="Max; real numbers that may be NaN: Greater and Where")
@exports(ops.Minimum, to="Min; real numbers that may be NaN: Less and Where")
def extremum(graph: Graph, op: ops.Maximum | ops.Minimum, a: Tensor, b: Tensor) -> Tensor:
    """Export as Max or Min; where b may be NaN, which gives a, by a comparison."""
    if not op.output_types[0].is_real or (b.constant is not None and not np.isnan(b.constant.astype(np.float64)).any()):
        return graph.node(_OPERATORS[type(op)], a, b)[0]
    return graph.Where(graph.node(_RELATIONS[type(op)], b, a)[0], b, a)


@exports(ops.Multiply, to="Mul; after LayerNormalization, its scale; or RMSNormalization")
def multiply(graph: Graph, op: ops.Multiply, a: Tensor, b: Tensor) -> Tensor:
    """Export as Mul; products of 8-bit integers are computed in 32 bits and saturate."""
    element_type = op.output_types[0]
    if merged := with_parameter(graph, a, b, SCALE) or root_mean_square(graph, a, b):
        return merged
    if element_type.is_integral and element_type.bits == 8:
        return graph.saturated(graph.Mul(graph.cast(a, i32), graph.cast(b, i32)), element_type)
    return graph.wrapped(graph.Mul(a, b), element_type)


@exports(ops.Divide, to="Div; signed integers: Sub, Mod and Div", limits=_BY_ZERO)
def divide(graph: Graph, op: ops.Divide, a: Tensor, b: Tensor) -> Tensor:
    """Export as Div; signed integers that round down are first made multiples of the divisor."""
    if op.output_types[0].kind == "signed" and op.m_pythondiv:
        a = graph.Sub(a, graph.Mod(a, b))
    return graph.Div(a, b)


@exports(ops.FloorMod, to="Mod; real numbers: Div, Floor, Mul and Sub in f64", limits=_BY_ZERO)
def floor_mod(graph: Graph, op: ops.FloorMod, a: Tensor, b: Tensor) -> Tensor:
    """Export as Mod; real numbers by the formula that defines it, in f64."""
    if not op.output_types[0].is_real:
        return graph.Mod(a, b)
    x, y = graph.cast(a, f64), graph.cast(b, f64)
    return graph.Sub(x, graph.Mul(graph.Floor(graph.Div(x, y)), y))


@exports(ops.Mod, to="Div, Mul and Sub; unsigned integers: Mod", limits=_BY_ZERO)
def mod(graph: Graph, op: ops.Mod, a: Tensor, b: Tensor) -> Tensor:
    """Export as Mod for unsigned integers, and by the formula that defines it; quotients of integers are truncated."""
    if op.output_types[0].kind == "unsigned":
        return graph.Mod(a, b)
    quotient = graph.Div(a, b)
    whole = graph.truncated(quotient) if op.output_types[0].is_real else quotient
    return graph.Sub(a, graph.Mul(whole, b))


@exports(ops.SquaredDifference, to="Sub and Mul")
def squared_difference(graph: Graph, op: ops.SquaredDifference, a: Tensor, b: Tensor) -> Tensor:
    difference = graph.Sub(a, b)
    return graph.wrapped(graph.Mul(difference, difference), op.output_types[0])


@exports(ops.Power, to="Pow; exponents of 0.5 and -1: Sqrt and Reciprocal", limits=_OF_POWERS)
def power(graph: Graph, op: ops.Power, a: Tensor, b: Tensor) -> Tensor:
    """Export as Pow, or as a root or reciprocal; integers are computed in f64 and truncated."""
    if op.output_types[0].is_integral:
        whole = graph.cast(graph.Pow(graph.cast(a, f64), graph.cast(b, f64)), i64)
        # onnxruntime converts at once, without wrapping around, where nothing is between two conversions.
        return whole if op.output_types[0].bits == 64 else graph.Mod(whole, 1 << op.output_types[0].bits)
    exponent = b.number if a.rank is not None and b.rank is not None and b.rank <= a.rank else None
    if exponent == 0.5:
        return graph.Sqrt(a)
    if exponent == -1:
        return graph.Reciprocal(a)
    return graph.Pow(a, b)
