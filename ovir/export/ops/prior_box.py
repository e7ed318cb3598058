"""PriorBox and PriorBoxClustered."""

from __future__ import annotations

from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.prior_box import PriorBox1, PriorBox8, PriorBoxBase, PriorBoxClustered


@exports(PriorBox1, PriorBox8, PriorBoxClustered, to="a constant", limits="the sizes must be known before the run")
def prior_box(graph: Graph, op: PriorBoxBase, output_size: Tensor, image_size: Tensor) -> Tensor:
    sizes = graph.known(output_size, "output_size"), graph.known(image_size, "image_size")
    return graph.constant(op.run(*sizes))
