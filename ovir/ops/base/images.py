"""Bound convolutions of images whose channels are the fastest axis in memory (N, H, W, C), for 1 to 3 spatial axes.

The windows of an image are a strided view of it. One copy makes each window a row of a matrix, and one product with the
filters gives all channels of each output position. Depthwise convolutions are sums of products along rows of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.kernels.fast_calls import einsum
from ovir.kernels.parallel import threads
from ovir.ops.base.binding import KEPT_BYTES, Binder, Call, border_calls, call_shares
from ovir.ops.base.products import SHARED, bind_product, in_pieces


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


# Columns of a block of windows, and the rows that the product makes of them, stay in a cache.
_BLOCK_BYTES = 1 << 20
# With this many multiply-accumulates per thread, sums of products are shared among threads.
_SUMMED = 400_000


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


def bind_dense(binder: Binder, data: Array, weights: Array, axes: Sequence[Axis]) -> None:
    """Bind a convolution of data [N, C, *spatial] with weights [groups, *kernel * C / groups, outputs / groups]."""
    groups, _, depth = weights.shape
    out = channels_last(binder.output(order=channels_last_order(data.ndim)))
    image = channels_last(data)
    is_pointwise = all(a.kernel == 1 and a.stride == 1 and not a.pad_begin for a in axes)
    if is_pointwise and all(a.windows == size for a, size in zip(axes, image.shape[1:-1], strict=True)):
        rows = _rows(image)
        if rows is not None and groups == 1:
            bind_product(binder, rows, weights[0], out.reshape(-1, depth))
            return
    _bind_columns(binder, windows(padded_image(binder, image, axes), axes), weights, out)


def _rows(image: Array) -> Array | None:
    """Return the positions of an image [N, *spatial, C] as rows of a matrix that BLAS can read; None if it cannot."""
    matrix = image.reshape(-1, image.shape[-1])
    if not np.may_share_memory(matrix, image):
        return None
    size = image.itemsize
    return matrix if size in matrix.strides else None


def _bind_columns(binder: Binder, view: Array, weights: Array, out: Array) -> None:
    """Bind the copy of windows [N, *windows, *kernel, C] to rows, and the product with the weights."""
    groups, length, depth = weights.shape
    spatial = out.ndim - 2
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
    blocks = []
    for index, (n, place) in enumerate(places):
        source = grouped[n, place]
        target = memory[index % len(memory)][: source.size].reshape(source.shape)
        rows = source.size // (groups * length)
        result = out[n, place].reshape(rows, groups, depth)
        columns = target.reshape(rows, groups, length)
        blocks.append((target, source, columns.swapaxes(0, 1), result.swapaxes(0, 1)))
    if groups == 1:
        products = [in_pieces(columns[0], weights[0], result[0]) for _, _, columns, result in blocks]
    else:
        products = [(columns, weights, result) for _, _, columns, result in blocks]
    shares: list[list[Call]] = [[] for _ in memory]
    for index, ((target, source, _, _), product) in enumerate(zip(blocks, products, strict=True)):
        shares[index % len(memory)] += [(np.copyto, (target, source)), (np.matmul, product)]
    call_shares(binder, shares)


def bind_depthwise(binder: Binder, data: Array, weights: Array, axes: Sequence[Axis]) -> None:
    """Bind a convolution of each channel of data [N, C, *spatial] with its own filter, weights [*kernel, C].

    One ``einsum`` adds up the products of a row of the image with all taps, so that its inner loop runs over all
    channels of a row. With a stride along the last axis, the columns of the image are sorted by their remainder first.
    """
    order = channels_last_order(data.ndim)
    bordered = binder.bordered_output(order)
    out = channels_last(binder.output(order=order) if bordered is None else bordered)
    image = padded_image(binder, channels_last(data), axes)
    *_, last = axes
    channels = image.shape[-1]
    row = last.windows * channels
    tiles = np.tile(weights, (*[1] * (weights.ndim - 1), last.windows))  # [*kernel, windows * C]
    if last.stride > 1:
        image = _sorted_columns(binder, image, last)
    groups: dict[int, list[int]] = {}
    for tap in range(last.kernel):
        groups.setdefault(tap * last.dilation % last.stride, []).append(tap)
    target = out.reshape(*out.shape[:-2], row)
    terms = []
    for taps in groups.values():
        runs = [_run(image, last, tap, row) for tap in taps]
        steps = {_offset(b) - _offset(a) for a, b in pairwise(runs)}
        assert len(steps) <= 1
        step = next(iter(steps), 0)
        terms.append((_with_taps(runs[0], axes[:-1], len(taps), step), np.ascontiguousarray(tiles[..., taps, :])))
    _bind_sums(binder, terms, target, len(axes))


def _sorted_columns(binder: Binder, image: Array, axis: Axis) -> Array:
    """Return a copy of an image [N, ..., W, C] as [N, ..., stride, W / stride, C], made in each run."""
    *lead, width, channels = image.shape
    length = -(-width // axis.stride)
    planes = binder.scratch((*lead, axis.stride, length, channels), image.dtype)
    for remainder in range(axis.stride):
        columns = image[..., remainder :: axis.stride, :]
        binder.call(np.copyto, planes[..., remainder, : columns.shape[-2], :], columns)
    return planes


def _offset(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _run(image: Array, axis: Axis, tap: int, row: int) -> Array:
    """Return [N, ..., windows * C], what a tap along the last spatial axis reads in each row of the image."""
    start = tap * axis.dilation
    first = image[..., start % axis.stride, start // axis.stride, :] if axis.stride > 1 else image[..., start, :]
    return as_strided(first, (*first.shape[:-1], row), (*first.strides[:-1], image.itemsize), writeable=False)


def _with_taps(runs: Array, axes: Sequence[Axis], taps: int, step: int) -> Array:
    """Return [N, *windows, *kernel, windows * C] for the other axes and for taps that are ``step`` bytes apart."""
    strides = runs.strides[1:-1]
    shape = (runs.shape[0], *(a.windows for a in axes), *(a.kernel for a in axes), taps, runs.shape[-1])
    return as_strided(
        runs,
        shape,
        (
            runs.strides[0],
            *(stride * a.stride for stride, a in zip(strides, axes, strict=True)),
            *(stride * a.dilation for stride, a in zip(strides, axes, strict=True)),
            step,
            runs.strides[-1],
        ),
        writeable=False,
    )


def _bind_sums(binder: Binder, terms: Sequence[tuple[Array, Array]], out: Array, spatial: int) -> None:
    """Bind the sum of products over all taps, for views [N, *windows, *kernel, row] and weights [*kernel, row]."""
    places, taps = "abcd"[:spatial], "ijk"[:spatial]
    sums = partial(_sum_products, f"{places}{taps}z,{taps}z->{places}z")
    term = binder.scratch(out.shape, out.dtype) if len(terms) > 1 else out
    work = out.size * sum(prod(weights.shape[:-1]) for _, weights in terms)
    workers = min(work // _SUMMED, threads())
    axis = int(out.ndim > 2 and out.shape[0] == 1)
    if workers < 2 or out.shape[axis] < workers:
        call_shares(binder, [_sum_calls(sums, terms, out, term)])
        return
    step = -(-out.shape[axis] // workers)
    places_of = [(slice(None),) * axis + (slice(i, i + step),) for i in range(0, out.shape[axis], step)]
    shares = [
        _sum_calls(sums, [(view[place], weights) for view, weights in terms], out[place], term[place])
        for place in places_of
    ]
    call_shares(binder, shares)


def _sum_calls(
    sums: Callable[..., object], terms: Sequence[tuple[Array, Array]], out: Array, term: Array
) -> list[Call]:
    (view, weights), *others = terms
    calls: list[Call] = [(sums, (view, weights, out))]
    for view, weights in others:
        calls += [(sums, (view, weights, term)), (np.add, (out, term, out))]
    return calls


def _sum_products(subscripts: str, view: Array, weights: Array, out: Array) -> None:
    einsum(subscripts, view, weights, out=out)
