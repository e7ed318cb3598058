"""ConvolutionBackpropData and GroupConvolutionBackpropData: products with some taps at a time, added up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, call_elementwise
from ovir.fast.base.images import channels_last, channels_last_order
from ovir.fast.base.moves import bind_copy
from ovir.fast.base.products import bind_product, is_readable
from ovir.fast.registry import fast
from ovir.kernels.windows import Window
from ovir.ops.convolution_backprop import TransposedConvolutionBase

_PRODUCTS = 1 << 18
"""Elements that the products of the taps of one step have at most, unless a single tap has more."""


@fast(TransposedConvolutionBase)
def transposed_convolution(op: TransposedConvolutionBase, binder: Binder, *inputs: Array) -> bool:
    data, filters, *sizes = inputs
    if not all(map(binder.is_constant, range(1, len(inputs)))) or data.dtype not in (np.float32, np.float64):
        return False
    grouped = op.grouped(filters)
    _, depth, outputs, *kernel = grouped.shape
    if not data.size or 0 in grouped.shape or 0 in binder.output_shape() or depth == outputs == 1:
        return False
    windows, _ = op.windows_of_output(data.shape[2:], kernel, sizes[0] if sizes else None)
    _bind_transposed(binder, data, binder.prepared("taps", lambda: _tap_matrices(grouped)), windows)
    return True


def _bind_transposed(binder: Binder, data: Array, weights: Array, windows: Sequence[Window]) -> None:
    """Bind a transposed convolution of data [N, groups * C, *spatial] with weights [groups, C, taps, outputs].

    ``windows`` say for each spatial axis where the taps of an element of the data lie in the output.
    """
    groups, depth, taps, outputs = weights.shape
    out = channels_last(binder.output(order=channels_last_order(data.ndim)))
    spatial, sizes = data.shape[2:], out.shape[1:-1]
    places = list(product(*(_taps(w, size, n) for w, size, n in zip(windows, sizes, spatial, strict=True))))
    target = out.reshape(*out.shape[:-1], groups, outputs)
    rows = _rows(binder, data)
    factors = rows.reshape(len(rows), groups, depth).swapaxes(0, 1)
    step = max(min(_PRODUCTS // max(len(rows) * groups * outputs, 1), taps), 1)
    products = binder.scratch((groups, len(rows), step * outputs), data.dtype)
    if step == taps and all(map(_is_tiled, windows, spatial, sizes)):
        bind_product(binder, factors, weights.reshape(groups, depth, -1), products)
        _bind_tiles(binder, products, data, [w.kernel for w in windows], target)
        return
    binder.call(out.fill, 0)
    for first in range(0, taps, step):
        count = min(step, taps - first)
        part = products[..., : count * outputs]
        bind_product(binder, factors, weights[:, :, first : first + count].reshape(groups, depth, -1), part)
        split = np.moveaxis(part.reshape(groups, data.shape[0], *spatial, count, outputs), 0, -2)
        for tap in range(count):
            place = places[first + tap]
            met = [axis for axis in place if axis is not None]
            if len(met) == len(place):
                elements: tuple[Any, ...] = (slice(None), *(axis[0] for axis in met))
                into = target[(slice(None), *(axis[1] for axis in met))]
                call_elementwise(binder, np.add, into, split[..., tap, :, :][elements], into)


def _is_tiled(window: Window, count: int, size: int) -> bool:
    """Return whether the taps of all elements lie side by side and cover an axis of the output once."""
    is_dense = window.kernel == window.stride and window.dilation == 1 and not window.pad_begin
    return is_dense and size == count * window.stride


def _taps(window: Window, size: int, count: int) -> list[tuple[slice, slice] | None]:
    """Return for each tap the elements of the data whose products lie in the output, and where they lie; None if there
    are none."""
    found = {tap: (elements, places) for tap, elements, places in window.taps(size, count)}
    return [found.get(tap) for tap in range(window.kernel)]


def _rows(binder: Binder, data: Array) -> Array:
    """Return the positions of data [N, C, *spatial] as rows of a matrix, a copy if they do not lie so."""
    image = channels_last(data)
    rows = image.reshape(-1, image.shape[-1])
    if np.may_share_memory(rows, data) and is_readable(rows) and rows.strides[1] == rows.itemsize:
        return rows
    copy = binder.scratch(image.shape, data.dtype)
    bind_copy(binder, image, copy)
    return copy.reshape(-1, image.shape[-1])


def _bind_tiles(binder: Binder, products: Array, data: Array, kernel: Sequence[int], target: Array) -> None:
    """Bind the copy of products [groups, positions, taps * outputs] whose taps lie side by side and cover the output
    [N, *sizes, groups, outputs] once."""
    batch, spatial, axes = data.shape[0], data.shape[2:], len(kernel)
    groups, outputs = target.shape[-2:]
    source = products.reshape(groups, batch, *spatial, *kernel, outputs)
    pairs: tuple[Any, ...] = sum(((2 + i, 2 + axes + i) for i in range(axes)), ())
    moved = source.transpose(1, *pairs, 0, source.ndim - 1)
    bind_copy(binder, moved, target.reshape(moved.shape))


def _tap_matrices(filters: Array) -> Array:
    """Return filters [groups, inputs, outputs, *kernel] as [groups, inputs, taps, outputs]."""
    groups, depth, outputs, *kernel = filters.shape
    return np.ascontiguousarray(filters.reshape(groups, depth, outputs, prod(kernel)).swapaxes(2, 3))
