"""PReLU, whose slope below zero is an input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import map_blocks
from ovir.kernels.fast_calls import Call, clip, maximum, minimum
from ovir.kernels.passes import Passes, Spare, number, run_passes
from ovir.ops.activation import ActivationBase
from ovir.ops.base.registry import operator


@operator("PReLU", opset=1, function_name="prelu")
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

    def run(self, data: Array, *parameters: Array | None, out: Array | None = None) -> Array:
        slope = aligned(parameters[0], data.ndim, data.shape)
        return map_blocks(partial(_run, leaky_passes(slope)), data, out, slope)


def _run(passes: Passes, x: Array, y: Array, slope: Array) -> None:
    run_passes(passes, x, slope, y)


def aligned(slope: Array | None, rank: int, shape: tuple[int, ...]) -> Array:
    """Return the slopes in a shape that NumPy broadcasts to the data."""
    assert slope is not None
    if slope.size == 1:
        return slope.reshape(())
    if rank > 1 and slope.shape == shape[1:2]:
        return slope.reshape(-1, *[1] * (rank - 2))
    return slope


def _slope_fits(slope: PartialShape, data: PartialShape) -> bool:
    if slope.rank is None or data.rank is None or slope.size().contains(1):
        return True
    if len(slope) == 1 and len(data) > 1 and slope[0].compatible(data[1]):
        return True
    pairs = zip(reversed(slope.dims), reversed(data.dims), strict=False)
    return len(slope) <= len(data) and all(s.contains(1) or s.compatible(d) for s, d in pairs)


# Selecting by a mask is many times slower in NumPy than any of these, so only slopes that need it use it.
def leaky_passes(slope: Array) -> Passes:
    values = slope.astype(np.float64)
    if not np.isfinite(values).all():
        return _leaky_selected
    if values.all():  # 0 * inf would occur otherwise
        if (values <= 1).all():
            return partial(_leaky_chosen, maximum)
        if (values >= 1).all():
            return partial(_leaky_chosen, minimum)
    return _leaky_sum


def _leaky_chosen(choose: Callable[..., object], x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    return [(np.multiply, (x, slope, y)), (choose, (x, y, y))]


def _leaky_sum(x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    above, zero = spare(), number(0, x)
    return [
        (clip, (x, number(-inf, x), zero, y)),
        (np.multiply, (y, slope, y)),
        (clip, (x, zero, number(inf, x), above)),
        (np.add, (y, above, y)),
    ]


def _leaky_selected(x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    return [(_select, (x, slope, y))]


def _select(x: Array, slope: Array, y: Array) -> None:
    np.copyto(y, np.where(x >= 0, x, x * slope))
