"""Convolution, GroupConvolution (one to three spatial axes) and BinaryConvolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import Dimension
from ovir.core.element_types import ElementType, u1
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import NOT_SUPPORTED
from ovir.fast.base.binding import Binder
from ovir.fast.base.dense import bind_dense
from ovir.fast.base.images import (
    Axis,
    bind_depthwise,
    border_of,
    channels_last,
    channels_last_order,
    without_idle_taps,
)
from ovir.fast.base.tiles import whole_tiles
from ovir.kernels.correlation import Index, correlate
from ovir.kernels.windows import Window
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Kernel
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

    def grouped(self, filters: Array) -> Array:
        raise NotImplementedError

    def infer_shape(self, data: PartialShape, filters: PartialShape) -> PartialShape:
        """Return the shape of the output for filters [outputs, inputs, *kernel]."""
        axes = self.spatial_axes(data, filters, 2)
        if axes is None:
            return PartialShape(None)
        self.merge_dims("channels", data=(data, 1), filters=(filters, 1))
        return PartialShape([data[0], filters[0], *self.output_dims(data.slice(2), spatial_dims(filters, 2, axes))])

    def run(self, data: Array, filters: Array, *, out: Array | None = None) -> Array:
        filters = self.grouped(filters)
        computed = product_dtype(data, filters)
        return self._convolve(data, filters.shape[3:], packed(filters, computed), out)

    def prepare(self, *constants: Array | None) -> Kernel | None:
        if constants[1] is None or is_integer(constants[1].dtype):
            return None  # which type can hold the sums of integers depends on the data
        filters = self.grouped(constants[1])
        kernel, weights = filters.shape[3:], packed(filters, product_dtype(filters, filters))

        def convolve(data: Array, filters: Array, *, out: Array | None = None) -> Array:
            return self._convolve(data, kernel, weights, out)

        return convolve

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        data, filters = inputs
        if not binder.is_constant(1) or data.dtype not in (np.float32, np.float64) or not data.size:
            return False
        axes, taps = self._axes(data.shape, filters.shape)
        kernel: tuple[Any, ...] = ..., *taps
        grouped = self.grouped(filters)[kernel]
        _, outputs, depth, *_ = grouped.shape
        if grouped.size < filters.size and not np.isfinite(filters).all():
            return False  # zeros times infinity are NaN
        if 0 in grouped.shape or 0 in binder.output_shape() or any(a.pad_begin < 0 for a in axes):
            return False
        if depth == outputs == 1 < len(grouped):
            form = f"depthwise of taps {taps}"
            weights = binder.prepared(form, lambda: np.ascontiguousarray(np.moveaxis(grouped[:, 0, 0], 0, -1)))
            bind_depthwise(binder, data, weights, axes)
            return True
        out = binder.output(order=channels_last_order(data.ndim))
        if bind_dense(binder, data, grouped, axes, f"taps {taps}", out):
            binder.call(_redo_if_not_finite, channels_last(out).reshape(-1), self.run, inputs, out)
        return True

    def _axes(self, data: Sequence[int], filters: Sequence[int]) -> tuple[list[Axis], list[slice]]:
        """Return how windows move along each spatial axis, and the taps that read data and not only zeros around it."""
        spans = self.windows(data[2:], filters[len(filters) - len(data) + 2 :])
        counts = self._window_counts(data, spans)
        found = [
            without_idle_taps(Axis(w.kernel, w.stride, w.dilation, w.pad_begin, count), size)
            for w, count, size in zip(spans, counts, data[2:], strict=True)
        ]
        return [axis for axis, _ in found], [taps for _, taps in found]

    def _window_counts(self, data: Sequence[int], spans: Sequence[Window]) -> list[int]:
        return [
            output_size(size, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end)
            for size, w in zip(data[2:], spans, strict=True)
        ]

    def border(self, shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, int], ...] | None:
        data, filters = shapes
        axes, _ = self._axes(data, filters)
        tiled = whole_tiles(axes, filters if len(filters) > len(data) else (1, *filters))
        return None if any(a.pad_begin < 0 for a in axes) else border_of(data, tiled or axes)

    def _convolve(self, data: Array, kernel: Index, weights: Array, out: Array | None) -> Array:
        groups, multiplier, depth, _ = weights.shape
        message = "data has {:channel}, but the filters need {} (groups {}, input channels {})"
        self.require(data.shape[1] == groups * depth, message, data.shape[1], groups * depth, groups, depth)
        self.require(0 not in kernel, "a filter of size {} has no elements", list(kernel))
        windows = self.windows(data.shape[2:], kernel)
        sizes = self._window_counts(data.shape, windows)
        starts = list(product(*([tap * w.dilation - w.pad_begin for tap in range(w.kernel)] for w in windows)))
        shape = (data.shape[0], groups * multiplier, *sizes)
        return correlated(data, weights, starts, tuple(w.stride for w in windows), shape, out)


def _redo_if_not_finite(flat: Array, run: Callable[..., Array], inputs: Sequence[Array], out: Array) -> None:
    """Compute ``out``, whose elements are ``flat``, again by ``run`` if it has NaN or infinities, which may be wrong.

    BLAS adds squares in a quarter of the time of NumPy's sum. Where they overflow, the result is the same.
    """
    if not np.isfinite(np.dot(flat, flat)):
        np.copyto(out, run(*inputs))


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

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        return False

    def border(self, shapes: Sequence[tuple[int, ...]]) -> None:
        return None

    def grouped(self, filters: Array) -> Array:
        self.require(
            filters.size % 8 == 0, "filters of shape {} do not fill whole bytes", filters.shape, code=NOT_SUPPORTED
        )
        # Elsewhere the first element of a u1 tensor is the highest bit of its byte; devices read filters the other way
        # round.
        bits = np.ascontiguousarray(filters).reshape(-1, 8)[:, ::-1].reshape(1, *filters.shape)
        return bits.astype(np.float32) * 2 - 1

    def _convolve(self, data: Array, kernel: Index, weights: Array, out: Array | None) -> Array:
        # After subtracting the pad value everywhere, data outside the bounds is zero, as for every convolution.
        signs = np.where(data > 0, np.float32(1 - self.pad_value), np.float32(-1 - self.pad_value))
        sums = super()._convolve(signs, kernel, weights, None)
        sums += self.pad_value * weights.sum(axis=(0, 2, 3)).reshape(-1, 1, 1)
        return converted(sums, data.dtype, out)


def spatial_dims(shape: PartialShape, first: int, axes: int) -> list[Dimension]:
    """Return the dimensions from ``first`` on; unknown ones for an unknown rank."""
    return [shape[first + axis] for axis in range(axes)]


# --------------------------------------------------------------------------- types of the computation


def is_integer(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" or "int" in dtype.name  # NumPy does not know the kinds of ml_dtypes' types


def product_dtype(data: Array, filters: Array) -> np.dtype[Any]:
    """Return the type to compute in: one with fast matrix products that represents every sum of integers exactly."""
    if not is_integer(data.dtype):
        return np.dtype(np.float64 if data.dtype == np.float64 else np.float32)
    largest = [float(max(int(a.max()), -int(a.min()))) if a.size else 0.0 for a in (data, filters)]
    return np.dtype(np.float64 if prod(largest) * filters.size < 2**53 else np.int64)


def packed(filters: Array, dtype: np.dtype[Any]) -> Array:
    """Return filters [groups, outputs, inputs, *kernel] as the weights of ``correlate``."""
    return np.ascontiguousarray(filters, dtype).reshape(*filters.shape[:3], prod(filters.shape[3:]))


def correlated(
    data: Array, weights: Array, starts: Sequence[Index], step: Index, shape: Sequence[int], out: Array | None
) -> Array:
    """Call ``correlate`` and return an array of data's type and the given shape, which is ``out`` if given."""
    if out is not None and out.dtype == weights.dtype:
        correlate(data, weights, starts, step, out)
        return out
    sums = np.empty(shape, weights.dtype)
    correlate(data, weights, starts, step, sums)
    return converted(sums, data.dtype, out)


def converted(sums: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """Convert sums to the type of the data: floats are rounded once, integers wrap around."""
    if is_integer(dtype):
        sums = sums.astype(np.int64, copy=False)  # converting a float outside a narrow type's range is undefined
    if out is None:
        return sums.astype(dtype, copy=False)
    np.copyto(out, sums, casting="unsafe")
    return out
