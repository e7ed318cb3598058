"""MatMul."""

from __future__ import annotations

from ovir.core.element_types import i32, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import saturated, swapped
from ovir.ops.matmul import MatMul


@exports(MatMul, to="MatMul, with Transpose where an input is transposed")
def matmul(graph: Graph, op: MatMul, a: Tensor, b: Tensor) -> Tensor:
    """Export as MatMul; products of integers of at most 8 bits are summed in 32 bits and saturate."""
    element_type = op.output_types[0]
    if element_type.is_integral and element_type.bits <= 16:
        wide = i32 if element_type.bits <= 8 else i64
        a, b = (graph.shaped(graph.cast(x, wide), x.shape) for x in (a, b))
    product = graph.MatMul(_oriented(graph, a, op.transpose_a), _oriented(graph, b, op.transpose_b))
    if element_type.is_integral and element_type.bits <= 8:
        return saturated(graph, product, element_type)
    return graph.cast(product, element_type)


def _oriented(graph: Graph, x: Tensor, transpose: bool) -> Tensor:
    return swapped(graph, x) if transpose and graph.rank(x) > 1 else x
