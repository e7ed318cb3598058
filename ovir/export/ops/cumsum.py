"""CumSum."""

from __future__ import annotations

from ovir.core.element_types import i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import as_scalar
from ovir.ops.cumsum import CumSum


@exports(CumSum, to="CumSum")
def cum_sum(graph: Graph, op: CumSum, data: Tensor, axis: Tensor) -> Tensor:
    """Export as CumSum; a scalar gets an axis for it."""
    along = graph.cast(as_scalar(graph, axis), i64)
    flags = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    if data.rank == 0:
        summed = graph.CumSum(graph.Reshape(data, [1]), along, **flags)
        return as_scalar(graph, summed)
    return graph.CumSum(data, along, **flags)
