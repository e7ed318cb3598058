"""Compute convolutions as weighted sums of shifted images.

A *tap* is one position of a filter. On each spatial axis it reads, for output position p, the data at ``start + step *
p``; positions outside the data count as zero. A convolution has the starts ``tap * dilation - pad_begin``. A transposed
convolution has, for each residue of the output position, a different set of taps and starts. The kernels here therefore
need no strides, dilations or pads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks

Index = tuple[int, ...]
Span = tuple[int, int]

# Columns of a matrix product: enough that the product rarely repacks the weights, few enough to fit a cache.
_COLUMN_BYTES = 8 << 20
_MIN_COLUMNS = 64
# Images with fewer positions share a product: a narrow product would not use the processor.
_WIDE = 512
# A block of channels goes through all taps while it stays in a cache: padded data, sum and term each have this size.
_CHANNEL_BYTES = 1 << 20
_BYTES_PER_THREAD = 1 << 20
# With this many outputs per channel, collecting columns once is faster, although each product is thin.
_MANY_OUTPUTS = 4


def correlate(data: Array, weights: Array, starts: Sequence[Index], step: Index, out: Array) -> None:
    """Compute out[n, g, m, p] = sum over c and t of weights[g, m, c, t] * data[n, g, c, starts[t] + step * p].

    In ``data`` the axes g and c are merged into one, in ``out`` the axes g and m. ``out`` may be any view; ``weights``
    is C-contiguous. The computation uses the type of ``weights`` and ``out``, which must be one for which NumPy calls
    BLAS.
    """
    _, multiplier, depth, taps = weights.shape
    if depth * taps == 0:
        out.fill(0)
    elif out.size == 0:
        pass
    elif depth == 1 and multiplier < _MANY_OUTPUTS:
        _by_taps(data, weights, starts, step, out)
    else:
        _by_products(data, weights, starts, step, out)


def _by_products(data: Array, weights: Array, starts: Sequence[Index], step: Index, out: Array) -> None:
    """Compute one matrix product per block of positions; if there is a single tap, the batch is another axis of
    positions."""
    groups, multiplier, depth, taps = weights.shape
    matrix = weights.reshape(groups, multiplier, depth * taps)
    images, spatial = out.shape[0], out.shape[2:]
    positions = prod(spatial)
    target = out.reshape(images, groups, multiplier, *spatial)  # splits an axis: always a view
    rows = target.reshape(images, groups, multiplier, positions) if out.flags.c_contiguous else None

    is_pointwise = taps == 1 and data.shape[2:] == spatial and set(step) == {1} and not any(starts[0])
    if is_pointwise and rows is not None and data.dtype == weights.dtype and (images == 1 or positions >= _WIDE):
        np.matmul(matrix, data.reshape(images, groups, depth, positions), out=rows)
        return

    limit = max(_COLUMN_BYTES // (matrix[:, 0].size * weights.itemsize), _MIN_COLUMNS)
    if positions >= _WIDE:
        limit = min(limit, positions)
    channels = data.swapaxes(0, 1)
    starts, step = [(0, *start) for start in starts], (1, *step)
    # Fresh pages are slow, so the columns of one box reuse the memory of the previous one.
    memory = np.empty(len(channels) * taps * min(limit, images * positions) if taps > 1 else 0, weights.dtype)
    for box in _boxes((images, *spatial), limit):
        sizes = tuple(stop - start for start, stop in box)
        planes = _planes(channels, _moved(starts, step, box), step, sizes, weights.dtype, may_view=True)
        columns = _columns(planes, sizes, memory).reshape(groups, depth * taps, prod(sizes))
        (first, last), *inner = box
        if rows is not None and last == first + 1:
            begin = int(np.ravel_multi_index([start for start, _ in inner], spatial))
            np.matmul(matrix, columns, out=rows[first, :, :, begin : begin + columns.shape[2]])
        else:
            sums = np.matmul(matrix, columns).reshape(groups, multiplier, *sizes)
            place = (slice(first, last), slice(None), slice(None), *(slice(*ends) for ends in inner))
            target[place] = np.moveaxis(sums, 2, 0)


def _columns(planes: _Planes, sizes: Index, memory: Array) -> Array:
    """Return what each tap reads, [c, t, *position], in ``memory`` or, for a single tap, as a view of the planes."""
    taps, channels = len(planes.offsets), len(planes.arrays[0])
    if taps == 1:
        return planes.arrays[0]
    columns = memory[: channels * taps * prod(sizes)].reshape(channels, taps, *sizes)
    for tap, (plane, offset) in enumerate(planes.offsets):
        window = (slice(at, at + size) for at, size in zip(offset, sizes, strict=True))
        columns[:, tap] = planes.arrays[plane][:, *window]
    return columns


def _by_taps(data: Array, weights: Array, starts: Sequence[Index], step: Index, out: Array) -> None:
    """Add up the shifted images of each channel, each multiplied by its weight."""
    groups, multiplier, _, taps = weights.shape
    images, spatial = out.shape[0], out.shape[2:]
    target = out.reshape(images, groups, multiplier, *spatial)
    limit = max(_CHANNEL_BYTES // weights.itemsize, 1)
    boxes = list(_boxes(spatial, limit))
    count = max(limit // prod(spatial), 1) if len(boxes) == 1 else 1
    parts = -(-groups // count)
    together = min(count // groups, images)
    if together > 1:
        _by_taps_of_images(data, weights, starts, step, target, together)
        return

    def work(first: int, last: int) -> None:
        for item in range(first, last):
            image, rest = divmod(item, parts * len(boxes))
            part, at = divmod(rest, len(boxes))
            chosen, box = slice(part * count, (part + 1) * count), boxes[at]
            place = tuple(slice(*ends) for ends in box)
            shifted = _moved(starts, step, box)
            with np.errstate(all="ignore"):  # threads do not inherit the caller's settings
                _sum_of_taps(
                    data[image, chosen], weights[chosen, :, 0], shifted, step, target[image, chosen, :, *place]
                )

    items = images * parts * len(boxes)
    work_bytes = max(out.size * taps * weights.itemsize // items, 1)
    run_blocks(work, items, max(_BYTES_PER_THREAD // work_bytes, 1))


def _by_taps_of_images(
    data: Array, weights: Array, starts: Sequence[Index], step: Index, target: Array, together: int
) -> None:
    """Do the same for ``together`` small images at a time, with the images as another axis of positions."""
    images = len(data)
    starts, step = [(0, *start) for start in starts], (1, *step)

    def work(first: int, last: int) -> None:
        for begin in range(first * together, min(last * together, images), together):
            some = slice(begin, begin + together)
            with np.errstate(all="ignore"):
                _sum_of_taps(data[some].swapaxes(0, 1), weights[:, :, 0], starts, step, np.moveaxis(target[some], 0, 2))

    work_bytes = max(target[:together].size * len(starts) * weights.itemsize, 1)
    run_blocks(work, -(-images // together), max(_BYTES_PER_THREAD // work_bytes, 1))


def _sum_of_taps(data: Array, weights: Array, starts: Sequence[Index], step: Index, out: Array) -> None:
    """Compute out[c, m, p] = sum over t of weights[c, m, t] * data[c, starts[t] + step * p]."""
    planes = _planes(data, starts, step, out.shape[2:], weights.dtype, may_view=False)
    runs = _Runs(planes.extent, out.shape[2:])
    shifted = runs.of(planes)
    sums, terms = (np.empty((len(data), runs.size), weights.dtype) for _ in range(2))
    sums[:, runs.length :] = terms[:, runs.length :] = 0  # so that they can be added as one run
    last = len(shifted) - 1
    for m in range(weights.shape[1]):
        for tap, run in enumerate(shifted):
            np.multiply(run, weights[:, m, tap, np.newaxis], out=(terms if tap else sums)[:, : runs.length])
            if 0 < tap < last:
                np.add(sums, terms, out=sums)
        if last:
            np.add(runs.wanted(sums), runs.wanted(terms), out=out[:, m])
        else:
            out[:, m] = runs.wanted(sums)


class _Runs:
    """View windows of ``sizes`` in planes of ``extent`` as one run of memory each.

    In memory, a shift along several axes is a single distance. A window together with what lies between its rows is a
    run of ``length`` elements. Long runs, some of whose elements are not used, are faster than short rows.
    """

    def __init__(self, extent: Index, sizes: Index) -> None:
        self.extent = extent
        self.sizes = sizes
        self.padded = (sizes[0], *extent[1:])
        self.size = prod(self.padded)
        self.length = int(np.ravel_multi_index([size - 1 for size in sizes], extent)) + 1

    def of(self, planes: _Planes) -> list[Array]:
        """Return the run [c, length] of each tap."""
        flat = [plane.reshape(len(plane), -1) for plane in planes.arrays]
        begins = [int(np.ravel_multi_index(offset, self.extent)) for _, offset in planes.offsets]
        return [
            flat[plane][:, begin : begin + self.length]
            for (plane, _), begin in zip(planes.offsets, begins, strict=True)
        ]

    def wanted(self, runs: Array) -> Array:
        """Return the windows [..., *sizes] in an array [..., size] of runs."""
        place: tuple[Any, ...] = (..., *map(slice, self.sizes))
        windows: Array = runs.reshape(*runs.shape[:-1], *self.padded)[place]
        return windows


class _Planes(NamedTuple):
    """Data padded with zeros and split so that the step is 1: arrays [c, *extent]."""

    arrays: list[Array]
    extent: Index
    offsets: list[tuple[int, Index]]
    """For each tap, the array it reads and the position of output 0 in that array."""


def _moved(starts: Sequence[Index], step: Index, box: Sequence[Span]) -> list[Index]:
    """Return the starts for a box of the outputs."""
    return [tuple(s + d * b for s, d, (b, _) in zip(start, step, box, strict=True)) for start in starts]


def _planes(
    data: Array, starts: Sequence[Index], step: Index, sizes: Index, dtype: np.dtype[Any], *, may_view: bool
) -> _Planes:
    """Return the planes that the taps read for outputs of ``sizes``.

    Taps whose starts are equal modulo the step share an array, so that strided reads happen only once. With
    ``may_view``, an array that needs no padding may be a view of ``data``.
    """
    positions = [[start // d for start in axis] for axis, d in zip(zip(*starts, strict=True), step, strict=True)]
    lowest = [min(axis) for axis in positions]
    extent = tuple(size + max(axis) - low for size, axis, low in zip(sizes, positions, lowest, strict=True))
    view = may_view and (len(starts) == 1 or set(step) == {1})
    numbers: dict[Index, int] = {}
    arrays: list[Array] = []
    offsets = []
    for start in starts:
        phase = tuple(s % d for s, d in zip(start, step, strict=True))
        if phase not in numbers:
            numbers[phase] = len(arrays)
            origin = [low * d + p for low, d, p in zip(lowest, step, phase, strict=True)]
            arrays.append(_plane(data, origin, step, extent, dtype, view))
        offset = tuple(s // d - low for s, d, low in zip(start, step, lowest, strict=True))
        offsets.append((numbers[phase], offset))
    return _Planes(arrays, extent, offsets)


def _plane(
    data: Array, origin: Sequence[int], step: Index, extent: Sequence[int], dtype: np.dtype[Any], may_view: bool
) -> Array:
    """Return data[c, origin + step * position] for the positions of ``extent``, zero outside of ``data``."""
    source: list[slice] = [slice(None)]
    inside: list[slice] = [slice(None)]
    for first, d, size, count in zip(origin, step, data.shape[1:], extent, strict=True):
        begin = min(max(-(first // d), 0), count)
        end = max(min(-((first - size) // d), count), begin)
        inside.append(slice(begin, end))
        source.append(slice(first + begin * d, first + (end - 1) * d + 1, d) if end > begin else slice(0, 0))
    is_whole = all(part == slice(0, count) for part, count in zip(inside[1:], extent, strict=True))
    if is_whole and may_view and data.dtype == dtype:
        return data[*source]
    plane = np.empty((data.shape[0], *extent), dtype)
    for axis, part in enumerate(inside[1:], 1):
        plane[*inside[:axis], : part.start] = 0
        plane[*inside[:axis], part.stop :] = 0
    plane[*inside] = data[*source]
    return plane


def _boxes(sizes: Sequence[int], limit: int) -> Iterator[list[Span]]:
    """Yield boxes, a (start, stop) pair per axis, that cover all positions in row-major order.

    Each box is contiguous and has at most ``limit`` positions: one axis is cut, and the axes after it are whole.
    """
    axis, inner = len(sizes), 1
    while axis and inner * sizes[axis - 1] <= limit:
        axis -= 1
        inner *= sizes[axis]
    whole = [(0, size) for size in sizes[axis:]]
    if axis == 0:
        yield whole
        return
    size = sizes[axis - 1]
    length = -(-size // -(-size // max(limit // inner, 1)))
    for outer in product(*map(range, sizes[: axis - 1])):
        for start in range(0, size, length):
            yield [*((i, i + 1) for i in outer), (start, min(start + length, size)), *whole]
