"""GroupedMatMul."""

from __future__ import annotations

from ovir.core.element_types import i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import swapped
from ovir.ops.grouped_matmul import GroupedMatMul


@exports(
    GroupedMatMul,
    to="MatMul; with offsets: Slice and MatMul per group, and Concat",
    limits="with offsets, the number of groups must be static, and the groups must cover all rows",
)
def grouped_matmul(graph: Graph, op: GroupedMatMul, a: Tensor, b: Tensor, offsets: Tensor | None = None) -> Tensor:
    """Export as MatMul; where offsets divide the rows, as a MatMul for each group."""
    matrices = swapped(graph, b)
    if graph.rank(a, "a") == 3:
        return graph.MatMul(a, matrices)
    assert offsets is not None
    graph.require(b.shape[0].is_static, "the number of groups of b of shape {} is dynamic", b.shape)
    ends = graph.cast(offsets, i64)
    products = []
    start = graph.constant([0])
    for group in range(b.shape[0].length):
        end = graph.Slice(ends, [group], [group + 1])
        rows = graph.Slice(a, start, end, [0])
        products.append(graph.MatMul(rows, graph.Gather(matrices, group, axis=0)))
        start = end
    return graph.Concat(*products, axis=0)
