"""SoftMax and LogSoftmax without the largest element of each slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import HEAVY, Binder, call_elementwise, call_shares, parts_of
from ovir.fast.base.sums import bind_sum, same_order, scratch_like
from ovir.fast.registry import fast
from ovir.kernels.coalesce import memory_order
from ovir.kernels.parallel import threads
from ovir.ops.softmax import LogSoftmax, SoftMaxBase


@fast(SoftMaxBase)
def softmax(op: SoftMaxBase, binder: Binder, *inputs: Array) -> bool:
    data = inputs[0]
    if data.dtype not in (np.float32, np.float64) or not data.size or not data.ndim:
        return False
    out = binder.output(order=memory_order(data))
    totals = bind_softmax(binder, data, out, op.normalize_axis(op.axis, data.ndim, of=data.shape))
    binder.call(redo_if_lost, totals, op.run, inputs, out)
    return True


@fast(LogSoftmax)
def log_softmax(op: LogSoftmax, binder: Binder, *inputs: Array) -> bool:
    data = inputs[0]
    if data.dtype not in (np.float32, np.float64) or not data.size or not data.ndim:
        return False
    axis = op.normalize_axis(op.axis, data.ndim, of=data.shape)
    y, largest = same_order(binder, data), scratch_like(binder, data, [axis])
    binder.call(np.maximum.reduce, data, axis, None, largest, True)
    call_elementwise(binder, np.subtract, data, largest, y)
    exponentials = scratch_like(binder, data)
    call_elementwise(binder, np.exp, y, exponentials, heavy=True)
    total = bind_sum(binder, exponentials, [axis])
    call_elementwise(binder, np.log, total, total)
    call_elementwise(binder, np.subtract, y, total, y)
    return True


def bind_softmax(binder: Binder, x: Array, y: Array, axis: int) -> Array:
    """Bind the softmax of x along an axis to y, and return the sums, which ``redo_if_lost`` must examine."""
    total = scratch_like(binder, x, [axis])
    parts = parts_of((x, y, total), max(min(x.size // HEAVY, total.size, threads()), 1))
    call_shares(binder, [[(exponentials, (source, target, axis))] for source, target, _ in parts])
    bind_sum(binder, y, [axis], out=total)
    call_elementwise(binder, np.divide, y, total, y)
    return total.transpose(memory_order(x)).reshape(-1)


def exponentials(x: Array, y: Array, axis: int) -> None:
    """Fill y with e^x, divided by a number for each slice along ``axis`` where it would be too large.

    Softmax does not need the largest element of each slice, which takes NumPy as long as all the rest, as long as the
    sums of the exponentials are ordinary numbers.
    """
    if np.maximum.reduce(x, None) < _LARGE:
        np.exp(x, y)
    else:  # large, or NaN
        np.subtract(x, np.maximum.reduce(x, axis, keepdims=True), y)
        np.exp(y, y)


def redo_if_lost(totals: Array, run: Callable[..., Array], inputs: Sequence[Array], out: Array) -> None:
    """Compute ``out`` again by ``run`` if a sum of exponentials is so small that some of them may have underflowed."""
    if not np.minimum.reduce(totals) > _LEAST:
        np.copyto(out, run(*inputs))


_LARGE, _LEAST = 60.0, 1e-20
"""Sums of many exponentials of ``_LARGE`` are finite; what underflows does not count beside ``_LEAST``."""
