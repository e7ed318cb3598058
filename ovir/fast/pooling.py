"""Pooling of windows side by side."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, call_elementwise
from ovir.fast.base.pools import bind_division, bind_largest, bind_windows
from ovir.fast.registry import fast
from ovir.kernels.blocked import lowest_finite, native_dtype
from ovir.kernels.coalesce import memory_order
from ovir.ops.pooling import AvgPoolBase, MaxPool8, MaxPoolBase


@fast(MaxPoolBase)
def max_pool(op: MaxPoolBase, binder: Binder, *inputs: Array) -> bool:
    (data,) = inputs
    if native_dtype(data.dtype) != data.dtype or not data.size:
        return False
    lowest = np.array(lowest_finite(data.dtype), data.dtype)
    out = binder.output(order=memory_order(data))
    bind_windows(binder, np.fmax, data, op.geometry(data)[0], lowest, out)
    if data.dtype.kind == "f":
        call_elementwise(binder, np.fmax, out, lowest, out)
    return True


@fast(MaxPool8)
def max_pool8(op: MaxPool8, binder: Binder, *inputs: Array) -> bool:
    (data,) = inputs
    if not binder.is_wanted(1):
        binder.output(1)
        return max_pool(op, binder, data)
    windows, shape = op.geometry(data)
    lines = [window.positions(count) for window, count in zip(windows, shape[2:], strict=True)]
    places = bind_largest(binder, data, lines, np.array(lowest_finite(data.dtype), data.dtype))
    if places is not None:
        binder.call(op.count_from_axis, places.reshape(shape), data.shape)
    return places is not None


@fast(AvgPoolBase)
def avg_pool(op: AvgPoolBase, binder: Binder, *inputs: Array) -> bool:
    (data,) = inputs
    if data.dtype not in (np.float32, np.float64) or not data.size:
        return False
    windows, shape = op.geometry(data)
    out = binder.output(order=memory_order(data))
    bind_windows(binder, np.add, data, windows, np.zeros((), data.dtype), out)
    bind_division(binder, op.counts(data, windows, shape[2:]), out)
    return True
