"""AdaptiveAvgPool and AdaptiveMaxPool: pooling into a given number of windows that cover the data evenly."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Final

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import compute_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_FEW: Final = 64
"""The number of windows along an axis up to which they are processed one by one."""


class AdaptivePoolBase(Operator):
    """Base of adaptive pooling: window i of n on an axis of size S covers floor(i * S / n) to ceil((i + 1) * S / n).

    data is [N, C, *spatial] with one to three spatial axes; output_shape holds the number of windows on each of them.
    """

    bounded = False

    domains = by_input(output_shape=SMALL)
    value_inputs = (1,)

    def pooled(self, data: TensorType, output_shape: TensorType) -> PartialShape:
        """Return the shape of the output."""
        self.require_real("data", data.element_type)
        self.require_index_type("output_shape", output_shape.element_type)
        self.require_rank("data", data.shape, 3, 4, 5)
        self.require_rank("output_shape", output_shape.shape, 1)
        if data.shape.rank is None:
            return PartialShape(None)
        axes = data.shape.rank - 2
        message = "output_shape {} must have an element for each of the {} spatial axes of data {}"
        self.require(output_shape.shape[0].contains(axes), message, output_shape.shape, axes, data.shape)
        if output_shape.value is None:
            return data.shape.slice(0, 2) + PartialShape([-1] * axes)
        return data.shape.slice(0, 2) + PartialShape(output_shape.value.dimensions())

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

    Source: AdaptiveAvgPool-8
    """

    def infer(self, data: TensorType, output_shape: TensorType) -> TensorType:
        return TensorType(data.element_type, self.pooled(data, output_shape))

    def run(self, data: Array, output_shape: Array) -> Array:
        means: Array = data.astype(compute_dtype(data.dtype), copy=False)
        windows = self.spans(data, output_shape)
        if all(len(spans) == 1 for spans in windows):
            flat = means.reshape(*data.shape[:2], prod(data.shape[2:]))
            of_planes: Array = flat.mean(axis=2, dtype=means.dtype)
            return of_planes.astype(data.dtype, copy=False).reshape(*data.shape[:2], *[1] * len(windows))
        # The mean of a box is the mean over one axis after another.
        for axis, spans in enumerate(windows, 2):
            means = _means(means, axis, spans)
        return means.astype(data.dtype, copy=False)


def _means(data: Array, axis: int, spans: Array) -> Array:
    """Return the means over parts of an axis."""
    pooled = np.empty((*data.shape[:axis], len(spans), *data.shape[axis + 1 :]), data.dtype)
    if not are_many(spans):
        for i, (start, stop) in enumerate(spans.tolist()):
            _part(data, axis, start, stop).mean(axis=axis, out=_part(pooled, axis, i, i + 1).squeeze(axis))
        return pooled
    for length, chosen, starts in _by_length(spans):
        total = data.take(starts, axis)
        for i in range(1, length):
            total += data.take(starts + i, axis)
        place: tuple[Any, ...] = (*[slice(None)] * axis, chosen)
        pooled[place] = total / length
    return pooled


def are_many(spans: Array) -> bool:
    """Return whether processing element i of all windows at a time beats processing window after window."""
    return len(spans) > _FEW and len(spans) > int(spans[0, 1])


def _by_length(spans: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield for each length of windows the length, the indices of the windows, and their starts."""
    lengths = spans[:, 1] - spans[:, 0]
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        yield length, chosen, spans[chosen, 0]


@operator("AdaptiveMaxPool", opset=8)
class AdaptiveMaxPool(AdaptivePoolBase):
    """The largest element of each window, and its index in the flattened spatial axes; the first of equal elements
    wins.

    Source: AdaptiveMaxPool-8
    """

    index_element_type: ElementType = attribute(default=i64)

    def infer(self, data: TensorType, output_shape: TensorType) -> tuple[TensorType, TensorType]:
        self.require_index_type("index_element_type", self.index_element_type, known=True)
        shape = self.pooled(data, output_shape)
        return TensorType(data.element_type, shape), TensorType(self.index_element_type, shape)

    def run(self, data: Array, output_shape: Array) -> tuple[Array, Array]:
        windows = self.spans(data, output_shape)
        planes = data.reshape(prod(data.shape[:2]), *data.shape[2:])
        shape = (len(planes), *map(len, windows))
        places = np.empty(shape, np.intp)
        if places.size:
            places = _largest_positions(planes.astype(compute_dtype(data.dtype), copy=False), windows)
        found = places.reshape(len(planes), prod(shape[1:]))
        largest = np.take_along_axis(planes.reshape(len(planes), prod(data.shape[2:])), found, 1)
        shape = (*data.shape[:2], *shape[1:])
        return largest.reshape(shape), places.reshape(shape).astype(self.index_element_type.to_dtype(), copy=False)


def _largest_positions(planes: Array, windows: list[Array]) -> Array:
    """Return the position in its flattened plane of the first largest element of each window."""
    places: Array | None = None
    for axis, spans in enumerate(windows, 1):
        size, at = planes.shape[axis], axis
        if places is not None:  # few elements are left: they are arranged so that slices along the axis are contiguous
            at = 0
            planes, places = (np.ascontiguousarray(np.moveaxis(array, axis, at)) for array in (planes, places))
        if are_many(spans):
            planes, places = _largest_of_many(planes, places, at, size, spans)
            planes, places = (np.moveaxis(array, at, axis) for array in (planes, places))
            continue
        largest, firsts = [], []
        for start, stop in spans.tolist():
            window = _part(planes, at, start, stop)
            top = np.maximum.reduce(window, at)
            equal = window == np.expand_dims(top, at)
            if np.isnan(top).any():
                equal |= np.isnan(window)
            if places is not None:
                own = places[start:stop] * size
                own += np.arange(start, stop).reshape(-1, *[1] * (own.ndim - 1))
                first = np.where(equal, own, np.iinfo(np.intp).max).min(0)
            elif equal.ndim == 2:
                first = start + equal.argmax(1)
            else:  # earlier positions get greater numbers of few bits, whose maximum is faster to find than argmax
                rank = np.arange(stop - start, 0, -1).astype(np.min_scalar_type(stop - start))
                rank = rank.reshape(-1, *[1] * (equal.ndim - 2))
                first = stop - np.maximum.reduce(equal * rank, 1).astype(np.intp)
            largest.append(top)
            firsts.append(first)
        planes, places = (np.moveaxis(np.stack(parts, at), at, axis) for parts in (largest, firsts))
    assert places is not None
    return places


def _largest_of_many(planes: Array, places: Array | None, axis: int, size: int, spans: Array) -> tuple[Array, Array]:
    """Return the largest elements of parts of an axis of ``size``, and their row-major positions."""
    shape = (*planes.shape[:axis], len(spans), *planes.shape[axis + 1 :])
    largest, firsts = np.empty(shape, planes.dtype), np.empty(shape, np.intp)

    def taken(positions: Array) -> tuple[Array, Array]:
        along = positions.reshape(-1, *[1] * (planes.ndim - axis - 1))
        values = planes.take(positions, axis)
        own = np.broadcast_to(along, values.shape) if places is None else places.take(positions, axis) * size + along
        return values, own

    for length, chosen, starts in _by_length(spans):
        top, first = taken(starts)
        for i in range(1, length):
            values, own = taken(starts + i)
            equal = (values == top) | (np.isnan(values) & np.isnan(top))
            greater = (values > top) | (np.isnan(values) & ~np.isnan(top))
            first = np.where(greater | (equal & (own < first)), own, first)
            top = np.maximum(top, values)
        place: tuple[Any, ...] = (*[slice(None)] * axis, chosen)
        largest[place], firsts[place] = top, first
    return largest, firsts


def _part(array: Array, axis: int, start: int, stop: int) -> Array:
    before: tuple[Any, ...] = (slice(None),) * axis
    return array[(*before, slice(start, stop))]
