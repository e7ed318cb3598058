"""DFT, IDFT, RDFT, STFT and ISTFT."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import f64, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Operand, Tensor
from ovir.ops.fourier import DFT, IDFT, ISTFT, RDFT, STFT, FourierBase

# --------------------------------------------------------------------------- along one axis


def dft(graph: Graph, data: Tensor, axis: int | Tensor, length: Operand = None, **attributes: int) -> Tensor:
    """Return the transform along an axis of complex numbers [..., 2], or of real ones [..., 1]; ``length`` is a
    scalar."""
    if graph.opset >= 20:
        return graph.DFT(data, length, axis if isinstance(axis, Tensor) else graph.constant(axis), **attributes)
    return graph.DFT(data, length, axis=axis, **attributes)


# --------------------------------------------------------------------------- along all axes


@exports(
    DFT,
    IDFT,
    to="DFT",
    limits="before opset 20, axes must be constant; axes that the run repeats are not an error",
    of_reals=True,
)
def fourier(graph: Graph, op: DFT | IDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    inverse = int(isinstance(op, IDFT))
    if axes.constant is None and graph.opset >= 20:
        (count,) = graph.sizes(axes, "axes")
        listed = graph.axes_from_front(axes, graph.rank(data) - 1)
        chosen: Sequence[int | Tensor] = [graph.Gather(listed, graph.constant(place)) for place in range(count)]
    else:
        chosen = _axes(graph, op, data, axes, 1)
    for place, axis in enumerate(chosen):
        data = dft(graph, data, axis, _length(graph, signal_size, place, data, axis), inverse=inverse)
    return data


@exports(RDFT, to="DFT", limits="axes must be constant", of_reals=True)
def real_fourier(graph: Graph, op: RDFT, data: Tensor, axes: Tensor, signal_size: Tensor | None = None) -> Tensor:
    """Export as DFT of half of the last axis, then of the others, where the decomposition computes both halves."""
    *others, last = _axes(graph, op, data, axes, 0)
    rank = graph.rank(data)
    pairs = graph.Unsqueeze(data, [rank])
    found = dft(graph, pairs, last, _length(graph, signal_size, len(others), pairs, last), onesided=1)
    for place, axis in enumerate(others):
        found = dft(graph, found, axis, _length(graph, signal_size, place, found, axis))
    return found


def _axes(graph: Graph, op: FourierBase, data: Tensor, axes: Tensor, pairs: int) -> list[int]:
    return op.normalize_axes(graph.known(axes, "axes").tolist(), graph.rank(data) - pairs)


def _length(graph: Graph, signal_size: Tensor | None, place: int, data: Tensor, axis: int | Tensor) -> Tensor | None:
    """Return the length of the signal along one of the axes as a scalar, None if it is the size of the data."""
    if signal_size is None:
        return None
    if signal_size.constant is not None:
        length = int(signal_size.constant[place])
        return None if length == -1 else graph.constant(length)
    given = graph.cast(graph.Gather(signal_size, graph.constant(place)), i64)
    own = graph.Gather(graph.Shape(data), axis) if isinstance(axis, Tensor) else graph.scalar_size_of(data, axis)
    return graph.Where(graph.Equal(given, -1), own, given)


# --------------------------------------------------------------------------- short frames


@exports(STFT, to="STFT")
def stft(graph: Graph, op: STFT, signal: Tensor, window: Tensor, frame_size: Tensor, frame_step: Tensor) -> Tensor:
    """Export as STFT with a window that is as long as a frame.

    The frames of the decomposition, gathered and then transformed, take 1.2 times as long.
    """
    rank = graph.rank(signal, "signal")
    samples, weights = graph.cast(signal, signal.real_type), graph.cast(window, window.real_type)
    batch = samples if rank == 2 else graph.Unsqueeze(samples, [0])
    size, step = graph.cast(frame_size, i64), graph.cast(frame_step, i64)
    made = graph.STFT(graph.Unsqueeze(batch, [2]), step, _framed(graph, weights, size), size, onesided=1)
    if op.transpose_frames:
        made = graph.Transpose(made, perm=[0, 2, 1, 3])
    return made if rank == 2 else graph.Squeeze(made, [0])


@exports(ISTFT, to="DFT and ConvTranspose", limits="frame_size and frame_step must be constant; not f64")
def istft(graph: Graph, op: ISTFT, signal: Tensor, *others: Tensor | None) -> None:
    """Leave f16 and f32 to the decomposition; that of f64 would take a product for each sample of a frame."""
    graph.require(signal.element_type != f64, "onnxruntime has no ConvTranspose for f64")


def _framed(graph: Graph, window: Tensor, size: Tensor) -> Tensor:
    """Return the window with zeros around it, as long as a frame; an odd zero is at the end."""
    missing = graph.Sub(graph.Reshape(size, [1]), graph.Shape(window))
    before = graph.Div(missing, [2])
    return graph.Pad(window, graph.Concat(before, graph.Sub(missing, before), axis=0))
