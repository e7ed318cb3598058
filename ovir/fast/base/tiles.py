"""Bound convolutions with 3x3 filters in tiles of 2x2 outputs: Winograd's minimal filtering F(2x2, 3x3).

A tile of 4x4 data d and a filter g give Y = A^T ((G g G^T) * (B^T d B)) A. Each of the 16 elements of the product in
the middle is summed over the channels, as one matrix product for all tiles. That takes 16 multiplications for 4
outputs instead of 36. The matrices A and B have elements 0, 1 and -1 only, so that the rest are sums of slices; the
filters are transformed once. Rounding errors are about twice as large as in plain sums.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, Call, call_shares, cuts
from ovir.fast.base.images import Axis, padded_image
from ovir.fast.base.packed import SHARED, SMALL, block_height
from ovir.kernels.blas import has_small_products
from ovir.kernels.parallel import threads

_FILTER = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
"""The matrix G."""

# The costs of an element of the columns that a plain convolution copies, of transforming a tile of one channel, and of
# all calls, in multiply-accumulates; a product with few rows takes as long as one with some more.
_COPY, _TRANSFORM, _CALLS, _MORE_ROWS = 5, 360, 1_000_000, 4
# A smaller gain does not pay, nor do filters that take more bytes once they are transformed.
_GAIN, _LARGEST = 1.15, 16 << 20
# A block of tiles, before and after the product, stays in a cache.
_BLOCK_BYTES = 1 << 20
# Columns of filters that are multiplied at a time.
_WIDEST, _NARROWEST = 64, 16


def whole_tiles(axes: Sequence[Axis], filters: Sequence[int]) -> list[Axis] | None:
    """Return the axes with as many windows as whole tiles have; None if the convolution is not faster by tiles.

    ``filters`` is the shape [groups, outputs, inputs, *kernel].
    """
    groups, outputs, channels, *_ = filters
    if groups > 1 or len(axes) != 2 or any((a.kernel, a.stride, a.dilation) != (3, 1, 1) for a in axes):
        return None
    rows, columns = (-(-a.windows // 2) for a in axes)
    tiles = rows * columns
    plain = axes[0].windows * axes[1].windows * 9 * channels * (outputs + _COPY)
    products = 16 * channels * outputs * (tiles + _MORE_ROWS)
    cost = products + tiles * _TRANSFORM * (channels + outputs) + _CALLS
    if cost * _GAIN > plain or 16 * channels * outputs * 4 > _LARGEST:
        return None
    return [a._replace(windows=2 * count) for a, count in zip(axes, (rows, columns), strict=True)]


def bind_tiles(binder: Binder, image: Array, filters: Array, axes: Sequence[Axis], name: str, out: Array) -> None:
    """Bind a convolution of an image [N, H, W, C] with filters [1, outputs, C, 3, 3] to out [N, *windows, outputs].

    ``axes`` come from ``whole_tiles``; ``name`` tells these filters from others that come from the same constant.
    """
    image = padded_image(binder, image, axes)
    outputs, channels = filters.shape[1:3]
    down, across = (a.windows // 2 for a in axes)
    workers = max(min(len(image) * 16 * down * across * channels * outputs // SHARED, threads()), 1)
    fitting = max(_BLOCK_BYTES // (16 * across * (channels + outputs) * image.itemsize), 1)
    blocks = max(down // fitting, 1)
    blocks = min(-(-blocks // workers) * workers, down) if len(image) < workers else blocks
    places = [(n, rows) for n in range(len(image)) for rows in cuts(down, blocks)]
    most = max(rows.stop - rows.start for _, rows in places)
    width = _width(most * across, channels, outputs, image.dtype)
    weights = binder.prepared(f"{name}, tiles of {width} outputs", lambda: _transformed(filters[0], width))
    shares: list[list[Call]] = []
    for _ in range(min(workers, len(places))):
        space = _Workspace(binder, most, across, channels, outputs, image.dtype)
        mine = places[len(shares) :: workers]
        shares.append([])
        for n, rows in mine:
            data = image[n, 2 * rows.start : 2 * rows.stop + 2, : 2 * across + 2]
            result = out[n, 2 * rows.start : 2 * rows.stop]
            shares[-1] += space.calls(data, weights, result)
    call_shares(binder, shares)


def _width(rows: int, channels: int, outputs: int, dtype: np.dtype[Any]) -> int:
    """Return how many outputs are multiplied at a time, so that BLAS does not pack the filters."""
    if rows * channels * outputs <= SMALL or dtype != np.float32 or not has_small_products():
        return outputs
    widest = min(_WIDEST, SMALL // (channels * 8))
    return next((w for w in range(widest, _NARROWEST - 1, -1) if outputs % w == 0), outputs)


def _transformed(filters: Array, width: int) -> Array:
    """Return G g G^T of filters [outputs, C, 3, 3] as [outputs / width, 16, C, width]."""
    outputs, channels, *_ = filters.shape
    taps = filters.transpose(2, 3, 1, 0).reshape(9, channels, outputs)
    both = np.kron(_FILTER, _FILTER).astype(filters.dtype)
    found = np.empty((outputs // width, 16, channels, width), filters.dtype)
    for index, piece in enumerate(found):
        some = taps[:, :, index * width : (index + 1) * width]
        np.matmul(both, some.reshape(9, -1), out=piece.reshape(16, -1))
    return found


class _Workspace:
    """The arrays of one thread for blocks of tiles."""

    def __init__(
        self, binder: Binder, rows: int, across: int, channels: int, outputs: int, dtype: np.dtype[Any]
    ) -> None:
        self._shape = across, channels, outputs
        self._sums = binder.scratch((4 * rows * (2 * across + 2) * channels,), dtype)
        self._tiles = binder.scratch((rows * across * max(16 * channels, 9 * outputs),), dtype)
        self._products = binder.scratch((rows * across * 16 * outputs,), dtype)

    def calls(self, data: Array, weights: Array, out: Array) -> Iterator[Call]:
        """Yield the calls for rows of tiles: data [2 * rows + 2, 2 * across + 2, C], out [2 * rows, W, outputs] without
        what exceeds the last row and column."""
        across, channels, outputs = self._shape
        rows = len(data) // 2 - 1
        # Columns are sorted into even and odd ones, so that the sums of columns run over long stretches.
        sums = _first(self._sums, 4, rows, 2, across + 1, channels)
        halves = data.reshape(len(data), across + 1, 2, channels).swapaxes(1, 2)
        yield from _data_sums([halves[i : i + 2 * rows : 2] for i in range(4)], sums)
        tiles = _first(self._tiles, 4, 4, rows, across * channels)
        columns = [sums[:, :, i % 2, i // 2 : i // 2 + across].reshape(4, rows, -1) for i in range(4)]
        yield from _data_sums(columns, tiles.swapaxes(0, 1))

        count = rows * across
        products = _first(self._products, 16, count, outputs)
        yield from _product_calls(tiles.reshape(16, count, channels), weights, products)

        whole = _first(self._tiles, 9, count * outputs)  # the data of the tiles is not needed any more
        lines = whole[:8].reshape(2, 4, rows, across, outputs)
        spare = whole[8].reshape(rows, across, outputs)
        elements = products.reshape(4, 4, rows, across, outputs)
        yield from _even_sums(elements, lines[0], lines[0])
        yield from _odd_sums(elements, lines[1], lines[1])
        for i, line in enumerate(lines):
            evens, odds = out[i::2, ::2], out[i::2, 1::2]
            some, short = line[:, : len(evens)], line[:, : len(odds), : odds.shape[1]]
            yield from _even_sums(some, spare[: len(evens)], evens)
            yield from _odd_sums(short, spare[: len(odds), : odds.shape[1]], odds)


def _data_sums(d: Sequence[Array], out: Array) -> list[Call]:
    """Return the calls of B^T d."""
    return [
        (np.subtract, (d[0], d[2], out[0])),
        (np.add, (d[1], d[2], out[1])),
        (np.subtract, (d[2], d[1], out[2])),
        (np.subtract, (d[1], d[3], out[3])),
    ]


def _even_sums(p: Array, spare: Array, out: Array) -> list[Call]:
    """Return the calls of the first row of A^T p."""
    return [(np.add, (p[0], p[1], spare)), (np.add, (spare, p[2], out))]


def _odd_sums(p: Array, spare: Array, out: Array) -> list[Call]:
    """Return the calls of the second row of A^T p."""
    return [(np.subtract, (p[1], p[2], spare)), (np.subtract, (spare, p[3], out))]


def _product_calls(data: Array, weights: Array, out: Array) -> list[Call]:
    """Return the calls that multiply data [16, rows, C] with weights [pieces, 16, C, width] to out [16, rows,
    outputs]."""
    count, rows, channels = data.shape
    pieces, *_, width = weights.shape
    height = block_height(rows, SMALL // (channels * width)) if pieces > 1 else rows
    calls: list[Call] = []
    for place in (slice(0, rows // height * height), slice(rows // height * height, rows)):
        some, into = data[:, place], out[:, place]
        if some.size:
            each = min(height, some.shape[1])
            blocks = some.reshape(count, -1, each, channels)
            target = into.reshape(count, -1, each, pieces, width).transpose(3, 0, 1, 2, 4)
            calls.append((np.matmul, (blocks, weights[:, :, np.newaxis], target)))
    return calls


def _first(memory: Array, *shape: int) -> Array:
    return memory[: int(np.prod(shape))].reshape(shape)
