"""MaxPool and AvgPool: the largest or the mean element of windows that slide over the spatial axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ovir.ops.attributes import attribute
from ovir.ops.operator import Array, operator
from ovir.ops.spatial import SAME, UndilatedWindow, Window, extent, output_size
from ovir.ops.window_reduction import Padding, reduce_windows
from ovir.types import UNKNOWN, Dimension, ElementType, PartialShape, i64
from ovir.values import TensorType

_FLOOR_CEIL = ("floor", "ceil")
_TORCH = ("floor", "ceil", "ceil_torch")


class Pool(UndilatedWindow):
    """What MaxPool and AvgPool have in common. data is [N, C, *spatial] with one to three spatial axes.

    Of an axis of size S there are floor or ceil of (S + pads - extent) / stride, plus 1, windows, as ``rounding_type``
    says, where extent is (kernel - 1) * dilation + 1; ceil_torch is ceil without a window that starts in the end
    padding. auto_pad same_upper and same_lower choose the pads that give ceil(S / stride) windows, valid means none.
    """

    kernel: tuple[int, ...] = attribute(minimum=1)
    strides: tuple[int, ...] = attribute(minimum=1)
    pads_begin: tuple[int, ...] = attribute(default=(), minimum=0)
    pads_end: tuple[int, ...] = attribute(default=(), minimum=0)
    rounding_type: str = attribute(default="floor", choices=_FLOOR_CEIL)

    def pooled(self, data: PartialShape) -> PartialShape:
        """The shape of the output."""
        axes = len(self.kernel)
        self.require_rank("data", data, 3, 4, 5)
        self.require(
            data.rank in (None, axes + 2),
            "kernel {} has {} items, data {} has {} spatial axes",
            *(list(self.kernel), axes, data, (data.rank or 0) - 2),
        )
        self.require(len(self.strides) == axes, "strides {} must have {} items", list(self.strides), axes)
        for axis, name in enumerate(("batch", "channel")):
            self.require(data[axis] != Dimension(0, 0), "the {} dimension of data {} is 0", name, data)
        if data.rank is None:
            self.per_axis(axes)
            return PartialShape([UNKNOWN] * (axes + 2))
        return PartialShape([data[0], data[1], *self.output_dims(data.slice(2), self.kernel, self.rounding_type)])

    def geometry(self, data: Array) -> tuple[list[Window], tuple[int, ...]]:
        """The window on each spatial axis, and the shape of the output."""
        sizes = data.shape[2:]
        windows = self.windows(sizes, self.kernel)
        counts = (
            output_size(size, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end, self.rounding_type)
            for size, w in zip(sizes, windows, strict=True)
        )
        return windows, (*data.shape[:2], *counts)


# --------------------------------------------------------------------------- MaxPool


class MaxPoolBase(Pool):
    """The kernel of MaxPool. NaN is never the largest; a window with nothing in it gives the type's lowest number."""

    def largest(self, data: Array, out: Array | None) -> Array:
        windows, shape = self.geometry(data)
        lowest = lowest_of(data.dtype)
        computed = _COMPUTED_IN.get(data.dtype, data.dtype)
        result = out if out is not None and computed == data.dtype else np.empty(shape, computed)
        if np.issubdtype(computed, np.floating):
            # fmax is as fast as maximum, and passes NaN by.
            reduce_windows(data, windows, np.fmax, lowest, result, _raise_to(lowest))
        else:
            reduce_windows(data, windows, np.maximum, lowest, result, lambda block: None)
        return _as_type(result, data.dtype, out)


@operator("MaxPool", opset=1)
class MaxPool1(MaxPoolBase):
    """out[n, c, p] = max over k of data[n, c, p * strides + k - pads_begin]. Source: MaxPool-1."""

    def infer(self, data: TensorType) -> TensorType:
        return TensorType(data.element_type, self.pooled(data.shape))

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return self.largest(data, out)


@operator("MaxPool", opset=8)
class MaxPool8(MaxPoolBase):
    """out[n, c, p] = max over k of data[n, c, p * strides + k * dilations - pads_begin], and the index of that element.

    The index counts row by row over the dimensions of data from ``axis`` on; of equal elements the first is meant.
    Source: MaxPool-8.
    """

    dilations: tuple[int, ...] = attribute(default=(), minimum=1)
    index_element_type: ElementType = attribute(default=i64)
    axis: int = attribute(default=0)

    def infer(self, data: TensorType) -> tuple[TensorType, TensorType]:
        shape = self.pooled(data.shape)
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
        windows, shape = self.geometry(data)
        index_type = self.index_element_type.to_dtype()
        values, places = out or (np.empty(shape, data.dtype), np.empty(shape, index_type))
        _largest_with_places(data, windows, values, places)
        planes = np.arange(prod(shape[:2])).reshape(*shape[:2], *[1] * len(windows)) * prod(data.shape[2:])
        axis = self.normalize_axis(self.axis, data.ndim)
        np.add(places, planes, out=places, casting="unsafe")
        if axis > 0:
            np.remainder(places, prod(data.shape[axis:]), out=places, casting="unsafe")
        return values, places


@operator("MaxPool", opset=14)
class MaxPool14(MaxPool8):
    """MaxPool-8 with the rounding_type ceil_torch. Source: MaxPool-14."""

    rounding_type: str = attribute(default="floor", choices=_TORCH)


def _raise_to(lowest: Any) -> Callable[[Array], object]:
    """What gives a block of windows at least this value, in the place of NaN too."""

    def finish(block: Array) -> None:
        # Two arrays are compared several times faster than an array and a number.
        np.fmax(block, np.full(block.shape, lowest, block.dtype), out=block)

    return finish


def _largest_with_places(data: Array, windows: list[Window], values: Array, places: Array) -> None:
    """The largest element of each window, and its place in its plane, counted row by row; 0 where there is none."""
    sizes, counts = data.shape[2:], values.shape[2:]
    planes = prod(data.shape[:2])
    computed = _COMPUTED_IN.get(data.dtype, data.dtype)
    lowest = lowest_of(data.dtype)
    padding = Padding(sizes, counts, windows, lowest, np.dtype(computed))
    source, target = data.reshape(planes, *sizes), values.reshape(planes, *counts)
    target_places = places.reshape(planes, *counts)
    block = max((1 << 16) // prod(padding.shape), 1)
    buffer = padding.buffer(min(block, planes))
    for first in range(0, planes, block):
        rows = slice(first, first + block)
        largest = padding.around(source[rows], buffer)
        place = np.zeros(largest.shape, np.int64)
        # The last axis first, and each tap only if larger than those before: so the first of equals wins.
        for axis in reversed(range(len(windows))):
            largest, place = _largest_on_axis(
                largest, place, windows[axis], axis + 1, counts[axis], prod(sizes[axis + 1 :]), lowest
            )
        target[rows], target_places[rows] = largest, place


def _largest_on_axis(
    data: Array, place: Array, window: Window, axis: int, count: int, scale: int, lowest: Any
) -> tuple[Array, Array]:
    """Windows along one axis of padded data whose elements stand at ``place`` as far as later axes tell."""
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    largest = np.full(shape, lowest, data.dtype)
    found = np.zeros(shape, place.dtype)
    starts = np.arange(count).reshape(-1, *[1] * (data.ndim - axis - 1)) * window.stride - window.pad_begin
    for tap in range(window.kernel):
        offset = tap * window.dilation
        picked = (*[slice(None)] * axis, slice(offset, offset + (count - 1) * window.stride + 1, window.stride))
        candidate = data[picked]
        larger = candidate > largest
        np.copyto(largest, candidate, where=larger)
        np.copyto(found, place[picked] + (starts + offset) * scale, where=larger)
    return largest, found


# --------------------------------------------------------------------------- AvgPool


class AvgPoolBase(Pool):
    """out[n, c, p] = the mean over k of data[n, c, p * strides + k * dilations - pads_begin].

    With exclude-pad the mean is of the elements inside of the data. Without, padding counts as zeros, and so does what
    lies beyond it for the sake of rounding; but where there are no pads at all, only elements of the data count.
    A window with nothing in it gives 0. Integers are rounded to nearest, halves to even.
    """

    exclude_pad: bool = attribute(default=True, name="exclude-pad")

    def infer(self, data: TensorType) -> TensorType:
        shape = self.pooled(data.shape)
        if self.exclude_pad and self.auto_pad not in (*SAME, "valid"):
            self._require_reach(data.shape)
        return TensorType(data.element_type, shape)

    def _require_reach(self, data: PartialShape) -> None:
        _, dilations, begins, ends = self.per_axis(len(self.kernel))
        for axis, (kernel, dilation, begin, end) in enumerate(zip(self.kernel, dilations, begins, ends, strict=True)):
            covered = extent(kernel, dilation)
            self.require(
                not data[axis + 2].is_static or covered > max(begin, end),
                "on spatial axis {} pads {} and {} are not smaller than the window's {}: with exclude-pad there would "
                "be windows of nothing",
                *(axis, begin, end, covered),
            )

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        windows, shape = self.geometry(data)
        counts = self._counts(data, windows, shape[2:])
        if not np.issubdtype(data.dtype, np.floating) and data.dtype not in _COMPUTED_IN:
            sums = np.empty(shape, np.uint64 if data.dtype == np.uint64 else np.int64)
            reduce_windows(data, windows, np.add, 0, sums, lambda block: None)
            return _as_type(np.rint(sums / counts), data.dtype, out)
        computed = _COMPUTED_IN.get(data.dtype, data.dtype)
        means = out if out is not None and computed == data.dtype else np.empty(shape, computed)
        divisor = counts.astype(computed)
        reduce_windows(data, windows, np.add, 0, means, lambda block: np.divide(block, divisor, out=block))
        return _as_type(means, data.dtype, out)

    def _counts(self, data: Array, windows: list[Window], counts: tuple[int, ...]) -> Array:
        """How many elements the mean of each window is of, at least 1."""
        if not self.exclude_pad and any(w.pad_begin or w.pad_end for w in windows):
            return np.array(prod(self.kernel))
        inside = []
        for size, w, count in zip(data.shape[2:], windows, counts, strict=True):
            reached = np.add.outer(np.arange(count) * w.stride - w.pad_begin, np.arange(w.kernel) * w.dilation)
            inside.append(((reached >= 0) & (reached < size)).sum(axis=1))
        elements: Array = reduce(np.multiply.outer, inside)
        return np.maximum(elements, 1, out=elements)


@operator("AvgPool", opset=1)
class AvgPool1(AvgPoolBase):
    """The mean of windows without dilation. Source: AvgPool-1."""


@operator("AvgPool", opset=14)
class AvgPool14(AvgPool1):
    """AvgPool-1 with the rounding_type ceil_torch. Source: AvgPool-14."""

    rounding_type: str = attribute(default="floor", choices=_TORCH)


@operator("AvgPool", opset=16)
class AvgPool16(AvgPoolBase):
    """AvgPool-14 with dilations. Source: AvgPool-16."""

    dilations: tuple[int, ...] = attribute(default=(), minimum=1)
    rounding_type: str = attribute(default="floor", choices=_TORCH)


# --------------------------------------------------------------------------- types

_COMPUTED_IN = {np.dtype(np.float16): np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16): np.dtype(np.float32)}
"""Types that are computed in another one and rounded once."""


def lowest_of(dtype: np.dtype[Any]) -> Any:
    """The smallest finite number of a type."""
    if np.issubdtype(dtype, np.integer):
        return np.iinfo(dtype).min
    return ml_dtypes.finfo(dtype).min  # type: ignore[no-untyped-call]


def _as_type(result: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    if result.dtype == dtype:
        return result
    if out is None:
        return result.astype(dtype)
    np.copyto(out, result, casting="unsafe")
    return out
