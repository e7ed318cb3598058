"""ROIAlign."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import f32, f64, i64
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import joined, older, reshaped, scalar, size
from ovir.ops.roi_align import ROIAlign9


@lowers("ROIAlign", 9)
def roi_align_9(op: ROIAlign9, data: Port, rois: Port, batch_indices: Port) -> Layer:
    """Move the regions as the aligned modes do, and cut each into cells that are regions of one bin.

    The older version enlarges regions that are shorter than a pixel. So a cell has one sample, in its center, which
    stays where it is if the cell becomes larger: each sample is a cell, or, if their number is the length of a bin,
    rounded up, each bin, which has one sample if it is shorter than a pixel. Rounding must not make it longer.
    """
    if op.aligned_mode == "asymmetric":
        return older(op, 3, data, rois, batch_indices)
    computed, ratio = f64 if data.element_type == f64 else f32, op.sampling_ratio
    before = scalar(0.5 if op.aligned_mode == "half_pixel" else 0, computed)
    moved = ops.multiply(ops.add(ops.convert(rois, computed), before), scalar(op.spatial_scale, computed))
    ends = ops.subtract(moved, scalar(0.5, computed))
    bins, per_bin = {1: op.pooled_h, 0: op.pooled_w}, max(ratio, 1)
    count = size(rois, 0)
    digits = float(np.finfo(computed.to_dtype()).eps)
    cells = joined(count, bins[1] * per_bin, bins[0] * per_bin)
    sides: dict[int, Layer] = {}
    lengths = []
    for axis, place in ((0, 1), (1, 2)):  # x, whose cells are in the last dimension, then y
        first, last = (ops.gather(ends, [index], 1) for index in (axis, axis + 2))
        number = bins[axis] * per_bin
        length = ops.divide(ops.subtract(last, first), scalar(max(number, 1), computed))
        centers = ops.add(first, ops.multiply(length, ops.constant(np.arange(number) + 0.5, computed)))
        start = ops.subtract(centers, ops.multiply(ops.maximum(length, scalar(1, computed)), scalar(0.5, computed)))
        stop = ops.add(start, length)
        error = ops.multiply(ops.add(ops.abs(start), ops.abs(stop)), scalar(digits, computed))
        is_longer = ops.greater(ops.subtract(stop, start), length)
        for side, edge in ((axis, start), (axis + 2, ops.select(is_longer, ops.subtract(stop, error), stop))):
            sides[side] = ops.unsqueeze(ops.broadcast(ops.unsqueeze(edge, [place]), cells), [3])
        lengths.append(length)
    regions = reshaped(ops.concat([sides[side] for side in range(4)], axis=3), [-1, 4])
    images = ops.broadcast(ops.unsqueeze(ops.convert(batch_indices, i64), [1, 2]), cells)
    pooled = ops.roi_align(
        ops.convert(data, computed), regions, reshaped(images, [-1]), 1, 1, min(ratio, 1), 1.0, op.mode
    )
    shape = joined(count, bins[1], per_bin, bins[0], per_bin, size(data, 1))
    combine = ops.reduce_max if op.mode == "max" else ops.reduce_mean
    pooled_regions = combine(reshaped(pooled, shape), [2, 4], keep_dims=False)
    pooled_regions = ops.transpose(pooled_regions, [0, 3, 1, 2])
    if not ratio:  # a bin whose length is not positive has no samples
        first, last = (ops.greater(length, scalar(0, computed)) for length in lengths)
        has_samples = ops.logical_and(first, last)
        pooled_regions = ops.select(ops.unsqueeze(has_samples, [2, 3]), pooled_regions, scalar(0, computed))
    return ops.convert(pooled_regions, data.element_type)
