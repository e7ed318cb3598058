"""Depthwise convolutions: sums of products along rows of images whose channels are the fastest axis in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, einsum
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts
from ovir.fast.base.images import Axis, filter_copy, padded_image, windows

_SUMMED = 400_000
"""With this many multiply-accumulates per thread, sums of products are shared among threads."""
_FEW_CHANNELS = 7
"""With a stride, so many channels for each tap are enough for an inner loop over one window. With one window at a time,
24 channels of 64 x 64 and filters of 3 x 3 take 1.6 times as long, but 96 channels of 112 x 112 take 0.5 times as
long."""
_CALL, _COLUMN = 4096, 128
"""A call of ``einsum`` costs as much as the copy of so many elements, and the inner loop of a tap over the channels of
one window as much as the copy of so many. Where zeros around the data cost more than the copy of an image, the image is
not copied: 144 channels of 56 x 56 take 0.8 times as long, and with a stride of 2, 0.7 times."""
_MOST_USED = 0.85
"""Taps that read only zeros are left out if no more than this part of all remains. With all taps, ppocr_cls takes 1.2
times as long."""
_SHORTEST, _LONGEST = 512, 2048
"""Elements of the parts of rows that are computed together: the weights of all taps, repeated for these, have to stay
in a cache, and each part costs a call of NumPy's inner loop. With whole rows, ppocr_cls takes 1.34 times as long; with
single windows, ir_mp_face_detection takes 1.97 times as long."""


def bind_depthwise(
    binder: Binder, image: Array, filters: Array, axes: Sequence[Axis], out: Array, form: str = "taps"
) -> None:
    """Bind a convolution of each channel of an image [N, *spatial, C] with its own filter, a view [*kernel, C] of the
    filters, to out [N, *windows, C].

    One ``einsum`` adds up the products of parts of rows of the image with all taps, so that its inner loop runs over
    all channels of several windows. With a stride along the last axis it runs over the channels of one window; if they
    are few, the columns that the first, second, ... of each ``stride`` taps read are images of their own.

    Windows that reach beyond the image are computed apart, with the taps that read data; or a copy of the image has a
    border of zeros.
    """
    *others, last = axes
    channels = image.shape[-1]
    if last.stride > 1 and last.dilation == 1 and channels < _FEW_CHANNELS * prod(filters.shape[:-1]):
        for tap in range(min(last.stride, last.kernel)):
            taps, first = filters[..., tap :: last.stride, :], tap - last.pad_begin
            along = Axis(taps.shape[-2], 1, 1, max(-(first // last.stride), 0), last.windows)
            columns = image[..., first + along.pad_begin * last.stride :: last.stride, :]
            part = binder.scratch(out.shape, out.dtype) if tap else out
            bind_depthwise(binder, columns, taps, [*others, along], part, f"taps from {tap}")
            if tap:
                binder.call(np.add, out, part, out)
        return
    runs = [_runs(axis, size) for axis, size in zip(axes, image.shape[1:-1], strict=True)]
    if not image[(0,) * len(axes)].flags.c_contiguous or not _is_cheaper(runs, image):
        image = padded_image(binder, image, axes)
        along_first = [run._replace(begin=run.begin + axes[0].pad_begin) for run in runs[0]]
        runs = [[Run(a, slice(0, a.windows), slice(0, a.kernel), 0)] for a in axes]  # all windows with all taps
        if len(axes) > 1 and sum(run.products for run in along_first) <= _MOST_USED * runs[0][0].products:
            runs[0] = along_first
    sums: list[Sums] = []
    repeated: dict[int, Array] = {}
    for parts in product(*runs):
        target = out[:, *(run.place for run in parts)]
        if not all(run.products for run in parts):
            binder.call(target.fill, 0)  # windows that read only zeros
            continue
        view = windows(image[:, *(slice(run.begin, None) for run in parts)], [run.axis for run in parts])
        together = _windows_of_part(parts[-1].axis.windows, channels) if last.stride == 1 else 1
        if together not in repeated:
            copies = np.broadcast_to(filters[..., np.newaxis, :], (*filters.shape[:-1], together, channels))
            copies = filter_copy(binder, f"{form} {together} times", copies, image.dtype)
            repeated[together] = copies.reshape(*filters.shape[:-1], together * channels)
        weights = repeated[together][tuple(run.taps for run in parts)]
        if together > 1:
            # The channels of windows that are neighbors follow each other in memory.
            target = target.reshape(*target.shape[:-2], -1, together * channels)
            strides = list(view.strides)
            strides[len(axes)] *= together
            view = as_strided(view, (*target.shape[:-1], *weights.shape), strides, writeable=False)
        sums.append((view, weights, target))
    _bind_sums(binder, sums)


class Run(NamedTuple):
    """Neighboring windows along an axis that need the same taps: those that read data, not the zeros around it."""

    axis: Axis
    """The windows alone, with these taps alone."""
    place: slice
    """The windows among all of the axis."""
    taps: slice
    """The taps among all of the filter."""
    begin: int
    """The first element of the data that they read."""

    @property
    def products(self) -> int:
        """Return the number of pairs of a window and a tap."""
        return self.axis.windows * self.axis.kernel


Sums = tuple[Array, Array, Array]
"""A view of an image [N, *windows, *kernel, row], weights [*kernel, row] and the sums of their products [N, *windows,
row]."""


def _runs(axis: Axis, size: int) -> list[Run]:
    """Return the windows along an axis of data of a size, each run with the taps that it needs, maybe none."""
    start = np.arange(axis.windows) * axis.stride - axis.pad_begin
    first = np.clip(-(start // axis.dilation), 0, axis.kernel)
    end = np.clip((size - 1 - start) // axis.dilation + 1, first, axis.kernel)
    changes = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(end, prepend=-1)).tolist()
    runs: list[Run] = []
    for i, j in pairwise([*changes, axis.windows]):
        taps = slice(int(first[i]), int(end[i]))
        part = axis._replace(kernel=taps.stop - taps.start, windows=j - i)
        runs.append(Run(part, slice(i, j), taps, int(start[i]) + taps.start * axis.dilation))
    return runs


def _is_cheaper(runs: Sequence[Sequence[Run]], image: Array) -> bool:
    """Return whether these runs cost less than a copy of an image with a border of zeros."""
    taps = prod(max(run.axis.kernel for run in along) for along in runs)
    columns = sum(run.axis.windows for run in runs[-1]) - max(run.axis.windows for run in runs[-1])
    return image.size >= prod(map(len, runs)) * _CALL and prod(image.shape[-2:]) >= columns * taps * _COLUMN


def _windows_of_part(windows: int, channels: int) -> int:
    """Return the number of windows along the last axis to compute together, which divides the number of all."""
    few = next(n for n in range(windows, 0, -1) if windows % n == 0 and (n == 1 or n * channels <= _LONGEST))
    return few if few * channels >= _SHORTEST else windows


def _bind_sums(binder: Binder, sums: Sequence[Sums]) -> None:
    """Bind sums of products over all taps."""
    work = sum(out.size * prod(weights.shape[:-1]) for _, weights, out in sums)
    shares: list[list[Call]] = [[] for _ in range(max(min(work // _SUMMED, threads()), 1))]
    for view, weights, out in sums:
        taps, places = "ijk"[: weights.ndim - 1], "abcd"[: weights.ndim]
        subscripts = f"{places}{taps}z,{taps}z->{places}z"
        axis = max(range(weights.ndim), key=lambda axis: out.shape[axis])
        part = (slice(None),) * axis
        for share, place in zip(shares, cuts(out.shape[axis], min(len(shares), out.shape[axis])), strict=False):
            share.append((_sum_products, (subscripts, view[*part, place], weights, out[*part, place])))
    call_shares(binder, shares)


def _sum_products(subscripts: str, view: Array, weights: Array, out: Array) -> None:
    einsum(subscripts, view, weights, out=out)
