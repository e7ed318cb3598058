"""Views of arrays with as few axes as possible, so that NumPy's loops are long and its preparations short."""

from __future__ import annotations

from collections.abc import Sequence

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
        return [array.ravel() for array in arrays]  # as below, in a tenth of the time
    order = memory_order(last)
    moved = [np.broadcast_to(array, last.shape).transpose(order) for array in arrays[:-1]]
    moved.append(last.transpose(order))
    shape = moved[-1].shape
    kept = [axis for axis in range(len(shape)) if shape[axis] != 1]
    groups: list[list[int]] = []
    for axis in kept:
        if groups and all(v.strides[groups[-1][-1]] == v.strides[axis] * shape[axis] for v in moved):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if not groups:  # NumPy turns 0-d arrays into scalars, which functions of several steps cannot write to
        return [array.reshape(1) for array in arrays]
    sizes = [int(np.prod([shape[axis] for axis in group])) for group in groups]
    views = []
    for view, array in zip(moved, arrays, strict=True):
        if array.size == 1 and last.size != 1:
            views.append(array.reshape(()))
            continue
        strides = [view.strides[group[-1]] for group in groups]
        # A broadcast axis has size 1, as ufuncs take it faster than a stride of zero.
        lengths = [1 if stride == 0 else size for stride, size in zip(strides, sizes, strict=True)]
        views.append(strided(view, lengths, strides, writeable=array is last))
    return views


def strided(array: Array, shape: Sequence[int], strides: Sequence[int], *, writeable: bool = False) -> Array:
    """Return a view of any element type with other sizes and strides; NumPy's function refuses f8e5m2."""
    codes = array.view(f"V{array.itemsize}")
    return np.lib.stride_tricks.as_strided(codes, shape, strides, writeable=writeable).view(array.dtype)
