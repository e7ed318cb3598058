"""STFT and ISTFT: a signal as the Fourier transforms of its short frames, and back."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.kernels.blocked import BLOCK
from ovir.kernels.fourier import as_complex
from ovir.kernels.parallel import run_blocks
from ovir.kernels.precision import as_computed, stored, work_array
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, Between, Domain, Inputs, Length, by_input, size_of
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

# A thread with fewer elements costs more than it gains.
_LEAST_PER_THREAD = 1 << 15


class ShortTimeFourierBase(Operator):
    """Base of operations on the frames of a signal, each multiplied by a window [length].

    A frame has frame_size elements and starts frame_step elements after the one before; both are scalars. A shorter
    window is centered in the frame, with zeros around it.
    """

    bounded = False

    def _element_type(self, name: str, data: TensorType, window: TensorType) -> ElementType:
        element_type = self.merge_types(data.element_type, window.element_type, names=(name, "window"))
        self.require_real(name, element_type)
        self.require_rank("window", window.shape, 1)
        return element_type

    def _positive(self, name: str, tensor: TensorType) -> Dimension:
        """Return the one positive number of a tensor, as far as it is known."""
        self.require_index_type(name, tensor.element_type)
        self.require_rank(name, tensor.shape, 0)
        known = UNKNOWN if tensor.value is None else tensor.value.dimensions()[0]
        shown = known if tensor.constant is None else tensor.constant
        self.require(known.upper is None or known.upper > 0, "{} must be above 0, got {}", name, shown)
        return Dimension(max(known.lower, 1), known.upper)

    def _require_window(self, window: Dimension, frame_size: Dimension) -> None:
        self.require(window.upper != 0, "window must have at least one element")
        fits = frame_size.upper is None or window.lower <= frame_size.upper
        self.require(
            fits, "window must not be longer than a frame: it has {:element}, but a frame has {}", window, frame_size
        )


def _frames(length: Dimension, size: Dimension, step: Dimension) -> Dimension:
    """Return the number of frames that fit in a signal; at least one does."""
    lower = 1
    if size.upper is not None and step.upper is not None:
        lower += max(length.lower - size.upper, 0) // step.upper
    return Dimension(lower, None if length.upper is None else (length.upper - size.lower) // step.lower + 1)


def _bins(frame_size: Dimension) -> Dimension:
    """Return the number of complex numbers in the transform of a real frame."""
    return frame_size.map(lambda size: size // 2 + 1)


def _framed(window: Array, frame_size: int) -> Array:
    """Return the window padded with zeros to the length of a frame; an odd zero is added at the end."""
    before = (frame_size - window.size) // 2
    return np.pad(as_computed(window), (before, frame_size - window.size - before))


@operator("STFT", opset=15)
class STFT(ShortTimeFourierBase):
    """The Fourier transforms of all short frames that fit in a signal. See ShortTimeFourierBase.

    out[b, f] = RDFT of signal[b, f * frame_step : f * frame_step + frame_size] * window. signal is [batch, length] or
    [length], out is [batch, frames, frame_size // 2 + 1, 2] or the same without batch; ``transpose_frames`` swaps the
    frames with the numbers of the transform.

    Source: STFT-15
    """

    domains = by_input(frame_size=Length("window", axis=0, full=True), frame_step=SMALL)
    transpose_frames: bool = attribute(default=False, specified=True)

    value_inputs = (2, 3)

    def infer(
        self, signal: TensorType, window: TensorType, frame_size: TensorType, frame_step: TensorType
    ) -> TensorType:
        element_type = self._element_type("signal", signal, window)
        self.require_rank("signal", signal.shape, 1, 2)
        size, step = self._positive("frame_size", frame_size), self._positive("frame_step", frame_step)
        self._require_window(window.shape[0], size)
        if signal.shape.rank is None:
            return TensorType(element_type, PartialShape(None))
        length = signal.shape[-1]
        fitting = size.merged_with(Dimension(0, length.upper))
        if fitting is None:
            self.fail("frame_size {} is longer than the signal {}", size, signal.shape)
        inner = [_frames(length, fitting, step), _bins(fitting)]
        if self.transpose_frames:
            inner.reverse()
        return TensorType(element_type, PartialShape([*signal.shape.dims[:-1], *inner, 2]))

    def run(
        self, signal: Array, window: Array, frame_size: Array, frame_step: Array, *, out: Array | None = None
    ) -> Array:
        given = (constant_type(a) for a in (frame_size, frame_step))
        shape = self.infer(constant_type(signal), constant_type(window), *given).shape.to_tuple()
        size, step = int(frame_size.item()), int(frame_step.item())
        result = work_array(shape, signal.dtype, out)
        if result.size:
            target = as_complex(result)
            if self.transpose_frames:
                target = target.swapaxes(-1, -2)
            source = as_computed(signal).reshape(-1, signal.shape[-1])
            frames = np.lib.stride_tricks.sliding_window_view(source, size, axis=1)[:, ::step]
            transform_frames(frames, _framed(window, size), target.reshape(-1, *target.shape[-2:]))
        return stored(result, signal.dtype, out)


def transform_frames(frames: Array, window: Array, out: Array) -> None:
    """Compute out[b, f] = RDFT of frames[b, f] * window, a block of frames at a time."""
    batches, length, size = frames.shape
    count = min(max(BLOCK // size, 1), length)
    parts = -(-length // count)

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for item in range(start, stop):
                batch, part = divmod(item, parts)
                block = slice(part * count, (part + 1) * count)
                np.fft.rfft(frames[batch, block] * window, axis=-1, out=out[batch, block])

    run_blocks(run, batches * parts, -(-_LEAST_PER_THREAD // (count * size)))


def _frame_of_bins(op: Operator, inputs: Inputs) -> Domain:
    """Return the frame size that gives as many frequencies as ``data`` has."""
    size = max(2 * (size_of(op, inputs, "data", -3) - 1), 1)
    return Domain(size, size)


@operator("ISTFT", opset=16)
class ISTFT(ShortTimeFourierBase):
    """The inverse of STFT: the signal whose frames have the given transforms. See ShortTimeFourierBase.

    The frames, each multiplied by the window, are added where they overlap and divided by the sum of the squared
    windows there; where this sum is zero, the signal is zero. data is [batch, frame_size // 2 + 1, frames, 2] or the
    same without batch, out is [batch, length] or [length]. The length is (frames - 1) * frame_step + frame_size; with
    ``center`` frame_size // 2 samples are removed at both ends. signal_length cuts the signal at its end, or extends it
    by the samples removed there and then by zeros. ``normalized`` data was divided by sqrt(frame_size).

    Source: ISTFT-16
    """

    domains = by_input(frame_size=_frame_of_bins, frame_step=SMALL, signal_length=Between(8, 64))
    center: bool = attribute(default=False, specified=True)
    normalized: bool = attribute(default=False, specified=True)

    value_inputs = (2, 3, 4)

    def infer(
        self,
        data: TensorType,
        window: TensorType,
        frame_size: TensorType,
        frame_step: TensorType,
        signal_length: TensorType | None = None,
    ) -> TensorType:
        element_type = self._element_type("data", data, window)
        self.require_rank("data", data.shape, 3, 4)
        size, step = self._positive("frame_size", frame_size), self._positive("frame_step", frame_step)
        self._require_window(window.shape[0], size)
        given = None if signal_length is None else self._given_length(signal_length)
        if data.shape.rank is None:
            return TensorType(element_type, PartialShape(None))
        *batch, bins, frames, pair = data.shape.dims
        if not bins.compatible(_bins(size)):
            message = "dimension {} of data {} must be {}, which is frame_size // 2 + 1 for frame_size {}"
            self.fail(message, len(batch), data.shape, _bins(size), size)
        message = "the last dimension of data must be 2, for complex numbers; got {}"
        self.require(pair.contains(2), message, data.shape)
        length = self._length(frames, size, step) if given is None else given
        return TensorType(element_type, PartialShape([*batch, length]))

    def _given_length(self, tensor: TensorType) -> Dimension:
        self.require_index_type("signal_length", tensor.element_type)
        self.require_one_element("signal_length", tensor.shape)
        return self.count_of("signal_length", tensor)

    def _length(self, frames: Dimension, size: Dimension, step: Dimension) -> Dimension:
        """Return the length without ``signal_length``; no frames have the length of one."""
        ends = size
        if self.center:  # 2 * (size // 2) samples are removed
            ends = Dimension(size.lower % 2, size.lower % 2) if size.is_static else Dimension(0, 1)
        return frames.map(lambda count: count - 1) * step + ends

    def run(
        self,
        data: Array,
        window: Array,
        frame_size: Array,
        frame_step: Array,
        signal_length: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        given = [constant_type(a) for a in (frame_size, frame_step, signal_length) if a is not None]
        shape = self.infer(constant_type(data), constant_type(window), *given).shape.to_tuple()
        result = work_array(shape, data.dtype, out)
        if result.size:
            self.restore(data, window, int(frame_size.item()), int(frame_step.item()), result)
        return stored(result, data.dtype, out)

    def restore(self, data: Array, window: Array, size: int, step: int, out: Array) -> None:
        """Compute the signals of spectra, of which there is at least one."""
        spectra = as_complex(as_computed(data)).swapaxes(-1, -2)
        signals = out.reshape(-1, out.shape[-1])
        spectra = spectra.reshape(len(signals), *spectra.shape[-2:])
        frames, length = spectra.shape[1], out.shape[-1]
        weight = _framed(window, size)
        norm = _Rows(size, step, frames, weight.dtype)
        norm.add(np.broadcast_to(weight * weight, (frames, size)))
        if self.normalized:
            weight = weight * weight.dtype.type(sqrt(size))
        wanted = slice(size // 2 if self.center else 0, None)

        def restore(start: int, stop: int) -> None:
            count = max(BLOCK // size, 1)
            with np.errstate(all="ignore"):
                for batch in range(start, stop):
                    rows = _Rows(size, step, frames, weight.dtype)
                    for first in range(0, frames, count):
                        rows.add(np.fft.irfft(spectra[batch, first : first + count], size) * weight, first)
                    total, squares = (r.samples[wanted][:length] for r in (rows, norm))
                    signals[batch] = 0
                    np.divide(total, squares, out=signals[batch, : total.size], where=squares != 0)

        run_blocks(restore, len(signals), -(-_LEAST_PER_THREAD // max(size * frames, 1)))


class _Rows:
    """A sum of overlapping frames, in rows as long as a step, so that all frames are added in a few passes."""

    def __init__(self, size: int, step: int, frames: int, dtype: np.dtype[Any]) -> None:
        step = step if frames > 1 else min(step, size)
        self._rows = np.zeros((max(frames, 1) + -(-size // step) - 1, step), dtype)
        self.samples = self._rows.reshape(-1)[: max(frames - 1, 0) * step + size]

    def add(self, frames: Array, first: int = 0) -> None:
        """Add frames; the first one begins in row ``first``."""
        step = self._rows.shape[1]
        for k in reversed(range(-(-frames.shape[1] // step))):  # each sample adds its frames in their order
            part = frames[:, k * step : (k + 1) * step]
            self._rows[first + k : first + k + len(part), : part.shape[1]] += part
