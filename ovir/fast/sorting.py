"""TopK by selecting elements before they are sorted, and Bucketize by comparing with few boundaries."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import HEAVY, Binder, call_shares, is_native, parts_of
from ovir.fast.base.coalesce import coalesced, memory_order
from ovir.fast.registry import fast
from ovir.ops.sorting import Bucketize, TopK3


@fast(TopK3, in_f32=True)
def top_k(op: TopK3, binder: Binder, *inputs: Array) -> bool:
    data, k = inputs
    if not binder.is_constant(1) or not is_native(data) or not data.size or not k.item():
        return False
    axis = op.normalize_axis(op.axis, data.ndim)
    rows = np.moveaxis(data, axis, -1)
    keys = binder.scratch(rows.shape, data.dtype)
    outputs = [np.moveaxis(binder.output(index), axis, -1) for index in range(2)]
    begins = np.arange(prod(rows.shape[:-1])).reshape(*rows.shape[:-1], 1) * rows.shape[-1]
    if op.mode == "max":
        binder.call(_reversed(data), rows, keys)
    else:
        binder.call(np.copyto, keys, rows)

    def fill_from_keys() -> None:
        """Fill the outputs by sorting the keys in ascending order; the kernel knows the order of NaN."""
        values, indices = outputs
        if np.isnan(np.maximum.reduce(keys, None)):
            for target, array in zip(outputs, op.run(*inputs), strict=True):
                np.copyto(target, np.moveaxis(array, axis, -1))
            return
        order = _sorted_first(keys, values.shape[-1])
        if op.sort == "index":
            order.sort(-1)
        np.copyto(indices, order)
        taken = keys.reshape(-1).take(np.add(order, begins, order))
        np.copyto(values, _reversed(taken)(taken, taken) if op.mode == "max" else taken)

    binder.call(fill_from_keys)
    return True


def _reversed(data: Array) -> np.ufunc:
    """Return the function that reverses the order of all numbers of a type, and is its own inverse."""
    return np.negative if data.dtype.kind == "f" else np.invert


_MANY, _LONG = 1 << 10, 48
"""From this many elements on, in rows of at least ``_LONG``, selecting up to half of them and sorting these is faster
than sorting all: 8x128 takes 13 us instead of 9, 64x64 takes 20 instead of 39, 1000x1000 takes 2 ms instead of 42; yet
128x12 takes 20 us instead of 4."""


def _sorted_first(keys: Array, count: int) -> Array:
    """Return the indices of the ``count`` smallest elements of each row, in order; there is no NaN."""
    size = keys.shape[-1]
    if count == 1:
        first: Array = keys.argmin(axis=-1, keepdims=True)
        return first
    if keys.size < _MANY or size < _LONG or 2 * count > size or keys.itemsize == 1:
        return keys.argsort(-1, kind="stable")[..., :count]
    last = np.partition(keys, count - 1, axis=-1)[..., count - 1 : count]
    chosen = keys <= last
    if np.count_nonzero(chosen) > prod(keys.shape[:-1]) * count:  # too many elements equal the last one
        less, equal = keys < last, keys == last
        wanted = count - less.sum(axis=-1, keepdims=True)
        chosen = less | (equal & (equal.cumsum(axis=-1) <= wanted))
    positions: Array = np.flatnonzero(chosen.reshape(-1)).reshape(*keys.shape[:-1], count)
    selected = np.remainder(positions, keys.shape[-1], out=positions)
    order = np.argsort(np.take_along_axis(keys, selected, -1), axis=-1, kind="stable")
    return np.take_along_axis(selected, order, -1)


# --------------------------------------------------------------------------- Bucketize

_FEW_BOUNDARIES, _MANY_NUMBERS = 64, 1 << 12
"""With up to so many boundaries, comparing so many numbers with each is several times faster than searching."""


@fast(Bucketize, in_f32=True)
def bucketize(op: Bucketize, binder: Binder, data: Array, buckets: Array) -> bool:
    is_counted = len(buckets) <= _FEW_BOUNDARIES and data.size >= _MANY_NUMBERS and data.dtype == buckets.dtype
    if not is_counted or not binder.is_constant(1) or not is_native(data):
        return False
    views = coalesced(data, binder.output(order=memory_order(data)))
    parts = parts_of(views, max(min(data.size // HEAVY, threads()), 1))
    call_shares(binder, [[(_count_boundaries, (x, buckets, op.with_right_bound, out))] for x, out in parts])
    return True


def _count_boundaries(x: Array, buckets: Array, right: bool, out: Array) -> None:
    """Count the boundaries before each element; NaN lies after the last one, or before the first one if ``right``."""
    passed = np.zeros(x.shape, np.uint8)
    for bound in buckets:
        passed += x > bound if right else ~(x < bound)
    np.copyto(out, passed)
