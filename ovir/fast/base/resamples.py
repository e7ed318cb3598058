"""Bound forms of resizing: each axis is one ``take`` of all taps and one ``einsum`` that adds them up."""

from __future__ import annotations

from functools import partial, reduce
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.base.moves import bind_copy, bind_positions, memory_of
from ovir.kernels.coalesce import in_order, memory_order
from ovir.kernels.fast_calls import einsum
from ovir.kernels.resample import Method, Passes, Taps, cheapest_first

_LARGEST = 1 << 19
"""Elements of an output up to which one thread is enough."""
_TILE = 1 << 14
"""Elements of weights that are repeated for each element of the inner axes, so that loops are long."""


def bind_resampled(binder: Binder, method: Method, data: Array, passes: Passes) -> bool:
    """Bind the resizing of the axes of ``passes`` to output 0 and return whether that was done."""
    if not data.size or not 0 < prod(binder.output_shape()) <= _LARGEST:
        return False
    if method.mode == "nearest":
        return _bind_nearest(binder, data, passes)
    if data.dtype not in (np.float32, np.float64):
        return False
    order = memory_order(data)
    shape, back = in_order(data.shape, order)
    source = data.transpose(order)
    if not source.flags.c_contiguous:
        source = binder.scratch(shape, data.dtype)
        bind_copy(binder, data, source.transpose(back))
    out = binder.output(order=order).transpose(order)
    placed = cheapest_first(source, [(order.index(axis), taps) for axis, taps in passes])
    for number, (axis, taps) in enumerate(placed, 1):
        shape = (*source.shape[:axis], taps.length, *source.shape[axis + 1 :])
        target = out if number == len(placed) else binder.scratch(shape, data.dtype)
        _bind_axis(binder, source, axis, taps, target)
        source = target
    return True


def _bind_nearest(binder: Binder, data: Array, passes: Passes) -> bool:
    """Bind copies of elements or, where their positions are irregular, one ``take``."""
    memory, positions = memory_of(data)
    table = reduce(lambda table, item: table.take(item[1].index[0], item[0]), passes, positions)
    return bind_positions(binder, memory, table, np.zeros((), data.dtype), memory_order(data))


def _bind_axis(binder: Binder, source: Array, axis: int, taps: Taps, target: Array) -> None:
    """Bind the sums of weighted taps along one axis of a contiguous array."""
    before, size, inner = prod(source.shape[:axis]), source.shape[axis], prod(source.shape[axis + 1 :])
    count = len(taps.index)
    weights = taps.unit.astype(source.dtype)
    terms = binder.scratch((before, count, taps.length, inner), source.dtype)
    binder.call(source.reshape(before, size, inner).take, taps.index.astype(np.intp), 1, terms, "clip")
    if taps.length * inner <= _TILE:
        tile = np.repeat(weights, inner, axis=1)
        sums = partial(einsum, "akz,kz->az", out=target.reshape(before, -1))
        binder.call(sums, terms.reshape(before, count, -1), tile)
    else:
        sums = partial(einsum, "akil,ki->ail", out=target.reshape(before, taps.length, inner))
        binder.call(sums, terms, weights)
