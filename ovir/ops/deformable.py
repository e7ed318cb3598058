"""DeformableConvolution: a convolution whose taps are moved, for each output, by offsets from an input."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import Dimension
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import compute_dtype
from ovir.kernels.windows import Window
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import output_size
from ovir.ops.convolution import ConvolutionBase, converted, spatial_dims

# The sampled data of a block of outputs should stay in a cache until the product has used it.
_SAMPLE_BYTES = 4 << 20


class DeformableBase(ConvolutionBase):
    """Base of 2-D convolutions whose taps are moved, for each output, by offsets from an input.

    data is [N, C, rows, cols], filters [O, C / group, *kernel]. Tap k of K taps reads, for output p, at p * strides + k
    * dilations - pads_begin + offset[k, p]. offsets are [N, deformable_group * K * 2, *windows], y before x for each
    tap; each of the ``deformable_group`` parts moves its share of data's channels. Data is interpolated bilinearly
    between pixels and is zero outside. For ``group`` see GroupConvolution; for strides, dilations and pads see
    Convolution. Any numeric type is allowed; f16 and bf16 are summed in f32.
    """

    group: int = attribute(minimum=1)
    deformable_group: int = attribute(minimum=1)
    bilinear_interpolation_pad: bool = False
    """Whether positions less than a pixel outside of data are interpolated between data and zero."""

    # ----- inference

    def infer_outputs(
        self, data: TensorType, offsets: TensorType, filters: TensorType, mask: TensorType | None = None
    ) -> TensorType:
        names = ("data", "offsets", "filters")
        element_type = self.merge_types(data.element_type, offsets.element_type, filters.element_type, names=names)
        given = {"data": data, "offsets": offsets, "filters": filters}
        if mask is not None:
            given["mask"] = mask
        for name, tensor in given.items():
            self.require_numeric(name, tensor.element_type)
            self.require_rank(name, tensor.shape, 4)
        self._require_multiple("data", data.shape, 1, self.group, "group")
        self._require_multiple("filters", filters.shape, 0, self.group, "group")
        channels = filters.shape[1] * self.group
        message = "data {} has {:channel}, but filters {} with group {} need {}"
        fits = data.shape[1].compatible(channels)
        self.require(fits, message, data.shape, data.shape[1], filters.shape, self.group, channels)
        kernel = spatial_dims(filters.shape, 2, 2)
        sizes = self.output_dims(data.shape.slice(2), kernel)
        shape = PartialShape([data.shape[0], filters.shape[0], *sizes])
        needed = kernel[0] * kernel[1] * self.deformable_group
        shape = self._merged(shape, "offsets", offsets.shape, needed * 2)
        if mask is not None:
            shape = self._merged(shape, "mask", mask.shape, needed)
        return TensorType(element_type, shape)

    def _require_multiple(self, name: str, shape: PartialShape, axis: int, divisor: int, of: str) -> None:
        if shape[axis].exact_div(divisor) is None:
            self.fail("dimension {} of {} {} must be a multiple of {} {}", axis, name, shape, of, divisor)

    def _merged(self, output: PartialShape, name: str, shape: PartialShape, channels: Dimension) -> PartialShape:
        """Return the output's shape, refined by offsets or mask, which have the same windows."""
        self._require_multiple(name, shape, 1, self.deformable_group, "deformable_group")
        message = "{} {} has {:channel}, but kernel and deformable_group {} need {}"
        self.require(shape[1].compatible(channels), message, name, shape, shape[1], self.deformable_group, channels)
        merged = output.merged_with(shape, except_axis=1)
        if merged is None:
            self.fail(
                "{} {} does not match the output {}: batch and spatial dimensions must be equal", name, shape, output
            )
        return merged

    # ----- the kernel

    def run(
        self, data: Array, offsets: Array, filters: Array, mask: Array | None = None, *, out: Array | None = None
    ) -> Array:
        images, channels, *spatial = data.shape
        outputs, depth, *kernel = filters.shape
        windows = self.windows(spatial, kernel)
        sizes = [
            output_size(size, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end)
            for size, w in zip(spatial, windows, strict=True)
        ]
        moved, taps, positions = self.deformable_group, prod(kernel), prod(sizes)
        self.require(
            min(sizes) >= 0
            and channels == depth * self.group
            and offsets.shape == (images, 2 * moved * taps, *sizes)
            and (mask is None or mask.shape == (images, moved * taps, *sizes)),
            "data {}, offsets {}, filters {} and mask {} do not match an output of size {}",
            data.shape,
            offsets.shape,
            filters.shape,
            None if mask is None else mask.shape,
            sizes,
        )
        dtype = compute_dtype(data.dtype)
        # Channels last: a sample, and everything that one output reads, is then contiguous.
        tap_first = filters.reshape(self.group, outputs // self.group, depth, taps).swapaxes(2, 3).astype(dtype)
        weights = tap_first.reshape(self.group, outputs // self.group, taps * depth)
        channels_last = data.reshape(images, channels, prod(spatial)).swapaxes(1, 2).astype(dtype, order="C")
        pixels = channels_last.reshape(images * prod(spatial) * moved, channels // moved)
        places = offsets.reshape(images, moved, taps, 2, positions).transpose(3, 0, 4, 2, 1)
        scales = None if mask is None else mask.reshape(images, moved, taps, positions).transpose(0, 3, 2, 1)
        base = _tap_places(windows, sizes).astype(dtype)[:, np.newaxis, :, :, np.newaxis]
        sums = np.empty((images, self.group, outputs // self.group, positions), dtype)
        count = max(_SAMPLE_BYTES // max(taps * channels * dtype.itemsize, 1), 1)
        several = max(count // max(positions, 1), 1)
        for first, start in product(range(0, images, several), range(0, positions, count)):
            rows, block = slice(first, first + several), slice(start, start + count)
            scale = None if scales is None else scales[rows, block]
            at = base[:, :, block] + places[:, rows, block].astype(dtype, copy=False)
            begin = np.arange(images)[rows, np.newaxis, np.newaxis, np.newaxis] * prod(spatial) * moved
            samples = self._sampled(pixels, begin, spatial, at, scale)
            grouped = samples.reshape(*at.shape[1:3], taps, self.group, depth).transpose(0, 3, 2, 4, 1)
            columns = grouped.reshape(len(grouped), self.group, taps * depth, at.shape[2])
            np.matmul(weights, columns, out=sums[rows, :, :, block])
        return converted(sums.reshape(images, outputs, *sizes), data.dtype, out)

    def _sampled(
        self, pixels: Array, begin: Array, spatial: Sequence[int], places: Array, scale: Array | None
    ) -> Array:
        """Return the pixels around places[axis, n, p, t, i] in part i of the channels of image n, interpolated and
        multiplied by scale[n, p, t, i], as [n, p, t, channels].

        ``pixels`` are [images * height * width * parts, channels of a part]; image n has those from ``begin[n]`` on.
        """
        limits = np.array(spatial).reshape(2, 1, 1, 1, 1)
        inside = (places > -1 if self.bilinear_interpolation_pad else places >= 0) & (places < limits)
        inside = inside[0] & inside[1]
        places = np.where(inside, places, 0)  # positions outside have weight 0; they may be NaN
        low = np.floor(places)
        part = places - low
        first = low.astype(np.intp)
        factor = inside.astype(places.dtype) if scale is None else np.where(inside, scale, 0)
        parts = inside.shape[3]
        strides = np.array([spatial[1] * parts, parts]).reshape(2, 1, 1, 1, 1)
        neighbours = []  # before and after on both axes: where pixels begin, their weights, and which of them exist
        for index, weight in ((first, 1 - part), (first + 1, part)):
            exists = (index >= 0) & (index < limits) if self.bilinear_interpolation_pad else (None, None)
            neighbours.append((np.clip(index, 0, limits - 1) * strides, weight, exists))
        rows, columns = ([(at[k], weight[k], exists[k]) for at, weight, exists in neighbours] for k in (0, 1))
        total: Array | None = None
        for (y, share_y, row), (x, share_x, column) in product(rows, columns):
            share = share_y * share_x * factor
            if row is not None:
                share = np.where(row & column, share, 0)
            samples = pixels.take(begin + y + x + np.arange(parts), 0, mode="clip")
            samples *= share[..., np.newaxis]
            total = samples if total is None else np.add(total, samples, out=total)
        assert total is not None
        return total.reshape(*total.shape[:3], parts * pixels.shape[1])


def _tap_places(windows: Sequence[Window], sizes: Sequence[int]) -> Array:
    """Return the unmoved position of tap t of window p, [axis, p, t]."""
    starts = [np.arange(size) * w.stride - w.pad_begin for size, w in zip(sizes, windows, strict=True)]
    steps = [np.arange(w.kernel) * w.dilation for w in windows]
    at, tap = (np.stack(np.meshgrid(*parts, indexing="ij")).reshape(2, -1) for parts in (starts, steps))
    return np.asarray(at[:, :, np.newaxis] + tap[:, np.newaxis])


@operator("DeformableConvolution", opset=1)
class DeformableConvolution1(DeformableBase):
    """A 2-D convolution whose taps are moved, for each output, by offsets from an input. See DeformableBase.

    Source: DeformableConvolution-1
    """

    def infer(self, data: TensorType, offsets: TensorType, filters: TensorType) -> TensorType:
        return self.infer_outputs(data, offsets, filters)


@operator("DeformableConvolution", opset=8)
class DeformableConvolution8(DeformableBase):
    """DeformableConvolution-1 with each sample multiplied by an optional mask [N, deformable_group * K, *windows].

    With ``bilinear_interpolation_pad``, positions less than a pixel outside of data are interpolated between data and
    zero.

    Source: DeformableConvolution-8
    """

    bilinear_interpolation_pad: bool = attribute(default=False)

    def infer(
        self, data: TensorType, offsets: TensorType, filters: TensorType, mask: TensorType | None = None
    ) -> TensorType:
        return self.infer_outputs(data, offsets, filters, mask)
