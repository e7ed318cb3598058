"""Images whose channels are the fastest axis in memory (N, H, W, C), for 1 to 3 spatial axes, and their windows.

The windows of an image are a strided view of it. The type of products in convolutions and copies of their
filters are here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder
from ovir.kernels.precision import from_sums


class Axis(NamedTuple):
    """The movement of windows along one spatial axis."""

    kernel: int
    stride: int
    dilation: int
    pad_begin: int
    windows: int
    """The number of windows."""

    def padded(self, size: int) -> int:
        """Return the size of the axis once the data is padded, so that all windows lie within it."""
        return max((self.windows - 1) * self.stride + (self.kernel - 1) * self.dilation + 1, size + self.pad_begin)


def is_mostly_padding(axes: Sequence[Axis], sizes: Sequence[int]) -> bool:
    """Return whether the zeros around data of these sizes so outnumber the data that ``run``, which skips taps that
    read only zeros, is faster."""
    padded = prod(axis.padded(size) for axis, size in zip(axes, sizes, strict=True))
    return padded > 16 * prod(sizes) + (1 << 12)


def channels_last(data: Array) -> Array:
    """Return data [N, C, *spatial] as [N, *spatial, C]."""
    return np.moveaxis(data, 1, -1)


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Return the order in memory of an output [N, C, *spatial] whose channels are the fastest axis."""
    return (0, *range(2, rank), 1)


# --------------------------------------------------------------------------- types of products


def product_dtype(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the type in which BLAS multiplies and adds elements of a type; None if there is none.

    It is f64 for integers, whose sums are right where ``redo_if_inexact`` finds them small enough.
    """
    if dtype.kind in "iu":
        return np.dtype(np.float64)
    return dtype if dtype in (np.float32, np.float64) else None


def redo_if_inexact(count: int, run: Callable[..., Array], inputs: Sequence[Array], out: Array) -> None:
    """Compute ``out`` again by ``run`` if sums of ``count`` products of data and filters, the first two inputs, may be
    too large for f64."""
    largest = (max(int(array.max()), -int(array.min())) for array in inputs[:2])
    if prod(largest) * count > EXACT:
        np.copyto(out, run(*inputs))


EXACT = 1 << 47
"""f64 holds all integers up to 2^53, which leaves room for the sums and quarters of tiles."""


def computed_image(binder: Binder, data: Array, dtype: np.dtype[Any]) -> Array:
    """Return data [N, C, *spatial] as [N, *spatial, C] in the type of the products."""
    image = channels_last(data)
    if data.dtype == dtype:
        return image
    copy = binder.scratch(image.shape, dtype)
    binder.call(np.copyto, copy, image)
    return copy


def filter_copy(binder: Binder, form: str, filters: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy, in C order, of a view of the filters, which are input 1: made once if they are constant, else in
    each run. ``form`` is the name of the view."""
    if binder.is_constant(1):
        return binder.prepared(form, lambda: np.ascontiguousarray(filters, dtype))
    copy = binder.scratch(filters.shape, dtype)
    binder.call(np.copyto, copy, filters)
    return copy


def store_sums(sums: Array, out: Array) -> None:
    """Copy sums of products to an output of another type."""
    np.copyto(out, from_sums(sums, out.dtype))


def position_rows(image: Array) -> Array | None:
    """Return the positions of an image [N, *spatial, C] as rows of a matrix; None if BLAS cannot read them so."""
    matrix = image.reshape(-1, image.shape[-1])
    return matrix if np.may_share_memory(matrix, image) and matrix.itemsize in matrix.strides else None


# --------------------------------------------------------------------------- borders of zeros


def padded_image(binder: Binder, image: Array, axes: Sequence[Axis]) -> Array:
    """Return an image [N, *spatial, C] with a border of zeros, and add the calls that fill it; the image itself if it
    needs no border and its rows [W, C] have no gaps."""
    border = _border(axes, image.shape[1:-1])
    if not any(map(any, border)) and image[(0,) * (image.ndim - 2)].flags.c_contiguous:
        return image
    return _padded(binder, image, [(0, 0), *border, (0, 0)])


def padded_planes(binder: Binder, data: Array, axes: Sequence[Axis]) -> Array:
    """Return data [N, C, *spatial] in C order with a border of zeros, and add the calls that fill it; data itself if it
    needs neither."""
    border = _border(axes, data.shape[2:])
    if not any(map(any, border)) and data.flags.c_contiguous:
        return data
    return _padded(binder, data, [(0, 0), (0, 0), *border])


def _border(axes: Sequence[Axis], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the numbers of zeros that windows need before and after data of these sizes."""
    return [(a.pad_begin, a.padded(size) - size - a.pad_begin) for a, size in zip(axes, sizes, strict=True)]


def _padded(binder: Binder, data: Array, border: Sequence[tuple[int, int]]) -> Array:
    """Return workspace with data in the middle of zeros, and add the calls that fill it."""
    sizes = [begin + size + end for size, (begin, end) in zip(data.shape, border, strict=True)]
    whole = binder.scratch(sizes, data.dtype)
    zero = np.zeros((), data.dtype)
    inside: tuple[slice, ...] = ()
    for size, total, (begin, end) in zip(data.shape, sizes, border, strict=True):
        for place in (slice(0, begin), slice(total - end, total)):
            if place.stop > place.start:
                binder.call(np.copyto, whole[(*inside, place)], zero)
        inside += (slice(begin, begin + size),)
    binder.call(np.copyto, whole[inside], data)
    return whole


# --------------------------------------------------------------------------- windows


def windows(image: Array, axes: Sequence[Axis]) -> Array:
    """Return a view [N, *windows, *kernel, C] of a padded image [N, *spatial, C]."""
    shape = (image.shape[0], *(a.windows for a in axes), *(a.kernel for a in axes), image.shape[-1])
    places, taps = _steps(image.strides[1:-1], axes)
    return as_strided(image, shape, (image.strides[0], *places, *taps, image.strides[-1]), writeable=False)


def plane_windows(planes: Array, axes: Sequence[Axis]) -> Array:
    """Return a view [N, C, *kernel, *windows] of padded planes [N, C, *spatial]."""
    shape = (*planes.shape[:2], *(a.kernel for a in axes), *(a.windows for a in axes))
    places, taps = _steps(planes.strides[2:], axes)
    return as_strided(planes, shape, (*planes.strides[:2], *taps, *places), writeable=False)


def _steps(strides: Sequence[int], axes: Sequence[Axis]) -> tuple[list[int], list[int]]:
    """Return the bytes between windows and between taps along each axis, 0 where there is only one: the stride or the
    dilation may then exceed any array."""
    pairs = list(zip(strides, axes, strict=True))
    places = [stride * axis.stride if axis.windows > 1 else 0 for stride, axis in pairs]
    return places, [stride * axis.dilation if axis.kernel > 1 else 0 for stride, axis in pairs]
