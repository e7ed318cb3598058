"""Convolution and GroupConvolution: products with the windows of images as rows of a matrix, or a special form.

One copy makes each window of the image a row of a matrix, and one product with the filters gives all channels of each
output position. Filters with few outputs are taken side by side: a wider window holds several neighbouring ones, and a
matrix with zeros gives the outputs of all of them. So are groups of few channels. Filters of 3x3 may be applied to
tiles (``base/tiles.py``), and filters of a single channel are sums of products along rows of the image
(``base/depthwise.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.fast.base.binding import KEPT_BYTES, Binder, Call, border_calls, call_shares
from ovir.fast.base.depthwise import bind_depthwise
from ovir.fast.base.images import (
    Axis,
    border_of,
    channels_last,
    channels_last_order,
    padded_image,
    windows,
    without_idle_taps,
)
from ovir.fast.base.packed import SHARED
from ovir.fast.base.products import Product, filter_product
from ovir.fast.base.tiles import bind_tiles, whole_tiles
from ovir.fast.registry import Border, fast
from ovir.kernels.parallel import threads
from ovir.ops.convolution import Convolution, ForwardConvolutionBase, GroupConvolution

# Columns of a block of windows, and the rows that the product makes of them, stay in a cache.
_BLOCK_BYTES = 1 << 20
# Filters of one tap that take more bytes than this stay where they are; a copy by rows is multiplied a little faster.
_LARGEST_COPY = 1 << 20

# Images are copied by planes if the rows of their windows have at most so many elements, for all channels together; the
# second number counts if the planes have to be copied first.
_SHORT_RUN, _SHORTEST_RUN = 16, 9


def _border(op: ForwardConvolutionBase, shapes: Sequence[tuple[int, ...]]) -> Border | None:
    data, filters = shapes
    axes, _ = _axes(op, data, filters)
    tiled = whole_tiles(axes, filters if len(filters) > len(data) else (1, *filters))
    return None if any(a.pad_begin < 0 for a in axes) else border_of(data, tiled or axes)


@fast(Convolution, GroupConvolution, border=_border)
def convolution(op: ForwardConvolutionBase, binder: Binder, *inputs: Array) -> bool:
    data, filters = inputs
    if not binder.is_constant(1) or data.dtype not in (np.float32, np.float64) or not data.size:
        return False
    axes, taps = _axes(op, data.shape, filters.shape)
    kernel: tuple[Any, ...] = ..., *taps
    grouped = op.grouped(filters)[kernel]
    _, outputs, depth, *_ = grouped.shape
    if 0 in grouped.shape or 0 in binder.output_shape() or any(a.pad_begin < 0 for a in axes):
        return False
    if not np.isfinite(grouped).all():
        return False  # zeros around the data times infinity are NaN
    if depth == outputs == 1 < len(grouped):
        form = f"depthwise of taps {taps}"
        weights = binder.prepared(form, lambda: np.ascontiguousarray(np.moveaxis(grouped[:, 0, 0], 0, -1)))
        bind_depthwise(binder, data, weights, axes)
        return True
    out = binder.output(order=channels_last_order(data.ndim))
    if _bind_dense(binder, data, grouped, axes, f"taps {taps}", out):
        binder.call(_redo_if_not_finite, channels_last(out).reshape(-1), op.run, inputs, out)
    return True


def _axes(op: ForwardConvolutionBase, data: Sequence[int], filters: Sequence[int]) -> tuple[list[Axis], list[slice]]:
    """Return how windows move along each spatial axis, and the taps that read data and not only zeros around it."""
    spans = op.windows(data[2:], filters[len(filters) - len(data) + 2 :])
    found = [
        without_idle_taps(Axis(w.kernel, w.stride, w.dilation, w.pad_begin, count), size)
        for w, count, size in zip(spans, op.window_counts(data[2:], spans), data[2:], strict=True)
    ]
    return [axis for axis, _ in found], [taps for _, taps in found]


def _redo_if_not_finite(flat: Array, run: Callable[..., Array], inputs: Sequence[Array], out: Array) -> None:
    """Compute ``out``, whose elements are ``flat``, again by ``run`` if it has NaN or infinities, which may be wrong.

    BLAS adds squares in a quarter of the time of NumPy's sum. Where they overflow, the result is the same.
    """
    if not np.isfinite(np.dot(flat, flat)):
        np.copyto(out, run(*inputs))


# --------------------------------------------------------------------------- dense filters


def _bind_dense(binder: Binder, data: Array, filters: Array, axes: Sequence[Axis], name: str, out: Array) -> bool:
    """Bind a convolution of data [N, C, *spatial] with constant filters [groups, outputs, C / groups, *kernel] to out
    [N, C, *windows], whose channels are the fastest axis in memory.

    ``name`` tells these filters from others that come from the same constant. Return whether the result is right for
    finite numbers only: windows and groups that are taken together multiply the data of each other by zero, and outputs
    of a tile share their sums. A result that is not right is not finite.
    """
    groups, outputs, channels, *kernel = filters.shape
    image, out = channels_last(data), channels_last(out)
    is_pointwise = all(a.kernel == 1 and a.stride == 1 and not a.pad_begin for a in axes) and groups == 1
    if is_pointwise and all(a.windows == size for a, size in zip(axes, image.shape[1:-1], strict=True)):
        rows = _rows(image)
        if rows is not None:
            product = filter_product(binder, name, lambda: _matrices(filters), (1, channels, outputs), rows)
            call_shares(binder, [product(rows, out.reshape(-1, outputs), True)])
            return False
    tiled = whole_tiles(axes, filters.shape)
    if tiled is not None:
        bind_tiles(binder, image, filters, tiled, name, out)
        return True
    if groups == 1 and _has_few_planes(data, kernel):
        _bind_planes(binder, data, filters, axes, name, out)
        return False
    together = _groups_at_once(groups, outputs, channels) if prod(kernel) > 1 else 1
    if together > 1:
        shape = groups // together, prod(kernel) * channels * together, outputs * together
        form = f"{name}, {together} groups at a time"
        _bind_columns(binder, image, axes, form, lambda: _matrices(_merged(filters, together)), shape, out)
        return True
    *others, last = axes
    count = _windows_at_once(last, outputs, channels * prod(kernel[:-1])) if groups == 1 else 1
    if count == 1:
        shape = groups, prod(kernel) * channels, outputs
        _bind_columns(binder, image, axes, name, lambda: _matrices(filters), shape, out)
        return False
    wide = _widened(last, count)
    shape = 1, prod(kernel[:-1]) * wide.kernel * channels, count * outputs
    wanted = out.shape
    is_whole = last.windows % count == 0
    target = out if is_whole else binder.scratch((*wanted[:-2], wide.windows * count, outputs), out.dtype)
    form = f"{name}, {count} windows at a time"
    grouped = target.reshape(*wanted[:-2], wide.windows, count * outputs)
    _bind_columns(binder, image, [*others, wide], form, lambda: _side_by_side(filters, last, count), shape, grouped)
    if not is_whole:
        binder.call(np.copyto, out, target[..., : last.windows, :])
    return True


def _has_few_planes(data: Array, kernel: Sequence[int]) -> bool:
    """Return whether the windows of data [N, C, *spatial] have so short rows, for all channels, that it is faster to
    copy them by planes."""
    most = _SHORT_RUN if data.flags.c_contiguous else _SHORTEST_RUN
    return bool(data.shape[-1] > 1 and data.shape[1] * kernel[-1] <= most)


def _rows(image: Array) -> Array | None:
    """Return the positions of an image [N, *spatial, C] as rows of a matrix that BLAS can read; None if it cannot."""
    matrix = image.reshape(-1, image.shape[-1])
    if not np.may_share_memory(matrix, image):
        return None
    size = image.itemsize
    return matrix if size in matrix.strides else None


def _matrices(filters: Array) -> Array:
    """Return filters [groups, outputs, inputs, *kernel] as matrices [groups, *kernel * inputs, outputs]."""
    groups, outputs, inputs, *kernel = filters.shape
    ordered = np.moveaxis(filters, (1, 2), (-1, -2))
    if prod(kernel) == 1 and filters.nbytes > _LARGEST_COPY:
        return ordered.reshape(groups, inputs, outputs)
    return np.ascontiguousarray(ordered).reshape(groups, prod(kernel) * inputs, outputs)


# --------------------------------------------------------------------------- several groups at a time

# The copy of what one tap reads of a group costs as much as so many multiply-accumulates; a smaller gain does not pay.
_RUN, _LEAST_GAIN = 250, 1.15


def _groups_at_once(groups: int, outputs: int, channels: int) -> int:
    """Return how many groups are best taken together: their filters get zeros for the channels of each other."""

    def cost(count: int) -> float:
        return (_RUN + count * outputs * count * channels) / count

    best = min((n for n in range(1, groups + 1) if groups % n == 0), key=cost)
    return best if cost(best) * _LEAST_GAIN < cost(1) else 1


def _merged(filters: Array, count: int) -> Array:
    """Return the filters [groups, outputs, inputs, *kernel] for ``count`` groups at a time, each with zeros for the
    others."""
    groups, outputs, inputs, *kernel = filters.shape
    wide = np.zeros((groups // count, count, outputs, count, inputs, *kernel), filters.dtype)
    for i in range(count):
        wide[:, i, :, i] = filters[i::count]
    return wide.reshape(groups // count, count * outputs, count * inputs, *kernel)


# --------------------------------------------------------------------------- several windows at a time

# The copy of an element costs as much as its product with so many columns of filters, and BLAS computes columns in
# vectors of so many.
_COPY, _VECTOR = 20, 8
# More windows at a time, and larger matrices, do not pay; nor does a gain smaller than this.
_MOST_WINDOWS, _LARGEST_MATRIX, _GAIN = 64, 1 << 20, 1.25


def _windows_at_once(axis: Axis, outputs: int, others: int) -> int:
    """Return the number of windows along the last axis that are best taken together.

    ``others`` is the number of elements that a window has for each tap along the axis.
    """

    def cost(count: int) -> float:
        wide = _widened(axis, count)
        columns = -(-count * outputs // _VECTOR) * _VECTOR
        copied = 0 if axis.windows % count == 0 else 2 * axis.windows * outputs
        return wide.windows * wide.kernel * others * (_COPY + columns) + copied * _COPY

    def size(count: int) -> int:
        return _widened(axis, count).kernel * others * count * outputs

    counts = [n for n in range(2, min(axis.windows, _MOST_WINDOWS) + 1) if size(n) <= _LARGEST_MATRIX]
    best = min(counts, key=cost, default=1)
    return best if cost(best) * _GAIN < cost(1) else 1


def _widened(axis: Axis, count: int) -> Axis:
    """Return how windows move that hold ``count`` neighbouring windows each."""
    if count == 1:
        return axis
    kernel = (axis.kernel - 1) * axis.dilation + 1 + (count - 1) * axis.stride
    return Axis(kernel, count * axis.stride, 1, axis.pad_begin, -(-axis.windows // count))


def _side_by_side(filters: Array, axis: Axis, count: int) -> Array:
    """Return the filters [1, outputs, inputs, *kernel] for ``count`` windows at a time, as one matrix [1, *wide kernel
    * inputs, count * outputs]."""
    _, outputs, inputs, *kernel = filters.shape
    ordered = np.moveaxis(filters[0], (0, 1), (-1, -2))
    wide = np.zeros((*kernel[:-1], _widened(axis, count).kernel, inputs, count, outputs), filters.dtype)
    span = (axis.kernel - 1) * axis.dilation + 1
    for window in range(count):
        start = window * axis.stride
        wide[..., start : start + span : axis.dilation, :, window, :] = ordered
    return wide.reshape(1, -1, count * outputs)


# --------------------------------------------------------------------------- columns and products


def _bind_columns(
    binder: Binder,
    image: Array,
    axes: Sequence[Axis],
    form: str,
    make: Callable[[], Array],
    shape: tuple[int, int, int],
    out: Array,
) -> None:
    """Bind the copy of windows [N, *windows, *kernel, C] to rows, and the product with matrices [groups, length,
    depth]."""
    groups, length, depth = shape
    view = windows(padded_image(binder, image, axes), axes)
    spatial = len(axes)
    channels = view.shape[-1] // groups
    # Along the first spatial axis, blocks of windows are small enough for a cache.
    count, rest = view.shape[1], prod(view.shape[2 : 1 + spatial])
    row_bytes = rest * groups * (length + depth) * view.itemsize
    work = out.size * length
    workers = max(min(work // SHARED, threads()), 1)
    step = max(min(_BLOCK_BYTES // max(row_bytes, 1), -(-count // workers)), 1)
    places = [(n, slice(i, min(i + step, count))) for n in range(view.shape[0]) for i in range(0, count, step)]
    memory = [binder.scratch((step * rest * groups * length,), view.dtype) for _ in range(min(workers, len(places)))]
    split = (*view.shape[:-1], groups, channels)
    grouped = np.moveaxis(view.reshape(split) if groups > 1 else view[..., np.newaxis, :], -2, 1 + spatial)
    shares: list[list[Call]] = [[] for _ in memory]
    product: Product | None = None
    for index, (n, place) in enumerate(places):
        source = grouped[n, place]
        target = memory[index % len(memory)][: source.size].reshape(source.shape)
        rows = source.size // (groups * length)
        columns, result = target.reshape(rows, groups, length), out[n, place].reshape(rows, groups, depth)
        if groups == 1:
            columns, result = columns[:, 0], result[:, 0]
        else:
            columns, result = columns.swapaxes(0, 1), result.swapaxes(0, 1)
        product = product or filter_product(binder, form, make, shape, columns)
        shares[index % len(memory)] += [(np.copyto, (target, source)), *product(columns, result, False)]
    call_shares(binder, shares)


# --------------------------------------------------------------------------- few channels

# The elements that a tap reads for all windows make a column of a matrix, so that NumPy copies long runs, and no copy
# with the channels last is needed. Images with few channels, such as the input of most networks, are copied so.
# Columns of a block of windows stay in a cache.
_PLANES_BYTES = 1 << 19
# Elements between columns: if columns lay apart by a power of two, they would share few places of the cache.
_GAP = 16


def _bind_planes(binder: Binder, data: Array, filters: Array, axes: Sequence[Axis], name: str, out: Array) -> None:
    """Bind a convolution of data [N, C, *spatial] with filters [1, outputs, C, *kernel] to out [N, *windows, outputs].

    ``name`` tells these filters from others that come from the same constant.
    """
    view = _plane_windows(_padded_planes(binder, data, axes), axes)
    outputs, length = filters.shape[1], prod(filters.shape[2:])
    # Along the first spatial axis, blocks of windows are small enough for a cache.
    first = 2 + len(axes)
    count, rest = view.shape[first], prod(view.shape[first + 1 :])
    workers = max(min(out.size * length // SHARED, threads()), 1)
    step = max(min(_PLANES_BYTES // max(rest * length * view.itemsize, 1), -(-count // workers)), 1)
    memory = [binder.scratch((length, step * rest + _GAP), view.dtype) for _ in range(workers)]
    product: Product | None = None
    shares: list[list[Call]] = [[] for _ in memory]
    places = [(n, i) for n in range(view.shape[0]) for i in range(0, count, step)]
    for index, (n, start) in enumerate(places):
        source = view[n][(slice(None),) * (first - 1) + (slice(start, start + step),)]
        result = out[n, start : start + step].reshape(-1, outputs)
        columns = memory[index % workers][:, : len(result)]
        rows = columns.T
        product = product or filter_product(
            binder, f"{name} by planes", lambda: _by_planes(filters), (1, length, outputs), rows
        )
        copy: Call = np.copyto, (columns.reshape(source.shape), source)
        shares[index % workers] += [copy, *product(rows, result, False)]
    call_shares(binder, [share for share in shares if share])


def _by_planes(filters: Array) -> Array:
    """Return filters [1, outputs, inputs, *kernel] as a matrix [1, inputs * kernel, outputs]."""
    return np.ascontiguousarray(filters[0].reshape(filters.shape[1], -1).T)[np.newaxis]


def _padded_planes(binder: Binder, data: Array, axes: Sequence[Axis]) -> Array:
    """Return data [N, C, *spatial] in C order with a border of zeros, and add the calls that fill it; data itself if it
    needs neither."""
    sizes = [axis.padded(size) for axis, size in zip(axes, data.shape[2:], strict=True)]
    border = [(a.pad_begin, s - n - a.pad_begin) for a, s, n in zip(axes, sizes, data.shape[2:], strict=True)]
    has_border = any(begin or end for begin, end in border)
    if not has_border and data.flags.c_contiguous:
        return data
    shape = (*data.shape[:2], *sizes)
    if has_border and prod(shape) * data.itemsize <= KEPT_BYTES:
        planes = binder.kept(shape, data.dtype)
    else:
        planes = binder.scratch(shape, data.dtype)
        for function, arguments in border_calls(planes, [(0, 0), (0, 0), *border]):
            binder.call(function, *arguments)
    spatial = zip(border, data.shape[2:], strict=True)
    inside = slice(None), slice(None), *(slice(begin, begin + size) for (begin, _), size in spatial)
    binder.call(np.copyto, planes[inside], data)
    return planes


def _plane_windows(planes: Array, axes: Sequence[Axis]) -> Array:
    """Return a view [N, C, *kernel, *windows] of padded planes [N, C, *spatial]."""
    steps = planes.strides[2:]
    shape = (*planes.shape[:2], *(a.kernel for a in axes), *(a.windows for a in axes))
    taps = (step * a.dilation for step, a in zip(steps, axes, strict=True))
    places = (step * a.stride for step, a in zip(steps, axes, strict=True))
    return as_strided(planes, shape, (*planes.strides[:2], *taps, *places), writeable=False)
