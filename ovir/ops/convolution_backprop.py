"""ConvolutionBackpropData and GroupConvolutionBackpropData: transposed convolutions.

Output o accumulates filters[k] * data[i] for all i and k with i * stride + k * dilation - pad_begin = o. Outputs that
are equal modulo the stride use the same taps, so each such residue is a convolution with step 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.base.binding import Binder
from ovir.fast.base.transposed import bind_transposed, tap_matrices
from ovir.kernels.correlation import Index, correlate
from ovir.kernels.windows import Window, extent
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Between, by_input
from ovir.ops.base.operator import Kernel
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import SAME
from ovir.ops.convolution import ConvolutionBase, converted, is_integer, product_dtype, spatial_dims

TapWeights = Callable[[tuple[Index, ...]], Array]
"""Maps the taps chosen on each axis to their weights [groups, outputs, inputs, taps]."""


class TransposedConvolutionBase(ConvolutionBase):
    """Base of transposed convolutions whose filters are [groups, inputs, outputs, *kernel] after ``grouped``."""

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

    def run(self, data: Array, filters: Array, output_shape: Array | None = None, *, out: Array | None = None) -> Array:
        filters = self.grouped(filters)
        return self._transposed(data, filters, tap_weights(filters, product_dtype(data, filters)), output_shape, out)

    def prepare(self, *constants: Array | None) -> Kernel | None:
        if constants[1] is None or is_integer(constants[1].dtype):
            return None  # which type can hold the sums of integers depends on the data
        grouped = self.grouped(constants[1])
        weights = tap_weights(grouped, product_dtype(grouped, grouped))

        def convolve(
            data: Array, filters: Array, output_shape: Array | None = None, *, out: Array | None = None
        ) -> Array:
            return self._transposed(data, grouped, weights, output_shape, out)

        return convolve

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        data, filters, *sizes = inputs
        if not all(map(binder.is_constant, range(1, len(inputs)))) or data.dtype not in (np.float32, np.float64):
            return False
        grouped = self.grouped(filters)
        _, depth, outputs, *kernel = grouped.shape
        begins, _ = self._geometry(data.shape[2:], kernel, sizes[0] if sizes else None)
        if not data.size or 0 in grouped.shape or 0 in binder.output_shape() or depth == outputs == 1:
            return False
        if not np.isfinite(filters).all():
            return False  # zeros around the data times infinity are NaN
        strides, dilations, _, _ = self.per_axis(len(kernel))
        windows = [Window(*axis, 0) for axis in zip(kernel, strides, dilations, begins, strict=True)]
        bind_transposed(binder, data, binder.prepared("taps", lambda: tap_matrices(grouped)), windows)
        return True

    def _transposed(
        self, data: Array, filters: Array, weights: TapWeights, output_shape: Array | None, out: Array | None
    ) -> Array:
        groups, depth, multiplier, *kernel = filters.shape
        message = "data has {:channel}, but the filters need {} (groups {}, input channels {})"
        self.require(data.shape[1] == groups * depth, message, data.shape[1], groups * depth, groups, depth)
        begins, sizes = self._geometry(data.shape[2:], kernel, output_shape)
        strides, dilations, _, _ = self.per_axis(len(kernel))
        shape = (data.shape[0], groups * multiplier, *sizes)
        dtype = weights(((),) * len(kernel)).dtype
        sums = out if out is not None and out.dtype == dtype else np.empty(shape, dtype)
        for residues in product(*(range(min(stride, size)) for stride, size in zip(strides, sizes, strict=True))):
            # The taps that reach this residue on each axis, and the positions they read for its first output.
            taps, starts = [], []
            for residue, stride, dilation, begin, count in zip(
                residues, strides, dilations, begins, kernel, strict=True
            ):
                reached = [(tap, residue + begin - tap * dilation) for tap in range(count)]
                reached = [(tap, at // stride) for tap, at in reached if at % stride == 0]
                taps.append(tuple(tap for tap, _ in reached))
                starts.append([at for _, at in reached])
            part = tuple(slice(residue, None, stride) for residue, stride in zip(residues, strides, strict=True))
            correlate(data, weights(tuple(taps)), list(product(*starts)), (1,) * len(kernel), sums[:, :, *part])
        return sums if sums is out else converted(sums, data.dtype, out)

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


def tap_weights(filters: Array, dtype: np.dtype[Any]) -> TapWeights:
    """Return a function that collects the weights of chosen taps of filters [groups, inputs, outputs, *kernel], each
    choice once."""
    swapped = filters.swapaxes(1, 2).astype(dtype)
    known: dict[tuple[Index, ...], Array] = {}

    def chosen(taps: tuple[Index, ...]) -> Array:
        if taps not in known:
            whole: tuple[Any, ...] = (slice(None),) * 3
            part = swapped[whole + np.ix_(*(np.asarray(axis, np.intp) for axis in taps))]
            known[taps] = np.ascontiguousarray(part).reshape(*part.shape[:3], prod(part.shape[3:]))
        return known[taps]

    return chosen
