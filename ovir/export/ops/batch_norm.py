"""BatchNormInference."""

from __future__ import annotations

from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.batch_norm import BatchNormInference1, BatchNormInference5


@exports(BatchNormInference5, to="BatchNormalization")
def batch_norm(
    graph: Graph,
    op: BatchNormInference1 | BatchNormInference5,
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
) -> Tensor:
    """Export as BatchNormalization."""
    return graph.BatchNormalization(data, gamma, beta, mean, variance, epsilon=op.epsilon)


@exports(BatchNormInference1, to="BatchNormalization")
def batch_norm_1(
    graph: Graph,
    op: BatchNormInference1,
    gamma: Tensor,
    beta: Tensor,
    data: Tensor,
    mean: Tensor,
    variance: Tensor,
) -> Tensor:
    """Export as BatchNormalization, whose data comes first."""
    return batch_norm(graph, op, data, gamma, beta, mean, variance)
