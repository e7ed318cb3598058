"""LRN."""

from __future__ import annotations

from ovir.core.element_types import f32
from ovir.export.graph import Graph
from ovir.export.parts import of_reals
from ovir.export.registry import exports
from ovir.export.tensors import Tensor
from ovir.ops.lrn import LRN


@exports(LRN, to="LRN along the channels with positive alpha and beta; else Mul, AveragePool, Pow and Div")
def lrn(graph: Graph, op: LRN, data: Tensor, axes: Tensor) -> Tensor:
    """Export as LRN along the second of four dimensions; other windows are summed by AveragePool.

    onnxruntime takes no LRN whose alpha or beta is not positive.
    """
    rank = graph.rank(data)
    along = op.axes(graph.known(axes, "axes"), rank)
    window = (op.size - 1) // 2 * 2 + 1  # the sizes of windows are odd
    factor = op.alpha / float(op.size) ** len(along) * float(window) ** len(along)

    def function(x: Tensor) -> Tensor:
        if along == [1] and rank == 4 and x.element_type == f32 and factor > 0 and op.beta > 0:
            return graph.LRN(x, alpha=factor, beta=op.beta, bias=op.bias, size=window)
        square = graph.Mul(x, x)
        for axis in along:
            square = _averages(graph, square, axis, rank, window)
        return graph.Div(x, graph.Pow(graph.Add(graph.Mul(square, factor), op.bias), op.beta))

    return of_reals(graph, data, function)


def _averages(graph: Graph, x: Tensor, axis: int, rank: int, window: int) -> Tensor:
    """Return the averages of the elements in the windows along an axis; beyond the ends there are zeros."""
    if window == 1:
        return x
    order = [*(i for i in range(rank) if i != axis), axis]
    moved = graph.Transpose(x, perm=order)
    shape = graph.Shape(moved)
    length = graph.Gather(shape, [rank - 1])
    rows = graph.Reshape(moved, graph.Concat(graph.constant([-1, 1]), length, axis=0))
    reach = window // 2
    pooled = graph.AveragePool(rows, kernel_shape=[window], pads=[reach, reach], count_include_pad=1)
    return graph.Transpose(graph.Reshape(pooled, shape), perm=[order.index(i) for i in range(rank)])
