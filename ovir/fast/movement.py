"""Concat, as copies."""

from __future__ import annotations

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.moves import bind_copy
from ovir.fast.registry import fast
from ovir.ops.movement import Concat


@fast(Concat)
def concat(op: Concat, binder: Binder, *inputs: Array) -> bool:
    out = binder.output(order=memory_order(max(inputs, key=lambda array: array.size)))
    axis = op.normalize_axis(op.axis, out.ndim)
    start = 0
    for array in inputs:
        stop = start + array.shape[axis]
        bind_copy(binder, array, out[(*[slice(None)] * axis, slice(start, stop))])
        start = stop
    return True
