"""ConvolutionBackpropData and GroupConvolutionBackpropData: transposed convolutions.

They are convolutions with the roles of data and output exchanged: each element of the data is multiplied by the filter
and added to a window of the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import from_sums
from ovir.kernels.windows import Window, box_taps, extent
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Between, by_input
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import SAME
from ovir.ops.convolution import ConvolutionBase, mixed_channels, spatial_dims


class TransposedConvolutionBase(ConvolutionBase):
    """Base of transposed convolutions whose filters are [groups, inputs, outputs, *kernel] after ``grouped``."""

    arguments = "data filters strides output_shape= pads_begin= pads_end= dilations= auto_pad= output_padding="
    domains = by_input(output_shape=Between(1, 8))
    output_padding: tuple[int, ...] = attribute(default=())

    value_inputs = (2,)
    exact_inputs = (2,)

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension:
        return inputs["data"].size() * inputs["filters"].slice(self.weights_from).size()

    def grouped(self, filters: Array) -> Array:
        raise NotImplementedError

    # ----- inference

    def axes(self, data: PartialShape, filters: PartialShape, filter_axes: int, sizes: TensorType | None) -> int | None:
        """Return the number of spatial axes: from the ranks or ``output_shape``, else from the attributes."""
        axes = self.spatial_axes(data, filters, filter_axes)
        if sizes is None:
            return axes
        self.require_integers("output_shape", sizes.element_type)
        self.require_rank("output_shape", sizes.shape, 1)
        count = sizes.shape[0]
        if data.rank is None and filters.rank is None and count.is_static:
            axes = count.length
        message = "output_shape must have {} items, one for each spatial axis, got {}"
        self.require(axes is None or count.contains(axes), message, axes, count)
        return axes

    def spatial(self, data: PartialShape, kernel: Sequence[Dimension], sizes: TensorType | None) -> list[Dimension]:
        """Return the spatial dimensions of the output."""
        padding = self._output_padding(len(kernel))
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
        for axis, dim in enumerate(spatial_dims(data, 2, len(kernel))):
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

    def _output_padding(self, axes: int) -> Sequence[int]:
        given = self.output_padding
        self.require(
            len(given) in (0, axes),
            "output_padding {} must have {} items, one for each spatial axis",
            list(given),
            axes,
        )
        return given or (0,) * axes

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
        begins, sizes = self._geometry(spatial, kernel, output_shape)
        strides, dilations, _, _ = self.per_axis(len(kernel))
        return [Window(*axis, 0) for axis in zip(kernel, strides, dilations, begins, strict=True)], sizes

    def _geometry(
        self, spatial: Sequence[int], kernel: Sequence[int], output_shape: Array | None
    ) -> tuple[Sequence[int], list[int]]:
        """Return the pads at the beginning and the sizes of the output."""
        strides, dilations, begins, ends = self.per_axis(len(kernel))
        padding = self._output_padding(len(kernel))
        full = [
            max(size - 1, 0) * stride + extent(max(count, 1), dilation) + more
            for size, stride, count, dilation, more in zip(spatial, strides, kernel, dilations, padding, strict=True)
        ]
        if output_shape is None:
            begins, ends = self._pads_without_sizes(len(kernel))
            sizes = [size - begin - end for size, begin, end in zip(full, begins, ends, strict=True)]
        else:
            sizes = [int(size) for size in output_shape]
            # The specification recomputes explicit pads here too; every implementation takes them as they are.
            if self.auto_pad == "valid":
                begins = [0] * len(sizes)
            elif self.auto_pad in SAME:
                totals = [max(size - wanted, 0) for size, wanted in zip(full, sizes, strict=True)]
                begins = [total - total // 2 if self.auto_pad == "same_upper" else total // 2 for total in totals]
        self.require(min(sizes) >= 0, "the sizes of the output must not be negative, got {}", sizes)
        return begins, sizes


@operator("ConvolutionBackpropData", opset=1)
class ConvolutionBackpropData(TransposedConvolutionBase):
    """out[n, o, i * strides + k * dilations - pads_begin] += filters[c, o, k] * data[n, c, i], starting from zero.

    data is [N, C_IN, *spatial], filters [C_IN, C_OUT, *kernel], out [N, C_OUT, *sizes]. ``output_shape`` gives the
    sizes; without it a size is stride * (size - 1) + dilation * (kernel - 1) + 1 - pads_begin - pads_end +
    output_padding, with pads of zero for auto_pad valid and same. With ``output_shape``, auto_pad same computes the
    pads; same_upper puts the extra one of an odd total at the beginning. Any numeric type is allowed; f16 and bf16 are
    summed in f32.

    Source: ConvolutionBackpropData-1
    """

    output_axes = (1,)

    def infer(self, data: TensorType, filters: TensorType, output_shape: TensorType | None = None) -> TensorType:
        element_type = self.merged_types(data, filters)
        axes = self.axes(data.shape, filters.shape, 2, output_shape)
        if axes is None:
            return TensorType(element_type, PartialShape(None))
        self.merge_dims("channels", data=(data.shape, 1), filters=(filters.shape, 0))
        spatial = self.spatial(data.shape, spatial_dims(filters.shape, 2, axes), output_shape)
        return TensorType(element_type, PartialShape([data.shape[0], filters.shape[1], *spatial]))

    def grouped(self, filters: Array) -> Array:
        return filters[np.newaxis]


@operator("GroupConvolutionBackpropData", opset=1)
class GroupConvolutionBackpropData(TransposedConvolutionBase):
    """A ConvolutionBackpropData for each group of channels, with concatenated results.

    data is [N, GROUPS * C_IN, *spatial], filters [GROUPS, C_IN, C_OUT, *kernel], out [N, GROUPS * C_OUT, *sizes].

    Source: GroupConvolutionBackpropData-1
    """

    weights_from = 2
    output_axes = (0, 2)

    def infer(self, data: TensorType, filters: TensorType, output_shape: TensorType | None = None) -> TensorType:
        element_type = self.merged_types(data, filters)
        axes = self.axes(data.shape, filters.shape, 3, output_shape)
        if axes is None:
            return TensorType(element_type, PartialShape(None))
        groups = self.groups(data.shape, filters.shape, filters.shape[1])
        spatial = self.spatial(data.shape, spatial_dims(filters.shape, 3, axes), output_shape)
        return TensorType(element_type, PartialShape([data.shape[0], groups * filters.shape[2], *spatial]))

    def grouped(self, filters: Array) -> Array:
        return filters
