"""DFT, IDFT, RDFT and IRDFT."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import i64
from ovir.core.shapes import UNKNOWN
from ovir.export.fourier import dft, inverse_real
from ovir.export.graph import Graph
from ovir.export.parts import real_type
from ovir.export.registry import exports
from ovir.export.sizes import scalar_size_of
from ovir.export.tensors import Tensor
from ovir.ops.fourier import DFT, IDFT, IRDFT, RDFT, FourierBase

_LIMITS = "axes must be constant"


@exports(DFT, IDFT, to="DFT", limits="before opset 20, axes must be constant")
def fourier(graph: Graph, op: DFT | IDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """Export as DFT for each axis."""
    inverse = int(isinstance(op, IDFT))
    found = graph.cast(data, real_type(data))
    if axes.constant is None and graph.opset >= 20:
        chosen: Sequence[int | Tensor] = _axes_in_run(graph, data, axes)
    else:
        chosen = _axes(graph, op, data, axes, 1)
    for place, axis in enumerate(chosen):
        found = dft(graph, found, axis, _length(graph, signal_size, place, found, axis), inverse=inverse)
    return graph.cast(found, data.element_type)


@exports(RDFT, to="DFT", limits=_LIMITS)
def real_fourier(graph: Graph, op: RDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """Export as DFT of half of the last axis, then of the others."""
    *others, last = _axes(graph, op, data, axes, 0)
    rank = graph.rank(data)
    pairs = graph.Unsqueeze(graph.cast(data, real_type(data)), [rank])
    found = dft(graph, pairs, last, _length(graph, signal_size, len(others), pairs, last), onesided=1)
    for place, axis in enumerate(others):
        found = dft(graph, found, axis, _length(graph, signal_size, place, found, axis))
    return graph.cast(found, data.element_type)


@exports(IRDFT, to="DFT", limits=_LIMITS)
def inverse_real_fourier(
    graph: Graph, op: IRDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None
) -> Tensor:
    """Export as inverse DFT of all axes but the last, and then of the last axis joined with its mirror image."""
    *others, last = _axes(graph, op, data, axes, 1)
    found = graph.cast(data, real_type(data))
    for place, axis in enumerate(others):
        found = dft(graph, found, axis, _length(graph, signal_size, place, found, axis), inverse=1)
    dims = [dim if axis == last else UNKNOWN for axis, dim in enumerate(data.shape)]
    found = graph.shaped(found, dims)
    length = _length(graph, signal_size, len(others), found, last, is_half=True)
    return graph.cast(inverse_real(graph, found, last, length), data.element_type)


def _axes(graph: Graph, op: FourierBase, data: Tensor, axes: Tensor, pairs: int) -> list[int]:
    return op.normalize_axes(graph.known(axes, "axes").tolist(), graph.rank(data) - pairs)


def _axes_in_run(graph: Graph, data: Tensor, axes: Tensor) -> list[Tensor]:
    """Return the axes, of which only the number is known, as scalars."""
    (count,) = graph.sizes(axes, "axes")
    last = graph.rank(data) - 1
    listed = graph.cast(axes, i64)
    positive = graph.Where(graph.Less(listed, 0), graph.Add(listed, last), listed)
    return [graph.Gather(positive, graph.constant(place)) for place in range(count)]


def _length(
    graph: Graph, signal_size: Tensor | None, place: int, data: Tensor, axis: int | Tensor, *, is_half: bool = False
) -> Tensor | None:
    """Return the length of the signal along one of the axes as a scalar, None for what the size of the data says.

    ``is_half`` tells that the axis of the data holds half of the signal.
    """
    if signal_size is None:
        return None
    if signal_size.constant is not None:
        length = int(signal_size.constant[place])
        return None if length == -1 else graph.constant(length)
    given = graph.cast(graph.Gather(signal_size, graph.constant(place)), i64)
    own = graph.Gather(graph.Shape(data), axis) if isinstance(axis, Tensor) else scalar_size_of(graph, data, axis)
    if is_half:
        own = graph.Mul(graph.Sub(own, 1), 2)
    return graph.Where(graph.Equal(given, -1), own, given)
