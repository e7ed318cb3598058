"""MaxPool and AvgPool: the largest or the mean element of windows that slide over the spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels import half
from ovir.kernels.blocked import lowest_finite
from ovir.kernels.parallel import run_blocks
from ovir.kernels.window_reduction import Padding, reduce_windows
from ovir.kernels.windows import Window, extent
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator
from ovir.ops.base.spatial import SAME, UndilatedWindowBase, output_size

_FLOOR_CEIL = ("floor", "ceil")
_TORCH = ("floor", "ceil", "ceil_torch")
# Elements of padded planes whose positions are computed at a time.
_PLACES_BLOCK = 1 << 18


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
        self.require_numeric("data", tensor.element_type)
        data, axes = tensor.shape, len(self.kernel)
        self.require_rank("data", data, 3, 4, 5)
        message = "kernel {} has {} items, but data {} has {} spatial axes"
        self.require(data.rank in (None, axes + 2), message, list(self.kernel), axes, data, (data.rank or 0) - 2)
        self.require(len(self.strides) == axes, "strides {} must have {} items", list(self.strides), axes)
        self._require_images(data)
        if data.rank is None:
            self.per_axis(axes)
            return PartialShape([UNKNOWN] * (axes + 2))
        return PartialShape([data[0], data[1], *self.output_dims(data.slice(2), self.kernel, self.rounding_type)])

    def _require_images(self, data: PartialShape) -> None:
        """Raise for a batch or channels of size 0, which OpenVINO refuses in inference and in runs."""
        for axis, name in enumerate(("batch", "channel")):
            self.require(data[axis] != Dimension(0, 0), "the {} dimension of data {} is 0", name, data)

    def geometry(self, data: Array) -> tuple[list[Window], tuple[int, ...]]:
        """Return the window on each spatial axis, without taps that meet no data, and the shape of the output."""
        if not data.size:
            self._require_images(PartialShape(data.shape))
        sizes = data.shape[2:]
        windows = self.windows(sizes, self.kernel)
        counts = [
            output_size(size, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end, self.rounding_type)
            for size, w in zip(sizes, windows, strict=True)
        ]
        trimmed = [w.trimmed(size, count) for w, size, count in zip(windows, sizes, counts, strict=True)]
        return trimmed, (*data.shape[:2], *counts)


# --------------------------------------------------------------------------- MaxPool


class MaxPoolBase(PoolBase):
    """Base of MaxPool with its kernel. NaN is never the largest; an empty window gives the type's lowest number."""

    passes = (0,)

    def largest(self, data: Array, out: Array | None) -> Array:
        windows, shape = self.geometry(data)
        lowest = lowest_finite(data.dtype)
        computed = COMPUTED_IN.get(data.dtype, data.dtype)
        result = out if out is not None and computed == data.dtype else np.empty(shape, computed)
        if np.issubdtype(computed, np.floating):
            # fmax is as fast as maximum and ignores NaN.
            reduce_windows(data, windows, np.fmax, lowest, result, _raise_to(lowest))
        else:
            reduce_windows(data, windows, np.maximum, lowest, result, lambda block: None)
        return _as_type(result, data.dtype, out)


@operator("MaxPool", opset=1)
class MaxPool1(MaxPoolBase):
    """out[n, c, p] = max over k of data[n, c, p * strides + k - pads_begin].

    Source: MaxPool-1
    """

    def infer(self, data: TensorType) -> TensorType:
        return TensorType(data.element_type, self.pooled(data))

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return self.largest(data, out)


@operator("MaxPool", opset=8)
class MaxPool8(MaxPoolBase):
    """out[n, c, p] = max over k of data[n, c, p * strides + k * dilations - pads_begin], and the index of that element.

    The index counts row by row over the dimensions of data from ``axis`` on; the first of equal elements wins.

    Source: MaxPool-8
    """

    dilations: tuple[int, ...] = attribute(default=(), minimum=1)
    index_element_type: ElementType = attribute(default=i64)
    axis: int = attribute(default=0)

    def infer(self, data: TensorType) -> tuple[TensorType, TensorType]:
        shape = self.pooled(data)
        self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        return TensorType(data.element_type, shape), TensorType(self.index_element_type, shape)

    def run(
        self,
        data: Array,
        *,
        out: tuple[Array, Array] | None = None,
        wanted: tuple[bool, ...] = (True, True),
    ) -> tuple[Any, ...]:
        if not wanted[1]:
            return self.largest(data, out[0] if out else None), None
        values = self.largest(data, out[0] if out else None)
        places = out[1] if out else np.empty(values.shape, self.index_element_type.to_dtype())
        if values.size:
            _places(data, values, self.geometry(data)[0], places)
            self.count_from_axis(places, data.shape)
        return values, places

    def count_from_axis(self, places: Array, shape: tuple[int, ...]) -> None:
        """Convert positions in planes of data of this shape to positions in its dimensions from ``axis`` on, in
        place."""
        first = np.arange(prod(shape[:2])).reshape(*shape[:2], *[1] * (len(shape) - 2)) * prod(shape[2:])
        axis = self.normalize_axis(self.axis, len(shape))
        np.add(places, first, out=places, casting="unsafe")
        if axis > 0:
            np.remainder(places, prod(shape[axis:]), out=places, casting="unsafe")


@operator("MaxPool", opset=14)
class MaxPool14(MaxPool8):
    """MaxPool-8 with the additional rounding_type ceil_torch.

    Source: MaxPool-14
    """

    rounding_type: str = attribute(default="floor", choices=_TORCH)


def _raise_to(lowest: Any) -> Callable[[Array], object]:
    """Return a function that raises a block of windows to at least this value, replacing NaN too."""

    def finish(block: Array) -> None:
        if not block.min() >= lowest:
            np.fmax(block, block.dtype.type(lowest), out=block)

    return finish


_MANY_TAPS = 10  # times the sum of the sides of a window: then each axis by itself is faster than each tap


def _places(data: Array, values: Array, windows: list[Window], places: Array) -> None:
    """Return the position in its flattened plane of the first element of each window that equals ``values``.

    It is 0 if there is none, and also if the value is the lowest number of its type.
    """
    sizes, counts = data.shape[2:], values.shape[2:]
    planes = prod(data.shape[:2])
    dtype = COMPUTED_IN.get(data.dtype, data.dtype)
    source, target = data.reshape(planes, *sizes), values.reshape(planes, *counts)
    lowest = dtype.type(lowest_finite(data.dtype))
    padding = Padding(sizes, counts, windows, lowest, dtype)
    scales = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    starts = reduce(
        np.add.outer,
        (w.positions(count)[:, 0] * scale for w, count, scale in zip(windows, counts, scales, strict=True)),
    )
    taps = list(product(*(range(w.kernel) for w in windows)))
    # Earlier taps have greater numbers, and 0 means none: the first of equal elements has the greatest number.
    offsets = np.zeros(len(taps) + 1, np.int64)
    number_type = np.uint8 if len(taps) < 256 else np.uint32
    block = max(_PLACES_BLOCK // prod(padding.shape), 1)
    is_large = len(taps) > _MANY_TAPS * sum(w.kernel for w in windows)

    def find_by_axes(start: int, stop: int) -> None:
        for first in range(start, stop, block):
            rows = slice(first, min(first + block, stop))
            largest = target[rows].astype(dtype, copy=False)
            top, place = _first_largest(padding.around(source[rows]), windows, counts, scales)
            place += starts
            place *= (top == largest) & (largest > lowest)
            places.reshape(planes, *counts)[rows] = place

    def find(start: int, stop: int) -> None:
        for first in range(start, stop, block):
            rows = slice(first, min(first + block, stop))
            padded, largest = padding.around(source[rows]), target[rows].astype(dtype, copy=False)
            found = np.zeros(largest.shape, number_type)
            for number, tap in zip(range(len(taps), 0, -1), taps, strict=True):
                at = [t * w.dilation for t, w in zip(tap, windows, strict=True)]
                offsets[number] = sum(a * scale for a, scale in zip(at, scales, strict=True))
                picked = (
                    slice(a, a + (count - 1) * w.stride + 1, w.stride)
                    for a, w, count in zip(at, windows, counts, strict=True)
                )
                equal = padded[(slice(None), *picked)] == largest
                np.maximum(found, np.multiply(equal, number, dtype=number_type), out=found)
            place = offsets[found] + starts
            place *= (found > 0) & (largest > lowest)
            places.reshape(planes, *counts)[rows] = place

    run_blocks(find_by_axes if is_large else find, planes, -(-_PLACES_BLOCK // prod(padding.shape)))


def _first_largest(
    padded: Array, windows: list[Window], counts: Sequence[int], scales: Sequence[int]
) -> tuple[Array, Array]:
    """Return the largest element of each window, and its offset from the window's start, along one axis after another.

    Among equal elements, the first row that has one counts, and in it the first column. NaN counts as -inf.
    """
    if padded.dtype.kind == "f" and np.isnan(padded).any():
        padded = np.where(np.isnan(padded), padded.dtype.type(-np.inf), padded)
    top, offset = padded, np.zeros((1,) * padded.ndim, np.int64)
    for axis in reversed(range(len(windows))):
        w, along = windows[axis], axis + 1
        before: tuple[slice, ...] = (slice(None),) * along
        reach = (counts[axis] - 1) * w.stride + 1
        best = top[(*before, slice(0, reach, w.stride))].copy()
        shifted = np.broadcast_to(offset, top.shape)
        found = shifted[(*before, slice(0, reach, w.stride))].copy()
        for begin in range(w.dilation, w.kernel * w.dilation, w.dilation):
            part = (*before, slice(begin, begin + reach, w.stride))
            greater = top[part] > best
            np.copyto(best, top[part], where=greater)
            np.copyto(found, shifted[part] + begin * scales[axis], where=greater)
        top, offset = best, found
    return top, offset


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

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        self._require_windows_of_data(PartialShape(data.shape))
        windows, shape = self.geometry(data)
        counts = self.counts(data, windows, shape[2:])
        if not np.issubdtype(data.dtype, np.floating) and data.dtype not in COMPUTED_IN:
            sums = np.empty(shape, np.uint64 if data.dtype == np.uint64 else np.int64)
            reduce_windows(data, windows, np.add, 0, sums, lambda block: None)
            return _as_type(np.rint(sums / counts), data.dtype, out)
        computed = COMPUTED_IN.get(data.dtype, data.dtype)
        means = out if out is not None and computed == data.dtype else np.empty(shape, computed)
        divisor = counts.astype(computed)
        reduce_windows(data, windows, np.add, 0, means, lambda block: np.divide(block, divisor, out=block))
        return _as_type(means, data.dtype, out)

    def counts(self, data: Array, windows: list[Window], counts: tuple[int, ...]) -> Array:
        """Return the number of elements that the mean of each window covers, at least 1."""
        given = self.windows(data.shape[2:], self.kernel)
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
    """The mean of each window, whose taps are adjacent.

    Source: AvgPool-1
    """


@operator("AvgPool", opset=14)
class AvgPool14(AvgPool1):
    """AvgPool-1 with the additional rounding_type ceil_torch.

    Source: AvgPool-14
    """

    rounding_type: str = attribute(default="floor", choices=_TORCH)


@operator("AvgPool", opset=16)
class AvgPool16(AvgPoolBase):
    """AvgPool-14 with ``dilations`` between the taps.

    Source: AvgPool-16
    """

    dilations: tuple[int, ...] = attribute(default=(), minimum=1)
    rounding_type: str = attribute(default="floor", choices=_TORCH)


# --------------------------------------------------------------------------- types

COMPUTED_IN = {np.dtype(np.float16): np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16): np.dtype(np.float32)}
"""Types that are computed in another type and rounded once."""


def _as_type(result: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    if result.dtype == dtype:
        return result
    if out is None:
        return result.astype(dtype)
    half.copy(result, out)
    return out
