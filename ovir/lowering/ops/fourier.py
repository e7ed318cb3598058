"""RDFT, IRDFT, STFT and ISTFT."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ovir import opset9 as ops
from ovir.core.element_types import f32, f64, i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import FAR, constant, joined, known, known_sizes, part, rank, scalar, size, tensor
from ovir.lowering.registry import lowers, refuse
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


@lowers("IRDFT", 9)
def irdft(op: IRDFT, data: Port, axes: Port, signal_size: Port | None = None) -> Layer:
    """Transform the other axes, then the last one, after the conjugates of its second half have been added."""
    count = rank(data) - 1
    *others, last = (axis % count for axis in known(axes, "axes"))
    lengths = [-1] * (len(others) + 1) if signal_size is None else known(signal_size, "signal_size")
    (bins,) = known_sizes(data.shape.slice(last, last + 1))
    length = 2 * (bins - 1) if lengths[-1] == -1 else lengths[-1]
    numbers: LayerOrPort = data
    if others:
        numbers = ops.idft(data, others, lengths[:-1] if signal_size is not None else None)
    if length < 1:
        refuse("its result has no elements")
    half = length // 2 + 1
    if bins > half:
        numbers = part(numbers, last, 0, half)
    elif bins < half:
        none = [0] * (count + 1)
        end = [half - bins if axis == last else 0 for axis in range(count + 1)]
        numbers = ops.pad(numbers, none, end, "constant", scalar(0, data.element_type))
    mirrored = [length - place for place in range(half, length)]
    if mirrored:
        conjugates = ops.multiply(ops.gather(numbers, mirrored, last), ops.constant([1.0, -1.0], data.element_type))
        numbers = ops.concat([numbers, conjugates], axis=last)
    return ops.gather(ops.idft(numbers, [last]), 0, count)


# --------------------------------------------------------------------------- short frames


@lowers("STFT", 15)
def stft(op: STFT, signal: Port, window: Port, frame_size: Port, frame_step: Port) -> LayerOrPort:
    """Gather the frames, weigh them by the window, and transform each."""
    (length,), (step,) = known(frame_size, "frame_size"), known(frame_step, "frame_step")
    batch = rank(signal, "signal") - 1
    end = ops.add(ops.squeeze(size(signal, -1), [0]), scalar(1 - length, i64))
    starts = ops.range(scalar(0, i64), end, scalar(step, i64), i64)
    places = ops.add(ops.unsqueeze(starts, [1]), ops.constant(np.arange(length)))
    frames = ops.multiply(ops.gather(signal, places, batch), _framed(window, length))
    spectra = ops.rdft(frames, [batch + 1])
    if not op.transpose_frames:
        return spectra
    return ops.transpose(spectra, [*range(batch), batch + 1, batch, batch + 2])


def _framed(window: Port, length: int) -> LayerOrPort:
    """Return the window in the middle of a frame, with zeros around it."""
    missing = ops.subtract(ops.constant([length], i64), size(window, 0))
    if constant(missing) == 0:
        return window
    before = ops.divide(missing, [2])
    after = ops.subtract(missing, before)
    return ops.pad(window, joined(before), joined(after), "constant", scalar(0, window.element_type))


@lowers("ISTFT", 16)
def istft(
    op: ISTFT,
    data: Port,
    window: Port,
    frame_size: Port,
    frame_step: Port,
    signal_length: Port | None = None,
) -> LayerOrPort:
    """Add the weighted frames up by a transposed convolution, and divide by the sum of the squared windows."""
    (length,), (step,) = known(frame_size, "frame_size"), known(frame_step, "frame_step")
    computed = f64 if data.element_type == f64 else f32
    whole: LayerOrPort = data if rank(data) == 4 else ops.unsqueeze(data, [0])
    spectra = ops.convert(ops.transpose(whole, [0, 2, 1, 3]), computed)
    weight = ops.convert(_framed(window, length), computed)
    frames = ops.multiply(ops.irdft(spectra, [2], [length]), weight)
    squares = ops.broadcast(ops.multiply(weight, weight), joined(1, size(whole, 2), length))
    total, divisor = (_overlapped(part, length, step) for part in (frames, squares))
    if op.normalized:
        total = ops.multiply(total, scalar(sqrt(length), computed))
    is_empty = ops.equal(divisor, scalar(0, computed))
    ratio = ops.divide(total, ops.select(is_empty, scalar(1, computed), divisor))
    signal = _wanted(ops.select(is_empty, scalar(0, computed), ratio), length // 2 if op.center else 0, signal_length)
    return ops.convert(signal if rank(data) == 4 else ops.squeeze(signal, [0]), data.element_type)


def _wanted(signal: Layer, removed: int, signal_length: Port | None) -> Layer:
    """Return signals [batch, time] without what centered frames reach beyond them, cut or padded to a length."""
    if signal_length is None:
        return part(signal, 1, removed, -removed or FAR)
    wanted = ops.reshape(ops.convert(signal_length, i64), [1], special_zero=False)
    kept = part(part(signal, 1, removed), 1, 0, wanted)
    missing = ops.subtract(wanted, size(kept, 1))
    if constant(missing) == 0:
        return kept
    return ops.pad(kept, [0, 0], joined(0, missing), "constant", scalar(0, tensor(signal).element_type))


def _overlapped(frames: Layer, length: int, step: int) -> Layer:
    """Return the sums [batch, time] of frames [batch, frames, length] that begin a step apart."""
    filters = ops.constant(np.eye(length).reshape(length, 1, length), frames.element_type)
    columns = ops.transpose(frames, [0, 2, 1])
    return ops.squeeze(
        ops.convolution_backprop_data(columns, filters, strides=[step], pads_begin=[0], pads_end=[0], dilations=[1]),
        [1],
    )
