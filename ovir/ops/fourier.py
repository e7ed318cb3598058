"""Fourier transforms: DFT, IDFT, RDFT and IRDFT of tensors, STFT and ISTFT of the short frames of a signal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import ClassVar, cast

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import Outputs, TensorType, constant_type
from ovir.kernels.precision import compute_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, Axis, Between, Domain, Inputs, Length, by_input, size_of
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_AXES = "axes index[Axes]; ?signal_size index[Axes]; T f16|bf16|f32|f64"


class FourierBase(Operator):
    """Base of discrete Fourier transforms along some axes.

    Complex numbers are pairs along the last axis, real part first. axes are distinct dimensions of the
    complex (or real) numbers in any order; negative ones count from the end, and the axis of the pairs is not among
    them. signal_size gives for each axis the length to which data is cut at the end or padded with zeros; -1 keeps
    the length. Where the numbers on one side are real, the other side holds only half of the last of the axes; the
    other half are the conjugates of the first.
    """

    takes = f"data T[Numbers..., 2]; {_AXES}"
    gives = "T[Resized..., 2]"
    copies = 1

    bounded = False

    domains = by_input(axes=Axis("data"), signal_size=SMALL)
    of_pairs: ClassVar[bool] = True
    """Whether the last axis of ``data`` holds real and imaginary part."""
    to_pairs: ClassVar[bool] = True
    """Whether the last axis of the output does."""
    transform: ClassVar[Callable[..., Array]]
    """The function of ``np.fft``: transforms an array along axes, cut or zero-padded to lengths."""

    value_inputs = (1, 2)

    def infer(self, data: TensorType, axes: TensorType, signal_size: TensorType | None = None) -> Outputs:
        found = self.solved(data, axes, signal_size)
        dims, count = found.shapes.get("Numbers"), found["Axes"]
        if dims is None:
            return found.outputs()
        message = "axes has {:element}, but data of shape {} has only {} transformable {}"
        noun = "axis" if len(dims) == 1 else "axes"
        self.require(count.lower <= len(dims), message, count, data.shape, len(dims), noun)
        resized = list(dims)
        if axes.constant is not None:
            along = self._axes(axes.constant, len(dims))
            for axis, dim in zip(along, self._kept(self._lengths(dims, along, signal_size)), strict=True):
                resized[axis] = dim
        elif signal_size is not None or self.of_pairs != self.to_pairs:
            resized = [UNKNOWN] * len(dims)
        found.shapes["Resized"] = tuple(resized)
        return found.outputs()

    def _axes(self, axes: Array, rank: int) -> list[int]:
        self.require(axes.size or self.of_pairs == self.to_pairs, "axes must name at least one axis, got none")
        return self.normalize_axes(axes.tolist(), rank)

    def _lengths(
        self, dims: Sequence[Dimension], axes: Sequence[int], signal_size: TensorType | None
    ) -> list[Dimension]:
        """Return the length of the transformed signal along each of the axes."""
        whole = [dims[axis] for axis in axes]
        if not self.to_pairs:
            whole[-1] = whole[-1].map(lambda size: 2 * (size - 1))
        if signal_size is None:
            return whole
        sizes = signal_size.value
        if sizes is None:
            return [UNKNOWN] * len(axes)
        if sizes.constant is not None:
            negative = [size for size in sizes.constant.tolist() if size < -1]
            self.require(not negative, "signal_size must not be below -1, got {}", sizes.constant.tolist())
        result = []
        for size, low, high, own in zip(sizes.dimensions(), sizes.lower, sizes.upper, whole, strict=True):
            result.append(size if low >= 0 else own if high < 0 else own.union(Dimension(0, size.upper)))
        return result

    def _kept(self, lengths: list[Dimension]) -> list[Dimension]:
        """Return the dimensions of the output along the axes, for a signal of these lengths."""
        if self.of_pairs:
            return lengths
        *others, last = lengths
        return [*others, last.map(lambda length: length // 2 + 1 if length else 0)]

    def run(self, data: Array, axes: Array, signal_size: Array | None = None) -> Array:
        shape, along, lengths = self.sizes(data.shape, axes, signal_size)
        numbers = data.astype(compute_dtype(data.dtype), copy=False)
        source = as_complex(numbers) if self.of_pairs else numbers
        if source.size and 0 not in shape:
            result = self.transform(source, lengths, along)
        else:
            result = np.zeros(shape, numbers.dtype)
        return (as_pairs(result) if self.to_pairs else result).astype(data.dtype, copy=False)

    def sizes(
        self, data: tuple[int, ...], axes: Array, signal_size: Array | None
    ) -> tuple[tuple[int, ...], list[int], list[int]]:
        """Return the shape of the transformed numbers, without the axis of pairs, the axes counted from the front, and
        the lengths of the signal along them."""
        dims = PartialShape(data[:-1] if self.of_pairs else data).dims
        along = self._axes(axes, len(dims))
        given = None if signal_size is None else constant_type(signal_size)
        lengths = self._lengths(dims, along, given)
        shape = [dim.length for dim in dims]
        for axis, dim in zip(along, self._kept(lengths), strict=True):
            shape[axis] = dim.length
        return tuple(shape), along, [dim.length for dim in lengths]


def as_complex(pairs: Array) -> Array:
    """Return the complex numbers that the pairs along the last axis represent; a view if the array is contiguous."""
    pairs = np.ascontiguousarray(pairs)
    view: Array = pairs.view(np.result_type(pairs.dtype, np.complex64))
    return view[..., 0]


def as_pairs(numbers: Array) -> Array:
    """Return complex numbers as pairs along a last axis, real part first."""
    return np.stack([numbers.real, numbers.imag], axis=-1)


@operator("DFT", opset=7)
class DFT(FourierBase):
    """The discrete Fourier transform of complex numbers along some axes. See FourierBase.

    out[m] = sum over j of data[j] * exp(-2i * pi * j * m / length) along each of the axes.

    >>> wave = np.stack([np.float32([1, 0, -1, 0]), np.zeros(4, np.float32)], axis=-1)
    >>> ops.dft(wave, [0])
    [[0. 0.] [2. 0.] [0. 0.] [2. 0.]]
    """

    transform = staticmethod(np.fft.fftn)


@operator("IDFT", opset=7)
class IDFT(FourierBase):
    """The inverse of DFT: the exponent is positive, and the sum along an axis is divided by its length.

    >>> ops.idft(np.float32([[2, 0], [0, 0]]), [0])
    [[1. 0.] [1. 0.]]
    """

    transform = staticmethod(np.fft.ifftn)


@operator("RDFT", opset=9)
class RDFT(FourierBase):
    """DFT of real data to complex numbers; the last of the axes keeps length // 2 + 1 numbers.

    For axes and signal_size see FourierBase. An axis of length 0 stays 0, as in OpenVINO.

    >>> ops.rdft([1.0, 0.0, -1.0, 0.0], [0])
    [[0. 0.] [2. 0.] [0. 0.]]
    """

    takes = f"data T[Numbers...]; {_AXES}"
    of_pairs = False
    transform = staticmethod(np.fft.rfftn)


@operator("IRDFT", opset=9)
class IRDFT(FourierBase):
    """The inverse of RDFT: complex numbers to real ones.

    Along the last of the axes data holds the first length // 2 + 1 numbers; extra ones are cut off, and missing ones
    are zero. The length is 2 * (dimension - 1) unless signal_size gives it. For axes and signal_size see FourierBase.

    >>> ops.irdft(np.float32([[2, 0], [0, 0]]), [0])
    [1. 1.]
    """

    gives = "T[Resized...]"
    to_pairs = False
    transform = staticmethod(np.fft.irfftn)


# --------------------------------------------------------------------------- short frames


class ShortTimeFourierBase(Operator):
    """Base of operations on the frames of a signal, each multiplied by a window.

    A frame has frame_size elements and starts frame_step elements after the one before. A shorter window is
    centered in the frame, with zeros around it.
    """

    copies = 1

    bounded = False

    def _positive(self, name: str, tensor: TensorType) -> Dimension:
        """Return the one positive number of a tensor, as far as it is known."""
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


def framed(window: Array, frame_size: int) -> Array:
    """Return the window padded with zeros to the length of a frame; an odd zero is added at the end."""
    before = (frame_size - window.size) // 2
    numbers = window.astype(compute_dtype(window.dtype), copy=False)
    return np.pad(numbers, (before, frame_size - window.size - before))


@operator("STFT", opset=15)
class STFT(ShortTimeFourierBase):
    """The Fourier transforms of all short frames that fit in a signal. See ShortTimeFourierBase.

    out[b, f] = RDFT of signal[b, f * frame_step : f * frame_step + frame_size] * window: frame_size // 2 + 1
    numbers. ``transpose_frames`` swaps the frames with the numbers of the transform.

    >>> ops.stft([1.0, 2.0, 3.0, 4.0], [1.0, 1.0], 2, 2, transpose_frames=False)
    [[[ 3. 0.] [-1. 0.]] [[ 7. 0.] [-1. 0.]]]
    """

    takes = "signal T[Length]|[N, Length]; window T[Window]; frame_size index[]; frame_step index[]; T real"
    gives = "T[Rows, Columns, 2]|[N, Rows, Columns, 2]"
    recipe = "T narrow, frame_size = 4, frame_step = 1..3; Length=4|5|12 Window=1|3|4"
    arguments = "data:signal window frame_size frame_step transpose_frames"
    domains = by_input(frame_size=Length("window", axis=0, full=True), frame_step=SMALL)
    transpose_frames: bool = attribute(default=False, specified=True)

    value_inputs = (2, 3)

    def infer(self, signal: TensorType, window: TensorType, frame_size: TensorType, frame_step: TensorType) -> Outputs:
        solution = self.solved(signal, window, frame_size, frame_step)
        size, step = self._positive("frame_size", frame_size), self._positive("frame_step", frame_step)
        self._require_window(solution["Window"], size)
        length = solution["Length"]
        message = "frame_size {} is longer than the signal {}"
        fitting = self.require_known(size.merged_with(Dimension(0, length.upper)), message, size, signal.shape)
        frames, bins = _frames(length, fitting, step), _bins(fitting)
        rows, columns = (bins, frames) if self.transpose_frames else (frames, bins)
        solution.sizes.update(Rows=rows, Columns=columns)
        return solution.outputs()

    def run(self, signal: Array, window: Array, frame_size: Array, frame_step: Array) -> Array:
        self.infer(*map(constant_type, (signal, window, frame_size, frame_step)))
        size, step = int(frame_size.item()), int(frame_step.item())
        samples = signal.astype(compute_dtype(signal.dtype), copy=False)
        frames = np.lib.stride_tricks.sliding_window_view(samples, size, axis=-1)[..., ::step, :]
        numbers = np.fft.rfft(frames * framed(window, size))
        result = as_pairs(numbers.swapaxes(-1, -2) if self.transpose_frames else numbers)
        return np.ascontiguousarray(result).astype(signal.dtype, copy=False)


def _frame_of_bins(op: Operator, inputs: Inputs) -> Domain:
    """Return the frame size that gives as many frequencies as ``data`` has."""
    size = max(2 * (size_of(op, inputs, "data", -3) - 1), 1)
    return Domain(size, size)


@operator("ISTFT", opset=16)
class ISTFT(ShortTimeFourierBase):
    """The inverse of STFT: the signal whose frames have the given transforms. See ShortTimeFourierBase.

    The frames, each multiplied by the window, are added where they overlap and divided by the sum of the squared
    windows there; where this sum is zero, the signal is zero. The length is (frames - 1) * frame_step + frame_size;
    with ``center`` frame_size // 2 samples are removed at both ends. signal_length cuts the signal at its end, or
    extends it by the samples removed there and then by zeros. ``normalized`` data was divided by sqrt(frame_size).

    >>> signal = np.float32([1, 2, 3, 4])
    >>> window = np.ones(2, np.float32)
    >>> spectrum = ops.stft(signal, window, 2, 1, transpose_frames=True)
    >>> ops.istft(spectrum, window, 2, 1, center=False, normalized=False)
    [1. 2. 3. 4.]
    """

    takes = (
        "data T[Half+1, Frames, 2]|[N, Half+1, Frames, 2]; window T[Window]; frame_size index[]; frame_step index[]; "
        "?signal_length index[]|[1]; T real"
    )
    gives = "T[Length]|[N, Length]"
    recipe = "T narrow, frame_size = 2*F, frame_step = 1..2, signal_length = 1..30; F=1 Half=1 Frames=1|3|5 Window=1|2"
    arguments = "data window frame_size frame_step center normalized signal_length="
    domains = by_input(frame_size=_frame_of_bins, frame_step=SMALL, signal_length=Between(8, 64))
    center: bool = attribute(default=False, specified=True)
    normalized: bool = attribute(default=False, specified=True)

    value_inputs = (2, 3, 4)

    def infer(self, *inputs: TensorType) -> Outputs:
        found = self.solved(*inputs)
        frame_size, frame_step, *length = inputs[2:]
        size, step = self._positive("frame_size", frame_size), self._positive("frame_step", frame_step)
        self._require_window(found["Window"], size)
        if not found["Half"].compatible(size // 2):
            message = "the frames of data {} must have {} numbers, which is frame_size // 2 + 1 for frame_size {}"
            self.fail(message, inputs[0].shape, _bins(size), size)
        counts = [self.count_of("signal_length", tensor) for tensor in length]
        found.sizes["Length"] = counts[0] if counts else self._length(found["Frames"], size, step)
        return found.outputs()

    def _length(self, frames: Dimension, size: Dimension, step: Dimension) -> Dimension:
        """Return the length without ``signal_length``; no frames have the length of one."""
        ends = size
        if self.center:  # 2 * (size // 2) samples are removed
            ends = Dimension(size.lower % 2, size.lower % 2) if size.is_static else Dimension(0, 1)
        return frames.map(lambda count: count - 1) * step + ends

    def python_steps(self, inputs: Sequence[TensorType]) -> Dimension:
        return inputs[0].shape.slice(0, -3).size()

    def run(self, *inputs: Array) -> Array:
        shape = cast("TensorType", self.infer(*map(constant_type, inputs))).shape.to_tuple()
        data, window, frame_size, frame_step = inputs[:4]
        size, step = int(frame_size.item()), int(frame_step.item())
        spectra = as_complex(data.astype(compute_dtype(data.dtype), copy=False)).swapaxes(-1, -2)
        *batch, count, _ = spectra.shape
        weight = framed(window, size)
        scaled = weight * weight.dtype.type(sqrt(size)) if self.normalized else weight
        signal = np.zeros(shape, data.dtype)
        squares = _overlapping(np.broadcast_to(weight * weight, (count, size)), step)
        wanted = slice(size // 2 if self.center else 0, None)
        squares = squares[wanted][: shape[-1]]
        for place in np.ndindex(*batch):
            total = _overlapping(np.fft.irfft(spectra[place], size) * scaled, step)[wanted][: shape[-1]]
            signal[place][: total.size] = np.divide(total, squares, out=np.zeros_like(total), where=squares != 0)
        return signal


def _overlapping(frames: Array, step: int) -> Array:
    """Return the sum of frames, each of which begins ``step`` elements after the one before, from the first to the last
    element; there is at least one frame's length."""
    count, size = frames.shape
    step = step if count > 1 else min(step, size)
    # In rows as long as a step, all frames are added in a few passes; each element adds its frames in their order.
    rows = np.zeros((max(count, 1) + -(-size // step) - 1, step), frames.dtype)
    for k in reversed(range(-(-size // step))):
        part = frames[:, k * step : (k + 1) * step]
        rows[k : k + count, : part.shape[1]] += part
    return rows.ravel()[: max(count - 1, 0) * step + size]
