"""Convolution, GroupConvolution (one to three spatial axes) and BinaryConvolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, u1
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import NOT_SUPPORTED
from ovir.kernels.precision import from_sums, sum_dtype
from ovir.kernels.windows import Window, box_taps
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import SlidingWindowBase, output_size


class ConvolutionBase(SlidingWindowBase):
    """Base of all convolutions: their types, and the number of spatial axes."""

    multiplied: ClassVar[tuple[str, ...]] = ("filters",)
    weights_from: ClassVar[int] = 1
    """The first axis of the filters that counts for the multiplications per element of the output, or of ``data`` in a
    transposed convolution."""

    output_axes: ClassVar[tuple[int, ...]] = (0,)
    """The axes of the filters that become channels of the output."""

    def scale_axes(self, position: int, rank: int) -> tuple[int, ...] | None:
        return ((), self.output_axes)[position] if position < 2 else None

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension:
        return output.size() * inputs["filters"].slice(self.weights_from).size()

    def merged_types(self, data: TensorType, filters: TensorType) -> ElementType:
        """Return the element type that data and filters share, which must be numeric."""
        element_type = self.merge_types(data.element_type, filters.element_type, names=("data", "filters"))
        self.require_numeric("data", element_type)
        return element_type

    def spatial_axes(self, data: PartialShape, filters: PartialShape, filter_axes: int) -> int | None:
        """Return the number of spatial axes, from the ranks or else from the attributes; None if neither tells.

        ``filter_axes`` is the number of filter axes that are not spatial.
        """
        self.require_rank("data", data, 3, 4, 5)
        self.require_rank("filters", filters, *(filter_axes + axes for axes in (1, 2, 3)))
        if data.rank is not None and filters.rank is not None:
            message = "data {} has {} spatial axes, but filters {} have {}"
            fits = data.rank - 2 == filters.rank - filter_axes
            self.require(fits, message, data, data.rank - 2, filters, filters.rank - filter_axes)
        if data.rank is not None:
            return data.rank - 2
        if filters.rank is not None:
            return filters.rank - filter_axes
        given = (self.strides, self.dilations, self.pads_begin, self.pads_end)
        return next((len(items) for items in given if items), None)

    def window_counts(self, sizes: Sequence[int], windows: Sequence[Window]) -> list[int]:
        """Return the number of windows on each spatial axis."""
        return [
            output_size(size, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end)
            for size, w in zip(sizes, windows, strict=True)
        ]

    def operands(self, data: Array, filters: Array) -> tuple[Array, Array]:
        """Return data as [images, groups, inputs, *spatial] for filters [groups, outputs, inputs, *kernel], and the
        filters, both in the type of the sums."""
        groups, _, depth, *_ = filters.shape
        images, channels, *sizes = data.shape
        message = "data has {:channel}, but the filters need {} (groups {}, input channels {})"
        self.require(channels == groups * depth, message, channels, groups * depth, groups, depth)
        dtype = sum_dtype(data.dtype)
        return data.astype(dtype).reshape(images, groups, depth, *sizes), filters.astype(dtype)

    def groups(self, data: PartialShape, filters: PartialShape, depth: Dimension) -> Dimension:
        """Return the number of groups: the first dimension of the filters, or data's channels divided by a
        filter's."""
        groups = filters[0]
        if not depth.is_static or not depth.length:
            return groups
        counted = data[1].exact_div(depth.length)
        merged = None if counted is None else groups.merged_with(counted)
        if merged is None:
            self.fail(
                "data {} has {:channel}, but filters {} need {:group} of {}",
                data,
                data[1],
                filters,
                groups,
                depth.length,
            )
        return merged


class ForwardConvolutionBase(ConvolutionBase):
    """Base of convolutions whose filters are [groups, outputs, inputs, *kernel] after ``grouped``."""

    arguments = "data filters strides pads_begin pads_end dilations auto_pad="

    def grouped(self, filters: Array) -> Array:
        raise NotImplementedError

    def infer_shape(self, data: PartialShape, filters: PartialShape) -> PartialShape:
        """Return the shape of the output for filters [outputs, inputs, *kernel]."""
        axes = self.spatial_axes(data, filters, 2)
        if axes is None:
            return PartialShape(None)
        self.merge_dims("channels", data=(data, 1), filters=(filters, 1))
        return PartialShape([data[0], filters[0], *self.output_dims(data.slice(2), spatial_dims(filters, 2, axes))])

    def run(self, data: Array, filters: Array) -> Array:
        x, weights = self.operands(data, self.grouped(filters))
        images, groups, _, *sizes = x.shape
        _, outputs, _, *kernel = weights.shape
        self.require(0 not in kernel, "a filter of size {} has no elements", kernel)
        windows = self.windows(sizes, kernel)
        counts = self.window_counts(sizes, windows)
        sums = np.zeros((images, groups, outputs, *counts), x.dtype)
        for tap, chosen, positions in box_taps(windows, sizes, counts):
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

    data is [N, C_IN, *spatial], filters [C_OUT, C_IN, *kernel], out [N, C_OUT, *windows]; data counts as zero outside
    its bounds. auto_pad same_upper and same_lower choose pads that give ceil(size / stride) windows, and valid means no
    pads; pads_begin and pads_end are then ignored. Any numeric type is allowed; f16 and bf16 are summed in f32,
    integers wrap around.

    Source: Convolution-1
    """

    def infer(self, data: TensorType, filters: TensorType) -> TensorType:
        return TensorType(self.merged_types(data, filters), self.infer_shape(data.shape, filters.shape))

    def grouped(self, filters: Array) -> Array:
        return filters[np.newaxis]


@operator("GroupConvolution", opset=1)
class GroupConvolution(ForwardConvolutionBase):
    """A Convolution for each group of channels, with concatenated results.

    data is [N, GROUPS * C_IN, *spatial], filters [GROUPS, C_OUT, C_IN, *kernel], out [N, GROUPS * C_OUT, *windows].
    Attributes and types are as in Convolution.

    Source: GroupConvolution-1
    """

    weights_from = 2
    output_axes = (0, 1)

    def infer(self, data: TensorType, filters: TensorType) -> TensorType:
        element_type = self.merged_types(data, filters)
        axes = self.spatial_axes(data.shape, filters.shape, 3)
        if axes is None:
            return TensorType(element_type, PartialShape(None))
        groups = self.groups(data.shape, filters.shape, filters.shape[2])
        spatial = self.output_dims(data.shape.slice(2), spatial_dims(filters.shape, 3, axes))
        return TensorType(element_type, PartialShape([data.shape[0], groups * filters.shape[1], *spatial]))

    def grouped(self, filters: Array) -> Array:
        return filters


@operator("BinaryConvolution", opset=1)
class BinaryConvolution(ForwardConvolutionBase):
    """A 2-D Convolution of bits that represent -1 and 1; mode xnor-popcount computes it as 2 * popcount(xnor) - bits.

    Data above zero is 1, all other data is -1; pad_value is the value of data outside its bounds. filters are u1; the
    result has data's type.

    Source: BinaryConvolution-1
    """

    arguments = "data filters strides pads_begin pads_end dilations mode pad_value auto_pad="
    mode: str = attribute(default="xnor-popcount", choices=("xnor-popcount",), specified=True)
    pad_value: float = attribute(default=0.0, specified=True)

    multiplied = ()  # a bit of zero means -1

    def scale_axes(self, position: int, rank: int) -> None:
        return None  # the numbers are bits already

    def infer(self, data: TensorType, filters: TensorType) -> TensorType:
        self.require_numeric("data", data.element_type)
        self.require_type("filters", filters.element_type, lambda t: t == u1, "u1")
        self.require_rank("data", data.shape, 4)
        self.require_rank("filters", filters.shape, 4)
        return TensorType(data.element_type, self.infer_shape(data.shape, filters.shape))

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


def spatial_dims(shape: PartialShape, first: int, axes: int) -> list[Dimension]:
    """Return the dimensions from ``first`` on; unknown ones for an unknown rank."""
    return [shape[first + axis] for axis in range(axes)]
