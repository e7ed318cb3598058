"""Normalizations as products with their factors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, call_elementwise, tiled
from ovir.fast.base.sums import bind_squares, bind_sum, same_order
from ovir.fast.registry import fast
from ovir.kernels.fast_calls import maximum
from ovir.kernels.passes import number
from ovir.ops.normalization import GRN, MVN2, MVN6, GroupNormalization, NormalizeL2


@fast(MVN2)
def mvn2(op: MVN2, binder: Binder, *inputs: Array) -> bool:
    (data,) = inputs
    return _bind_normalized(binder, data, op.along(data.ndim), op.normalize_variance, op.eps, True)


@fast(MVN6)
def mvn6(op: MVN6, binder: Binder, *inputs: Array) -> bool:
    data, axes = inputs
    if not binder.is_constant(1):
        return False
    inside = op.eps_mode == "inside_sqrt"
    along = op.axes(axes, data.ndim)
    return _bind_normalized(binder, data, along, op.normalize_variance, op.eps, inside)


@fast(NormalizeL2)
def normalize_l2(op: NormalizeL2, binder: Binder, *inputs: Array) -> bool:
    data, axes = inputs
    along = op.axes(axes, data.ndim) if binder.is_constant(1) and data.ndim else []
    if data.dtype not in (np.float32, np.float64) or not data.size or not along:
        return False
    norm = bind_squares(binder, data, along)
    limit = np.add if op.eps_mode == "add" else maximum
    call_elementwise(binder, limit, norm, number(op.eps, data), norm)
    call_elementwise(binder, np.sqrt, norm, norm)
    call_elementwise(binder, np.divide, data, norm, same_order(binder, data))
    return True


@fast(GRN)
def grn(op: GRN, binder: Binder, *inputs: Array) -> bool:
    (data,) = inputs
    if data.dtype not in (np.float32, np.float64) or not data.size:
        return False
    norm = bind_squares(binder, data, [1])
    call_elementwise(binder, np.add, norm, number(op.bias, data), norm)
    call_elementwise(binder, np.sqrt, norm, norm)
    call_elementwise(binder, np.divide, data, norm, same_order(binder, data))
    return True


@fast(GroupNormalization)
def group_normalization(op: GroupNormalization, binder: Binder, *inputs: Array) -> bool:
    data, scale, bias = inputs
    if data.dtype not in (np.float32, np.float64) or not data.size:
        return False
    out = same_order(binder, data)
    groups = (data.shape[0], op.num_groups, data.shape[1] // op.num_groups, *data.shape[2:])
    x, y = data.reshape(groups), out.reshape(groups)  # views: an axis is split
    axes = range(2, x.ndim)
    # One number for each channel of each image: the groups of a channels-last image are too short for fast loops.
    numbers = binder.scratch(groups[:3], data.dtype)
    each = _over_space(numbers.reshape(data.shape[:2]), data)
    mean = bind_sum(binder, x, axes, 1 / prod(groups[2:]))
    binder.call(np.copyto, numbers, mean.reshape(*groups[:2], 1))
    call_elementwise(binder, np.subtract, data, each, out)
    deviation = _bind_deviation(binder, y, axes, op.epsilon)
    call_elementwise(binder, np.divide, scale.reshape(1, *groups[1:3]), deviation.reshape(*groups[:2], 1), numbers)
    call_elementwise(binder, np.multiply, out, each, out)
    shift = _over_space(bias[np.newaxis], out)
    call_elementwise(binder, np.add, out, tiled(shift, out) if binder.is_constant(2) else shift, out)
    return True


def _over_space(per_channel: Array, data: Array) -> Array:
    return per_channel.reshape(*per_channel.shape, *[1] * (data.ndim - 2))


def _bind_normalized(
    binder: Binder, data: Array, axes: Sequence[int], variance: bool, eps: float, inside: bool
) -> bool:
    """Bind what ``normalized`` computes."""
    if data.dtype not in (np.float32, np.float64) or not data.size or not axes:
        return False
    out = same_order(binder, data)
    mean = bind_sum(binder, data, axes, 1 / prod(data.shape[axis] for axis in axes))
    call_elementwise(binder, np.subtract, data, mean, out)
    if variance:
        call_elementwise(binder, np.divide, out, _bind_deviation(binder, out, axes, eps, inside), out)
    return True


def _bind_deviation(binder: Binder, centred: Array, axes: Sequence[int], eps: float, inside: bool = True) -> Array:
    """Bind the square root of the variance of centred data, with ``eps`` added inside or outside of the root."""
    deviation = bind_squares(binder, centred, axes, 1 / prod(centred.shape[axis] for axis in axes))
    if inside:
        call_elementwise(binder, np.add, deviation, number(eps, centred), deviation)
    call_elementwise(binder, np.sqrt, deviation, deviation)
    if not inside:
        call_elementwise(binder, np.add, deviation, number(eps, centred), deviation)
    return deviation
