"""Sums along axes as products with a constant vector, which BLAS computes faster than NumPy adds up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import number
from ovir.fast.base.binder_protocol import Binder, call_elementwise
from ovir.fast.base.coalesce import in_order, is_dense, memory_order
from ovir.fast.base.products import bind_product

_CHUNK = 1024
"""Sums of this many elements are added up, so that rounding errors do not grow with the number of elements."""
_DOT = 32
"""Shorter rows are squared first, because each dot product costs a call: 1000 rows of 8 take 2.4 us instead of 8.3, and
of 64 take 9.9 instead of 7.8."""


def same_order(binder: Binder, data: Array) -> Array:
    """Return the array of output 0, of the shape and memory order of data, the input 0, which it replaces if it may."""
    return binder.overwrite(0) if binder.may_overwrite(0) else binder.output(order=memory_order(data))


def reduced_output(binder: Binder, data: Array, axes: Sequence[int]) -> Array:
    """Return the array of output 0, the result of a reduction, with size 1 along ``axes`` and the data's memory
    order."""
    order: Sequence[int] = memory_order(data)
    if len(binder.output_shape()) == data.ndim:
        return binder.output(order=order)
    left = [axis for axis in range(data.ndim) if axis not in axes]
    out = binder.output(order=[left.index(axis) for axis in order if axis in left])
    return np.expand_dims(out, tuple(axes))


def scratch_like(binder: Binder, data: Array, axes: Sequence[int] = (), dtype: Any = None) -> Array:
    """Return workspace of the shape and memory order of data, and of its type unless ``dtype`` is given, but of size 1
    along ``axes``."""
    shape, back = in_order([1 if i in axes else size for i, size in enumerate(data.shape)], memory_order(data))
    return binder.scratch(shape, dtype or data.dtype).transpose(back)


def bind_mean(binder: Binder, data: Array, axes: Sequence[int], out: Array | None = None) -> Array:
    """Bind the mean of data along ``axes``; return the same as ``bind_sum``."""
    return divide_by_count(binder, bind_sum(binder, data, axes, out), data, axes)


def divide_by_count(binder: Binder, total: Array, data: Array, axes: Sequence[int]) -> Array:
    """Bind the division of sums of data along ``axes`` by the number of terms, and return their array.

    Smaller terms would have a finite sum where ``run`` has an infinite one, and lose digits where they underflow.
    """
    count = prod(data.shape[axis] for axis in axes)
    binder.call(np.divide, total, number(count, data), total)
    return total


def bind_sum(binder: Binder, data: Array, axes: Sequence[int], out: Array | None = None) -> Array:
    """Bind the sum of float32 or float64 data along ``axes``.

    Returns its array, which has the data's memory order, and size 1 along the axes; it is ``out`` if that is given.
    """
    total = scratch_like(binder, data, axes) if out is None else out
    if not is_dense(data):
        data, given = scratch_like(binder, data), data
        binder.call(np.copyto, data, given)
    order = memory_order(data)
    x = data.transpose(order).ravel()
    # Neighbors in memory that are both reduced or both kept count as one axis.
    runs = [
        (is_reduced, prod(data.shape[axis] for axis in run))
        for is_reduced, run in groupby((a for a in order if data.shape[a] != 1), key=lambda axis: axis in axes)
    ]
    if not any(is_reduced for is_reduced, _ in runs):
        binder.call(np.copyto, total, data)
    while places := [i for i, (is_reduced, _) in enumerate(runs) if is_reduced]:
        # The slowest axes are summed first: what is left is small.
        place, is_final = places[0], len(places) == 1
        outer, length, inner = prod(n for _, n in runs[:place]), runs[place][1], prod(n for _, n in runs[place + 1 :])
        part = total.transpose(order).ravel() if is_final else binder.scratch((outer * inner,), data.dtype)
        slices = x.reshape(outer, length, inner)
        _sum_slices(binder, slices, part.reshape(outer, inner))
        x = part
        del runs[place]
    return total


def bind_squares(binder: Binder, data: Array, axes: Sequence[int]) -> Array:
    """Bind the sum of the squares of data along ``axes``; return the same as ``bind_sum``."""
    *_, fastest = memory_order(data)
    if data.strides[fastest] == data.itemsize and tuple(axes) == (fastest,) and data.shape[fastest] >= _DOT:
        total = scratch_like(binder, data, axes)
        rows = np.moveaxis(data, fastest, -1)
        binder.call(np.vecdot, rows, rows, np.moveaxis(total, fastest, -1)[..., 0])
        return total
    squares = scratch_like(binder, data)
    call_elementwise(binder, np.square, data, squares)
    return bind_sum(binder, squares, axes)


def _sum_slices(binder: Binder, x: Array, out: Array) -> None:
    """Bind the sums [outer, inner] of [outer, length, inner] along the second axis."""
    outer, length, inner = x.shape
    if length <= 2 * _CHUNK:
        _bind_short(binder, x, out)
        return
    whole = length // _CHUNK
    parts = binder.scratch((outer, -(-length // _CHUNK), inner), x.dtype)
    chunks = x[:, : whole * _CHUNK].reshape(outer, whole, _CHUNK, inner)
    _bind_short(binder, chunks, parts[:, :whole])
    if length % _CHUNK:
        _bind_short(binder, x[:, whole * _CHUNK :], parts[:, whole])
    _sum_slices(binder, parts, out)


def _bind_short(binder: Binder, x: Array, out: Array) -> None:
    """Bind the sums [..., inner] of [..., length, inner] as a product."""
    ones = np.ones(x.shape[-2], x.dtype)
    if x.shape[-1] == 1:
        bind_product(binder, x[..., 0], ones[:, np.newaxis], out)
    else:
        bind_product(binder, ones[np.newaxis], x, out[..., np.newaxis, :])
