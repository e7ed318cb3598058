"""Kernels for the pooling of regions of interest: pixels of feature maps, chosen one by one and combined.

Pixels are stored as rows that hold all channels of one position, so that a further channel costs only its copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.precision import as_computed

# Elements of the pixels fetched at a time: they should stay in a cache until they have been summed.
_FETCHED = 1 << 18
# Pixels whose positions and weights are computed at a time.
_CHOSEN = 1 << 18
# Pixels chosen for regions that are pooled together although some need fewer samples than others.
_TOGETHER = 1 << 14


def pixel_rows(planes: Array) -> Array:
    """Return planes [..., channels, rows, columns] as [planes * rows * columns, channels], in the computing type."""
    rows = as_computed(planes).swapaxes(-3, -2).swapaxes(-2, -1)
    return np.ascontiguousarray(rows).reshape(prod(rows.shape[:-1]), rows.shape[-1])


# --------------------------------------------------------------------------- sums and maxima of rows


def add_rows(rows: Array, index: Array, weight: Array, out: Array) -> None:
    """Compute out[p] = sum over k of weight[p, k] * rows[index[p, k]]."""
    out[...] = 0
    for bins, taps in _blocks(index.shape[0], index.shape[1], rows.shape[1]):
        fetched = rows.take(index[bins, taps], 0, mode="clip")
        out[bins] += np.matmul(weight[bins, np.newaxis, taps], fetched)[:, 0]


def largest_sums(rows: Array, index: Array, weight: Array, out: Array) -> None:
    """Compute out[p] = max(out[p], max over k of the sum over c of weight[p, k, c] * rows[index[p, k, c]])."""
    for bins, taps in _blocks(index.shape[0], index.shape[1], rows.shape[1] * index.shape[2]):
        of_taps, shares = index[bins, taps].swapaxes(0, 1), weight[bins, taps].swapaxes(0, 1)
        samples = np.matmul(shares[..., np.newaxis, :], rows.take(of_taps, 0, mode="clip"))[:, :, 0]
        out[bins] = np.maximum(out[bins], samples.max(axis=0))


def largest_rows(rows: Array, index: Array, out: Array) -> None:
    """Compute out[p] = max over k of rows[index[k, p]]."""
    out[...] = -np.inf
    for bins, taps in _blocks(index.shape[1], index.shape[0], rows.shape[1]):
        out[bins] = np.maximum(out[bins], rows.take(index[taps, bins], 0, mode="clip").max(axis=0))


def _blocks(bins: int, taps: int, elements: int) -> Iterator[tuple[slice, slice]]:
    """Split ``bins`` times ``taps`` rows into parts of bounded size."""
    width = max(min(taps, _FETCHED // max(elements, 1)), 1)
    height = max(_FETCHED // max(width * elements, 1), 1)
    for start in range(0, bins, height):
        for first in range(0, taps, width):
            yield slice(start, start + height), slice(first, first + width)


# --------------------------------------------------------------------------- places


@dataclass(frozen=True)
class Neighbors:
    """The four pixels around each position, counted row by row, with the weight of each."""

    index: Array
    weight: Array

    def reshape(self, *shape: int) -> Neighbors:
        return Neighbors(self.index.reshape(shape), self.weight.reshape(shape))


def neighbors(y: Array, x: Array, height: int, width: int, start: Array | int, beyond: float) -> Neighbors:
    """Return the four pixels around the positions (y, x).

    The shapes of y and x are broadcast, except for the first axis. ``start`` is the number of the plane's first pixel.
    Positions up to ``beyond`` outside of the centers of the border pixels count as on the border; others have weight 0.
    """
    of_rows, of_columns, shape = four_pixels(y.shape[1:], x.shape[1:])
    count, places = len(y), np.concatenate([y.reshape(len(y), -1), x.reshape(len(x), -1)], axis=1)
    last = np.full(places.shape[1], width - 1, places.dtype)
    last[: prod(y.shape[1:])] = height - 1
    inside = (places >= -beyond) & (places <= last + beyond)
    places = np.fmin(np.fmax(places, 0), last)  # NaN counts as 0
    low = np.floor(places)
    # The pixels before each place come first, and then those after it.
    indices, weights = np.empty((count, 2, len(last)), np.intp), np.empty((count, 2, len(last)), places.dtype)
    indices[:, 0], indices[:, 1] = low, np.ceil(places)
    part = np.subtract(places, low, out=weights[:, 1])
    np.subtract(1, part, out=weights[:, 0])
    weights *= inside[:, np.newaxis]
    ends, shares = indices.reshape(count, -1), weights.reshape(count, -1)
    index = ends.take(of_rows, axis=1)
    index *= width
    index += ends.take(of_columns, axis=1)
    pixels = index.reshape(count, *shape)
    pixels += np.asarray(start)[..., np.newaxis]
    weight = shares.take(of_rows, axis=1)
    weight *= shares.take(of_columns, axis=1)
    return Neighbors(pixels, weight.reshape(count, *shape))


@lru_cache(maxsize=64)
def four_pixels(rows: tuple[int, ...], columns: tuple[int, ...]) -> tuple[Array, Array, tuple[int, ...]]:
    """Return where the row and the column of each of the four pixels around each position stand, and their shape.

    They stand in a list of the pixels before all positions on both axes, whose shapes are ``rows`` and ``columns``, and
    then of those after them. The elements are taken one by one, because NumPy is slow along axes of two elements:
    pooling of few channels takes half of the time.
    """
    total, twice = prod(rows) + prod(columns), np.arange(2)
    y = np.arange(prod(rows)).reshape(*rows, 1, 1) + twice[:, np.newaxis] * total
    x = np.arange(prod(rows), total).reshape(*columns, 1, 1) + twice * total
    y, x = np.broadcast_arrays(y, x)
    return y.ravel(), x.ravel(), (*y.shape[:-2], 4)


# --------------------------------------------------------------------------- regions in parts


def equal_groups(*keys: Array) -> list[Array]:
    """Return the indices of elements with equal keys, group by group."""
    if all((key[1:] == key[:-1]).all() for key in keys):
        return [np.arange(len(keys[0]))] if len(keys[0]) else []
    order = np.lexsort(keys)
    changes = np.zeros(len(order) - 1, np.bool_)
    for key in keys:
        changes |= np.diff(key[order]) != 0
    return np.split(order, np.flatnonzero(changes) + 1)


def pool_groups(pool: Callable[[Array], object], groups: Sequence[Array], pixels: Sequence[int]) -> None:
    """Call ``pool(members)`` on parts of each group; ``pixels`` counts the pixels per member of each group."""
    for group, count in zip(groups, pixels, strict=True):
        step = max(_CHOSEN // max(count, 1), 1)
        for i in range(0, len(group), step):
            pool(group[i : i + step])


# --------------------------------------------------------------------------- regions cut into bins

Turn = Callable[[Array, Array, Array], tuple[Array, Array]]

MARGIN = 1
"""Samples up to this many pixels outside the data count as on the border, and others as 0."""


@dataclass(frozen=True)
class SampledRegions:
    """Regions of images, cut into ``bins`` rows and columns of bins, each with a grid of samples.

    ``start``, ``size`` and ``samples`` (per bin) hold y and x of each region. ``turn`` moves the samples of some
    regions: it receives their indices, y and x, and returns the new y and x.
    """

    images: Array
    start: Array
    size: Array
    samples: Array
    bins: tuple[int, int]
    turn: Turn | None = None

    def pool(self, pixels: Array, height: int, width: int, out: Array, *, largest: bool) -> None:
        """Compute out[region, bin] = the mean of the bin's samples, or the largest sample if it is above 0.

        ``out`` arrives as zeros and stays zero for bins without samples.
        """
        bins, channels = self.bins[0] * self.bins[1], pixels.shape[1]
        sampled = np.flatnonzero(self.samples.all(axis=1))
        if not sampled.size:
            return
        samples = int(self.samples.max(axis=0).prod())
        if sampled.size * bins * samples * 4 <= _TOGETHER:
            groups = [sampled]
        else:
            groups = [sampled[group] for group in equal_groups(*self.samples[sampled].T)]

        def pool(members: Array) -> None:
            places = self._neighbors(members, height, width)
            counts = self.samples[members].prod(axis=1)
            samples = places.index.shape[-3] * places.index.shape[-2]
            pooled = np.zeros((len(members) * bins, channels), pixels.dtype)
            if largest:
                places = places.reshape(len(pooled), samples, 4)
                largest_sums(pixels, places.index, places.weight, pooled)
            else:
                places = places.reshape(len(pooled), samples * 4)
                add_rows(pixels, places.index, places.weight, pooled)
                pooled.reshape(len(members), -1)[...] /= counts[:, np.newaxis].astype(pooled.dtype)
            out[members] = pooled.reshape(len(members), bins, channels)

        taken = [int(self.samples[group].max(axis=0).prod()) * bins * 4 for group in groups]
        pool_groups(pool, groups, taken)

    def _neighbors(self, members: Array, height: int, width: int) -> Neighbors:
        """Return the neighbors of all samples, [members, bins, bins, samples, samples, 4], y before x.

        If a region has fewer samples than others, further ones, which are the last one again, have weight 0.
        """
        start, size, counts = (values[members] for values in (self.start, self.size, self.samples))
        (height_bins, width_bins), (down, along) = self.bins, counts.max(axis=0)
        places = _places(start, size, counts, self.bins)
        y = places[0, :, :height_bins, np.newaxis, :down, np.newaxis]
        x = places[1, :, np.newaxis, :width_bins, np.newaxis, :along]
        if self.turn is not None:
            y, x = self.turn(members, y, x)
        first = self.images[members].reshape(-1, 1, 1, 1, 1) * (height * width)
        found = neighbors(y, x, height, width, first, beyond=MARGIN)
        if (counts == counts[:1]).all():
            return found
        rows, columns = (np.arange(most) < counts[:, axis, np.newaxis] for axis, most in enumerate((down, along)))
        exists = rows[:, np.newaxis, np.newaxis, :, np.newaxis] & columns[:, np.newaxis, np.newaxis, np.newaxis]
        return Neighbors(found.index, found.weight * exists[..., np.newaxis])


def _places(start: Array, size: Array, counts: Array, bins: tuple[int, int]) -> Array:
    """Return the positions of the samples of regions along both axes, [axis, regions, bins, samples], with as many bins
    and samples as the axis with more of them has."""
    dtype = size.dtype
    step = (size / np.array(bins, dtype)).T[..., np.newaxis, np.newaxis]
    within = np.arange(counts.max(), dtype=dtype) + 0.5
    counts = counts.T.astype(dtype)[..., np.newaxis, np.newaxis]
    numbers = np.arange(max(bins), dtype=dtype)[:, np.newaxis]
    bin_starts = start.T[..., np.newaxis, np.newaxis] + numbers * step
    places: Array = bin_starts + step / counts * np.minimum(within, counts - 0.5)
    return places


# --------------------------------------------------------------------------- boxes of whole pixels


class Lines(NamedTuple):
    """The rows and the columns of bins of a region, in one list."""

    axis: Array
    """The axis of each, 0 for a row."""
    number: Array
    """The number of each on its axis."""
    of_bins: Array
    """Where in the list the row and the column of each bin are, [2, bins]."""


@lru_cache(maxsize=64)
def lines_of_bins(rows: int, columns: int) -> Lines:
    """Return the lines of so many rows and columns of bins."""
    axis, number = np.arange(2).repeat((rows, columns)), np.concatenate([np.arange(rows), np.arange(columns)])
    row, column = np.indices((rows, columns)).reshape(2, -1)
    return Lines(axis, number, np.stack([row, column + rows]))


# --------------------------------------------------------------------------- pooling of places and boxes


def pool_places(places: Callable[[Array], Neighbors], taps: int, pixels: Array, out: Array) -> None:
    """Compute out[region, *bin] = the sum over the ``taps`` positions of each bin.

    ``places`` maps indices of regions to their neighbors, with axes for region, bins, taps and the four pixels.
    """
    regions, *bins, channels = out.shape

    def pool(members: Array) -> None:
        around = places(members).reshape(len(members) * prod(bins), taps * 4)
        sums = np.empty((len(around.index), channels), pixels.dtype)
        add_rows(pixels, around.index, around.weight, sums)
        out[members] = sums.reshape(len(members), *bins, channels)

    pool_groups(pool, [np.arange(regions)], [prod(bins) * taps * 4])


def pool_boxes(planes: Array, ends: Array, size: Sequence[int], pixels: Array, out: Array, *, mean: bool) -> None:
    """Compute out[region, row, column] = the mean or else the largest of the pixels of each bin, 0 without pixels.

    ``ends`` [2, regions, lines] are where the lines of bins start and stop: whole numbers of any type, within planes of
    a ``size`` or not. ``planes`` [regions, bins] (or [regions, 1]) are the numbers of the first pixels of planes.
    """
    lines = lines_of_bins(*out.shape[1:3])
    start, stop = np.minimum(np.fmax(ends, 0), np.array(size).take(lines.axis)).astype(np.int64)
    starts, lengths = (values.take(lines.of_bins, axis=1) for values in (start, stop - start))
    first = (planes + starts[:, 0] * size[1] + starts[:, 1]).ravel()
    heights, widths = lengths[:, 0].ravel(), lengths[:, 1].ravel()
    bins = out.reshape(-1, out.shape[3])
    bins[...] = 0
    filled = ((heights > 0) & (widths > 0)).nonzero()[0]
    if not filled.size:
        return
    groups = [filled]
    if filled.size * int(heights.max()) * int(widths.max()) > _TOGETHER:
        groups = [filled[group] for group in equal_groups(heights[filled], widths[filled])]

    def pool(members: Array) -> None:
        start, down, along = (values.take(members) for values in (first, heights, widths))
        rows, columns = np.arange(down.max())[:, np.newaxis, np.newaxis], np.arange(along.max())[:, np.newaxis]
        # In smaller bins than the largest one, the last row and column come again, and do not count for the mean.
        index = (np.minimum(rows, down - 1) * size[1] + np.minimum(columns, along - 1) + start).reshape(
            -1, len(members)
        )
        pooled = np.empty((len(members), pixels.shape[1]), pixels.dtype)
        if mean:
            weight = ((rows < down) & (columns < along)).reshape(index.shape).astype(pixels.dtype)
            add_rows(pixels, index.T, weight.T, pooled)
            pooled /= weight.sum(axis=0)[:, np.newaxis]
        else:
            largest_rows(pixels, index, pooled)
        bins[members] = pooled

    sizes = [int(heights[group].max() * widths[group].max()) for group in groups]
    pool_groups(pool, groups, sizes)
