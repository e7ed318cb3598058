"""MaxPool, AvgPool and their adaptive forms: windows of one axis after the other, in any order of memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, call_elementwise, is_native, is_real
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.moves import cast
from ovir.fast.base.pools import bind_division, bind_largest, bind_spans, bind_windows
from ovir.fast.base.sums import scratch_like
from ovir.fast.registry import fast
from ovir.kernels.precision import fill_integers, lowest_finite
from ovir.ops import pooling as ops


@fast(ops.MaxPool1, in_f32=True)
def max_pool(op: ops.MaxPoolBase, binder: Binder, data: Array) -> bool:
    if not is_native(data) or not data.size:
        return False
    lowest = _lowest(op, data)
    out = binder.output(order=memory_order(data))
    windows, _ = op.geometry(data)
    bind_windows(binder, np.fmax, data, windows, lowest, out)
    if data.dtype.kind == "f":
        call_elementwise(binder, np.fmax, out, lowest, out)
    return True


@fast(ops.MaxPool8, in_f32=True)
def max_pool8(op: ops.MaxPool8, binder: Binder, data: Array) -> bool:
    if not binder.is_wanted(1):
        binder.output(1)
        return max_pool(op, binder, data)
    windows, shape = op.geometry(data)
    lines = [window.positions(count) for window, count in zip(windows, shape[2:], strict=True)]
    places = bind_largest(binder, data, lines, _lowest(op, data))
    if places is not None:
        binder.call(_count_from_axis, op, places.reshape(shape), data.shape)
    return places is not None


def _lowest(op: ops.MaxPoolBase, data: Array) -> Array:
    """Return the lowest number of the type of the tensor, which data may hold in f32."""
    return np.array(lowest_finite(op.input_types[0].to_dtype()), data.dtype)


def _count_from_axis(op: ops.MaxPool8, places: Array, shape: tuple[int, ...]) -> None:
    np.copyto(places, op.places_from_axis(places, shape), casting="unsafe")


@fast(ops.AvgPoolBase, in_f32=True)
def avg_pool(op: ops.AvgPoolBase, binder: Binder, data: Array) -> bool:
    if not is_native(data) or not data.size:
        return False
    windows, shape = op.geometry(data)
    out = binder.output(order=memory_order(data))
    if data.dtype.kind == "f":
        bind_windows(binder, np.add, data, windows, np.zeros((), data.dtype), out)
        bind_division(binder, op.counts(data, windows, shape[2:]), out)
        return True
    wide = scratch_like(binder, data, dtype=np.uint64 if data.dtype == np.uint64 else np.int64)
    sums, means = (scratch_like(binder, out, dtype=dtype) for dtype in (wide.dtype, np.float64))
    call_elementwise(binder, cast, data, wide)
    bind_windows(binder, np.add, wide, windows, np.zeros((), wide.dtype), sums)
    call_elementwise(binder, cast, sums, means)
    bind_division(binder, op.counts(data, windows, shape[2:]), means)
    call_elementwise(binder, np.rint, means, means)
    # In f64, a mean of 64-bit integers may be rounded to one that their type does not hold.
    call_elementwise(binder, fill_integers if data.dtype.itemsize == 8 else cast, means, out)
    return True


_MANY: Final = 64
"""More windows than this along an axis would take a call each, and are left to ``run``."""


@fast(ops.AdaptiveAvgPool, in_f32=True)
def adaptive_avg_pool(op: ops.AdaptiveAvgPool, binder: Binder, *inputs: Array) -> bool:
    return _bind_reduction(op, binder, np.add, *inputs)


@fast(ops.AdaptiveMaxPool, in_f32=True)
def adaptive_max_pool(op: ops.AdaptiveMaxPool, binder: Binder, *inputs: Array) -> bool:
    data, output_shape = inputs
    if not binder.is_constant(1):
        return False
    if not binder.is_wanted(1):
        binder.output(1)
        return _bind_reduction(op, binder, np.maximum, *inputs)
    lines = []
    for ends in op.spans(data, output_shape):
        # The last element of short windows is repeated, as the first of equal elements wins.
        taps = np.arange((ends[:, 1] - ends[:, 0]).max(initial=0))
        lines.append(np.minimum(np.add.outer(ends[:, 0], taps), ends[:, 1:] - 1))
    return bind_largest(binder, data, lines, None) is not None


def _bind_reduction(
    op: ops.AdaptivePoolBase, binder: Binder, combine: np.ufunc, data: Array, output_shape: Array
) -> bool:
    """Bind the reduction of all windows to output 0; return False if that does not pay."""
    if not is_real(data) or not data.size or not binder.is_constant(1):
        return False
    spans = op.spans(data, output_shape)
    if any(len(ends) > _MANY and len(ends) > int(ends[0, 1]) for ends in spans):
        return False
    bind_spans(binder, combine, data, spans, binder.output(order=memory_order(data)))
    return True
