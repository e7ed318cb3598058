"""MaxPool, AvgPool and their adaptive forms: the largest or the mean element of windows along the spatial axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, unknown_sizes
from ovir.core.tensor_types import Outputs, TensorType
from ovir.kernels.precision import compute_dtype, lowest_finite, native_dtype, rounded, sum_dtype
from ovir.kernels.windows import Window, box_taps, extent, reduced_windows
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import SAME, UndilatedWindowBase

_FLOOR_CEIL = ("floor", "ceil")
_TORCH = ("floor", "ceil", "ceil_torch")


class PoolBase(UndilatedWindowBase):
    """Base of MaxPool and AvgPool. data is [N, C, *spatial] with one to three spatial axes.

    An axis of size S has floor or ceil of (S + pads - extent) / stride, plus 1, windows, depending on
    ``rounding_type``, where extent is (kernel - 1) * dilation + 1; ceil_torch is ceil without windows that start in the
    end padding. auto_pad same_upper and same_lower choose the pads that give ceil(S / stride) windows; valid means no
    pads.
    """

    kernel: tuple[int, ...] = attribute(minimum=1)
    strides: tuple[int, ...] = attribute(minimum=1)
    pads_begin: tuple[int, ...] = attribute(default=(), minimum=0, specified=True, assumed="0 for each axis")
    pads_end: tuple[int, ...] = attribute(default=(), minimum=0, specified=True, assumed="0 for each axis")
    rounding_type: str = attribute(default="floor", choices=_FLOOR_CEIL)

    def pooled(self, tensor: TensorType) -> PartialShape:
        """Return the shape of the output."""
        self.require_numeric("data", tensor, 3, 4, 5)
        data, axes = tensor.shape, len(self.kernel)
        message = "kernel {} has {} items, but data {} has {} spatial axes"
        self.require(data.rank in (None, axes + 2), message, list(self.kernel), axes, data, (data.rank or 0) - 2)
        self.require(len(self.strides) == axes, "strides {} must have {} items", list(self.strides), axes)
        self._require_images(data)
        if data.rank is None:
            self.per_axis(axes)
            return unknown_sizes(axes + 2)
        return PartialShape([data[0], data[1], *self.output_dims(data.slice(2), self.kernel, self.rounding_type)])

    def least_sizes(self, inputs: Sequence[TensorType]) -> Mapping[int, int]:
        return self.window_sizes(self.kernel)

    def reads(self, inputs: Sequence[TensorType], output: PartialShape) -> float:
        sizes = [inputs[0].shape[axis].upper for axis in range(2, len(self.kernel) + 2)]
        return prod(taps if size is None else min(taps, size) for taps, size in zip(self.kernel, sizes, strict=True))

    def temporary_bytes(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count the windows of growing length that long ones are combined of."""
        sizes = [tensor.shape.least_size for tensor in (*inputs, *outputs)]
        return super().temporary_bytes(inputs, outputs) + (max(self.kernel, default=0) > 4) * 5 * 4.0 * max(sizes)

    def _require_images(self, data: PartialShape) -> None:
        """Raise for a batch or channels of size 0, which OpenVINO refuses in inference and in runs."""
        for axis, name in enumerate(("batch", "channel")):
            self.require(data[axis] != Dimension(0, 0), "the {} dimension of data {} is 0", name, data)

    def geometry(self, data: Array) -> tuple[list[Window], tuple[int, ...]]:
        """Return the window on each spatial axis, without taps that meet no data, and the shape of the output."""
        if not data.size:
            self._require_images(PartialShape(data.shape))
        sizes = data.shape[2:]
        windows, counts = self.windows(sizes, self.kernel, self.rounding_type)
        trimmed = [w.trimmed(size, count) for w, size, count in zip(windows, sizes, counts, strict=True)]
        return trimmed, (*data.shape[:2], *counts)


# --------------------------------------------------------------------------- MaxPool


class MaxPoolBase(PoolBase):
    """Base of MaxPool. NaN is never the largest; an empty window gives the type's lowest number."""

    forwards_values = (0,)

    def largest(self, data: Array, windows: list[Window], shape: tuple[int, ...]) -> Array:
        """Return the largest element of each window, in a type that NumPy computes in."""
        largest, lowest = data.astype(native_dtype(data.dtype)), lowest_finite(data.dtype)
        for axis, window in enumerate(windows, 2):
            largest = reduced_windows(np.fmax, largest, axis, window, shape[axis], lowest)
        return largest


@operator("MaxPool", opset=1)
class MaxPool1(MaxPoolBase):
    """out[n, c, p] = max over k of data[n, c, p * strides + k - pads_begin]."""

    arguments = "data strides pads_begin pads_end kernel_shape:kernel rounding_type= auto_pad="

    def infer(self, data: TensorType) -> TensorType:
        return TensorType(data.element_type, self.pooled(data))

    def run(self, data: Array) -> Array:
        return self.largest(data, *self.geometry(data)).astype(data.dtype, copy=False)


@operator("MaxPool", opset=8)
class MaxPool8(MaxPoolBase):
    """out[n, c, p] = max over k of data[n, c, p * strides + k * dilations - pads_begin], and the index of that element.

    The index counts row by row over the dimensions of data from ``axis`` on; the first of equal elements wins.
    """

    arguments = (
        "data strides dilations pads_begin pads_end kernel_shape:kernel rounding_type= auto_pad= "
        "index_element_type= axis="
    )
    dilations: tuple[int, ...] = attribute(default=(), minimum=1)
    index_element_type: ElementType = attribute(default=i64)
    axis: int = attribute(default=0)

    def infer(self, data: TensorType) -> tuple[TensorType, TensorType]:
        self.require_index_type("index_element_type", self.index_element_type, known=True)
        shape = self.pooled(data)
        self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        return TensorType(data.element_type, shape), TensorType(self.index_element_type, shape)

    def run(self, data: Array) -> tuple[Array, Array]:
        windows, shape = self.geometry(data)
        largest = self.largest(data, windows, shape)
        places = self.places_from_axis(self._places(data, windows, largest), data.shape)
        return largest.astype(data.dtype, copy=False), places.astype(self.index_element_type.to_dtype())

    def _places(self, data: Array, windows: list[Window], largest: Array) -> Array:
        """Return the position in the flattened spatial axes of the largest element of each window: of the first one if
        several are equal, 0 if there is none."""
        sizes = data.shape[2:]
        numbers = np.arange(prod(sizes)).reshape(sizes)
        places = np.zeros(largest.shape, np.int64)
        is_element = largest > lowest_finite(data.dtype)
        for _, chosen, positions in reversed(list(box_taps(windows, sizes, largest.shape[2:]))):
            reaching = (..., *chosen)
            is_first = is_element[reaching] & (data[..., *positions] == largest[reaching])
            np.copyto(places[reaching], numbers[positions], where=is_first)
        return places

    def places_from_axis(self, places: Array, shape: tuple[int, ...]) -> Array:
        """Return positions in data of this shape from ``axis`` on, for positions [N, C, ...] in the spatial axes."""
        planes = np.arange(prod(shape[:2])).reshape(*shape[:2], *[1] * (len(shape) - 2))
        axis = self.normalize_axis(self.axis, len(shape))
        return np.asarray((planes * prod(shape[2:]) + places) % prod(shape[axis:]))


@operator("MaxPool", opset=14)
class MaxPool14(MaxPool8):
    """MaxPool-8 with the additional rounding_type ceil_torch.

    >>> ops.max_pool([[[1.0, 5.0, 3.0, 4.0]]], [2], [1], [0], [0], [2])
    [[[5. 4.]]]
    [[[1 3]]]
    """

    rounding_type: str = attribute(default="floor", choices=_TORCH)


# --------------------------------------------------------------------------- AvgPool


class AvgPoolBase(PoolBase):
    """Base of AvgPool: out[n, c, p] = the mean over k of data[n, c, p * strides + k * dilations - pads_begin].

    With exclude-pad the mean covers the elements inside of data. Otherwise padding counts as zeros, and so do positions
    beyond it that exist because of rounding; but without any pads only elements of data count. An empty window gives 0.
    Integers are rounded to nearest, ties to even.
    """

    exclude_pad: bool = attribute(default=True, name="exclude-pad", specified=True)

    def infer(self, data: TensorType) -> TensorType:
        shape = self.pooled(data)
        self._require_windows_of_data(data.shape)
        return TensorType(data.element_type, shape)

    def _require_windows_of_data(self, data: PartialShape) -> None:
        if not self.exclude_pad or self.auto_pad in (*SAME, "valid"):
            return
        _, dilations, begins, ends = self.per_axis(len(self.kernel))
        for axis, (kernel, dilation, begin, end) in enumerate(zip(self.kernel, dilations, begins, ends, strict=True)):
            covered = extent(kernel, dilation)
            message = (
                "pads {1} and {2} on spatial axis {0} must be smaller than the window's "
                "{3}: with exclude-pad a window would have no elements"
            )
            self.require(not data[axis + 2].is_static or covered > max(begin, end), message, axis, begin, end, covered)

    def run(self, data: Array) -> Array:
        self._require_windows_of_data(PartialShape(data.shape))
        windows, shape = self.geometry(data)
        sums = data.astype(np.uint64 if data.dtype == np.uint64 else sum_dtype(data.dtype))
        for axis, window in enumerate(windows, 2):
            sums = reduced_windows(np.add, sums, axis, window, shape[axis])
        means: Array = sums / self.counts(data, windows, shape[2:]).astype(compute_dtype(data.dtype))
        return rounded(means, data.dtype)

    def counts(self, data: Array, windows: list[Window], counts: tuple[int, ...]) -> Array:
        """Return the number of elements that the mean of each window covers, at least 1."""
        given, _ = self.windows(data.shape[2:], self.kernel)
        if not self.exclude_pad and any(w.pad_begin or w.pad_end for w in given):
            return np.array(prod(self.kernel))
        inside = []
        for size, w, count in zip(data.shape[2:], windows, counts, strict=True):
            reached = w.positions(count)
            inside.append(((reached >= 0) & (reached < size)).sum(axis=1))
        elements: Array = reduce(np.multiply.outer, inside)
        return np.maximum(elements, 1, out=elements)


@operator("AvgPool", opset=1)
class AvgPool1(AvgPoolBase):
    """The mean of each window, whose taps are adjacent."""

    arguments = "data_batch:data strides pads_begin pads_end kernel_shape:kernel exclude_pad rounding_type= auto_pad="


@operator("AvgPool", opset=14)
class AvgPool14(AvgPool1):
    """AvgPool-1 with the additional rounding_type ceil_torch."""

    rounding_type: str = attribute(default="floor", choices=_TORCH)


@operator("AvgPool", opset=16)
class AvgPool16(AvgPoolBase):
    """AvgPool-14 with ``dilations`` between the taps.

    >>> ops.avg_pool([[[1.0, 2.0, 3.0, 4.0]]], [2], [0], [0], [2], exclude_pad=True)
    [[[1.5 3.5]]]
    """

    arguments = (
        "data_batch:data strides pads_begin pads_end kernel_shape:kernel exclude_pad rounding_type= auto_pad= "
        "dilations="
    )
    dilations: tuple[int, ...] = attribute(default=(), minimum=1)
    rounding_type: str = attribute(default="floor", choices=_TORCH)


class AdaptivePoolBase(Operator):
    """Base of adaptive pooling: window i of n on an axis of size S covers floor(i * S / n) to ceil((i + 1) * S / n)."""

    takes = "data T[N, C, X]|[N, C, Y, X]|[N, C, Z, Y, X]; output_shape index[Axes]; T real"
    gives = "T[N, C, Windows...]"
    copies = 5

    bounded = False

    domains = by_input(output_shape=SMALL)
    value_inputs = (1,)

    def least_sizes(self, inputs: Sequence[TensorType]) -> Mapping[int, int]:
        counts = inputs[1].constant if len(inputs) > 1 else None
        return {} if counts is None else {axis: count + 1 for axis, count in enumerate(counts.ravel().tolist(), 2)}

    def infer(self, data: TensorType, output_shape: TensorType) -> Outputs:
        found = self.solved(data, output_shape)
        if data.shape.rank is not None:
            axes = data.shape.rank - 2
            message = "output_shape {} must have an element for each of the {} spatial axes of data {}"
            self.require(found["Axes"].contains(axes), message, output_shape.shape, axes, data.shape)
            known = output_shape.value
            found.shapes["Windows"] = (UNKNOWN,) * axes if known is None else tuple(known.dimensions())
        return found.outputs()

    def spans(self, data: Array, output_shape: Array) -> list[Array]:
        """Return the start and end of the windows on each spatial axis."""
        counts = [int(count) for count in output_shape]
        message = "data {} cannot be pooled into {} windows"
        fits = len(counts) == data.ndim - 2 and min(counts) >= 0 and (0 not in data.shape[2:] or 0 in counts)
        self.require(fits, message, data.shape, counts)
        return [_windows(size, count) for size, count in zip(data.shape[2:], counts, strict=True)]


def _windows(size: int, count: int) -> Array:
    starts = np.arange(count) * size // max(count, 1)
    stops = -(-np.arange(1, count + 1) * size // max(count, 1))
    return np.stack([starts, stops], 1)


@operator("AdaptiveAvgPool", opset=8)
class AdaptiveAvgPool(AdaptivePoolBase):
    """The mean of each window.

    >>> ops.adaptive_avg_pool([[[1.0, 2.0, 3.0, 4.0]]], [2])
    [[[1.5 3.5]]]
    """

    def run(self, data: Array, output_shape: Array) -> Array:
        if 0 in output_shape:
            return np.empty((*data.shape[:2], *output_shape), data.dtype)
        # The mean of a box is the mean over one axis after another; the order in memory decides how it is rounded.
        means = data.astype(compute_dtype(data.dtype), order="C")
        for axis, spans in enumerate(self.spans(data, output_shape), 2):
            x = np.moveaxis(means, axis, 0)
            pooled = np.empty((len(spans), *x.shape[1:]), x.dtype)
            for i, (start, stop) in enumerate(spans):
                pooled[i] = x[start:stop].mean(axis=0)
            means = np.moveaxis(pooled, 0, axis)
        return means.astype(data.dtype, copy=False)


@operator("AdaptiveMaxPool", opset=8)
class AdaptiveMaxPool(AdaptivePoolBase):
    """The largest element of each window, and its index in the flattened spatial axes; the first of equal elements
    wins.

    >>> ops.adaptive_max_pool([[[1.0, 5.0, 3.0, 4.0]]], [2])
    [[[5. 4.]]]
    [[[1 3]]]
    """

    takes = f"{AdaptivePoolBase.takes}; index_element_type index"
    gives = "T[N, C, Windows...]; indices index_element_type[N, C, Windows...]"
    index_element_type: ElementType = attribute(default=i64)

    def run(self, data: Array, output_shape: Array) -> tuple[Array, Array]:
        spatial = data.shape[2:]
        if 0 in output_shape:
            shape = (*data.shape[:2], *output_shape)
            return np.empty(shape, data.dtype), np.empty(shape, self.index_element_type.to_dtype())
        largest = data.astype(compute_dtype(data.dtype))
        places = np.broadcast_to(np.arange(prod(spatial)).reshape(spatial), data.shape)
        # The first of the largest of a box is in the first row that has one, so that the last axis is reduced first.
        for axis, spans in reversed(list(enumerate(self.spans(data, output_shape), 2))):
            x, x_places = np.moveaxis(largest, axis, 0), np.moveaxis(places, axis, 0)
            tops = np.empty((len(spans), *x.shape[1:]), x.dtype)
            top_places = np.empty(tops.shape, np.int64)
            for i, (start, stop) in enumerate(spans):
                first = start + x[start:stop].argmax(axis=0, keepdims=True)  # NaN counts as the largest
                tops[i] = np.take_along_axis(x, first, 0)[0]
                top_places[i] = np.take_along_axis(x_places, first, 0)[0]
            largest, places = np.moveaxis(tops, 0, axis), np.moveaxis(top_places, 0, axis)
        return largest.astype(data.dtype, copy=False), places.astype(self.index_element_type.to_dtype())
