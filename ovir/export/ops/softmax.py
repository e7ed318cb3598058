"""SoftMax and LogSoftmax."""

from __future__ import annotations

from ovir.core.shapes import PartialShape
from ovir.export.graph import Graph
from ovir.export.parts import of_reals
from ovir.export.registry import exports
from ovir.export.tensors import Tensor
from ovir.ops.softmax import LogSoftmax, SoftMax1, SoftMax8


@exports(SoftMax1, SoftMax8, to="Softmax")
@exports(LogSoftmax, to="LogSoftmax", limits="slices with +inf are -inf instead of NaN")
def softmax(graph: Graph, op: SoftMax1 | SoftMax8 | LogSoftmax, data: Tensor) -> Tensor:
    """Export as Softmax or LogSoftmax; a scalar gets an axis for it."""
    operator = graph.LogSoftmax if isinstance(op, LogSoftmax) else graph.Softmax

    def function(x: Tensor) -> Tensor:
        if data.shape == PartialShape([]):
            return graph.Reshape(operator(graph.Reshape(x, [1]), axis=0), [])
        return operator(x, axis=op.axis)

    return of_reals(graph, data, function)
