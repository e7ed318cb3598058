"""Fast forms of reductions of windows of images, for pooling: one axis after the other, in any order of memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import maximum
from ovir.fast.base.binder_protocol import Binder, call_elementwise, is_real, tiled
from ovir.fast.base.coalesce import in_order, memory_order
from ovir.fast.base.moves import bind_copy
from ovir.kernels.windows import Window

_FEW_TAPS = 4
"""Windows of more taps than this grow by doubling where they begin at every position."""
_REDUCTION = 4
"""A call of ``reduce`` costs as much as this many calls of the ufunc."""
_SHORT, _PER_CALL = 32, 600
"""``reduce`` takes rows of fewer elements than this one by one, as those of images whose channels are not the fastest
axis. It then loses for so many elements the time of one call of the ufunc."""


def bind_windows(
    binder: Binder, combine: np.ufunc, data: Array, windows: Sequence[Window], fill: Array, out: Array
) -> None:
    """Bind out[n, c, p] = ``combine`` over the taps of window ``p`` in data[n, c].

    ``combine`` is associative and ``fill`` its neutral element, of which padding and empty windows consist.
    """
    for axis, window in enumerate(windows, 2):
        target = out if axis == out.ndim - 1 else _between(binder, data, axis, out.shape[axis])
        _bind_axis(binder, combine, data, axis, window, fill, target)
        data = target


def bind_spans(binder: Binder, combine: np.ufunc, data: Array, spans: Sequence[Array], out: Array) -> None:
    """Bind out[n, c, p] = ``combine`` over a box of data[n, c], or the mean where that is ``np.add``; ``spans`` holds
    for each axis where windows start and stop."""
    if not out.size:
        return
    for axis, ends in enumerate(spans, 2):
        target = out if axis == out.ndim - 1 else _between(binder, data, axis, out.shape[axis])
        starts, lengths = ends[:, 0], ends[:, 1] - ends[:, 0]
        stride = max(int(starts[-1]) // max(len(starts) - 1, 1), 1)
        if (lengths == lengths[0]).all() and (starts == np.arange(len(starts)) * stride).all():
            _bind_axis(binder, combine, data, axis, Window(int(lengths[0]), stride, 1, 0, 0), _NOTHING, target)
        else:
            _bind_each(binder, combine, data, axis, [slice(start, stop) for start, stop in ends.tolist()], target)
        if combine is np.add:
            bind_division(binder, lengths.reshape(-1, *[1] * (out.ndim - 1 - axis)), target)
        data = target


_NOTHING = np.zeros(())
"""The padding of windows that need none."""


def bind_division(binder: Binder, counts: Array, out: Array) -> None:
    """Bind the division of the sums in ``out`` by how many elements each window has."""
    counts = counts.astype(out.dtype)
    is_one = bool((counts == counts.flat[0]).all())
    divisor = counts.ravel()[:1].reshape(()) if is_one else tiled(counts, out)
    call_elementwise(binder, np.divide, out, divisor, out)


def _bind_each(
    binder: Binder, combine: np.ufunc, data: Array, axis: int, windows: Sequence[slice], target: Array
) -> None:
    """Bind the reduction of one window after the other."""
    for i, window in enumerate(windows):
        into = target[_at(axis, slice(i, i + 1))].squeeze(axis)
        binder.call(combine.reduce, data[_at(axis, window)], axis, None, into)


def _between(binder: Binder, data: Array, axis: int, count: int) -> Array:
    """Return workspace for data of which one axis is reduced, in the same order of memory."""
    shape, back = in_order([count if a == axis else n for a, n in enumerate(data.shape)], memory_order(data))
    return binder.scratch(shape, data.dtype).transpose(back)


def _at(axis: int, place: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, place)


def _bind_axis(
    binder: Binder, combine: np.ufunc, data: Array, axis: int, window: Window, fill: Array, target: Array
) -> None:
    """Bind the reduction of windows along one axis."""
    size, count = data.shape[axis], target.shape[axis]
    taps = [(_at(axis, to), data[_at(axis, source)]) for _, to, source in window.taps(size, count)]
    whole = [source for _, source in taps if source.shape[axis] == count]
    if window.stride == 1 and window.kernel > _FEW_TAPS and count > 1:
        _bind_doubling(binder, combine, data, axis, window, fill, target)
        return
    is_fast = data.shape[memory_order(data)[-1]] >= _SHORT or data.size <= _PER_CALL * window.kernel
    if window.kernel > _REDUCTION * count and is_fast:
        reached = [[p for p in taps if 0 <= p < size] for taps in window.positions(count).tolist()]
        if all(reached):
            places = [slice(places[0], places[-1] + 1, window.dilation) for places in reached]
            _bind_each(binder, combine, data, axis, places, target)
            return
    if len(whole) > 1:
        _bind_pair(binder, combine, whole[0], whole[1], target)
    else:
        bind_copy(binder, whole[0] if whole else fill, target)
    done = whole[:2]
    for to, source in taps:
        if not any(source is other for other in done):
            _bind_pair(binder, combine, target[to], source, target[to])


def _bind_pair(binder: Binder, combine: np.ufunc, a: Array, b: Array, out: Array) -> None:
    function = maximum if combine is np.maximum else combine  # np.maximum takes ``out`` only as a keyword
    call_elementwise(binder, function, a, b, out)


def _bind_doubling(
    binder: Binder, combine: np.ufunc, data: Array, axis: int, window: Window, fill: Array, target: Array
) -> None:
    """Bind windows that begin at every position: they grow from 1 tap to 2, 4 and 5 taps, for instance."""
    step, size = window.dilation, data.shape[axis]
    length = target.shape[axis] + (window.kernel - 1) * step
    padded = _between(binder, data, axis, length)
    stop = min(window.pad_begin + size, length)
    bind_copy(binder, fill, padded[_at(axis, slice(0, window.pad_begin))])
    bind_copy(binder, fill, padded[_at(axis, slice(stop, length))])
    bind_copy(
        binder, data[_at(axis, slice(0, stop - window.pad_begin))], padded[_at(axis, slice(window.pad_begin, stop))]
    )
    free = [_between(binder, data, axis, length) for _ in range(2)]
    current, width = padded, 1
    for bit in bin(window.kernel)[3:]:
        for added in (width, 1)[: 1 + int(bit)]:
            other = current if added == width else padded
            length -= added * step
            is_last = width + added == window.kernel
            into = target if is_last else free[0][_at(axis, slice(0, length))]
            first, second = (
                current[_at(axis, slice(0, length))],
                other[_at(axis, slice(width * step, width * step + length))],
            )
            _bind_pair(binder, combine, first, second, into)
            free.reverse()
            current, width = into, width + added


_MOST_ELEMENTS = 1 << 17
"""Elements of all windows up to which they are laid side by side."""


def bind_largest(binder: Binder, data: Array, lines: Sequence[Array], lowest: Array | None) -> Array | None:
    """Bind the largest element of each window to output 0 and its position in the flattened spatial axes to output 1.

    ``lines`` hold for each axis the positions [windows, taps], some of which may lie outside of the data: there it is
    ``lowest``, which also takes the place of NaN. If elements are equal, the first wins. Return output 1, or None if
    there is no fast form.
    """
    planes, size = prod(data.shape[:2]), prod(data.shape[2:])
    table = _positions(lines, data.shape[2:])
    if planes * table.size > _MOST_ELEMENTS or not table.size or not is_real(data):
        return None
    source = binder.scratch((planes, size + 1), data.dtype)
    windows = binder.scratch((planes, *table.shape), data.dtype)
    firsts = binder.scratch((planes, len(table)), np.intp)
    largest, places = (binder.output(index).reshape(planes, len(table)) for index in range(2))
    bind_copy(binder, data, source[:, :size].reshape(data.shape))
    if lowest is not None:
        binder.call(np.copyto, source[:, size], lowest)
    binder.call(source.take, table, 1, windows, "clip")
    if lowest is not None:
        binder.call(np.fmax, windows, lowest, windows)
    binder.call(windows.argmax, 2, firsts)
    binder.call(np.maximum.reduce, windows, 2, None, largest)
    binder.call(np.add, firsts, np.arange(len(table)) * table.shape[1], firsts)
    binder.call(table.astype(places.dtype).ravel().take, firsts, 0, places, "clip")
    if lowest is not None:
        is_largest = binder.scratch(largest.shape, np.bool_)
        binder.call(np.greater, largest, lowest, is_largest)
        binder.call(np.multiply, places, is_largest, places)
    return places


def _positions(lines: Sequence[Array], sizes: Sequence[int]) -> Array:
    """Return the flat positions [windows, taps] of boxes, the number of all positions where they lie outside."""
    axes = len(lines)
    total, inside = np.zeros((), np.intp), np.ones((), np.bool_)
    for axis, (line, size) in enumerate(zip(lines, sizes, strict=True)):
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = line.shape
        along = line.reshape(shape)
        total, inside = total * size + along, inside & (along >= 0) & (along < size)
    windows = prod(len(line) for line in lines)
    taps = prod(line.shape[1] for line in lines)
    return np.where(inside, total, prod(sizes)).reshape(windows, taps)
