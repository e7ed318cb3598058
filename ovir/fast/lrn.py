"""LRN in blocks that stay in a cache, except for the sums of windows."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, Call, call_elementwise
from ovir.fast.base.passes import call_passes
from ovir.fast.base.sums import scratch_like
from ovir.fast.registry import fast
from ovir.kernels.coalesce import in_order, memory_order
from ovir.kernels.passes import Spare, number
from ovir.ops.lrn import LRN


@fast(LRN)
def lrn(op: LRN, binder: Binder, data: Array, axes: Array) -> bool:
    if data.dtype not in (np.float32, np.float64) or not data.size or not data.ndim or not binder.is_constant(1):
        return False
    along = op.axes(axes, data.ndim)
    total = scratch_like(binder, data)
    call_elementwise(binder, np.square, data, total)
    for axis in along:
        _bind_window_sums(binder, total, axis, min((op.size - 1) // 2, data.shape[axis]))
    factor = op.alpha / float(op.size) ** len(along)

    def passes(x: Array, total: Array, y: Array, spare: Spare) -> list[Call]:
        return [
            (np.multiply, (total, number(factor, x), y)),
            (np.add, (y, number(op.bias, x), y)),
            (_raise, (y, op.beta)),
            (np.divide, (x, y, y)),
        ]

    call_passes(binder, passes, data, total, binder.output(order=memory_order(data)))
    return True


def _raise(x: Array, exponent: float) -> None:
    """Raise x to a power, in place."""
    if exponent == 0.75:  # the value in nearly every model; two roots are much faster than a power
        root = np.sqrt(x)
        np.multiply(root, np.sqrt(root, out=x), out=x)
    else:
        np.power(x, exponent, out=x)


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
