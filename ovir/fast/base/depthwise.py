"""Depthwise convolutions: sums of products along rows of images whose channels are the fastest axis in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, Call, call_shares
from ovir.fast.base.images import Axis, channels_last, channels_last_order, padded_image, windows
from ovir.kernels.fast_calls import einsum
from ovir.kernels.parallel import threads

# With this many multiply-accumulates per thread, sums of products are shared among threads.
_SUMMED = 400_000
# Elements of the parts of rows that are computed together: the weights of all taps, repeated for these, have to stay in
# a cache, and each part costs a call of NumPy's inner loop.
_SHORTEST, _LONGEST = 512, 2048
# With a stride, the channels of one window are enough for a loop if there are so many of them.
_WIDE = 192
# Taps that read only zeros are left out for each window if no more than this part of all remains.
_MOST_USED = 0.85

Term = tuple[Array, Array]
"""A view of an image for some of the taps along the last axis, and their weights."""


def bind_depthwise(binder: Binder, data: Array, weights: Array, axes: Sequence[Axis]) -> None:
    """Bind a convolution of each channel of data [N, C, *spatial] with its own filter, weights [*kernel, C].

    One ``einsum`` adds up the products of parts of rows of the image with all taps, so that its inner loop runs over
    all channels of several windows. With a stride along the last axis, the columns of the image are sorted by their
    remainder first, unless the channels of a single window are enough for a loop.
    """
    order = channels_last_order(data.ndim)
    bordered = binder.bordered_output(order)
    out = channels_last(binder.output(order=order) if bordered is None else bordered)
    image = padded_image(binder, channels_last(data), axes)
    *_, last = axes
    channels = image.shape[-1]
    edges = _edges(axes, data.shape[2])
    if last.stride > 1 and channels >= _WIDE:
        _bind_sums(binder, [(windows(image, axes), weights)], out, len(axes), edges)
        return
    together = _windows_of_part(last.windows, channels)
    parts, row = last.windows // together, together * channels
    tiles = np.tile(weights, (*[1] * (weights.ndim - 1), together))  # [*kernel, windows of a part * C]
    if last.stride > 1:
        image = _sorted_columns(binder, image, last)
    groups: dict[int, list[int]] = {}
    for tap in range(last.kernel):
        groups.setdefault(tap * last.dilation % last.stride, []).append(tap)
    target = out.reshape(*out.shape[:-2], parts, row)
    terms = []
    for taps in groups.values():
        runs = [_run(image, last, tap, parts, row) for tap in taps]
        steps = {_offset(b) - _offset(a) for a, b in pairwise(runs)}
        assert len(steps) <= 1
        step = next(iter(steps), 0)
        terms.append((_with_taps(runs[0], axes[:-1], len(taps), step), np.ascontiguousarray(tiles[..., taps, :])))
    _bind_sums(binder, terms, target, len(axes), edges)


def _edges(axes: Sequence[Axis], size: int) -> list[tuple[slice, slice]]:
    """Return runs of windows along the first axis with the taps that they need; none if nearly all taps are needed."""
    first, *others = axes
    runs = _runs_of_windows(first, size) if others else []
    used = sum((windows.stop - windows.start) * (taps.stop - taps.start) for windows, taps in runs)
    return runs if used <= _MOST_USED * first.windows * first.kernel else []


def _runs_of_windows(axis: Axis, size: int) -> list[tuple[slice, slice]]:
    """Return runs of windows along an axis of data, each with the taps that do not read only zeros around the data; one
    tap is always left."""
    start = np.arange(axis.windows) * axis.stride - axis.pad_begin
    first = np.clip(-(start // axis.dilation), 0, axis.kernel - 1)
    last = np.clip((size - 1 - start) // axis.dilation, first, axis.kernel - 1)
    begins = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(last, prepend=-1)).tolist()
    ends = [*begins[1:], axis.windows]
    return [
        (slice(begin, end), slice(int(first[begin]), int(last[begin]) + 1))
        for begin, end in zip(begins, ends, strict=True)
    ]


def _windows_of_part(windows: int, channels: int) -> int:
    """Return how many windows along the last axis are computed together: a divisor of their number."""
    few = next(n for n in range(windows, 0, -1) if windows % n == 0 and (n == 1 or n * channels <= _LONGEST))
    return few if few * channels >= _SHORTEST else windows


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


def _run(image: Array, axis: Axis, tap: int, parts: int, row: int) -> Array:
    """Return [N, ..., parts, windows of a part * C], what a tap along the last spatial axis reads in each row of the
    image."""
    start = tap * axis.dilation
    first = image[..., start % axis.stride, start // axis.stride, :] if axis.stride > 1 else image[..., start, :]
    size = image.itemsize
    return as_strided(first, (*first.shape[:-1], parts, row), (*first.strides[:-1], row * size, size), writeable=False)


def _with_taps(runs: Array, axes: Sequence[Axis], taps: int, step: int) -> Array:
    """Return [N, *windows, parts, *kernel, row] for the other axes and for taps that are ``step`` bytes apart."""
    strides = runs.strides[1:-2]
    parts, row = runs.shape[-2:]
    shape = (runs.shape[0], *(a.windows for a in axes), parts, *(a.kernel for a in axes), taps, row)
    return as_strided(
        runs,
        shape,
        (
            runs.strides[0],
            *(stride * a.stride for stride, a in zip(strides, axes, strict=True)),
            runs.strides[-2],
            *(stride * a.dilation for stride, a in zip(strides, axes, strict=True)),
            step,
            runs.strides[-1],
        ),
        writeable=False,
    )


def _bind_sums(
    binder: Binder, terms: Sequence[Term], out: Array, spatial: int, runs: Sequence[tuple[slice, slice]]
) -> None:
    """Bind the sum of products over all taps, for views [N, *windows, parts, *kernel, row] and weights [*kernel,
    row].

    ``runs`` are the windows along the first spatial axis that need only some of the taps along it.
    """
    places, taps = "abcd"[: spatial + 1], "ijk"[:spatial]
    sums = partial(_sum_products, f"{places}{taps}z,{taps}z->{places}z")
    term = binder.scratch(out.shape, out.dtype) if len(terms) > 1 else out
    work = out.size * sum(prod(weights.shape[:-1]) for _, weights in terms)
    workers = min(work // _SUMMED, threads())
    axis = max((i for i in range(out.ndim - 1) if i != 1 or not runs), key=lambda axis: out.shape[axis])
    step = -(-out.shape[axis] // max(workers, 1)) if out.shape[axis] >= workers else out.shape[axis]
    shares: list[list[Call]] = []
    for start in range(0, out.shape[axis], step):
        place = (slice(None),) * axis + (slice(start, start + step),)
        parts = [(view[place], weights) for view, weights in terms]
        shares.append([])
        for along, used in runs or [(slice(None), slice(None))]:
            inner = slice(None), along, *[slice(None)] * (spatial - 1), used
            some = [(view[inner], weights[used]) for view, weights in parts]
            shares[-1] += _sum_calls(sums, some, out[place][:, along], term[place][:, along])
    call_shares(binder, shares)


def _sum_calls(sums: Callable[..., object], terms: Sequence[Term], out: Array, term: Array) -> list[Call]:
    (view, weights), *others = terms
    calls: list[Call] = [(sums, (view, weights, out))]
    for view, weights in others:
        calls += [(sums, (view, weights, term)), (np.add, (out, term, out))]
    return calls


def _sum_products(subscripts: str, view: Array, weights: Array, out: Array) -> None:
    einsum(subscripts, view, weights, out=out)
