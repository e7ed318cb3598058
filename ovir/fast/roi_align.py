"""ROIAlign with a given number of samples per bin: calls on the samples of all regions."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import maximum, number
from ovir.fast.base.binder_protocol import Binder, is_real
from ovir.fast.base.images import channels_last, position_rows
from ovir.fast.registry import fast
from ovir.kernels.roi import MARGIN, four_pixels
from ovir.ops.roi_align import ROIAlign3

_MOST_ELEMENTS = 1 << 18
"""Elements of all pixels that are read at once. Up to so many, the calls take 0.3 to 0.6 times as long as ``run``, but
20 times as many take twice as long."""


@fast(ROIAlign3)
def roi_align(op: ROIAlign3, binder: Binder, data: Array, rois: Array, batch_indices: Array) -> bool:
    (images, channels, height, width), regions = data.shape, len(rois)
    bins, ratio, dtype = (op.pooled_h, op.pooled_w), op.sampling_ratio, data.dtype
    count, samples = regions * prod(bins), ratio * ratio
    if not is_real(data) or not data.size or not 0 < count * samples * 4 * channels <= _MOST_ELEMENTS:
        return False
    pixels = position_rows(channels_last(data))
    if pixels is None:
        copy = binder.scratch((images, height, width, channels), dtype)
        binder.call(np.copyto, copy, channels_last(data))
        pixels = copy.reshape(-1, channels)
    # A region has ratio samples in each bin along y, and then those along x.
    lengths = bins[0] * ratio, bins[1] * ratio
    axis, number_of_sample = np.arange(2).repeat(lengths), np.concatenate([*map(np.arange, lengths)])
    bin_numbers, within = (
        values.astype(dtype) for values in (number_of_sample // ratio, number_of_sample % ratio + 0.5)
    )
    last = np.array([height - 1, width - 1], dtype).take(axis)
    spans, places = binder.scratch((3, regions, 2), dtype), binder.scratch((3, regions, len(axis)), dtype)

    def fill_spans() -> None:
        """Fill in where regions start, and how long their bins and the distances of samples are."""
        start, size = op.sides(rois, scale)
        np.copyto(spans[0], start)
        np.divide(size, sizes, spans[1])
        np.divide(spans[1], distances, spans[2])

    sizes, distances, scale = np.array(bins, dtype), number(ratio, data), op.scale(dtype)
    binder.call(fill_spans)
    binder.call(spans.take, axis, 2, places, "clip")
    place, step, distance = places
    binder.call(np.multiply, step, bin_numbers, step)
    binder.call(np.add, place, step, place)
    binder.call(np.multiply, distance, within, distance)
    binder.call(np.add, place, distance, place)

    inside, is_before = (binder.scratch((regions, 1, len(axis)), np.bool_) for _ in range(2))
    binder.call(np.greater_equal, place, number(-MARGIN, data), inside[:, 0])
    binder.call(np.less_equal, place, last + number(MARGIN, data), is_before[:, 0])
    binder.call(np.logical_and, inside, is_before, inside)
    binder.call(np.fmax, place, number(0, data), place)  # NaN counts as 0
    binder.call(np.fmin, place, last, place)
    # The pixels before each place come first, and then those after it.
    pixel, share = (binder.scratch((regions, 2, len(axis)), kind) for kind in (np.intp, dtype))
    binder.call(np.ceil, place, share[:, 1])
    binder.call(np.floor, place, share[:, 0])
    binder.call(np.copyto, pixel, share, "unsafe")
    binder.call(np.subtract, place, share[:, 0], share[:, 1])
    binder.call(np.subtract, number(1, data), share[:, 1], share[:, 0])
    binder.call(np.multiply, share, inside, share)
    rows = pixel[..., : lengths[0]]
    binder.call(np.multiply, rows, np.array(width), rows)

    of_rows, of_columns, _ = four_pixels((bins[0], 1, ratio, 1), (1, bins[1], 1, ratio))
    first = binder.scratch((regions, 1), np.intp)
    binder.call(np.copyto, first, batch_indices.reshape(-1, 1), "unsafe")
    binder.call(np.multiply, first, np.array(height * width), first)
    index, weight = (
        _pairs(binder, values, np.add if values is pixel else np.multiply, of_rows, of_columns)
        for values in (pixel, share)
    )
    binder.call(np.add, index, first, index)
    fetched = binder.scratch((count, samples, 4, channels), dtype)
    binder.call(pixels.take, index.reshape(fetched.shape[:3]), 0, fetched, "clip")
    out = binder.output()
    bins_of_out = channels_last(out)
    if op.mode == "max":
        sums, pooled = binder.scratch((count, samples, 1, channels), dtype), binder.scratch((count, 1, channels), dtype)
        binder.call(np.matmul, weight.reshape(count, samples, 1, 4), fetched, sums)
        binder.call(np.maximum.reduce, sums, 1, None, pooled)
        binder.call(maximum, pooled.reshape(bins_of_out.shape), number(0, data), bins_of_out)
    else:
        pooled = binder.scratch((count, 1, channels), dtype)
        binder.call(np.matmul, weight.reshape(count, 1, -1), fetched.reshape(count, -1, channels), pooled)
        binder.call(np.divide, pooled.reshape(bins_of_out.shape), number(samples, data), bins_of_out)

    def end_list() -> None:
        """Report images that do not exist; after the end of the list of regions, the output is 0."""
        out[len(op.images(batch_indices, images)) :] = 0

    binder.call(end_list)
    return True


def _pairs(binder: Binder, values: Array, combine: np.ufunc, of_rows: Array, of_columns: Array) -> Array:
    """Bind a function of the values of the row and of the column of each pixel around each sample."""
    found, others = (binder.scratch((len(values), len(of_rows)), values.dtype) for _ in range(2))
    flat = values.reshape(len(values), -1)
    binder.call(flat.take, of_rows, 1, found, "clip")
    binder.call(flat.take, of_columns, 1, others, "clip")
    binder.call(combine, found, others, found)
    return found
