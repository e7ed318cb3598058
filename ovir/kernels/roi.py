"""What the poolings of regions of interest compute with: pixels of feature maps, chosen one by one and summed.

Pixels lie as rows that hold all channels of one place, so that a channel costs a region no more than a copy of it.
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

# Elements of the pixels that are fetched at a time: they should stay in a cache until they have been summed.
_FETCHED = 1 << 18
# Pixels of which the places and shares are worked out at a time.
_CHOSEN = 1 << 18
# Elements of fetched pixels that a thread must have at least.
_LEAST_PER_THREAD = 1 << 20


def pixel_rows(planes: Array) -> Array:
    """[planes * rows * columns, channels] of planes [..., channels, rows, columns], in the computing type."""
    rows = np.moveaxis(as_computed(planes), -3, -1)
    return np.ascontiguousarray(rows).reshape(prod(rows.shape[:-1]), rows.shape[-1])


# --------------------------------------------------------------------------- sums and maxima of rows


def add_rows(rows: Array, index: Array, weight: Array, out: Array) -> None:
    """out[p] = the sum over k of weight[p, k] * rows[index[p, k]]."""
    out[...] = 0
    for bins, taps in _blocks(index.shape[0], index.shape[1], rows.shape[1]):
        fetched = rows.take(index[bins, taps], 0, mode="clip")
        out[bins] += np.matmul(weight[bins, np.newaxis, taps], fetched)[:, 0]


def largest_sums(rows: Array, index: Array, weight: Array, out: Array) -> None:
    """out[p] = the largest over k of the sums over c of weight[p, k, c] * rows[index[p, k, c]], and at least out[p]."""
    for bins, taps in _blocks(index.shape[0], index.shape[1], rows.shape[1] * index.shape[2]):
        fetched = rows.take(index[bins, taps], 0, mode="clip")
        samples = np.matmul(weight[bins, taps, np.newaxis], fetched)[:, :, 0]
        out[bins] = np.maximum(out[bins], samples.max(axis=1))


def largest_rows(rows: Array, index: Array, out: Array) -> None:
    """out[p] = the largest over k of rows[index[p, k]]."""
    out[...] = -np.inf
    for bins, taps in _blocks(index.shape[0], index.shape[1], rows.shape[1]):
        out[bins] = np.maximum(out[bins], rows.take(index[bins, taps], 0, mode="clip").max(axis=1))


def _blocks(bins: int, taps: int, elements: int) -> Iterator[tuple[slice, slice]]:
    """Parts of ``bins`` times ``taps`` rows of so many elements, none of them large."""
    width = max(min(taps, _FETCHED // max(elements, 1)), 1)
    height = max(_FETCHED // max(width * elements, 1), 1)
    for start in range(0, bins, height):
        for first in range(0, taps, width):
            yield slice(start, start + height), slice(first, first + width)


# --------------------------------------------------------------------------- places


@dataclass(frozen=True)
class Neighbours:
    """For each place the four pixels around it, counted row by row, and the share of each."""

    index: Array
    weight: Array

    def reshape(self, *shape: int) -> Neighbours:
        return Neighbours(self.index.reshape(shape), self.weight.reshape(shape))


def neighbours(y: Array, x: Array, height: int, width: int, inside: Array, start: Array | int = 0) -> Neighbours:
    """The pixels around places (y, x), which are broadcast; a place that is not ``inside`` has no share.

    Places beyond the middle of an outer pixel count as there. ``start`` is the number of the first pixel of the plane.
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
    """On one axis the pixels before and after each place, and their shares."""
    place = np.fmin(np.fmax(place, 0), size - 1)  # NaN is 0
    low = np.floor(place)
    part = place - low
    return [(low.astype(np.intp), 1 - part), (np.ceil(place).astype(np.intp), part)]


# --------------------------------------------------------------------------- regions in parts


def equal_groups(*keys: Array) -> list[Array]:
    """The indices of elements whose keys are equal, group by group."""
    order = np.lexsort(keys)
    changes = np.zeros(max(len(order) - 1, 0), np.bool_)
    for key in keys:
        changes |= np.diff(key[order]) != 0
    return np.split(order, np.flatnonzero(changes) + 1) if len(order) else []


def pool_groups(pool: Callable[[Array], object], groups: Sequence[Array], pixels: Sequence[int], channels: int) -> None:
    """``pool(members)`` on parts of each group, several at a time; ``pixels`` is how many one member of it takes."""
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
    """out[region, *bin] = the sum of the ``taps`` places of each bin.

    ``places`` gives for the indices of some regions their neighbours, with axes for region, bins, taps and the four.
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
    """Regions of images that are cut into ``bins`` rows and columns of bins, each with a grid of samples.

    ``start``, ``size`` and ``samples`` (per bin) have y and x of each region. ``turn`` moves the samples of some
    regions: it is given their indices, y and x, and returns y and x.
    """

    images: Array
    start: Array
    size: Array
    samples: Array
    bins: tuple[int, int]
    turn: Turn | None = None

    def pool(self, pixels: Array, height: int, width: int, out: Array, *, largest: bool = False) -> None:
        """out[region, bin]: the mean of the bin's samples in images of this size, or the largest if it is above 0.

        ``out`` comes as zeros, and stays so where there are no samples.
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
        """[members, bins, bins, samples, samples, 4], y before x."""
        y = self._places(0, members)[:, :, np.newaxis, :, np.newaxis]
        x = self._places(1, members)[:, np.newaxis, :, np.newaxis, :]
        if self.turn is not None:
            y, x = self.turn(members, y, x)
        inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
        first = self.images[members] * (height * width)
        return neighbours(y, x, height, width, inside, first.reshape(-1, 1, 1, 1, 1))

    def _places(self, axis: int, members: Array) -> Array:
        """[members, bins, samples] on one axis."""
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
    """On one axis, for each region and bin: from which pixel to which, within the data."""

    start: Array
    stop: Array

    @classmethod
    def within(cls, size: int, start: Array, stop: Array) -> Span:
        """From whole numbers of any type and size."""
        return cls(*(np.clip(as_index(end), 0, size) for end in (start, stop)))


def pool_boxes(planes: Array, rows: Span, columns: Span, width: int, pixels: Array, out: Array, *, mean: bool) -> None:
    """out[region, row, column] = the mean of the pixels of each bin, or else the largest; 0 for an empty bin.

    ``planes`` has for each bin (or region) the number of the first pixel of its plane, which is so wide.
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
