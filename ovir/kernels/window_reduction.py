"""The kernel that combines the elements of each window: the moving maxima and sums of pooling.

A window is a box, so axes are combined one after the other. Planes are first set into their padding, and then are one
flat array, in which the windows of an axis begin at every position and grow by doubling (1, 2, 4, 5 taps for 5), so
that operands are long and contiguous. What reaches over the end of a row, or lies between strides, is computed too and
dropped: that costs less than short loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ovir.arrays import Array
from ovir.kernels.parallel import run_blocks
from ovir.kernels.windows import Window, extent

# Planes that go through all steps together are to stay in cache, and to be so many that calls of NumPy do not count.
_BLOCK_BYTES = 1 << 20
# Below this, threads wait for one another between so many short calls of NumPy more than they gain.
_ELEMENTS_PER_THREAD = 1 << 21


def reduce_windows(
    data: Array,
    windows: Sequence[Window],
    combine: np.ufunc,
    fill: Any,
    out: Array,
    finish: Callable[[Array], object],
) -> None:
    """out[n, c, p] = ``combine`` over the taps of window ``p`` in data[n, c], computed in the type of ``out``.

    ``fill`` is what lies around the data. ``combine`` must be associative. ``finish`` is called on each block of
    ``out``, as [planes, *windows], while it is in cache.
    """
    if out.size == 0:
        return
    sizes, counts = data.shape[2:], out.shape[2:]
    planes = prod(data.shape[:2])
    source, target = data.reshape(planes, *sizes), out.reshape(planes, *counts)
    padding = Padding(sizes, counts, windows, fill, out.dtype)
    elements = prod(padding.shape)
    block = max(_BLOCK_BYTES // (elements * out.itemsize), 1)

    def reduce(start: int, stop: int) -> None:
        padded = padding.buffer(min(block, stop - start))
        scratch = [np.empty(padded.size, out.dtype) for _ in range(3)]
        with np.errstate(all="ignore"):
            for first in range(start, stop, block):
                last = min(first + block, stop)
                combined = _combine_axes(padding.around(source[first:last], padded), windows, counts, combine, scratch)
                np.copyto(target[first:last], combined)
                finish(target[first:last])

    run_blocks(reduce, planes, -(-_ELEMENTS_PER_THREAD // elements))


class Padding:
    """What windows cover: planes with ``fill`` around them, or cut where no window reaches."""

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

    def buffer(self, planes: int) -> Array:
        """Memory for ``around``, as large as so many planes with what is around them."""
        return np.full((planes, *self.shape), self._fill, self._dtype)

    def around(self, planes: Array, buffer: Array) -> Array:
        """The planes with what is around them: in ``buffer``, or where they are if nothing is to be added."""
        if self._is_plain and planes.dtype == self._dtype and planes.flags.c_contiguous:
            return planes
        padded = buffer[: len(planes)]
        np.copyto(padded[self._target], planes[self._source], casting="unsafe")
        return padded


def _combine_axes(
    current: Array, windows: Sequence[Window], counts: Sequence[int], combine: np.ufunc, scratch: list[Array]
) -> Array:
    """The windows of padded planes, as a view of one of the arrays in ``scratch`` or of the planes."""
    picked: list[slice] = [slice(None)]
    for axis, (w, count) in enumerate(zip(windows, counts, strict=True), 1):
        step = w.dilation * prod(current.shape[axis + 1 :])
        free = [array for array in scratch if not np.may_share_memory(array, current)]
        current = _combine_flat(current.reshape(-1), w.kernel, step, combine, free).reshape(current.shape)
        picked.append(slice(0, (count - 1) * w.stride + 1, w.stride))
        if w.stride > 1 and axis < len(windows):  # fewer rows for the axes that follow
            rows = current[tuple(picked)]
            free = [array for array in scratch if not np.may_share_memory(array, current)]
            current = free[0][: rows.size].reshape(rows.shape)
            np.copyto(current, rows)
            picked[1:] = [slice(None)] * axis
    return current[tuple(picked)]


def _combine_flat(flat: Array, taps: int, step: int, combine: np.ufunc, free: list[Array]) -> Array:
    """result[i] = flat[i] + flat[i + step] + ... of ``taps`` elements, "+" being ``combine``.

    Elements that a tap beyond the end would be part of are undefined. The result is ``flat``, or in a ``free`` array.
    """
    current, width = flat, 1
    for bit in bin(taps)[3:]:
        for added, other in ((width, current), (1, flat))[: 1 + int(bit)]:
            # The result must not overlap an operand at another place, or NumPy makes a copy of it first.
            into = next(array for array in free if array is not current)
            length = len(flat) - (width + added - 1) * step
            combine(current[:length], other[width * step :][:length], out=into[:length])
            current, width = into, width + added
    return current[: len(flat)]
