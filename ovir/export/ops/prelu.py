"""PReLU."""

from __future__ import annotations

from ovir.core.element_types import f32, f64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import of_reals, scalar, with_trailing
from ovir.ops.prelu import PReLU


@exports(
    PReLU,
    to="PRelu; one constant slope: LeakyRelu; f64: Where",
    limits="one-dimensional slopes of unknown length count as one slope per channel",
)
def prelu(graph: Graph, op: PReLU, data: Tensor, slope: Tensor) -> Tensor:
    """Export as LeakyRelu or PRelu, with the slopes of channels in a shape that is broadcast to data."""
    number = scalar(slope)

    def function(x: Tensor) -> Tensor:
        if number is not None and x.element_type == f32:
            return graph.LeakyRelu(x, alpha=number)
        slopes = graph.cast(_broadcastable(graph, data, slope), x.element_type)
        if x.element_type == f64:
            return graph.Where(graph.Less(x, 0), graph.Mul(x, slopes), x)
        return graph.PRelu(x, slopes)

    return of_reals(graph, data, function)


def _broadcastable(graph: Graph, data: Tensor, slope: Tensor) -> Tensor:
    """Return the slopes in a shape that is broadcast to data: a single one, one per channel, or as they are."""
    if slope.shape.is_static and slope.shape.size().length == 1:
        return graph.Reshape(slope, [])
    if slope.rank == 1:
        rank = graph.rank(data)
        if rank > 1 and slope.shape[0].compatible(data.shape[1]):
            return with_trailing(graph, slope, rank - 2)
    return slope
