"""Comparisons, IsFinite, IsNaN and IsInf."""

from __future__ import annotations

from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops import comparison as ops

_OPERATORS = {"GreaterEqual": "GreaterOrEqual", "LessEqual": "LessOrEqual", "NotEqual": "Equal"}


@exports(ops.Equal, ops.Greater, ops.Less, ops.IsNaN)
@exports(ops.GreaterEqual, to="GreaterOrEqual")
@exports(ops.LessEqual, to="LessOrEqual")
@exports(ops.NotEqual, to="Equal and Not")
def comparison(graph: Graph, op: ops.ComparisonBase | ops.IsNaN, *inputs: Tensor) -> Tensor:
    result = graph.node(_OPERATORS.get(op.type, op.type), *inputs)[0]
    return graph.Not(result) if isinstance(op, ops.NotEqual) else result


@exports(ops.IsInf, to="IsInf")
def is_inf(graph: Graph, op: ops.IsInf, data: Tensor) -> Tensor:
    return graph.IsInf(data, detect_negative=int(op.detect_negative), detect_positive=int(op.detect_positive))
