"""Convolutions: plain, grouped, binary, transposed and deformable ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, as_dimension
from ovir.core.tensor_types import Outputs, TensorType, constant_type
from ovir.diagnostics.codes import NOT_SUPPORTED
from ovir.kernels.precision import compute_dtype, from_sums, sum_dtype
from ovir.kernels.windows import Window, box_taps, extent
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Between, by_input
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import SAME, SlidingWindowBase


class ConvolutionBase(SlidingWindowBase):
    """Base of all convolutions, with their types, and the number of spatial axes."""

    multiplied: ClassVar[tuple[str, ...]] = ("filters",)
    is_grouped: ClassVar[bool] = False
    """Whether the first axis of the filters is the groups of channels."""

    output_axes: ClassVar[tuple[int, ...]] = (0,)
    """The axes of the filters that become channels of the output."""

    def scale_axes(self, position: int, rank: int) -> tuple[int, ...] | None:
        return ((), self.output_axes)[position] if position < 2 else None

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension:
        return output.size() * self.shapes_of(inputs)["filters"].slice(self.is_grouped + 1).size()

    def least_sizes(self, inputs: Sequence[TensorType]) -> Mapping[int, int]:
        data, filters = inputs[0].shape, self.named(inputs)["filters"].shape
        if data.rank is None or filters.rank is None:
            return {}
        kernel = filters.slice(filters.rank - data.rank + 2)
        return self.window_sizes(kernel.to_tuple()) if kernel.is_static else {}

    def spatial_dims(
        self, data: PartialShape, filters: PartialShape, count: Dimension = UNKNOWN
    ) -> tuple[PartialShape, list[Dimension]] | None:
        """Return the spatial dimensions of data and filters, or None if neither the ranks nor their ``count`` nor the
        attributes tell how many there are."""
        first = 2 + self.is_grouped
        if data.rank is not None:
            axes = data.rank - 2
            if filters.rank is not None and filters.rank - first != axes:
                message = "data {} has {} spatial axes, but filters {} have {}"
                self.fail(message, data, axes, filters, filters.rank - first)
        elif filters.rank is not None:
            axes = filters.rank - first
        elif count.is_static:
            axes = count.length
        else:
            given = (self.strides, self.dilations, self.pads_begin, self.pads_end)
            axes = next((len(items) for items in given if items), 0)
        if not axes:
            return None
        return PartialShape([data[2 + axis] for axis in range(axes)]), [filters[first + axis] for axis in range(axes)]

    def grouped(self, filters: Array) -> Array:
        """Return the filters with an axis of groups in front."""
        return filters if self.is_grouped else filters[np.newaxis]

    def operands(self, data: Array, filters: Array) -> tuple[Array, Array]:
        """Return data as [images, groups, inputs, *spatial] for filters [groups, outputs, inputs, *kernel], and the
        filters, both in the type of the sums."""
        groups, _, depth, *_ = filters.shape
        images, _, *sizes = data.shape
        dtype = sum_dtype(data.dtype)
        return data.astype(dtype).reshape(images, groups, depth, *sizes), filters.astype(dtype)


def _takes(channels: str, filters: str) -> str:
    """Return what a convolution of 1 to 3 spatial axes takes."""
    data = "|".join(f"[N, {channels}, {axes}]" for axes in ("X", "Y, X", "Z, Y, X"))
    kernels = "|".join(f"[{filters}, {axes}]" for axes in ("U", "V, U", "W, V, U"))
    return f"data T{data}; filters T{kernels}; T numeric"


class ForwardConvolutionBase(ConvolutionBase):
    """Base of convolutions whose filters are [groups, outputs, inputs, *kernel] after ``grouped``."""

    leftovers = frozenset(("output_padding",))

    arguments = "data filters strides pads_begin pads_end dilations auto_pad="

    def infer(self, data: TensorType, filters: TensorType) -> Outputs:
        found = self.solved(data, filters)
        spatial = self.spatial_dims(data.shape, filters.shape)
        if spatial is not None:
            found.shapes["Windows"] = tuple(self.output_dims(*spatial))
        return found.outputs()

    def run(self, data: Array, filters: Array) -> Array:
        x, weights = self.operands(data, self.grouped(filters))
        images, groups, _, *sizes = x.shape
        _, outputs, _, *kernel = weights.shape
        self.require(0 not in kernel, "a filter of size {} has no elements", kernel)
        windows, counts = self.windows(sizes, kernel)
        sums = np.zeros((images, groups, outputs, *counts), x.dtype)
        for tap, chosen, positions in box_taps(windows, sizes, counts) if sums.size else ():
            sums[..., *chosen] += mixed_channels(weights[..., *tap], x[..., *positions])
        return from_sums(sums.reshape(images, groups * outputs, *counts), data.dtype)


def mixed_channels(weights: Array, data: Array) -> Array:
    """Return out[n, g, o, p] = sum over c of weights[g, o, c] * data[n, g, c, p], where p stands for all other axes."""
    *lead, channels = data.shape[:3]
    spatial = data.shape[3:]
    products = weights @ data.reshape(*lead, channels, prod(spatial))
    return products.reshape(*lead, weights.shape[1], *spatial)


@operator("Convolution", opset=1)
class Convolution(ForwardConvolutionBase):
    """out[n, o, p] = sum over c and k of filters[o, c, k] * data[n, c, p * strides + k * dilations - pads_begin].

    Data counts as zero outside its bounds. auto_pad same_upper and same_lower choose pads that give ceil(size / stride)
    windows, and valid means no pads; pads_begin and pads_end are then ignored. f16 and bf16 are summed in f32, integers
    wrap around.

    >>> ops.convolution([[[1.0, 2.0, 3.0]]], [[[1.0, -1.0]]], [1], [0], [0], [1])
    [[[-1. -1.]]]
    """

    takes = _takes("C", "O, C")
    gives = "T[N, O, Windows...]"


@operator("GroupConvolution", opset=1)
class GroupConvolution(ForwardConvolutionBase):
    """A Convolution for each group of channels, with concatenated results.

    out[n, g*O + o] is the Convolution of data[n, g*C : (g + 1)*C] and filters[g, o]. Attributes are as in Convolution.

    >>> filters = np.float32([[[[1]]], [[[10]]]])
    >>> ops.group_convolution([[[1.0, 2.0], [3.0, 4.0]]], filters, [1], [0], [0], [1])
    [[[ 1. 2.] [30. 40.]]]
    """

    takes = _takes("G*C", "G, O, C")
    gives = "T[N, G*O, Windows...]"
    is_grouped = True
    output_axes = (0, 1)


@operator("BinaryConvolution", opset=1)
class BinaryConvolution(ForwardConvolutionBase):
    """A 2-D Convolution of bits that represent -1 and 1; mode xnor-popcount computes it as 2 * popcount(xnor) - bits.

    Data above zero is 1, all other data is -1; pad_value is the value of data outside its bounds.

    >>> image = np.float32([1, 0, 1, 0, 1, 1, 1, 1]).reshape(1, 8, 1, 1)
    >>> filters = ops.constant(np.ones((1, 8, 1, 1), np.uint8), "u1")
    >>> ops.binary_convolution(image, filters, [1, 1], [0, 0], [0, 0], [1, 1], "xnor-popcount", 0.0)
    [[[[4.]]]]
    """

    takes = "data T[N, C, Y, X]; filters u1[O, C, V, U]; T numeric"
    gives = "T[N, O, Windows...]"
    arguments = "data filters strides pads_begin pads_end dilations mode pad_value auto_pad="
    mode: str = attribute(default="xnor-popcount", choices=("xnor-popcount",), specified=True)
    pad_value: float = attribute(default=0.0, specified=True)

    multiplied = ()  # a bit of zero means -1

    def scale_axes(self, position: int, rank: int) -> None:
        return None  # the numbers are bits already

    def grouped(self, filters: Array) -> Array:
        self.require(
            filters.size % 8 == 0, "filters of shape {} do not fill whole bytes", filters.shape, code=NOT_SUPPORTED
        )
        # Elsewhere the first element of a u1 tensor is the highest bit of its byte; devices read filters the other way
        # round.
        bits = np.ascontiguousarray(filters).reshape(-1, 8)[:, ::-1].reshape(1, *filters.shape)
        return bits.astype(np.float32) * 2 - 1

    def run(self, data: Array, filters: Array) -> Array:
        # After subtracting the pad value everywhere, data outside the bounds is zero, as for every convolution.
        signs = np.where(data > 0, np.float32(1 - self.pad_value), np.float32(-1 - self.pad_value))
        sums = super().run(signs, filters)
        sums += self.pad_value * self.grouped(filters).sum(axis=(0, 2, 3, 4)).reshape(-1, 1, 1)
        return from_sums(sums, data.dtype)


class TransposedConvolutionBase(ConvolutionBase):
    """Base of transposed convolutions whose filters are [groups, inputs, outputs, *kernel] after ``grouped``."""

    arguments = "data filters strides output_shape= pads_begin= pads_end= dilations= auto_pad= output_padding="
    domains = by_input(output_shape=Between(1, 8))
    output_padding: tuple[int, ...] = attribute(default=())

    value_inputs = (2,)
    exact_inputs = (2,)

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension:
        shapes = self.shapes_of(inputs)
        return shapes["data"].size() * shapes["filters"].slice(self.is_grouped + 1).size()

    def least_sizes(self, inputs: Sequence[TensorType]) -> Mapping[int, int]:
        return dict.fromkeys(super().least_sizes(inputs), 2)  # the windows lie in the output

    # ----- inference

    def infer(self, data: TensorType, filters: TensorType, output_shape: TensorType | None = None) -> Outputs:
        found = self.solved(data, filters, output_shape)
        count = found["Axes"]
        spatial = self.spatial_dims(data.shape, filters.shape, count)
        if spatial is not None:
            axes = len(spatial[1])
            message = "output_shape must have {} items, one for each spatial axis, got {}"
            self.require(count.contains(axes), message, axes, count)
            found.shapes["Windows"] = tuple(self.spatial(*spatial, output_shape))
        return found.outputs()

    def spatial(self, data: PartialShape, kernel: Sequence[Dimension], sizes: TensorType | None) -> list[Dimension]:
        """Return the spatial dimensions of the output for those of data."""
        message = "output_padding {} must have {} items, one for each spatial axis"
        padding = self.output_padding or (0,) * len(kernel)
        self.require(len(padding) == len(kernel), message, list(padding), len(kernel))
        if sizes is not None:
            self.per_axis(len(kernel))  # for its checks
            if sizes.constant is not None:
                self.require(
                    (sizes.constant >= 0).all(), "output_shape {} has a negative size", sizes.constant.tolist()
                )
            return [UNKNOWN] * len(kernel) if sizes.value is None else sizes.value.dimensions()
        result = []
        begins, ends = self._pads_without_sizes(len(kernel))
        strides, dilations, _, _ = self.per_axis(len(kernel))
        for axis, dim in enumerate(data):
            stride, dilation = strides[axis], dilations[axis]
            more = padding[axis] - begins[axis] - ends[axis]
            least, most = kernel[axis].lower, kernel[axis].upper
            lower = max(dim.lower - 1, 0) * stride + extent(max(least, 1), dilation) + more
            upper = None
            if dim.upper is not None and most is not None:
                upper = max(dim.upper - 1, 0) * stride + extent(max(most, 1), dilation) + more
                message = (
                    "the output has no element on spatial axis {}: pads {} and {} are too "
                    "large for data {} with stride {} and kernel {}"
                )
                self.require(upper >= 0, message, axis, begins[axis], ends[axis], dim, stride, kernel[axis])
            same = stride == 1 and least == most == 1 and more == 0
            result.append(dim if same and dim.lower else Dimension(max(lower, 0), upper))
        return result

    def _pads_without_sizes(self, axes: int) -> tuple[Sequence[int], Sequence[int]]:
        _, _, begins, ends = self.per_axis(axes)
        none = (0,) * axes
        return (none, none) if self.auto_pad == "valid" or self.auto_pad in SAME else (begins, ends)

    # ----- the kernel

    def run(self, data: Array, filters: Array, output_shape: Array | None = None) -> Array:
        x, weights = self.operands(data, self.grouped(filters).swapaxes(1, 2))
        images, groups, _, *counts = x.shape
        _, outputs, _, *kernel = weights.shape
        windows, sizes = self.windows_of_output(counts, kernel, output_shape)
        sums = np.zeros((images, groups, outputs, *sizes), x.dtype)
        for tap, chosen, positions in box_taps(windows, sizes, counts):
            sums[..., *positions] += mixed_channels(weights[..., *tap], x[..., *chosen])
        return from_sums(sums.reshape(images, groups * outputs, *sizes), data.dtype)

    def windows_of_output(
        self, spatial: Sequence[int], kernel: Sequence[int], output_shape: Array | None
    ) -> tuple[list[Window], list[int]]:
        """Return the windows of the output, to each of which one element of the data is added, and the sizes of the
        output."""
        data, dims = PartialShape(spatial), [as_dimension(size) for size in kernel]
        given = None if output_shape is None else constant_type(output_shape)
        sizes = [dim.length for dim in self.spatial(data, dims, given)]
        strides, dilations, _, _ = self.per_axis(len(kernel))
        begins, _ = self._pads_without_sizes(len(kernel))
        if given is not None and self.auto_pad in SAME:
            # The specification recomputes explicit pads here too; every implementation takes them as they are.
            full = [dim.length for dim in self.spatial(data, dims, None)]
            totals = [max(size - wanted, 0) for size, wanted in zip(full, sizes, strict=True)]
            begins = [total - total // 2 if self.auto_pad == "same_upper" else total // 2 for total in totals]
        return [Window(*axis, 0) for axis in zip(kernel, strides, dilations, begins, strict=True)], sizes


@operator("ConvolutionBackpropData", opset=1)
class ConvolutionBackpropData(TransposedConvolutionBase):
    """out[n, o, i * strides + k * dilations - pads_begin] += filters[c, o, k] * data[n, c, i], starting from zero.

    ``output_shape`` gives the spatial sizes; without it a size is stride * (size - 1) + dilation * (kernel - 1) + 1 -
    pads_begin - pads_end + output_padding, with pads of zero for auto_pad valid and same. With ``output_shape``,
    auto_pad same computes the pads; same_upper puts the extra one of an odd total at the beginning. f16 and bf16 are
    summed in f32.

    >>> ops.convolution_backprop_data([[[1.0, 2.0]]], [[[1.0, 10.0]]], [2])
    [[[ 1. 10. 2. 20.]]]
    """

    takes = f"{_takes('C', 'C, O')}; ?output_shape integer[Axes]"
    gives = "T[N, O, Windows...]"
    output_axes = (1,)


@operator("GroupConvolutionBackpropData", opset=1)
class GroupConvolutionBackpropData(TransposedConvolutionBase):
    """A ConvolutionBackpropData for each group of channels, with concatenated results.

    >>> filters = np.float32([[[[1, 1]]], [[[10, 10]]]])
    >>> ops.group_convolution_backprop_data([[[1.0], [2.0]]], filters, [1])
    [[[ 1. 1.] [20. 20.]]]
    """

    takes = f"{_takes('G*C', 'G, C, O')}; ?output_shape integer[Axes]"
    gives = "T[N, G*O, Windows...]"
    is_grouped = True
    output_axes = (0, 2)


class DeformableBase(ConvolutionBase):
    """Base of 2-D convolutions whose taps are moved, for each output, by offsets from an input.

    Tap k reads, for output p, at p * strides + k * dilations - pads_begin + offset[k, p]. offsets have y before x for
    each tap; each of the ``deformable_group`` parts moves its share of data's channels. Data is interpolated bilinearly
    between pixels and is zero outside. For ``group`` see GroupConvolution; for strides, dilations and pads see
    Convolution. f16 and bf16 are summed in f32.
    """

    takes = (
        "data T[N, group*C, Y, X]; offsets T[N, 2*deformable_group*V*U, Rows, Columns]; filters T[group*O, C, V, U]; "
        "T numeric"
    )
    gives = "T[N, group*O, Rows, Columns]"
    copies = 18

    group: int = attribute(minimum=1)
    deformable_group: int = attribute(minimum=1)
    bilinear_interpolation_pad: bool = False
    """Whether positions less than a pixel outside of data are interpolated between data and zero."""

    # ----- inference

    def infer(self, *inputs: TensorType) -> Outputs:
        found = self.solved(*inputs)
        windows = PartialShape(self.output_dims(PartialShape([found["Y"], found["X"]]), [found["V"], found["U"]]))
        merged = windows.merged_with(PartialShape([found["Rows"], found["Columns"]]))
        message = "offsets {} must have the spatial sizes of the output, {}"
        found.sizes["Rows"], found.sizes["Columns"] = self.require_known(merged, message, inputs[1].shape, windows)
        return found.outputs()

    # ----- the kernel

    def run(self, data: Array, offsets: Array, filters: Array, mask: Array | None = None) -> Array:
        images, channels, *spatial = data.shape
        outputs, depth, *kernel = filters.shape
        windows, sizes = self.windows(spatial, kernel)
        groups, parts, taps, positions = self.group, self.deformable_group, prod(kernel), prod(sizes)
        dtype = compute_dtype(data.dtype)
        # The channels are the last axis: a sample, and everything that one output reads, lies in one piece.
        pixels = np.ascontiguousarray(data.transpose(0, 2, 3, 1), dtype).reshape(
            images, prod(spatial) * parts, channels // parts
        )
        by_tap = filters.reshape(groups, outputs // groups, depth, taps).transpose(0, 3, 2, 1).astype(dtype)
        weights = by_tap.reshape(groups, taps * depth, outputs // groups)
        unmoved: Array = np.empty((2, *sizes, *kernel), dtype)
        rows, columns = (w.positions(count) for w, count in zip(windows, sizes, strict=True))
        unmoved[0], unmoved[1] = rows[:, np.newaxis, :, np.newaxis], columns[:, np.newaxis]
        unmoved = unmoved.reshape(2, positions, taps, 1)
        moves = offsets.reshape(images, parts, taps, 2, positions).transpose(0, 3, 4, 2, 1)
        scales = None if mask is None else mask.reshape(images, parts, taps, positions, 1).transpose(0, 3, 2, 1, 4)
        sums = np.empty((images, positions, groups, outputs // groups), dtype)
        step = max(_SAMPLES // max(taps * channels, 1), 1)
        for n, start in np.ndindex(images, -(-positions // step)):
            block = slice(start * step, (start + 1) * step)
            places = unmoved[:, block] + moves[n, :, block].astype(dtype, copy=False)
            samples = self._sampled(pixels[n], spatial, places)
            if scales is not None:  # an infinite scale of a sample of 0 gives NaN
                samples *= scales[n, block].astype(dtype, copy=False)
            grouped = samples.reshape(-1, taps, groups, depth).transpose(2, 0, 1, 3).reshape(groups, -1, taps * depth)
            np.matmul(grouped, weights, out=sums[n, block].swapaxes(0, 1))
        return from_sums(sums.reshape(images, *sizes, outputs).transpose(0, 3, 1, 2), data.dtype)

    def _sampled(self, pixels: Array, spatial: Sequence[int], places: Array) -> Array:
        """Return pixels [height * width * parts, channels] around places[axis, position, tap, part], interpolated as
        [position, tap, part, channels]."""
        limits, parts = np.array(spatial).reshape(2, 1, 1, 1), places.shape[-1]
        is_padded = self.bilinear_interpolation_pad
        inside = ((places > -1 if is_padded else places >= 0) & (places < limits)).all(axis=0)
        places = np.where(inside, places, 0)  # NaN is outside, too
        low = np.floor(places)
        share, begin = (places - low) * inside, low.astype(np.intp)
        strides = np.array([spatial[1] * parts, parts]).reshape(2, 1, 1, 1)
        corners = []  # before and after on both axes: where pixels begin, and their weights
        for index, weight in ((begin, inside - share), (begin + 1, share)):
            if is_padded:  # otherwise the last row and column continue
                weight = np.where((index >= 0) & (index < limits), weight, 0)
            corners.append((np.clip(index, 0, limits - 1) * strides, weight))
        total = np.zeros((*places.shape[1:], pixels.shape[1]), pixels.dtype)
        for (row, y), (column, x) in product(corners, corners):
            samples = pixels.take(row[0] + column[1] + np.arange(parts), 0, mode="clip")
            samples *= (y[0] * x[1])[..., np.newaxis]
            total += samples
        return total


_SAMPLES = 1 << 20
"""The most samples that are held at a time, if one output does not have more."""


@operator("DeformableConvolution", opset=1)
class DeformableConvolution1(DeformableBase):
    """A 2-D convolution whose taps are moved, for each output, by offsets from an input. See DeformableBase."""

    arguments = (
        "data deformable_values:offsets filters strides pads_begin pads_end dilations auto_pad= group=1 "
        "deformable_group=1"
    )


@operator("DeformableConvolution", opset=8)
class DeformableConvolution8(DeformableBase):
    """DeformableConvolution-1 with each sample multiplied by an optional mask.

    With ``bilinear_interpolation_pad``, positions less than a pixel outside of data are interpolated between data and
    zero.

    >>> image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    >>> moves = np.full((1, 2, 3, 3), 0.5, np.float32)
    >>> ops.deformable_convolution(image, moves, np.ones((1, 1, 1, 1), np.float32), [1, 1], [0, 0], [0, 0], [1, 1])
    [[[[2. 3. 3.5] [5. 6. 6.5] [6.5 7.5 8. ]]]]
    """

    takes = f"{DeformableBase.takes}; ?mask numeric[N, deformable_group*V*U, Rows, Columns]"
    arguments = (
        "data offsets filters strides pads_begin pads_end dilations mask= auto_pad= group=1 "
        "deformable_group=1 bilinear_interpolation_pad="
    )
    bilinear_interpolation_pad: bool = attribute(default=False)
