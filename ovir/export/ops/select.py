"""Select."""

from __future__ import annotations

from ovir.export.exporters import exports
from ovir.export.nodes import aligned
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.select import Select


@exports(Select, to="Where")
def select(graph: Graph, op: Select, cond: Tensor, then: Tensor, other: Tensor) -> Tensor:
    return graph.Where(aligned(graph, op, then, cond), then, aligned(graph, op, then, other))
