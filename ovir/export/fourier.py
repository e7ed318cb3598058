"""The discrete Fourier transform along one axis in ONNX."""

from __future__ import annotations

from ovir.core.element_types import i64
from ovir.export.graph import Graph, Operand
from ovir.export.sizes import compute, size_of, vector
from ovir.export.tensors import Tensor


def dft(graph: Graph, data: Tensor, axis: int | Tensor, length: Operand = None, **attributes: int) -> Tensor:
    """Return the transform along an axis of complex numbers [..., 2], or of real ones [..., 1]; ``length`` is a
    scalar."""
    if graph.opset >= 20:
        return graph.DFT(data, length, axis if isinstance(axis, Tensor) else graph.constant(axis), **attributes)
    return graph.DFT(data, length, axis=axis, **attributes)


def to_length(graph: Graph, data: Tensor, axis: int, length: Tensor) -> Tensor:
    """Return data whose axis is cut or padded with zeros to a length, a tensor of one element."""
    rank = graph.rank(data)
    cut = graph.Slice(data, [0], length, [axis])
    missing = graph.Sub(length, size_of(graph, cut, axis))
    pads = graph.Concat(graph.constant([0] * (rank + axis)), missing, graph.constant([0] * (rank - axis - 1)), axis=0)
    return graph.shaped(graph.Pad(cut, pads), [-1] * rank)


def inverse_real(graph: Graph, half: Tensor, axis: int, length: int | Tensor | None) -> Tensor:
    """Return the real numbers whose transform begins with ``half`` [..., 2] along an axis.

    ``length`` is a scalar; without it the length is 2 * (size - 1).
    """
    rank = graph.rank(half)
    wanted: Tensor | None = None
    may_be_empty = length is None and half.shape[axis].contains(1)  # one element makes another one below
    if length is None:
        if may_be_empty:
            wanted = vector(graph, [compute(graph, "Mul", compute(graph, "Sub", size_of(graph, half, axis), 1), 2)])
        start = graph.constant([-2])
    else:
        wanted = graph.cast(graph.Reshape(length if isinstance(length, Tensor) else graph.constant(length), [1]), i64)
        half = to_length(graph, half, axis, graph.Add(graph.Div(wanted, [2]), [1]))
        start = graph.Div(graph.Sub(wanted, [1]), [2])
    # The other half are the conjugates, in reverse.
    others = graph.Slice(half, start, [0], [axis], [-1])
    signs = graph.cast(graph.constant([1, -1]), half.element_type)
    whole = graph.Concat(half, graph.Mul(others, signs), axis=axis)
    made = dft(graph, graph.shaped(whole, [-1] * rank), axis, inverse=1)
    found = graph.Gather(made, graph.constant(0), axis=rank - 1)
    if may_be_empty:
        found = graph.Slice(found, [0], wanted, [axis])
    return graph.shaped(found, [-1] * (rank - 1))
