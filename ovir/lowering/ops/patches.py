"""Col2Im."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir import opset12 as ops
from ovir.core.arrays import Array
from ovir.core.element_types import f64
from ovir.graph.layers import LayerOrPort, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import joined, known, part, rank, scalar, size
from ovir.ops.base.spatial import output_size as window_count
from ovir.ops.patches import Col2Im


@lowers("Col2Im", 15)
def col2im(op: Col2Im, data: Port, output_size: Port, kernel_size: Port) -> LayerOrPort:
    """Add the blocks up by a transposed convolution whose filters have a 1 at one position each; few runtimes have one
    of integers or f64, which are added one by one."""
    image, kernel = known(output_size, "output_size"), known(kernel_size, "kernel_size")
    steps = op.strides, op.dilations, op.pads_begin, op.pads_end
    counts = [window_count(*axis) for axis in zip(image, kernel, *steps, strict=True)]
    if not data.element_type.is_real or data.element_type == f64 or not data.shape[-2].is_static:
        return _one_by_one(op, data, image, kernel, counts)
    taps = prod(kernel)
    channels = data.shape[-2].length // taps
    blocks = ops.reshape(data, [-1, channels * taps, *counts], special_zero=False)
    filters = np.broadcast_to(np.eye(taps).reshape(1, taps, 1, *kernel), (channels, taps, 1, *kernel))
    result = ops.group_convolution_backprop_data(
        blocks,
        ops.constant(filters, data.element_type),
        strides=op.strides,
        dilations=op.dilations,
        pads_begin=op.pads_begin,
        pads_end=op.pads_end,
        output_shape=image,
    )
    return result if rank(data) == 3 else ops.squeeze(result, [0])


def _one_by_one(
    op: Col2Im, data: Port, image: Sequence[int], kernel: Sequence[int], counts: Sequence[int]
) -> LayerOrPort:
    places, area = _places(op, image, kernel, counts), prod(image)
    planes = ops.reshape(data, [-1, places.size], special_zero=False)
    zeros = ops.broadcast(scalar(0, data.element_type), joined(size(planes, 0), area + 1))
    indices = ops.broadcast(ops.constant(places), joined(size(planes, 0), places.size))
    pixels = part(ops.scatter_elements_update(zeros, indices, planes, 1, reduction="sum"), 1, 0, area)
    batch = [size(data, 0)] if rank(data) == 3 else []
    return ops.reshape(pixels, joined(*batch, -1, *image), special_zero=False)


def _places(op: Col2Im, image: Sequence[int], kernel: Sequence[int], counts: Sequence[int]) -> Array:
    """Return the position in the image of each position of the kernel in each window; padding comes after the image."""
    per_axis = []
    for axis in range(2):
        taps = np.arange(kernel[axis])[:, np.newaxis] * op.dilations[axis] - op.pads_begin[axis]
        per_axis.append(taps + np.arange(counts[axis]) * op.strides[axis])
    rows, columns = per_axis[0][:, np.newaxis, :, np.newaxis], per_axis[1][np.newaxis, :, np.newaxis, :]
    inside = (rows >= 0) & (rows < image[0]) & (columns >= 0) & (columns < image[1])
    return np.where(inside, rows * image[1] + columns, prod(image)).astype(np.int64).reshape(-1)
