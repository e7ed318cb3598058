"""DeformableConvolution: the samples of all taps for a block of outputs, and one product with the filters."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.base.images import channels_last, channels_last_order
from ovir.fast.registry import fast
from ovir.ops.deformable import DeformableBase

_SAMPLE_BYTES = 4 << 20
"""The samples of a block stay in a cache until the product has used them."""


@fast(DeformableBase)
def deformable_convolution(op: DeformableBase, binder: Binder, *inputs: Array) -> bool:
    data, _, filters, *_ = inputs
    if data.dtype not in (np.float32, np.float64) or not data.size or not filters.size or 0 in binder.output_shape():
        return False
    out = channels_last(binder.output(order=channels_last_order(4)))
    images, spatial = data.shape[0], data.shape[2:]
    windows = op.windows(spatial, filters.shape[2:])
    rows, columns = (w.positions(count) for w, count in zip(windows, out.shape[1:3], strict=True))
    places = np.broadcast_arrays(rows[:, np.newaxis, :, np.newaxis], columns[:, np.newaxis])  # [rows, columns, *kernel]
    unmoved = np.tile(np.stack(places).reshape(2, -1, prod(filters.shape[2:]), 1), (1, images, 1, 1))
    first = np.repeat(np.arange(images) * prod(spatial) * op.deformable_group, prod(out.shape[1:3]))
    rows_of_out = out.reshape(-1, out.shape[-1])
    binder.call(_convolve, op, unmoved.astype(data.dtype), first.reshape(-1, 1, 1), inputs, rows_of_out)
    return True


def _convolve(op: DeformableBase, unmoved: Array, first: Array, inputs: tuple[Array, ...], out: Array) -> None:
    """Compute the rows of ``out``, [N * windows, outputs].

    Row r reads tap t around the positions unmoved[axis, r, t] in the image whose pixels begin at first[r].
    """
    data, offsets, filters, *mask = inputs
    images, channels = data.shape[:2]
    count, depth = filters.shape[:2]
    groups, parts, taps = op.group, op.deformable_group, unmoved.shape[2]
    split = filters.reshape(groups, count // groups, depth, taps)
    weights = split.transpose(0, 3, 2, 1).reshape(groups, taps * depth, count // groups)
    # The channels are the last axis: a sample, and everything that one output reads, is then contiguous.
    pixels = np.ascontiguousarray(channels_last(data)).reshape(-1, channels // parts)
    moves = offsets.reshape(images, parts, taps, 2, -1).transpose(3, 0, 4, 2, 1).reshape(2, len(out), taps, parts)
    scales = [m.reshape(images, parts, taps, -1).transpose(0, 3, 2, 1).reshape(len(out), taps, parts) for m in mask]
    step = max(_SAMPLE_BYTES // (taps * channels * data.itemsize), 1)
    for start in range(0, len(out), step):
        block = slice(start, start + step)
        places = unmoved[:, block] + moves[:, block]
        samples = _sampled(op, pixels, first[block], data.shape[2:], places, *(scale[block] for scale in scales))
        grouped = samples.reshape(-1, taps, groups, depth).transpose(2, 0, 1, 3).reshape(groups, -1, taps * depth)
        np.matmul(grouped, weights, out=out[block].reshape(-1, groups, count // groups).swapaxes(0, 1))


def _sampled(
    op: DeformableBase,
    pixels: Array,
    first: Array,
    spatial: tuple[int, ...],
    places: Array,
    scale: Array | float = 1.0,
) -> Array:
    """Return pixels [N * height * width * parts, channels of a part] around places[axis, r, t, part], interpolated and
    multiplied by scale[r, t, part], as [r, t, part, channels]."""
    limits = np.array(spatial).reshape(2, 1, 1, 1)
    inside = ((places > -1 if op.bilinear_interpolation_pad else places >= 0) & (places < limits)).all(axis=0)
    places = np.where(inside, places, 0)  # positions outside have weight 0; they may be NaN
    low = np.floor(places)
    part = places - low
    begin = low.astype(np.intp)
    factor = np.where(inside, places.dtype.type(1) * scale, 0)
    parts = places.shape[-1]
    strides = np.array([spatial[1] * parts, parts]).reshape(2, 1, 1, 1)
    neighbours = []  # before and after on both axes: where pixels begin, their weights, and which of them exist
    for index, weight in ((begin, 1 - part), (begin + 1, part)):
        exists = (index >= 0) & (index < limits)
        neighbours.append((np.clip(index, 0, limits - 1) * strides, weight, exists))
    rows, columns = ([(at[k], weight[k], exists[k]) for at, weight, exists in neighbours] for k in (0, 1))
    total: Array | None = None
    for (y, share_y, row), (x, share_x, column) in product(rows, columns):
        share = share_y * share_x * factor
        if op.bilinear_interpolation_pad:  # otherwise the last row and column continue
            share = np.where(row & column, share, 0)
        samples = pixels.take(first + y + x + np.arange(parts), 0, mode="clip")
        samples *= share[..., np.newaxis]
        total = samples if total is None else np.add(total, samples, out=total)
    assert total is not None
    return total
