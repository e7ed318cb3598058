"""Power."""

from __future__ import annotations

from ovir.core.element_types import f64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import aligned, scalar
from ovir.ops.power import Power


@exports(Power, to="Pow; exponents of 0.5 and -1: Sqrt and Reciprocal", limits="the root of -inf is NaN")
def power(graph: Graph, op: Power, a: Tensor, b: Tensor) -> Tensor:
    """Export as Pow, or as a root or reciprocal; integers are computed in f64 and truncated."""
    b = aligned(graph, op, a, b)
    element_type = op.output_types[0]
    if element_type.is_integral:
        return graph.cast(graph.Pow(graph.cast(a, f64), graph.cast(b, f64)), element_type)
    exponent = scalar(b) if a.rank is not None and b.rank is not None and b.rank <= a.rank else None
    if exponent == 0.5:
        return graph.Sqrt(a)
    if exponent == -1:
        return graph.Reciprocal(a)
    return graph.Pow(a, b)
