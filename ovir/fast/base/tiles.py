"""Fast forms of convolutions with 3x3 filters in tiles of 2x2 outputs: Winograd's minimal filtering F(2x2, 3x3).

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
from ovir.core.fast_calls import Call
from ovir.core.parallel import SHARED_COPY, run_blocks, threads
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts
from ovir.fast.base.images import Axis, padded_image
from ovir.fast.base.products import SHARED

_FILTER = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
"""The matrix G."""

_LEAST_FILTERS, _LEAST_WORK, _LEAST_TILES = 48 * 48, 190_000, 40
"""Tiles pay from so many filters, so many filters times tiles, and so many tiles: transforming the data takes as long
as many products, and 16 elements are read for each filter in place of 9. For 512 channels of 7x7, a convolution in
tiles takes 1.05 (AVX2) to 1.6 times as long (AVX-512) as one without. Three convolutions of 64 channels of 14x14 take
1.4 to 1.5 times as long without tiles, of 128 channels of 28x28 the same."""
_MOST_FILTER_BYTES = 16 << 20
"""The most bytes that filters may take once they are transformed."""
_BLOCK_BYTES = 1 << 20
"""A block of tiles, before and after the product, stays in a cache."""


def whole_tiles(axes: Sequence[Axis], filters: Sequence[int]) -> list[Axis] | None:
    """Return the axes with as many windows as whole tiles have; None if the convolution is not faster by tiles.

    ``filters`` is the shape [groups, outputs, inputs, *kernel].
    """
    groups, outputs, channels, *_ = filters
    if groups > 1 or len(axes) != 2 or any((a.kernel, a.stride, a.dilation) != (3, 1, 1) for a in axes):
        return None
    rows, columns = (-(-a.windows // 2) for a in axes)
    filters_of_tap = channels * outputs
    tiles = rows * columns
    if filters_of_tap < _LEAST_FILTERS or tiles < _LEAST_TILES or filters_of_tap * tiles < _LEAST_WORK:
        return None
    if 16 * filters_of_tap * 4 > _MOST_FILTER_BYTES:
        return None
    return [a._replace(windows=2 * count) for a, count in zip(axes, (rows, columns), strict=True)]


def bind_tiles(binder: Binder, image: Array, filters: Array, axes: Sequence[Axis], out: Array) -> None:
    """Bind a convolution of an image [N, H, W, C] with constant filters [1, outputs, C, 3, 3] to out [N, *windows,
    outputs]; ``axes`` come from ``whole_tiles``."""
    image = padded_image(binder, image, axes)
    outputs, channels = filters.shape[1:3]
    down, across = (a.windows // 2 for a in axes)
    workers = max(min(len(image) * 16 * down * across * channels * outputs // SHARED, threads()), 1)
    fitting = max(_BLOCK_BYTES // (16 * across * (channels + outputs) * image.itemsize), 1)
    blocks = max(down // fitting, 1)
    blocks = min(-(-blocks // workers) * workers, down) if len(image) < workers else blocks
    places = [(n, rows) for n in range(len(image)) for rows in cuts(down, blocks)]
    most = max(rows.stop - rows.start for _, rows in places)
    weights = binder.prepared("tiles", lambda: _transformed(filters[0]))
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


def _transformed(filters: Array) -> Array:
    """Return G g G^T of filters [outputs, C, 3, 3] as [16, C, outputs]."""
    outputs, channels, *_ = filters.shape
    both = np.kron(_FILTER, _FILTER).astype(filters.dtype)
    result = np.empty((16, channels, outputs), filters.dtype)
    taps = filters.reshape(outputs, channels, 9).transpose(1, 2, 0)

    def run(start: int, stop: int) -> None:
        np.matmul(both, taps[start:stop], out=result[:, start:stop].swapaxes(0, 1))

    run_blocks(run, channels, -(-SHARED_COPY // (9 * outputs)))
    return result


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
        yield np.matmul, (tiles.reshape(16, count, channels), weights, products)

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


def _first(memory: Array, *shape: int) -> Array:
    return memory[: int(np.prod(shape))].reshape(shape)
