"""DeformableConvolution: a convolution whose taps are moved, for each output, by offsets from an input."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import compute_dtype, from_sums
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator
from ovir.ops.convolution import ConvolutionBase, spatial_dims


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

    def run(self, data: Array, offsets: Array, filters: Array, mask: Array | None = None) -> Array:
        images, channels, *spatial = data.shape
        outputs, depth, *kernel = filters.shape
        windows = self.windows(spatial, kernel)
        sizes = self.window_counts(spatial, windows)
        groups, parts, taps, positions = self.group, self.deformable_group, prod(kernel), prod(sizes)
        self.require(
            min(sizes) >= 0
            and channels == depth * groups
            and offsets.shape == (images, 2 * parts * taps, *sizes)
            and (mask is None or mask.shape == (images, parts * taps, *sizes)),
            "data {}, offsets {}, filters {} and mask {} do not match an output of size {}",
            data.shape,
            offsets.shape,
            filters.shape,
            None if mask is None else mask.shape,
            sizes,
        )
        dtype = compute_dtype(data.dtype)
        # The channels are the last axis: what is read for one output lies in one piece.
        pixels = data.reshape(images, parts, channels // parts, *spatial).astype(dtype)
        pixels = np.ascontiguousarray(np.moveaxis(pixels, 2, -1))
        moves = offsets.reshape(images, parts, *kernel, 2, *sizes).astype(dtype)
        scales = None if mask is None else mask.reshape(images, parts, *kernel, *sizes).astype(dtype)
        weights = filters.reshape(groups, outputs // groups, depth, *kernel).astype(dtype)
        rows, columns = (w.positions(count) for w, count in zip(windows, sizes, strict=True))
        sums = np.zeros((images, groups, positions, outputs // groups), dtype)
        for i, j in np.ndindex(*kernel):
            y, x = rows[:, i, np.newaxis] + moves[:, :, i, j, 0], columns[:, j] + moves[:, :, i, j, 1]
            samples = self._sampled(pixels, y.astype(dtype), x.astype(dtype))
            if scales is not None:
                samples *= scales[:, :, i, j, ..., np.newaxis]
            merged = np.moveaxis(samples, 1, -2).reshape(images, positions, groups, depth)
            sums += merged.swapaxes(1, 2) @ weights[..., i, j].swapaxes(1, 2)
        return from_sums(np.moveaxis(sums, 3, 2).reshape(images, outputs, *sizes), data.dtype)

    def _sampled(self, pixels: Array, y: Array, x: Array) -> Array:
        """Return the pixels [N, parts, height, width, channels] around places y and x, both [N, parts, *windows],
        interpolated as [N, parts, *windows, channels]."""
        images, parts, height, width, channels = pixels.shape
        least = -1 if self.bilinear_interpolation_pad else 0
        inside = (y >= least) & (x >= least) & (y < height) & (x < width)
        y, x = (np.where(inside, at, 0) for at in (y, x))  # NaN is outside, too
        top, left = np.floor(y), np.floor(x)
        planes = np.arange(images * parts).reshape(images, parts, 1, 1)
        samples = np.zeros((*y.shape, channels), pixels.dtype)
        for row, column in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
            share = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
            counts = inside
            if self.bilinear_interpolation_pad:  # otherwise the last row and column continue
                counts = inside & (row >= 0) & (column >= 0) & (row < height) & (column < width)
            near = planes, np.clip(row, 0, height - 1).astype(int), np.clip(column, 0, width - 1).astype(int)
            index = np.ravel_multi_index(near, (images * parts, height, width))
            found = pixels.reshape(-1, channels).take(index, axis=0)
            samples += found * np.where(counts, share, 0)[..., np.newaxis]
        return samples


@operator("DeformableConvolution", opset=1)
class DeformableConvolution1(DeformableBase):
    """A 2-D convolution whose taps are moved, for each output, by offsets from an input. See DeformableBase.

    Source: DeformableConvolution-1
    """

    arguments = (
        "data deformable_values:offsets filters strides pads_begin pads_end dilations auto_pad= group=1 "
        "deformable_group=1"
    )

    def infer(self, data: TensorType, offsets: TensorType, filters: TensorType) -> TensorType:
        return self.infer_outputs(data, offsets, filters)


@operator("DeformableConvolution", opset=8)
class DeformableConvolution8(DeformableBase):
    """DeformableConvolution-1 with each sample multiplied by an optional mask [N, deformable_group * K, *windows].

    With ``bilinear_interpolation_pad``, positions less than a pixel outside of data are interpolated between data and
    zero.

    Source: DeformableConvolution-8
    """

    arguments = (
        "data offsets filters strides pads_begin pads_end dilations mask= auto_pad= group=1 "
        "deformable_group=1 bilinear_interpolation_pad="
    )
    bilinear_interpolation_pad: bool = attribute(default=False)

    def infer(
        self, data: TensorType, offsets: TensorType, filters: TensorType, mask: TensorType | None = None
    ) -> TensorType:
        return self.infer_outputs(data, offsets, filters, mask)
