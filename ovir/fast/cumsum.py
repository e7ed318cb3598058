"""CumSum on planes: whole rows are added where NumPy would add up single elements."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, call_elementwise
from ovir.fast.registry import fast
from ovir.kernels.coalesce import memory_order
from ovir.ops.cumsum import CumSum

_LONG = 256
"""Elements of a row from which on an addition of rows is faster than ``np.add.accumulate``, which goes by elements."""


@fast(CumSum)
def cumsum(op: CumSum, binder: Binder, data: Array, axis: Array) -> bool:
    is_native = data.dtype.kind in "iu" or data.dtype in (np.float32, np.float64)
    if not is_native or not binder.is_constant(1) or not data.size or not data.ndim:
        return False
    along = op.normalize_axis(int(axis.item()), data.ndim, of=data.shape)
    x = np.moveaxis(data, along, 0)
    y = np.moveaxis(binder.output(order=memory_order(data)), along, 0)
    if op.reverse:
        x, y = x[::-1], y[::-1]
    if op.exclusive:
        binder.call(y[:1].fill, 0)
        x, y = x[:-1], y[1:]
    if y.strides[-1] == y.itemsize and y[:1].size >= _LONG:
        binder.call(np.copyto, y[0], x[0])
        for i in range(1, len(y)):
            call_elementwise(binder, np.add, y[i - 1], x[i], y[i])
    elif len(y):
        binder.call(np.add.accumulate, x, 0, y.dtype, y)
    return True
