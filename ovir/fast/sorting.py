"""TopK of a few elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.registry import fast
from ovir.ops.sorting import TopK3, sorted_first


@fast(TopK3)
def top_k(op: TopK3, binder: Binder, *inputs: Array) -> bool:
    data, k = inputs
    if not binder.is_constant(1) or data.dtype not in (np.float32, np.float64) or not data.size or not k.item():
        return False
    axis = op.normalize_axis(op.axis, data.ndim)
    rows = np.moveaxis(data, axis, -1)
    keys = binder.scratch(rows.shape, data.dtype)
    outputs = [np.moveaxis(binder.output(index), axis, -1) for index in range(2)]
    begins = np.arange(prod(rows.shape[:-1])).reshape(*rows.shape[:-1], 1) * rows.shape[-1]
    binder.call(np.negative if op.mode == "max" else np.positive, rows, keys)
    binder.call(_fill_from_keys, op, keys, begins, outputs, partial(op.run, *inputs), axis)
    return True


def _fill_from_keys(
    op: TopK3, keys: Array, begins: Array, outputs: list[Array], kernel: Callable[[], tuple[Array, Array]], axis: int
) -> None:
    """Fill the outputs by sorting ``keys`` in ascending order; the kernel knows the order of NaN."""
    values, indices = outputs
    if np.isnan(np.maximum.reduce(keys, None)):
        for target, array in zip(outputs, kernel(), strict=True):
            np.copyto(target, np.moveaxis(array, axis, -1))
        return
    order = sorted_first(keys, values.shape[-1])
    if op.sort == "index":
        order.sort(-1)
    np.copyto(indices, order)
    taken = keys.reshape(-1).take(np.add(order, begins, order))
    np.copyto(values, np.negative(taken, taken) if op.mode == "max" else taken)
