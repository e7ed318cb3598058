"""Images whose channels are the fastest axis in memory (N, H, W, C), for 1 to 3 spatial axes, and their windows.

The windows of an image are a strided view of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.fast.base.binding import KEPT_BYTES, Binder, border_calls
from ovir.kernels.windows import Window


class Axis(NamedTuple):
    """How windows move along one spatial axis."""

    kernel: int
    stride: int
    dilation: int
    pad_begin: int
    windows: int
    """The number of windows."""

    def padded(self, size: int) -> int:
        """Return the size of the axis once the data is padded, so that all windows lie within it."""
        return max((self.windows - 1) * self.stride + (self.kernel - 1) * self.dilation + 1, size + self.pad_begin)


def without_idle_taps(axis: Axis, size: int) -> tuple[Axis, slice]:
    """Return an axis of data without the first and last taps that read only zeros around the data, and the taps that
    remain."""
    found = Window(axis.kernel, axis.stride, axis.dilation, axis.pad_begin, 0).trimmed(size, axis.windows)
    if found.pad_begin < 0:
        return axis, slice(0, axis.kernel)
    first = (axis.pad_begin - found.pad_begin) // axis.dilation
    return axis._replace(kernel=found.kernel, pad_begin=found.pad_begin), slice(first, first + found.kernel)


def channels_last(data: Array) -> Array:
    """Return data [N, C, *spatial] as [N, *spatial, C]."""
    return np.moveaxis(data, 1, -1)


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Return the order in memory of an output [N, C, *spatial] whose channels are the fastest axis."""
    return (0, *range(2, rank), 1)


def padded_image(binder: Binder, data: Array, axes: Sequence[Axis]) -> Array:
    """Return data [N, *spatial, C] with a border of zeros, and add the calls that fill it.

    Without a border, data whose rows lie in one piece is returned itself.
    """
    sizes = [axis.padded(size) for axis, size in zip(axes, data.shape[1:-1], strict=True)]
    has_border = any(a.pad_begin or s > n for a, s, n in zip(axes, sizes, data.shape[1:-1], strict=True))
    if not has_border and _has_dense_rows(data):
        return data
    shape = (data.shape[0], *sizes, data.shape[-1])
    bordered = binder.bordered(0)
    if bordered is not None and channels_last(bordered).shape == shape and _has_dense_rows(channels_last(bordered)):
        return channels_last(bordered)
    inside = tuple(slice(a.pad_begin, a.pad_begin + n) for a, n in zip(axes, data.shape[1:-1], strict=True))
    if not has_border or prod(shape) * data.itemsize <= KEPT_BYTES:
        image = binder.kept(shape, data.dtype) if has_border else binder.scratch(shape, data.dtype)
    else:
        image = binder.scratch(shape, data.dtype)
        border = [(place.start, size - place.stop) for size, place in zip(sizes, inside, strict=True)]
        for function, arguments in border_calls(image, [(0, 0), *border, (0, 0)]):
            binder.call(function, *arguments)
    binder.call(np.copyto, image[(slice(None), *inside)], data)
    return image


def _has_dense_rows(image: Array) -> bool:
    """Return whether the rows [W, C] of an image have no gaps."""
    return bool(image[(0,) * (image.ndim - 2)].flags.c_contiguous)


def border_of(shape: Sequence[int], axes: Sequence[Axis]) -> tuple[tuple[int, int], ...] | None:
    """Return the border of ``padded_image`` for data [N, C, *spatial], None if there is none."""
    ends = [(a.pad_begin, a.padded(size) - size - a.pad_begin) for a, size in zip(axes, shape[2:], strict=True)]
    return ((0, 0), (0, 0), *ends) if any(begin or end for begin, end in ends) else None


def windows(image: Array, axes: Sequence[Axis]) -> Array:
    """Return a view [N, *windows, *kernel, C] of a padded image [N, *spatial, C]."""
    steps = image.strides[1:-1]
    shape = (image.shape[0], *(a.windows for a in axes), *(a.kernel for a in axes), image.shape[-1])
    strides = (
        image.strides[0],
        *(step * a.stride for step, a in zip(steps, axes, strict=True)),
        *(step * a.dilation for step, a in zip(steps, axes, strict=True)),
        image.strides[-1],
    )
    return as_strided(image, shape, strides, writeable=False)
