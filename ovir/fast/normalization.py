"""Normalizations whose sums are products of BLAS, and SoftMax without the largest element of each slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Spare, maximum, number
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import (
    HEAVY,
    NATIVE_REALS,
    Binder,
    call_elementwise,
    call_shares,
    is_real,
    parts_of,
    tiled,
)
from ovir.fast.base.coalesce import in_order, memory_order
from ovir.fast.base.passes import call_passes
from ovir.fast.base.recorded import recorded
from ovir.fast.base.sums import bind_mean, bind_squares, bind_sum, divide_by_count, same_order, scratch_like
from ovir.fast.registry import fast, fast_kernel
from ovir.ops import normalization as ops

# --------------------------------------------------------------------------- exponentials


@fast(ops.SoftMaxBase, in_f32=True)
def softmax(op: ops.SoftMaxBase, binder: Binder, *inputs: Array) -> bool:
    data = inputs[0]
    if not is_real(data) or not data.size or not data.ndim:
        return False
    out = binder.output(order=memory_order(data))
    totals = bind_softmax(binder, data, out, op.normalize_axis(op.axis, data.ndim, of=data.shape))
    binder.call(redo_if_lost, totals, op.run, inputs, out)
    return True


@fast_kernel(ops.SoftMaxBase)
def few_exponentials(op: ops.SoftMaxBase) -> Callable[..., Array]:
    """Return a kernel of the same functions as ``run``, for a type that NumPy computes in and a known axis."""
    rank = op.output_shapes[0].rank if op.output_shapes else None
    if not rank or not NATIVE_REALS.issuperset(op.input_types):
        return op.run
    axis = op.normalize_axis(op.axis, rank)

    def run(data: Array) -> Array:
        if not data.size:
            return op.run(data)
        x = np.ascontiguousarray(data)
        powers: Array = np.subtract(x, np.maximum.reduce(x, axis, keepdims=True))
        np.exp(powers, powers)
        np.divide(powers, np.add.reduce(powers, axis, keepdims=True), powers)
        return powers

    return run


@fast(ops.LogSoftmax, in_f32=True)
def log_softmax(op: ops.LogSoftmax, binder: Binder, *inputs: Array) -> bool:
    data = inputs[0]
    if not is_real(data) or not data.size or not data.ndim:
        return False
    axis = op.normalize_axis(op.axis, data.ndim, of=data.shape)
    y, largest = same_order(binder, data), scratch_like(binder, data, [axis])
    binder.call(np.maximum.reduce, data, axis, None, largest, True)
    call_elementwise(binder, np.subtract, data, largest, y)
    powers = scratch_like(binder, data)
    call_elementwise(binder, np.exp, y, powers, heavy=True)
    total = bind_sum(binder, powers, [axis])
    call_elementwise(binder, np.log, total, total)
    call_elementwise(binder, np.subtract, y, total, y)
    return True


def bind_softmax(binder: Binder, x: Array, y: Array, axis: int) -> Array:
    """Bind the softmax of x along an axis to y, and return the sums, which ``redo_if_lost`` must examine."""
    total = scratch_like(binder, x, [axis])
    parts = parts_of((x, y, total), max(min(x.size // HEAVY, total.size, threads()), 1))
    call_shares(binder, [[(exponentials, (source, target, axis))] for source, target, _ in parts])
    bind_sum(binder, y, [axis], total)
    call_elementwise(binder, np.divide, y, total, y)
    return total.transpose(memory_order(x)).reshape(-1)


def exponentials(x: Array, y: Array, axis: int) -> None:
    """Fill y with e^x, divided by a number for each slice along ``axis`` where it would be too large.

    Softmax does not need the largest element of each slice, which takes NumPy as long as all the rest, as long as the
    sums of the exponentials are ordinary numbers.
    """
    if not np.maximum.reduce(x, None) < _LARGE:  # large, or NaN
        x = np.subtract(x, np.maximum.reduce(x, axis, keepdims=True), y)
    has_tiny = x.dtype == np.float32 and np.minimum.reduce(x, None) < _TINY
    np.exp(x, y)
    if has_tiny:
        np.add(y, _GRAIN, y)
        np.subtract(y, _GRAIN, y)


def redo_if_lost(totals: Array, run: Callable[..., Array], inputs: Sequence[Array], out: Array) -> None:
    """Compute ``out`` again by ``run`` if a sum of exponentials is so small that some of them may have underflowed."""
    if not np.minimum.reduce(totals) > _LEAST:
        np.copyto(out, run(*inputs))


_LARGE, _LEAST = 60.0, 1e-20
"""Sums of many exponentials of ``_LARGE`` are finite; what underflows does not count beside ``_LEAST``."""
_TINY, _GRAIN = np.float32(-82), np.float32(2.0**-95)
"""Exponentials of less than the first number, divided by their sum, may be subnormal, which Intel's processors multiply
slowly. Adding the second one rounds them to multiples of 2^-118: without that, swin_micro with its masks of -100 takes
1.6 times as long."""


# --------------------------------------------------------------------------- mean, variance and norm


@fast(ops.MVN2, ops.MVN6, in_f32=True)
def mvn(op: ops.MVN2 | ops.MVN6, binder: Binder, data: Array, *axes: Array) -> bool:
    along = op.along(data.ndim, *axes) if not axes or binder.is_constant(1) else []
    if not is_real(data) or not data.size or not along:
        return False
    out = same_order(binder, data)
    call_elementwise(binder, np.subtract, data, bind_mean(binder, data, along), out)
    if op.normalize_variance:
        call_elementwise(binder, np.divide, out, _bind_deviation(binder, out, along, op.eps, op.eps_mode), out)
    return True


@fast(ops.NormalizeL2, in_f32=True)
def normalize_l2(op: ops.NormalizeL2, binder: Binder, *inputs: Array) -> bool:
    data, axes = inputs
    along = op.axes(axes, data.ndim) if binder.is_constant(1) and data.ndim else []
    return _bind_divided(binder, data, along, np.add if op.eps_mode == "add" else maximum, op.eps)


@fast(ops.GRN, in_f32=True)
def grn(op: ops.GRN, binder: Binder, *inputs: Array) -> bool:
    return _bind_divided(binder, inputs[0], [1], np.add, op.bias)


def _bind_divided(
    binder: Binder, data: Array, axes: Sequence[int], combine: Callable[..., object], value: float
) -> bool:
    """Bind data divided by the root of its sum of squares along axes, which is combined with a value before."""
    if not is_real(data) or not data.size or not axes:
        return False
    norm = bind_squares(binder, data, axes)
    call_elementwise(binder, combine, norm, number(value, data), norm)
    call_elementwise(binder, np.sqrt, norm, norm)
    call_elementwise(binder, np.divide, data, norm, same_order(binder, data))
    return True


@fast(ops.GroupNormalization, in_f32=True)
def group_normalization(op: ops.GroupNormalization, binder: Binder, *inputs: Array) -> bool:
    data, scale, bias = inputs
    if not is_real(data) or not data.size:
        return False
    out = same_order(binder, data)
    groups = (data.shape[0], op.num_groups, data.shape[1] // op.num_groups, *data.shape[2:])
    x, y = data.reshape(groups), out.reshape(groups)  # views: an axis is split
    axes = range(2, x.ndim)
    # One number for each channel of each image: the groups of a channels-last image are too short for fast loops.
    numbers = binder.scratch(groups[:3], data.dtype)
    each = ops.per_channel(numbers.reshape(data.shape[:2]), data.ndim)
    mean = bind_mean(binder, x, axes)
    binder.call(np.copyto, numbers, mean.reshape(*groups[:2], 1))
    call_elementwise(binder, np.subtract, data, each, out)
    deviation = _bind_deviation(binder, y, axes, op.epsilon)
    # A deviation is 0 or between the roots of the least and the largest number, so that such quotients are ordinary.
    sizes, limit = np.abs(scale[scale != 0]), float(np.finfo(scale.dtype).max) ** 0.25
    is_ordinary = binder.is_constant(1) and 1 / limit < sizes.min(initial=1) <= sizes.max(initial=1) < limit
    factor = scale if is_ordinary else np.ones_like(scale)
    call_elementwise(binder, np.divide, factor.reshape(1, *groups[1:3]), deviation.reshape(*groups[:2], 1), numbers)
    call_elementwise(binder, np.multiply, out, each, out)
    if not is_ordinary:
        call_elementwise(binder, np.multiply, out, ops.per_channel(scale, data.ndim), out)
    shift = ops.per_channel(bias, data.ndim)
    call_elementwise(binder, np.add, out, tiled(shift, out) if binder.is_constant(2) else shift, out)
    return True


def _bind_deviation(
    binder: Binder, centered: Array, axes: Sequence[int], eps: float, eps_mode: str = "inside_sqrt"
) -> Array:
    """Bind the square root of the variance of centered data, with ``eps`` added inside or outside of the root."""
    deviation = divide_by_count(binder, bind_squares(binder, centered, axes), centered, axes)
    if eps_mode == "inside_sqrt":
        call_elementwise(binder, np.add, deviation, number(eps, centered), deviation)
    call_elementwise(binder, np.sqrt, deviation, deviation)
    if eps_mode == "outside_sqrt":
        call_elementwise(binder, np.add, deviation, number(eps, centered), deviation)
    return deviation


# --------------------------------------------------------------------------- neighboring elements


@fast(ops.LRN, in_f32=True)
def lrn(op: ops.LRN, binder: Binder, data: Array, axes: Array) -> bool:
    if not is_real(data) or not data.size or not data.ndim or not binder.is_constant(1):
        return False
    along = op.axes(axes, data.ndim)
    total = scratch_like(binder, data)
    call_elementwise(binder, np.square, data, total)
    for axis in along:
        _bind_window_sums(binder, total, axis, min((op.size - 1) // 2, data.shape[axis]))
    factor = op.alpha / float(op.size) ** len(along)
    # 0.75 is the value in nearly every model; two roots are much faster than a power, but differ at -inf
    has_roots = op.beta == 0.75 and factor >= 0 and op.bias >= 0

    def passes(x: Array, total: Array, y: Array, spare: Spare) -> list[Call]:
        return [
            (np.multiply, (total, number(factor, x), y)),
            (np.add, (y, number(op.bias, x), y)),
            (_raise_by_roots, (y,)) if has_roots else (np.power, (y, number(op.beta, x), y)),
            (np.divide, (x, y, y)),
        ]

    call_passes(binder, passes, data, total, binder.output(order=memory_order(data)))
    return True


def _raise_by_roots(x: Array) -> None:
    """Raise x to the power of 0.75, in place."""
    root = np.sqrt(x)
    np.multiply(root, np.sqrt(root, out=x), out=x)


def _bind_window_sums(binder: Binder, x: Array, axis: int, reach: int) -> None:
    """Bind the sums, along an axis, of each element and the ``reach`` elements on either side, which replace x."""
    shape = [size + 2 * reach if i == axis else size for i, size in enumerate(x.shape)]
    laid, back = in_order(shape, memory_order(x))
    padded = np.moveaxis(binder.kept(laid, x.dtype).transpose(back), axis, 0)
    count = x.shape[axis]
    binder.call(np.copyto, padded[reach : reach + count], np.moveaxis(x, axis, 0))
    for first in range(2 * reach + 1):
        if first != reach:
            call_elementwise(binder, np.add, x, np.moveaxis(padded[first : first + count], 0, axis), x)


# --------------------------------------------------------------------------- given statistics


@fast(ops.BatchNormInference1, ops.BatchNormInference5, in_f32=True)
def batch_norm_inference(op: ops.BatchNormInference5, binder: Binder, *inputs: Array) -> bool:
    position = 2 if isinstance(op, ops.BatchNormInference1) else 0
    data = inputs[position]
    others = [index for index in range(len(inputs)) if index != position]
    if not is_real(data) or not all(map(binder.is_constant, others)):
        return False
    gamma, beta, mean, variance = (ops.per_channel(inputs[index], data.ndim) for index in others)
    scale = gamma / np.sqrt(variance + data.dtype.type(op.epsilon))
    out = binder.overwrite(position) if binder.may_overwrite(position) else binder.output(order=memory_order(data))
    tiles = (tiled(array, data) for array in (mean, scale, beta))
    passes = recorded(lambda x, mean, scale, beta: (x - mean) * scale + beta)
    call_passes(binder, passes, data, *tiles, out, heavy=False)
    return True
