"""DFT, IDFT, RDFT and IRDFT."""

from __future__ import annotations

from ovir.core.element_types import i64
from ovir.export.fourier import as_computed, dft, inverse_real
from ovir.export.graph import Graph
from ovir.export.registry import exports
from ovir.export.tensors import Tensor
from ovir.ops.fourier import DFT, IDFT, IRDFT, RDFT, FourierBase

_LIMITS = "axes must be constant"


@exports(DFT, IDFT, to="DFT", limits=_LIMITS)
def fourier(graph: Graph, op: DFT | IDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """Export as DFT for each axis."""
    inverse = int(isinstance(op, IDFT))
    found = as_computed(graph, data)
    for place, axis in enumerate(_axes(graph, op, data, axes, 1)):
        found = dft(graph, found, axis, _length(graph, signal_size, place), inverse=inverse)
    return graph.cast(found, data.element_type)


@exports(RDFT, to="DFT", limits=_LIMITS)
def real_fourier(graph: Graph, op: RDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """Export as DFT of half of the last axis, then of the others."""
    *others, last = _axes(graph, op, data, axes, 0)
    rank = graph.rank(data)
    pairs = graph.Unsqueeze(as_computed(graph, data), [rank])
    found = dft(graph, pairs, last, _length(graph, signal_size, len(others)), onesided=1)
    for place, axis in enumerate(others):
        found = dft(graph, found, axis, _length(graph, signal_size, place))
    return graph.cast(found, data.element_type)


@exports(IRDFT, to="DFT", limits=_LIMITS)
def inverse_real_fourier(
    graph: Graph, op: IRDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None
) -> Tensor:
    """Export as inverse DFT of all axes but the last, and then of the last axis joined with its mirror image."""
    *others, last = _axes(graph, op, data, axes, 1)
    found = as_computed(graph, data)
    for place, axis in enumerate(others):
        found = dft(graph, found, axis, _length(graph, signal_size, place), inverse=1)
    found = graph.shaped(found, [-1] * graph.rank(data))
    return graph.cast(inverse_real(graph, found, last, _length(graph, signal_size, len(others))), data.element_type)


def _axes(graph: Graph, op: FourierBase, data: Tensor, axes: Tensor, pairs: int) -> list[int]:
    return op.normalize_axes(graph.known(axes, "axes").tolist(), graph.rank(data) - pairs)


def _length(graph: Graph, signal_size: Tensor | None, place: int) -> Tensor | None:
    """Return the length of the signal along one of the axes as a scalar, None for the size of the data."""
    if signal_size is None:
        return None
    if signal_size.constant is not None:
        length = int(signal_size.constant[place])
        return None if length == -1 else graph.constant(length)
    return graph.cast(graph.Gather(signal_size, graph.constant(place)), i64)
