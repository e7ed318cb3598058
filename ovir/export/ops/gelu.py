"""Gelu."""

from __future__ import annotations

from math import pi, sqrt

from ovir.core.element_types import f32, f64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.ops.unary import erf
from ovir.export.parts import of_reals
from ovir.ops.gelu import Gelu2, Gelu7


@exports(Gelu2, Gelu7, to="Gelu; before opset 20, or f64: a formula with Erf or Tanh")
def gelu(graph: Graph, op: Gelu2 | Gelu7, data: Tensor) -> Tensor:
    """Export as Gelu, or by its formula."""
    is_exact = not isinstance(op, Gelu7) or op.approximation_mode == "erf"

    def function(x: Tensor) -> Tensor:
        if x.element_type == f32 and graph.has("Gelu"):
            return graph.Gelu(x, approximate=None if is_exact else "tanh")
        return (_exact if is_exact else _approximate)(graph, x)

    return of_reals(graph, data, function)


# onnxruntime recognizes these nodes, in this order, and computes them in one pass.
def _exact(graph: Graph, x: Tensor) -> Tensor:
    quotient = graph.Div(x, sqrt(2))
    part = erf(graph, quotient) if x.element_type == f64 else graph.Erf(quotient)
    return graph.Mul(graph.Mul(x, graph.Add(part, 1)), 0.5)


def _approximate(graph: Graph, x: Tensor) -> Tensor:
    cube = graph.Pow(x, 3)
    inside = graph.Mul(graph.Add(x, graph.Mul(cube, 0.044715)), sqrt(2 / pi))
    return graph.Mul(graph.Mul(x, 0.5), graph.Add(graph.Tanh(inside), 1))
