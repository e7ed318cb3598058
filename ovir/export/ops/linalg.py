"""Einsum and Inverse."""

from __future__ import annotations

from ovir.export.graph import Graph
from ovir.export.registry import exports
from ovir.export.tensors import Tensor
from ovir.ops.linalg import Einsum


@exports(Einsum, to="Einsum")
def einsum(graph: Graph, op: Einsum, *inputs: Tensor) -> Tensor:
    """Export as Einsum, with the output written out, and with as many dimensions in each ``...``."""
    subscripts, output = op.subscripts(len(inputs))
    if any("." in subscript for subscript in subscripts):
        hidden = [graph.rank(x) - len(s) + 1 for x, s in zip(inputs, subscripts, strict=True) if "." in s]
        arguments = zip(inputs, subscripts, strict=True)
        inputs = tuple(_filled_up(graph, x, subscript, max(hidden)) for x, subscript in arguments)
    equation = f"{','.join(subscripts)}->{output}".replace(".", "...")
    return graph.Einsum(*inputs, equation=equation)


def _filled_up(graph: Graph, x: Tensor, subscript: str, hidden: int) -> Tensor:
    """Return an input with dimensions of size 1 at the beginning of its ``...``, up to a number of them."""
    start = subscript.find(".")
    missing = 0 if start < 0 else hidden - (graph.rank(x) - len(subscript) + 1)
    return graph.Unsqueeze(x, list(range(start, start + missing))) if missing else x
