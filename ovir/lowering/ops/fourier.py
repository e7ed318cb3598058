"""RDFT, IRDFT, STFT and ISTFT."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ovir import opset9 as ops
from ovir.core.element_types import f32, f64, i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import FAR, below, constant, joined, known, part, rank, reshaped, scalar, size, sums, tensor
from ovir.ops.fourier import IRDFT, ISTFT, RDFT, STFT


@lowers("RDFT", 9)
def rdft(op: RDFT, data: Port, axes: Port, signal_size: Port | None = None) -> Layer:
    """Transform complex numbers whose imaginary part is 0, and keep half of them."""
    count = rank(data)
    along = [axis % count for axis in known(axes, "axes")]
    none = [0] * count
    pairs = ops.pad(ops.unsqueeze(data, [count]), [*none, 0], [*none, 1], "constant", scalar(0, data.element_type))
    numbers = ops.dft(pairs, along, signal_size)
    last = along[-1]
    kept = ops.add(ops.divide(size(numbers, last), [2]), [1])
    return part(numbers, last, 0, kept)


@lowers("IRDFT", 9, onnx="DFT", limits="axes must be constant")
def irdft(op: IRDFT, data: Port, axes: Port, signal_size: Port | None = None) -> Layer:
    """Transform the other axes, then the last one, after the conjugates of its second half have been added."""
    count = rank(data) - 1
    *others, last = (axis % count for axis in known(axes, "axes"))
    given = None if signal_size is None else ops.convert(signal_size, i64)
    numbers: LayerOrPort = data
    if others:
        numbers = ops.idft(data, others, None if given is None else part(given, 0, 0, len(others)))
    own = ops.multiply(ops.subtract(size(data, last), [1]), [2])
    length, is_own = own, given is None or constant(part(given, 0, len(others))) == -1
    if given is not None and not is_own:
        wanted = part(given, 0, len(others))
        length = ops.select(ops.equal(wanted, [-1]), own, wanted)
        numbers = _fitted(numbers, last, ops.add(ops.divide(length, [2]), [1]))
    start = [-2] if is_own else ops.divide(ops.subtract(length, [1]), [2])
    conjugates = ops.multiply(
        ops.slice(numbers, start, [0], [-1], [last]), ops.constant([1.0, -1.0], data.element_type)
    )
    found = ops.gather(ops.idft(ops.concat([numbers, conjugates], axis=last), [last]), 0, count)
    may_be_empty = data.shape[last].contains(1) if is_own else constant(length) is None or constant(length) == 0
    return part(found, last, 0, length) if may_be_empty else found


def _fitted(item: LayerOrPort, axis: int, length: Layer) -> LayerOrPort:
    """Return a tensor with an axis that is cut or padded with zeros to a length, a list of one."""
    own, wanted, count = constant(size(item, axis)), constant(length), rank(item)
    if own is None or wanted is None or own > wanted:
        item = part(item, axis, 0, length)
    missing = ops.subtract(length, size(item, axis))
    if constant(missing) == 0:
        return item
    end = joined([0] * axis, missing, [0] * (count - axis - 1))
    return ops.pad(item, [0] * count, end, "constant", scalar(0, tensor(item).element_type))


# --------------------------------------------------------------------------- short frames


@lowers("STFT", 15)
def stft(op: STFT, signal: Port, window: Port, frame_size: Port, frame_step: Port) -> LayerOrPort:
    """Gather the frames, weigh them by the window, and transform each."""
    length, step = (reshaped(ops.convert(port, i64), [1]) for port in (frame_size, frame_step))
    batch = rank(signal, "signal") - 1
    count = ops.add(ops.divide(ops.subtract(size(signal, -1), length), step), [1])
    places = ops.add(ops.unsqueeze(ops.multiply(below(count), step), [1]), below(length))
    frames = ops.multiply(ops.gather(signal, places, batch), _framed(window, length))
    spectra = ops.rdft(frames, [batch + 1])
    if not op.transpose_frames:
        return spectra
    return ops.transpose(spectra, [*range(batch), batch + 1, batch, batch + 2])


def _framed(window: Port, length: Layer) -> LayerOrPort:
    """Return the window in the middle of a frame, with zeros around it."""
    missing = ops.subtract(length, size(window, 0))
    if constant(missing) == 0:
        return window
    before = ops.divide(missing, [2])
    after = ops.subtract(missing, before)
    return ops.pad(window, before, after, "constant", scalar(0, window.element_type))


@lowers("ISTFT", 16)
def istft(
    op: ISTFT, data: Port, window: Port, frame_size: Port, frame_step: Port, signal_length: Port | None = None
) -> LayerOrPort:
    """Add the weighted frames up, and divide by the sum of the squared windows."""
    (length,), (step,) = known(frame_size, "frame_size"), known(frame_step, "frame_step")
    computed = f64 if data.element_type == f64 else f32
    whole: LayerOrPort = data if rank(data) == 4 else ops.unsqueeze(data, [0])
    spectra = ops.convert(ops.transpose(whole, [0, 2, 1, 3]), computed)
    weight = ops.convert(_framed(window, ops.constant([length], i64)), computed)
    frames = ops.multiply(ops.irdft(spectra, [2], [length]), weight)
    squares = ops.broadcast(ops.multiply(weight, weight), joined(1, size(whole, 2), length))
    total, divisor = (_overlapped(summed, length, step) for summed in (frames, squares))
    if op.normalized:
        total = ops.multiply(total, scalar(sqrt(length), computed))
    is_empty = ops.equal(divisor, scalar(0, computed))
    ratio = ops.divide(total, ops.select(is_empty, scalar(1, computed), divisor))
    signal = _wanted(ops.select(is_empty, scalar(0, computed), ratio), length // 2 if op.center else 0, signal_length)
    return ops.convert(signal if rank(data) == 4 else ops.squeeze(signal, [0]), data.element_type)


def _wanted(signal: Layer, removed: int, signal_length: Port | None) -> LayerOrPort:
    """Return signals [batch, time] without the overhang of centered frames, cut or padded to a length."""
    if signal_length is None:
        return part(signal, 1, removed, -removed or FAR)
    wanted = reshaped(ops.convert(signal_length, i64), [1])
    return _fitted(part(signal, 1, removed), 1, wanted)


def _overlapped(frames: Layer, length: int, step: int) -> Layer:
    """Return the sums [batch, time] of frames [batch, frames, length] that begin a step apart."""
    count, most = size(frames, 1), -(-length // step)
    time = ops.add(ops.multiply(ops.subtract(count, [1]), [step]), [length])
    places = ops.unsqueeze(below(time), [1])
    latest = ops.divide(places, [step])
    meeting = ops.subtract(latest, np.arange(most))  # the numbers of the frames that meet each place
    within = ops.subtract(places, ops.multiply(meeting, [step]))
    exists = ops.logical_and(ops.greater_equal(meeting, [0]), ops.less(meeting, count))
    counted = ops.logical_and(exists, ops.less(within, [length]))
    table = ops.select(counted, ops.add(ops.multiply(meeting, [length]), within), scalar(0, i64))
    rows = reshaped(frames, joined(size(frames, 0), -1))
    return sums(rows, 1, table, counted)
