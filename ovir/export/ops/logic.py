"""Logical operations on booleans."""

from __future__ import annotations

from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import aligned
from ovir.ops.logic import LogicalAnd, LogicalBase, LogicalNot, LogicalOr, LogicalXor, Xor

_OPERATORS: dict[type[LogicalBase], str] = {LogicalAnd: "And", LogicalOr: "Or", LogicalXor: "Xor", Xor: "Xor"}


@exports(LogicalAnd, to="And")
@exports(LogicalOr, to="Or")
@exports(LogicalXor, Xor, to="Xor")
def logical(graph: Graph, op: LogicalBase, a: Tensor, b: Tensor) -> Tensor:
    """Export as the operator that means the same."""
    return graph.node(_OPERATORS[type(op)], a, aligned(graph, op, a, b))[0]


@exports(LogicalNot, to="Not")
def logical_not(graph: Graph, op: LogicalNot, data: Tensor) -> Tensor:
    """Export as Not."""
    return graph.Not(data)
