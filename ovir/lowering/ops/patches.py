"""Col2Im."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir import opset7 as ops
from ovir.graph.layers import LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import known, known_sizes, rank
from ovir.ops.base.spatial import output_size as window_count
from ovir.ops.patches import Col2Im


@lowers("Col2Im", 15)
def col2im(op: Col2Im, data: Port, output_size: Port, kernel_size: Port) -> LayerOrPort:
    """Add the blocks up by a transposed convolution whose filters have a 1 at one position each."""
    if not data.element_type.is_real:
        refuse(f"older operations do not add up blocks of {data.element_type}")
    image, kernel = known(output_size, "output_size"), known(kernel_size, "kernel_size")
    taps = prod(kernel)
    channels = known_sizes(data.shape.slice(-2, -1))[0] // taps
    steps = op.strides, op.dilations, op.pads_begin, op.pads_end
    counts = [window_count(*axis) for axis in zip(image, kernel, *steps, strict=True)]
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
