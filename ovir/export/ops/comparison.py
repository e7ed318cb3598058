"""Comparisons, IsFinite, IsNaN and IsInf."""

from __future__ import annotations

from ovir.export.exporters import exports, exports_parts
from ovir.export.nodes import aligned
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.comparison import (
    ComparisonBase,
    Equal,
    Greater,
    GreaterEqual,
    IsFinite,
    IsInf,
    IsNaN,
    Less,
    LessEqual,
    NotEqual,
)

_OPERATORS = {"GreaterEqual": "GreaterOrEqual", "LessEqual": "LessOrEqual", "NotEqual": "Equal"}


@exports(Equal, Greater, Less)
@exports(GreaterEqual, to="GreaterOrEqual")
@exports(LessEqual, to="LessOrEqual")
@exports(NotEqual, to="Equal and Not")
def comparison(graph: Graph, op: ComparisonBase, a: Tensor, b: Tensor) -> Tensor:
    result = graph.node(_OPERATORS.get(op.type, op.type), a, aligned(graph, op, a, b))[0]
    return graph.Not(result) if isinstance(op, NotEqual) else result


exports_parts(IsFinite, to="Abs and Less")


@exports(IsNaN, to="IsNaN")
def is_nan(graph: Graph, op: IsNaN, data: Tensor) -> Tensor:
    return graph.IsNaN(data)


@exports(IsInf, to="IsInf")
def is_inf(graph: Graph, op: IsInf, data: Tensor) -> Tensor:
    return graph.IsInf(data, detect_negative=int(op.detect_negative), detect_positive=int(op.detect_positive))
