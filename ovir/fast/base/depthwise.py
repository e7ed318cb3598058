"""Depthwise convolutions: sums of products along rows of images whose channels are the fastest axis in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, einsum
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts
from ovir.fast.base.images import Axis, filter_copy, padded_image, windows

_SUMMED = 400_000
"""With this many multiply-accumulates per thread, sums of products are shared among threads."""
_FEW_CHANNELS = 128
"""With a stride, so many channels of one window are enough for an inner loop. With one window at a time, 24 channels of
64 x 64 take 1.6 times as long."""
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
    """
    *others, last = axes
    channels = image.shape[-1]
    if last.stride > 1 and last.dilation == 1 and channels < _FEW_CHANNELS:
        for tap in range(min(last.stride, last.kernel)):
            taps, first = filters[..., tap :: last.stride, :], tap - last.pad_begin
            along = Axis(taps.shape[-2], 1, 1, max(-(first // last.stride), 0), last.windows)
            columns = image[..., first + along.pad_begin * last.stride :: last.stride, :]
            sums = binder.scratch(out.shape, out.dtype) if tap else out
            bind_depthwise(binder, columns, taps, [*others, along], sums, f"taps from {tap}")
            if tap:
                binder.call(np.add, out, sums, out)
        return
    runs = _runs(axes, image.shape[1])
    image = padded_image(binder, image, axes)
    view = windows(image, axes)
    together = _windows_of_part(last.windows, channels) if last.stride == 1 else 1
    row = together * channels
    repeated = np.broadcast_to(filters[..., np.newaxis, :], (*filters.shape[:-1], together, channels))
    weights = filter_copy(binder, f"{form} {together} times", repeated, image.dtype).reshape(*filters.shape[:-1], row)
    if together > 1:
        # The channels of windows that are neighbors follow each other in memory.
        parts = last.windows // together
        shape, strides = list(view.shape), list(view.strides)
        shape[len(axes)], shape[-1] = parts, row
        strides[len(axes)] *= together
        view = as_strided(view, shape, strides, writeable=False)
        out = out.reshape(*out.shape[:-2], parts, row)
    _bind_sums(binder, view, weights, runs, out)


Run = tuple[slice, slice]
"""Neighboring windows along the first axis, and the taps along it that they need."""


def _runs(axes: Sequence[Axis], size: int) -> list[Run]:
    """Return all windows along the first axis of data of a size, with the taps that do not read only zeros around the
    data, of which one is always left; with all taps, if nearly all are needed."""
    axis = axes[0]
    start = np.arange(axis.windows) * axis.stride - axis.pad_begin
    first = np.clip(-(start // axis.dilation), 0, axis.kernel - 1)
    last = np.clip((size - 1 - start) // axis.dilation, first, axis.kernel - 1)
    if len(axes) == 1 or (last - first + 1).sum() > _MOST_USED * axis.windows * axis.kernel:
        return [(slice(0, axis.windows), slice(0, axis.kernel))]
    begins = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(last, prepend=-1)).tolist()
    ends = [*begins[1:], axis.windows]
    return [(slice(i, j), slice(int(first[i]), int(last[i]) + 1)) for i, j in zip(begins, ends, strict=True)]


def _windows_of_part(windows: int, channels: int) -> int:
    """Return the number of windows along the last axis to compute together, which divides the number of all."""
    few = next(n for n in range(windows, 0, -1) if windows % n == 0 and (n == 1 or n * channels <= _LONGEST))
    return few if few * channels >= _SHORTEST else windows


def _bind_sums(binder: Binder, view: Array, weights: Array, runs: Sequence[Run], out: Array) -> None:
    """Bind the sum of products over all taps, for a view [N, *windows, *kernel, row] and weights [*kernel, row]."""
    spatial = weights.ndim - 1
    taps, places = "ijk"[:spatial], "abcd"[: spatial + 1]
    subscripts = f"{places}{taps}z,{taps}z->{places}z"
    workers = max(min(out.size * prod(weights.shape[:-1]) // _SUMMED, threads()), 1)
    axis = max((i for i in range(spatial + 1) if i != 1 or len(runs) == 1), key=lambda axis: out.shape[axis])
    shares: list[list[Call]] = []
    for place in cuts(out.shape[axis], min(workers, out.shape[axis])):
        part = (slice(None),) * axis + (place,)
        shares.append([])
        for along, used in runs:
            inner = slice(None), along, *[slice(None)] * (spatial - 1), used
            shares[-1].append((_sum_products, (subscripts, view[part][inner], weights[used], out[part][:, along])))
    call_shares(binder, shares)


def _sum_products(subscripts: str, view: Array, weights: Array, out: Array) -> None:
    einsum(subscripts, view, weights, out=out)
