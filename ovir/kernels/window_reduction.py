"""Combine the elements of each window: moving maxima and sums for pooling.

A window is a box, so the axes are combined one after the other. Planes are first copied into their padding and then
treated as one flat array, in which the windows of an axis begin at every position and grow by doubling (1, 2, 4, 5 taps
for 5), so that operands are long and contiguous. Elements that reach over the end of a row or lie between strides are
computed and dropped, which costs less than short loops; rows that a stride skips are not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels import half
from ovir.kernels.blocked import map_rows
from ovir.kernels.windows import Window, extent


def reduce_windows(
    data: Array,
    windows: Sequence[Window],
    combine: np.ufunc,
    fill: Any,
    out: Array,
    finish: Callable[[Array], object],
) -> None:
    """Compute out[n, c, p] = ``combine`` over the taps of window ``p`` in data[n, c], in the type of ``out``.

    ``fill`` surrounds the data. ``combine`` must be associative. ``finish`` is called on each block of ``out``, as
    [planes, *windows], while it is in the cache.
    """
    if out.size == 0:
        return
    sizes, counts = data.shape[2:], out.shape[2:]
    planes = prod(data.shape[:2])
    source, target = data.reshape(planes, *sizes), out.reshape(planes, *counts)
    padding = Padding(sizes, counts, windows, fill, out.dtype)

    def reduce(block: slice) -> None:
        padded = padding.around(source[block])
        scratch = [np.empty(padded.size, out.dtype) for _ in range(3)]
        np.copyto(target[block], _combine_axes(padded, windows, counts, combine, scratch))
        finish(target[block])

    map_rows(reduce, planes, prod(padding.shape))


class Padding:
    """The area that windows cover: planes surrounded by ``fill``, or cut where no window reaches."""

    def __init__(
        self, sizes: Sequence[int], counts: Sequence[int], windows: Sequence[Window], fill: Any, dtype: np.dtype[Any]
    ) -> None:
        self.shape = tuple(
            (count - 1) * w.stride + extent(w.kernel, w.dilation) for count, w in zip(counts, windows, strict=True)
        )
        self._fill, self._dtype = fill, dtype
        self._is_plain = self.shape == tuple(sizes) and not any(w.pad_begin for w in windows)
        source, target = [slice(None)], [slice(None)]
        for size, reach, w in zip(sizes, self.shape, windows, strict=True):
            start = max(-w.pad_begin, 0)
            stop = max(min(size, reach - w.pad_begin), start)
            source.append(slice(start, stop))
            target.append(slice(start + w.pad_begin, stop + w.pad_begin))
        self._source, self._target = tuple(source), tuple(target)

    def around(self, planes: Array) -> Array:
        """Return the padded planes: a new array, or the planes themselves if nothing is to be added."""
        if self._is_plain and planes.dtype == self._dtype and planes.flags.c_contiguous:
            return planes
        padded = np.full((len(planes), *self.shape), self._fill, self._dtype)
        half.copy(planes[self._source], padded[self._target])
        return padded


def _combine_axes(
    current: Array, windows: Sequence[Window], counts: Sequence[int], combine: np.ufunc, scratch: list[Array]
) -> Array:
    """Return the windows of padded planes, as a view of an array of ``scratch`` or of the planes."""
    picked: list[slice] = [slice(None)]
    for axis, (w, count) in enumerate(zip(windows, counts, strict=True), 1):
        free = [array for array in scratch if not np.may_share_memory(array, current)]
        if axis < len(windows) and w.stride > 1 and 1 < w.kernel <= 3 * w.stride:
            current = _combine_rows(current, axis, w, count, combine, free[0])
            picked.append(slice(None))
            continue
        step = w.dilation * prod(current.shape[axis + 1 :])
        current = _combine_flat(current.reshape(-1), w.kernel, step, combine, free).reshape(current.shape)
        picked.append(slice(0, (count - 1) * w.stride + 1, w.stride))
        if w.stride > 1 and axis < len(windows):  # the axes that follow then have fewer rows
            rows = current[tuple(picked)]
            free = [array for array in scratch if not np.may_share_memory(array, current)]
            current = free[0][: rows.size].reshape(rows.shape)
            np.copyto(current, rows)
            picked[1:] = [slice(None)] * axis
    return current[tuple(picked)]


def _combine_rows(current: Array, axis: int, w: Window, count: int, combine: np.ufunc, into: Array) -> Array:
    """Combine the windows of an axis other than the last tap by tap; with a stride, only the rows that are needed."""
    result = into[: current.size // current.shape[axis] * count].reshape(
        *current.shape[:axis], count, *current.shape[axis + 1 :]
    )
    last = (count - 1) * w.stride + 1
    taps = [
        current[(*[slice(None)] * axis, slice(at, at + last, w.stride))]
        for at in range(0, w.kernel * w.dilation, w.dilation)
    ]
    combine(taps[0], taps[1], out=result)
    for tap in taps[2:]:
        combine(result, tap, out=result)
    return result


def _combine_flat(flat: Array, taps: int, step: int, combine: np.ufunc, free: list[Array]) -> Array:
    """Combine flat[i], flat[i + step], ... over ``taps`` elements into result[i].

    Elements whose taps reach past the end are undefined. The result is ``flat`` or lies in a ``free`` array.
    """
    current, width = flat, 1
    for bit in bin(taps)[3:]:
        for added, other in ((width, current), (1, flat))[: 1 + int(bit)]:
            # The result must not overlap an operand at another position, or NumPy copies the operand first.
            into = next(array for array in free if array is not current)
            length = len(flat) - (width + added - 1) * step
            combine(current[:length], other[width * step :][:length], out=into[:length])
            current, width = into, width + added
    return current[: len(flat)]
