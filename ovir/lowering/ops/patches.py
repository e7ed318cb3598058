"""Col2Im."""

from __future__ import annotations

import numpy as np

from ovir import opset12 as ops
from ovir.core.arrays import Array
from ovir.core.element_types import i64
from ovir.graph.layers import LayerOrPort, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import joined, known, rank, reshaped, size, sums
from ovir.ops.patches import Col2Im


@lowers("Col2Im", 15)
def col2im(op: Col2Im, data: Port, output_size: Port, kernel_size: Port) -> LayerOrPort:
    """Add the elements of the blocks up that meet each row of the image, then those that meet each column.

    Integers that are too large lose their high bits.
    """
    image, kernel = known(output_size, "output_size"), known(kernel_size, "kernel_size")
    windows = op.windows(kernel)
    counts = [window.count(length) for window, length in zip(windows, image, strict=True)]
    batch = [size(data, 0)] if rank(data) == 3 else []
    first = len(batch) + 1
    element_type = data.element_type
    computed = i64 if element_type.is_integral and element_type.bits < 64 else element_type
    blocks = reshaped(ops.convert(data, computed), joined(*batch, -1, *kernel, *counts))
    order = [*range(first), first, first + 2, first + 1, first + 3]
    sides = [taps * count for taps, count in zip(kernel, counts, strict=True)]
    result: LayerOrPort = reshaped(ops.transpose(blocks, order), joined(*batch, -1, *sides))
    for axis, window in enumerate(windows):
        table, counted = _meeting(window.positions(counts[axis]).T.ravel(), image[axis])
        result = sums(result, first + axis, ops.constant(table), ops.constant(counted))
    return ops.convert(result, element_type)


def _meeting(places: Array, length: int) -> tuple[Array, Array]:
    """Return the elements whose places are at each position of an axis [length, most], and which of them are counted:
    rows with fewer elements are filled up."""
    elements = [np.flatnonzero(places == place) for place in range(length)]
    numbers = np.arange(max(map(len, elements), default=0))
    counted = numbers < np.array([len(found) for found in elements])[:, np.newaxis]
    table = np.zeros(counted.shape, np.int64)
    if elements:
        table[counted] = np.concatenate(elements)
    return table, counted
