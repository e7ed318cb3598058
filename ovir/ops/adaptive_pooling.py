"""AdaptiveAvgPool and AdaptiveMaxPool: pooling into a given number of windows that cover the data evenly."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import compute_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


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
        # The mean of a box is the mean over one axis after another.
        means = data.astype(compute_dtype(data.dtype))
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

    Source: AdaptiveMaxPool-8
    """

    index_element_type: ElementType = attribute(default=i64)

    def infer(self, data: TensorType, output_shape: TensorType) -> tuple[TensorType, TensorType]:
        self.require_index_type("index_element_type", self.index_element_type, known=True)
        shape = self.pooled(data, output_shape)
        return TensorType(data.element_type, shape), TensorType(self.index_element_type, shape)

    def run(self, data: Array, output_shape: Array) -> tuple[Array, Array]:
        spatial = data.shape[2:]
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
