"""Kernels for the pooling of regions of interest: pixels of feature maps, chosen one by one and combined.

Pixels are stored as rows that hold all channels of one position, so that a further channel costs only its copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks
from ovir.kernels.precision import as_computed
from ovir.kernels.rounding import as_index

# Elements of the pixels fetched at a time: they should stay in a cache until they have been summed.
_FETCHED = 1 << 18
# Pixels whose positions and weights are computed at a time.
_CHOSEN = 1 << 18
# Elements of fetched pixels below which another thread does not pay.
_LEAST_PER_THREAD = 1 << 20


def pixel_rows(planes: Array) -> Array:
    """Return planes [..., channels, rows, columns] as [planes * rows * columns, channels], in the computing type."""
    rows = np.moveaxis(as_computed(planes), -3, -1)
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
        fetched = rows.take(index[bins, taps], 0, mode="clip")
        samples = np.matmul(weight[bins, taps, np.newaxis], fetched)[:, :, 0]
        out[bins] = np.maximum(out[bins], samples.max(axis=1))


def largest_rows(rows: Array, index: Array, out: Array) -> None:
    """Compute out[p] = max over k of rows[index[p, k]]."""
    out[...] = -np.inf
    for bins, taps in _blocks(index.shape[0], index.shape[1], rows.shape[1]):
        out[bins] = np.maximum(out[bins], rows.take(index[bins, taps], 0, mode="clip").max(axis=1))


def _blocks(bins: int, taps: int, elements: int) -> Iterator[tuple[slice, slice]]:
    """Split ``bins`` times ``taps`` rows into parts of bounded size."""
    width = max(min(taps, _FETCHED // max(elements, 1)), 1)
    height = max(_FETCHED // max(width * elements, 1), 1)
    for start in range(0, bins, height):
        for first in range(0, taps, width):
            yield slice(start, start + height), slice(first, first + width)


# --------------------------------------------------------------------------- places


@dataclass(frozen=True)
class Neighbours:
    """The four pixels around each position, counted row by row, with the weight of each."""

    index: Array
    weight: Array

    def reshape(self, *shape: int) -> Neighbours:
        return Neighbours(self.index.reshape(shape), self.weight.reshape(shape))


def neighbours(y: Array, x: Array, height: int, width: int, inside: Array, start: Array | int = 0) -> Neighbours:
    """Return the pixels around the positions (y, x), which are broadcast; positions not ``inside`` have weight 0.

    Positions beyond the center of a border pixel count as that center. ``start`` is the number of the plane's first
    pixel.
    """
    rows, columns = (_axis_neighbours(place, size) for place, size in ((y, height), (x, width)))
    shape = (*np.broadcast_shapes(y.shape, x.shape, inside.shape), 4)
    index, weight = np.empty(shape, np.intp), np.empty(shape, y.dtype)
    for i, (row, share) in enumerate(rows):
        for j, (column, part) in enumerate(columns, 2 * i):
            index[..., j] = row * width + column + start
            weight[..., j] = share * part * inside
    return Neighbours(index, weight)


def _axis_neighbours(place: Array, size: int) -> list[tuple[Array, Array]]:
    """Return the pixels before and after each position on one axis, with their weights."""
    place = np.fmin(np.fmax(place, 0), size - 1)  # NaN counts as 0
    low = np.floor(place)
    part = place - low
    return [(low.astype(np.intp), 1 - part), (np.ceil(place).astype(np.intp), part)]


# --------------------------------------------------------------------------- regions in parts


def equal_groups(*keys: Array) -> list[Array]:
    """Return the indices of elements with equal keys, group by group."""
    order = np.lexsort(keys)
    changes = np.zeros(max(len(order) - 1, 0), np.bool_)
    for key in keys:
        changes |= np.diff(key[order]) != 0
    return np.split(order, np.flatnonzero(changes) + 1) if len(order) else []


def pool_groups(pool: Callable[[Array], object], groups: Sequence[Array], pixels: Sequence[int], channels: int) -> None:
    """Call ``pool(members)`` on parts of each group, several at a time; ``pixels`` counts the pixels per member."""
    parts = []
    for group, count in zip(groups, pixels, strict=True):
        step = max(_CHOSEN // max(count, 1), 1)
        parts += [group[i : i + step] for i in range(0, len(group), step)]
    total = sum(len(group) * count for group, count in zip(groups, pixels, strict=True)) * channels

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for part in parts[start:stop]:
                pool(part)

    run_blocks(run, len(parts), -(-_LEAST_PER_THREAD * len(parts) // max(total, 1)))


def pool_places(places: Callable[[Array], Neighbours], taps: int, pixels: Array, out: Array) -> None:
    """Compute out[region, *bin] = the sum over the ``taps`` positions of each bin.

    ``places`` maps indices of regions to their neighbours, with axes for region, bins, taps and the four pixels.
    """
    regions, *bins, channels = out.shape

    def pool(members: Array) -> None:
        around = places(members).reshape(len(members) * prod(bins), taps * 4)
        sums = np.empty((len(around.index), channels), pixels.dtype)
        add_rows(pixels, around.index, around.weight, sums)
        out[members] = sums.reshape(len(members), *bins, channels)

    pool_groups(pool, [np.arange(regions)], [prod(bins) * taps * 4], channels)


# --------------------------------------------------------------------------- regions cut into bins

Turn = Callable[[Array, Array, Array], tuple[Array, Array]]


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

    def pool(self, pixels: Array, height: int, width: int, out: Array, *, largest: bool = False) -> None:
        """Compute out[region, bin] = the mean of the bin's samples, or the largest sample if it is above 0.

        ``out`` arrives as zeros and stays zero for bins without samples.
        """
        groups = [group for group in equal_groups(*self.samples.T) if self.samples[group[0]].min() > 0]
        bins, channels = self.bins[0] * self.bins[1], pixels.shape[1]

        def pool(members: Array) -> None:
            places = self._neighbours(members, height, width)
            samples = int(self.samples[members[0]].prod())
            pooled = np.zeros((len(members) * bins, channels), pixels.dtype)
            if largest:
                places = places.reshape(len(pooled), samples, 4)
                largest_sums(pixels, places.index, places.weight, pooled)
            else:
                places = places.reshape(len(pooled), samples * 4)
                add_rows(pixels, places.index, places.weight, pooled)
                pooled /= samples
            out[members] = pooled.reshape(len(members), bins, channels)

        taken = [int(self.samples[group[0]].prod()) * bins * 4 for group in groups]
        pool_groups(pool, groups, taken, channels)

    def _neighbours(self, members: Array, height: int, width: int) -> Neighbours:
        """Return the neighbours of all samples, [members, bins, bins, samples, samples, 4], y before x."""
        y = self._places(0, members)[:, :, np.newaxis, :, np.newaxis]
        x = self._places(1, members)[:, np.newaxis, :, np.newaxis, :]
        if self.turn is not None:
            y, x = self.turn(members, y, x)
        inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
        first = self.images[members] * (height * width)
        return neighbours(y, x, height, width, inside, first.reshape(-1, 1, 1, 1, 1))

    def _places(self, axis: int, members: Array) -> Array:
        """Return the sample positions on one axis, [members, bins, samples]."""
        count = int(self.samples[members[0], axis])
        start, size = (values[members, axis, np.newaxis, np.newaxis] for values in (self.start, self.size))
        step = size / size.dtype.type(self.bins[axis])
        bins = np.arange(self.bins[axis], dtype=size.dtype)[:, np.newaxis]
        within = np.arange(count, dtype=size.dtype) + size.dtype.type(0.5)
        places: Array = start + bins * step + step / size.dtype.type(count) * within
        return places


# --------------------------------------------------------------------------- boxes of whole pixels


@dataclass(frozen=True)
class Span:
    """For each region and bin on one axis: the first pixel and the end, within the data."""

    start: Array
    stop: Array

    @classmethod
    def within(cls, size: int, start: Array, stop: Array) -> Span:
        """Return the span of whole numbers of any type and size, limited to the data."""
        return cls(*(np.clip(as_index(end), 0, size) for end in (start, stop)))


def pool_boxes(planes: Array, rows: Span, columns: Span, width: int, pixels: Array, out: Array, *, mean: bool) -> None:
    """Compute out[region, row, column] = the mean of the pixels of each bin, or else the maximum; 0 for an empty bin.

    ``planes`` holds for each bin (or region) the number of the first pixel of its plane; ``width`` is the plane's
    width.
    """
    heights = (rows.stop - rows.start)[:, :, np.newaxis]
    widths = (columns.stop - columns.start)[:, np.newaxis, :]
    first = planes + rows.start[:, :, np.newaxis] * width + columns.start[:, np.newaxis, :]
    first, heights, widths = (np.broadcast_to(a, out.shape[:3]).reshape(-1) for a in (first, heights, widths))
    bins = out.reshape(-1, out.shape[3])
    bins[...] = 0
    filled = np.flatnonzero((heights > 0) & (widths > 0))
    groups = [filled[group] for group in equal_groups(heights[filled], widths[filled])]

    def pool(members: Array) -> None:
        box = int(heights[members[0]]), int(widths[members[0]])
        inner = np.arange(box[0])[:, np.newaxis] * width + np.arange(box[1])
        index = first[members, np.newaxis] + inner.reshape(-1)
        pooled = np.empty((len(members), pixels.shape[1]), pixels.dtype)
        if mean:
            add_rows(pixels, index, np.ones(index.shape, pixels.dtype), pooled)
            pooled /= index.shape[1]
        else:
            largest_rows(pixels, index, pooled)
        bins[members] = pooled

    sizes = [int(heights[group[0]] * widths[group[0]]) for group in groups]
    pool_groups(pool, groups, sizes, pixels.shape[1])
