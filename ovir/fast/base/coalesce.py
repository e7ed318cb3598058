"""Views of arrays with as few axes as possible, so that NumPy's loops are long and its preparations short."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array


def memory_order(array: Array) -> tuple[int, ...]:
    """Return the axes of an array from the slowest to the fastest in memory; axes of size 1 keep their place."""
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    order = list(range(array.ndim))
    long = [axis for axis in order if array.shape[axis] > 1]
    for place, axis in zip(long, sorted(long, key=lambda axis: -abs(array.strides[axis])), strict=True):
        order[place] = axis
    return tuple(order)


def in_order(shape: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape in memory of an array whose axes lie in ``order``, and the axes that turn it into ``shape``."""
    return tuple(shape[axis] for axis in order), tuple(int(i) for i in np.argsort(order))


def is_dense(array: Array) -> bool:
    """Return whether the elements of an array fill a stretch of memory without gaps, in any order of the axes."""
    return array.transpose(memory_order(array)).flags.c_contiguous


def coalesced(*arrays: Array) -> list[Array]:
    """Return views of arrays that broadcast to the last one, with neighboring axes merged where all of them allow it.

    The axes are ordered as they lie in the memory of the last array. An array of one element becomes 0-d, which
    ufuncs read fastest.
    """
    last = arrays[-1]
    if not last.size:  # strides of empty arrays mean nothing
        return [*(np.broadcast_to(array, last.shape) for array in arrays[:-1]), last]
    if last.size > 1 and all(array.size == last.size and array.flags.c_contiguous for array in arrays):
        return [array.reshape(-1) for array in arrays]  # as below, in a tenth of the time
    order = memory_order(last)
    moved = [_aligned(array, last.ndim).transpose(order) for array in arrays]
    shape = moved[-1].shape
    strides = [[0 if n == 1 else step for n, step in zip(v.shape, v.strides, strict=True)] for v in moved]
    groups: list[list[int]] = []
    for axis in (axis for axis, size in enumerate(shape) if size != 1):
        if groups and all(steps[groups[-1][-1]] == steps[axis] * shape[axis] for steps in strides):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if not groups:  # NumPy turns 0-d arrays into scalars, which functions of several steps cannot write to
        return [array.reshape(1) for array in arrays]
    # A broadcast axis keeps the size 1, as ufuncs take it faster than a stride of zero.
    return [
        view.reshape([prod(view.shape[axis] for axis in group) for group in groups] if view.size > 1 else ())
        for view in moved
    ]


def _aligned(array: Array, rank: int) -> Array:
    """Return a view of a rank, in which broadcast axes have the size 1."""
    view = array.reshape((1,) * (rank - array.ndim) + array.shape)
    return view[tuple(slice(1 if step == 0 else None) for step in view.strides)] if 0 in view.strides else view


def strided(array: Array, shape: Sequence[int], strides: Sequence[int], *, writeable: bool = False) -> Array:
    """Return a view of any element type with other sizes and strides; NumPy's function refuses f8e5m2."""
    codes = array.view(f"V{array.itemsize}")
    return np.lib.stride_tricks.as_strided(codes, shape, strides, writeable=writeable).view(array.dtype)
