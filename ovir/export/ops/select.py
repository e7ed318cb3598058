"""Select."""

from __future__ import annotations

from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.select import Select


@exports(Select, to="Where")
def select(graph: Graph, op: Select, cond: Tensor, then: Tensor, other: Tensor) -> Tensor:
    return graph.Where(graph.aligned(op, then, cond), then, graph.aligned(op, then, other))
