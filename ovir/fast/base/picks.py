"""Bound forms of operations that pick elements by indices: one ``take`` into the output.

Indices that change are checked in each run by one reduction: read as unsigned numbers, the largest is below the size
only if all of them are in range and none is negative. All other runs are left to the operation's own kernel, which
knows what such indices mean.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.kernels.coalesce import memory_order
from ovir.kernels.gather_blocks import UNSIGNED

Kernel = Callable[[], Array]
"""Computes the output for any indices, or raises an error."""

_LARGEST = 1 << 19
"""Bytes of an output that is made by one call; kernels fill larger ones in blocks and on threads."""
_SMALL = 1 << 14
"""Bytes of an output up to which ``take`` checks the indices in passing, faster than a reduction would."""


def bind_slices(
    binder: Binder, data: Array, indices: Array, axis: int, kernel: Kernel, *, negative: bool = False
) -> bool:
    """Bind ``data.take(indices, axis)`` to output 0 and return whether that was done.

    With ``negative``, indices down to -size count from the end.
    """
    if not _pays(binder, data, indices):
        return False
    size = data.shape[axis]
    if binder.is_constant(1):
        if indices.max() >= size or indices.min() < (-size if negative else 0):
            return False
        indices = indices.astype(np.intp)
        indices += (indices < 0) * size
        if (view := _as_view(data, indices, axis)) is not None:
            binder.view(view)
            return True
    order = memory_order(data)
    laid = data.transpose(order)
    if not laid.flags.c_contiguous:
        return False
    laid_axis = order.index(axis)
    out_order = [place for a in order for place in _places(a, axis, indices.ndim)]
    out = binder.output(order=out_order)
    target = out.transpose(out_order)
    if binder.is_constant(1):
        binder.call(laid.take, indices, laid_axis, target, "clip")
    elif negative and out.nbytes <= _SMALL and indices.dtype != np.uint64:
        binder.call(_take_checked, laid.take, indices, laid_axis, target, kernel, out)
    else:
        check = unsigned_view(indices), size, kernel, out
        binder.call(_take_in_range, *check, laid.take, indices, laid_axis, target)
    return True


def bind_slices_of_batch(
    binder: Binder, data: Array, indices: Array, axis: int, batch_dims: int, kernel: Kernel
) -> bool:
    """Bind the same for each item of a batch, which data and indices share; return whether that was done."""
    if not _pays(binder, data, indices) or not data.flags.c_contiguous:
        return False
    size, batch, inner = data.shape[axis], prod(data.shape[:batch_dims]), prod(data.shape[axis + 1 :])
    between = prod(data.shape[batch_dims:axis])
    offsets = (np.arange(batch * between) * size).reshape(batch, between, 1)
    rows = data.reshape(-1, inner)
    out = binder.output()
    _bind_offset(binder, rows, indices.reshape(batch, 1, -1), 1, offsets, size, kernel, out)
    return True


def bind_elements(binder: Binder, data: Array, indices: Array, axis: int, kernel: Kernel) -> bool:
    """Bind ``np.take_along_axis(data, indices, axis)`` to output 0 and return whether that was done."""
    if not _pays(binder, data, indices) or not data.flags.c_contiguous:
        return False
    size, outer, inner = data.shape[axis], prod(data.shape[:axis]), prod(data.shape[axis + 1 :])
    offsets = np.add.outer(np.arange(outer) * (size * inner), np.arange(inner))[:, np.newaxis]
    flat = data.reshape(-1, 1)
    _bind_offset(binder, flat, indices.reshape(outer, -1, inner), inner, offsets, size, kernel, binder.output())
    return True


def _bind_offset(
    binder: Binder, rows: Array, indices: Array, step: int, offsets: Array, size: int, kernel: Kernel, out: Array
) -> None:
    """Bind ``rows[indices * step + offsets]`` for indices that change."""
    positions = binder.scratch(np.broadcast_shapes(indices.shape, offsets.shape), np.intp)
    check = unsigned_view(indices), size, kernel, out
    target = out.reshape(*positions.shape, rows.shape[-1])
    binder.call(_take_offset, *check, indices, np.array(step), offsets, positions, rows.take, target)


def _pays(binder: Binder, data: Array, indices: Array) -> bool:
    bytes_of_output = prod(binder.output_shape()) * data.itemsize
    # NumPy adds 64-bit integers with and without a sign as floats.
    is_index = indices.dtype.kind in "iu" and indices.dtype != np.uint64
    # Indices in another order would have to be copied in each run.
    return bool(0 < bytes_of_output <= _LARGEST and data.size and is_index and indices.flags.c_contiguous)


def _places(axis: int, picked: int, rank: int) -> tuple[int, ...]:
    """Return the axes of the output that an axis of the data becomes, if indices of a rank replace one of them."""
    if axis == picked:
        return tuple(range(picked, picked + rank))
    return (axis if axis < picked else axis + rank - 1,)


def _as_view(data: Array, indices: Array, axis: int) -> Array | None:
    """Return the result as a view of data, if the indices are evenly spaced."""
    before: tuple[Any, ...] = (slice(None),) * axis
    if indices.ndim == 0:
        return data[(*before, slice(int(indices), int(indices) + 1))].squeeze(axis)
    first, step = int(indices.flat[0]), 1
    if indices.size > 1:
        step = int(indices.flat[1]) - first
        if indices.ndim > 1 or not step or (np.diff(indices) != step).any():
            return None
    stop = first + step * indices.size
    part = data[(*before, slice(first, stop if stop >= 0 else None, step))]
    return part.reshape(*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])


def unsigned_view(indices: Array) -> Array:
    """Return indices read as unsigned numbers, of which negative ones are larger than any size."""
    return indices.view(UNSIGNED[indices.itemsize])


def _take_checked(take: Any, indices: Array, axis: int, target: Array, kernel: Kernel, out: Array) -> None:
    try:
        take(indices, axis, target)
    except IndexError:
        np.copyto(out, kernel())


def _take_in_range(
    unsigned: Array, size: int, kernel: Kernel, out: Array, take: Any, indices: Array, axis: int, target: Array
) -> None:
    if np.maximum.reduce(unsigned, None) < size:
        take(indices, axis, target, "clip")
    else:
        np.copyto(out, kernel())


def _take_offset(
    unsigned: Array,
    size: int,
    kernel: Kernel,
    out: Array,
    indices: Array,
    step: Array,
    offsets: Array,
    positions: Array,
    take: Any,
    target: Array,
) -> None:
    if np.maximum.reduce(unsigned, None) >= size:
        np.copyto(out, kernel())
        return
    if step == 1:
        np.add(indices, offsets, positions)
    else:
        np.multiply(indices, step, positions)
        np.add(positions, offsets, positions)
    take(positions, 0, target, "clip")
