"""Bound convolutions of images with few channels, such as the first one of most networks.

The elements that a tap reads for all windows make a column of a matrix, so that NumPy copies long runs, and no copy
with the channels last is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ovir.core.arrays import Array
from ovir.fast.base.binding import KEPT_BYTES, Binder, Call, border_calls, call_shares
from ovir.fast.base.images import Axis
from ovir.fast.base.packed import SHARED
from ovir.fast.base.products import Product, filter_product
from ovir.kernels.parallel import threads

# Columns of a block of windows stay in a cache.
_BLOCK_BYTES = 1 << 19
# Elements between columns: if columns lay apart by a power of two, they would share few places of the cache.
_GAP = 16


def bind_planes(binder: Binder, data: Array, filters: Array, axes: Sequence[Axis], name: str, out: Array) -> None:
    """Bind a convolution of data [N, C, *spatial] with filters [1, outputs, C, *kernel] to out [N, *windows, outputs].

    ``name`` tells these filters from others that come from the same constant.
    """
    view = _plane_windows(_padded_planes(binder, data, axes), axes)
    outputs, length = filters.shape[1], prod(filters.shape[2:])
    # Along the first spatial axis, blocks of windows are small enough for a cache.
    first = 2 + len(axes)
    count, rest = view.shape[first], prod(view.shape[first + 1 :])
    workers = max(min(out.size * length // SHARED, threads()), 1)
    step = max(min(_BLOCK_BYTES // max(rest * length * view.itemsize, 1), -(-count // workers)), 1)
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
