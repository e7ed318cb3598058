"""DFT, IDFT, RDFT and IRDFT: the discrete Fourier transform along some axes, of complex and of real data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32, f64
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import Value
from ovir.kernels.fourier import Transform, as_complex, transform
from ovir.kernels.precision import as_computed, stored, work_array
from ovir.ops.base.domains import SMALL, Axis, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class FourierBase(Operator):
    """Base of discrete Fourier transforms along some axes.

    Complex numbers are pairs along the last axis, [..., 2], real part first. axes [n] are distinct dimensions of the
    complex (or real) numbers in any order; negative ones count from the end, and the axis of the pairs is not among
    them. signal_size [n] gives for each axis the length to which data is cut at the end or padded with zeros; -1 keeps
    the length.
    """

    bounded = False

    domains = by_input(axes=Axis("data"), signal_size=SMALL)
    of_pairs: ClassVar[bool] = True
    """Whether the last axis of ``data`` holds real and imaginary part."""
    to_pairs: ClassVar[bool] = True

    value_inputs = (1, 2)

    def infer(self, data: TensorType, axes: TensorType, signal_size: TensorType | None = None) -> TensorType:
        allowed = (f16, bf16, f32, f64)
        self.require_type("data", data.element_type, lambda t: t in allowed, "f16, bf16, f32 or f64")
        for name, tensor in (("axes", axes), ("signal_size", signal_size)):
            if tensor is not None:
                self.require_index_type(name, tensor.element_type)
                self.require_rank(name, tensor.shape, 1)
        count = axes.shape[0]
        if signal_size is not None:
            count = self.merge_dims("elements", axes=(axes.shape, 0), signal_size=(signal_size.shape, 0))
        if data.shape.rank is None:
            return TensorType(data.element_type, PartialShape(None))
        dims = self._signal_dims(data.shape)
        message = "axes has {:element}, but data of shape {} has only {} transformable {}"
        noun = "axis" if len(dims) == 1 else "axes"
        self.require(count.lower <= len(dims), message, count, data.shape, len(dims), noun)
        if axes.constant is None:
            resized = self._sized_by_unknown_axes(dims, signal_size is not None)
        else:
            resized = list(dims)
            along = self._axes(axes.constant, len(dims))
            for axis, dim in zip(along, self._output_dims(dims, along, signal_size), strict=True):
                resized[axis] = dim
        return TensorType(data.element_type, PartialShape([*resized, 2] if self.to_pairs else resized))

    def _signal_dims(self, data: PartialShape) -> tuple[Dimension, ...]:
        """Return the dimensions of the data's numbers, without the axis of pairs."""
        self.require_rank_at_least("data", data, 2 if self.of_pairs else 1)
        if not self.of_pairs:
            return data.dims
        self.require(data[-1].contains(2), "the last dimension of data must be 2, for complex numbers; got {}", data)
        return data.dims[:-1]

    def _axes(self, axes: Array, rank: int) -> list[int]:
        return self.normalize_axes(axes.tolist(), rank)

    def _sized_by_unknown_axes(self, dims: Sequence[Dimension], sized: bool) -> Sequence[Dimension]:
        return [UNKNOWN] * len(dims) if sized else dims

    def _output_dims(
        self, dims: Sequence[Dimension], axes: Sequence[int], signal_size: TensorType | None
    ) -> list[Dimension]:
        return self._lengths(dims, axes, signal_size)

    def _lengths(
        self, dims: Sequence[Dimension], axes: Sequence[int], signal_size: TensorType | None
    ) -> list[Dimension]:
        """Return the length of the transformed signal along each of the axes."""
        whole = self._whole([dims[axis] for axis in axes])
        if signal_size is None:
            return whole
        if signal_size.value is None:
            return [UNKNOWN] * len(axes)
        return self._chosen(signal_size.value, whole)

    def _whole(self, dims: list[Dimension]) -> list[Dimension]:
        """Return the lengths that -1 stands for: the data's dimensions along the axes."""
        return dims

    def _chosen(self, sizes: Value, whole: list[Dimension]) -> list[Dimension]:
        if sizes.constant is not None:
            negative = [size for size in sizes.constant.tolist() if size < -1]
            self.require(not negative, "signal_size must not be below -1, got {}", sizes.constant.tolist())
        result = []
        for size, low, high, own in zip(sizes.dimensions(), sizes.lower, sizes.upper, whole, strict=True):
            result.append(size if low >= 0 else own if high < 0 else own.union(Dimension(0, size.upper)))
        return result

    # ----- the kernel

    def run(self, data: Array, axes: Array, signal_size: Array | None = None, *, out: Array | None = None) -> Array:
        dims = self._signal_dims(PartialShape(data.shape))
        along = self._axes(axes, len(dims))
        given = None if signal_size is None else constant_type(signal_size)
        message = "signal_size must have an element for each of the axes {}, got shape {}"
        fits = given is None or given.shape == [len(along)]
        self.require(fits, message, axes.tolist(), None if given is None else given.shape)
        shape = [dim.length for dim in dims]
        for axis, dim in zip(along, self._output_dims(dims, along, given), strict=True):
            shape[axis] = dim.length
        result = work_array((*shape, 2) if self.to_pairs else tuple(shape), data.dtype, out)
        if result.size:
            source, target = as_computed(data), result
            lengths = [dim.length for dim in self._lengths(dims, along, given)]
            self._transform(
                as_complex(source) if self.of_pairs else source,
                along,
                lengths,
                as_complex(target) if self.to_pairs else target,
            )
        return stored(result, data.dtype, out)

    def _transform(self, source: Array, axes: list[int], lengths: list[int], target: Array) -> None:
        """Transform ``source`` into ``target``; ``lengths`` are the lengths of the signal along the axes."""
        raise NotImplementedError


def _in_passes(
    first: Transform, others: Transform, source: Array, axes: Sequence[int], lengths: Sequence[int], target: Array
) -> None:
    """Transform the source into ``target``: along the last of the axes by ``first``, then along the ``others``."""
    kept = list(source.shape)
    for axis, length in zip(axes, lengths, strict=True):
        kept[axis] = min(kept[axis], length)
    source = source[tuple(map(slice, kept))]
    if not axes:
        np.copyto(target, source)
        return
    kept[axes[-1]] = target.shape[axes[-1]]
    filled = target[tuple(map(slice, kept))]
    if filled.size < target.size:
        target[...] = 0
    transform(first, source, axes[-1], lengths[-1], filled)
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        transform(others, target, axis, length, target)


@operator("DFT", opset=7)
class DFT(FourierBase):
    """The discrete Fourier transform of complex numbers along some axes. See FourierBase.

    out[m] = sum over j of data[j] * exp(-2i * pi * j * m / length) along each of the axes. data and out are [..., 2].

    Source: DFT-7
    """

    def _transform(self, source: Array, axes: list[int], lengths: list[int], target: Array) -> None:
        _in_passes(np.fft.fft, np.fft.fft, source, axes, lengths, target)


@operator("IDFT", opset=7)
class IDFT(FourierBase):
    """The inverse of DFT: the exponent is positive, and the sum along an axis is divided by its length.

    data and out are [..., 2].

    Source: IDFT-7
    """

    def _transform(self, source: Array, axes: list[int], lengths: list[int], target: Array) -> None:
        _in_passes(np.fft.ifft, np.fft.ifft, source, axes, lengths, target)


class RealFourierBase(FourierBase):
    """Base of transforms with real numbers on one side.

    The other side holds only half of the last of the axes; the other half are the conjugates of the first.
    """

    def _axes(self, axes: Array, rank: int) -> list[int]:
        self.require(axes.size > 0, "axes must name at least one axis, got none")
        return super()._axes(axes, rank)

    def _sized_by_unknown_axes(self, dims: Sequence[Dimension], sized: bool) -> Sequence[Dimension]:
        return [UNKNOWN] * len(dims)


@operator("RDFT", opset=9)
class RDFT(RealFourierBase):
    """DFT of real data [...] to complex numbers [..., 2]; the last of the axes keeps length // 2 + 1 numbers.

    For axes and signal_size see FourierBase. An axis of length 0 stays 0, as in OpenVINO.

    Source: RDFT-9
    """

    of_pairs = False

    def _output_dims(
        self, dims: Sequence[Dimension], axes: Sequence[int], signal_size: TensorType | None
    ) -> list[Dimension]:
        *others, last = self._lengths(dims, axes, signal_size)
        return [*others, last.map(lambda length: length // 2 + 1 if length else 0)]

    def _transform(self, source: Array, axes: list[int], lengths: list[int], target: Array) -> None:
        _in_passes(np.fft.rfft, np.fft.fft, source, axes, lengths, target)


@operator("IRDFT", opset=9)
class IRDFT(RealFourierBase):
    """The inverse of RDFT: complex numbers [..., 2] to real ones [...].

    Along the last of the axes data holds the first length // 2 + 1 numbers; extra ones are cut off, and missing ones
    are zero. The length is 2 * (dimension - 1) unless signal_size gives it. For axes and signal_size see FourierBase.

    Source: IRDFT-9
    """

    to_pairs = False

    def _whole(self, dims: list[Dimension]) -> list[Dimension]:
        *others, last = dims
        return [*others, last.map(lambda size: 2 * (size - 1))]

    def _transform(self, source: Array, axes: list[int], lengths: list[int], target: Array) -> None:
        *others, last = axes
        if others:
            shape = list(target.shape)
            shape[last] = min(source.shape[last], lengths[-1] // 2 + 1)
            middle = np.empty(shape, source.dtype)
            kept = source[(slice(None),) * last + (slice(shape[last]),)]
            _in_passes(np.fft.ifft, np.fft.ifft, kept, others, lengths[:-1], middle)
            source = middle
        transform(np.fft.irfft, source, last, lengths[-1], target)
