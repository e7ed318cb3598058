"""PReLU, whose slope below zero is an input."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import map_blocks
from ovir.ops.activation import ActivationBase
from ovir.ops.base.registry import operator


@operator("PReLU", opset=1)
class PReLU(ActivationBase):
    """x for x >= 0, else slope * x.

    A 1-D slope with the length of the data's second dimension is one slope per channel; any other slope is broadcast to
    the data as in NumPy.

    Source: PReLU-1
    """

    def infer(self, data: TensorType, slope: TensorType) -> TensorType:
        if slope.element_type != data.element_type:
            self.require_real("slope", slope.element_type)
        self.require(
            _slope_fits(slope.shape, data.shape),
            "slope of shape {} does not match data of shape {}: expected one number per channel "
            "or a shape that can be broadcast",
            slope.shape,
            data.shape,
        )
        return self.output_type(data, data.element_type)

    def run(self, data: Array, slope: Array, *, out: Array | None = None) -> Array:
        if slope.size == 1:
            slope = slope.reshape(())
        elif data.ndim > 1 and slope.shape == data.shape[1:2]:
            slope = slope.reshape(-1, *[1] * (data.ndim - 2))
        return map_blocks(_leaky_kernel(slope), data, out, slope)


def _slope_fits(slope: PartialShape, data: PartialShape) -> bool:
    if slope.rank is None or data.rank is None or slope.size().contains(1):
        return True
    if len(slope) == 1 and len(data) > 1 and slope[0].compatible(data[1]):
        return True
    pairs = zip(reversed(slope.dims), reversed(data.dims), strict=False)
    return len(slope) <= len(data) and all(s.contains(1) or s.compatible(d) for s, d in pairs)


# Selecting by a mask is many times slower in NumPy than any of these, so only slopes that need it use it.
def _leaky_kernel(slope: Array) -> Callable[[Array, Array, Array], object]:
    values = slope.astype(np.float64)
    if not np.isfinite(values).all():
        return _leaky_selected
    if values.all():  # 0 * inf would occur otherwise
        if (values <= 1).all():
            return _leaky_maximum
        if (values >= 1).all():
            return _leaky_minimum
    return _leaky_sum


def _leaky_maximum(x: Array, y: Array, slope: Array) -> None:
    np.multiply(x, slope, out=y)
    np.maximum(x, y, out=y)


def _leaky_minimum(x: Array, y: Array, slope: Array) -> None:
    np.multiply(x, slope, out=y)
    np.minimum(x, y, out=y)


def _leaky_sum(x: Array, y: Array, slope: Array) -> None:
    np.clip(x, -inf, 0, out=y)
    np.multiply(y, slope, out=y)
    np.add(y, np.clip(x, 0, inf), out=y)


def _leaky_selected(x: Array, y: Array, slope: Array) -> None:
    np.copyto(y, np.where(x >= 0, x, x * slope))
