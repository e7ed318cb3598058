"""AdaptiveAvgPool and AdaptiveMaxPool: pooling into a given number of windows that cover the data evenly."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, i64
from ovir.kernels.blocked import compute_dtype
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, operator
from ovir.types import PartialShape
from ovir.values import TensorType


class AdaptivePool(Operator):
    """Window i of n on an axis of size S goes from floor(i * S / n) to ceil((i + 1) * S / n).

    data is [N, C, *spatial] with one to three spatial axes, output_shape has the number of windows on each.
    """

    def pooled(self, data: TensorType, output_shape: TensorType) -> PartialShape:
        """The shape of the output."""
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

    def spans(self, data: Array, output_shape: Array) -> list[list[tuple[int, int]]]:
        """For each spatial axis the windows, from where to where."""
        counts = [int(count) for count in output_shape]
        message = "data {} cannot be pooled into {} windows"
        fits = len(counts) == data.ndim - 2 and min(counts) >= 0 and (0 not in data.shape[2:] or 0 in counts)
        self.require(fits, message, data.shape, counts)
        return [
            [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
            for size, count in zip(data.shape[2:], counts, strict=True)
        ]


@operator("AdaptiveAvgPool", opset=8)
class AdaptiveAvgPool(AdaptivePool):
    """The mean of each window.

    Source: AdaptiveAvgPool-8
    """

    def infer(self, data: TensorType, output_shape: TensorType) -> TensorType:
        return TensorType(data.element_type, self.pooled(data, output_shape))

    def run(self, data: Array, output_shape: Array) -> Array:
        means: Array = data.astype(compute_dtype(data.dtype), copy=False)
        windows = self.spans(data, output_shape)
        if all(len(spans) == 1 for spans in windows):
            of_planes: Array = means.reshape(*data.shape[:2], -1).mean(axis=2, dtype=means.dtype)
            return of_planes.astype(data.dtype, copy=False).reshape(*data.shape[:2], *[1] * len(windows))
        # The mean of a box is the mean over one axis after the other.
        for axis, spans in enumerate(windows, 2):
            pooled = np.empty((*means.shape[:axis], len(spans), *means.shape[axis + 1 :]), means.dtype)
            for i, (start, stop) in enumerate(spans):
                _part(means, axis, start, stop).mean(axis=axis, out=_part(pooled, axis, i, i + 1).squeeze(axis))
            means = pooled
        return means.astype(data.dtype, copy=False)


@operator("AdaptiveMaxPool", opset=8)
class AdaptiveMaxPool(AdaptivePool):
    """The largest element of each window, and its index in the spatial axes counted row by row; of equals the first.

    Source: AdaptiveMaxPool-8
    """

    index_element_type: ElementType = attribute(default=i64)

    def infer(self, data: TensorType, output_shape: TensorType) -> tuple[TensorType, TensorType]:
        self.require_index_type("index_element_type", self.index_element_type, known=True)
        shape = self.pooled(data, output_shape)
        return TensorType(data.element_type, shape), TensorType(self.index_element_type, shape)

    def run(self, data: Array, output_shape: Array) -> tuple[Array, Array]:
        largest = data.astype(compute_dtype(data.dtype), copy=False)
        places = np.arange(prod(data.shape[2:])).reshape(data.shape[2:])
        places = np.broadcast_to(places, data.shape)
        # The last axis first, so that of equal elements the first row by row is found.
        for axis, spans in reversed(list(enumerate(self.spans(data, output_shape), 2))):
            shape = (*largest.shape[:axis], len(spans), *largest.shape[axis + 1 :])
            values, indices = np.empty(shape, largest.dtype), np.empty(shape, places.dtype)
            for i, (start, stop) in enumerate(spans):
                window = _part(largest, axis, start, stop)
                first = window.argmax(axis=axis, keepdims=True)
                _part(values, axis, i, i + 1)[...] = np.take_along_axis(window, first, axis)
                _part(indices, axis, i, i + 1)[...] = np.take_along_axis(_part(places, axis, start, stop), first, axis)
            largest, places = values, indices
        return largest.astype(data.dtype, copy=False), places.astype(self.index_element_type.to_dtype(), copy=False)


def _part(array: Array, axis: int, start: int, stop: int) -> Array:
    before: tuple[Any, ...] = (slice(None),) * axis
    return array[(*before, slice(start, stop))]
