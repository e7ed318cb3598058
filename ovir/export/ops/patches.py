"""ExtractImagePatches and Col2Im."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sliding_windows import padded, same_pads
from ovir.kernels.windows import extent
from ovir.ops.base.spatial import output_size
from ovir.ops.patches import Col2Im, ExtractImagePatches


@exports(ExtractImagePatches, to="Pad, Gather of rows and of columns, Transpose, Reshape")
def extract_image_patches(graph: Graph, op: ExtractImagePatches, data: Tensor) -> Tensor:
    """Export as Gather of the rows, then of the columns, at every position of every patch."""
    images, channels = (graph.size_of(data, axis) for axis in (0, 1))
    size, strides = graph.shape_of(data, 2), list(op.strides)
    covered = [extent(taps, rate) for taps, rate in zip(op.sizes, op.rates, strict=True)]
    if op.auto_pad == "valid":
        least = covered
    else:
        least = [1, 1]
        data = padded(graph, data, same_pads(graph, op.auto_pad, size, covered, strides))
    number = graph.Max(graph.Div(graph.Add(graph.Sub(size, least), strides), strides), 0)
    counts = graph.items(number, "data", 2)
    rows, columns = (
        _places(graph, count, stride, np.arange(taps)[:, np.newaxis] * rate)
        for count, stride, taps, rate in zip(counts, strides, op.sizes, op.rates, strict=True)
    )
    taken = graph.Gather(graph.Gather(data, rows, axis=2), columns, axis=4)
    moved = graph.Transpose(taken, perm=[0, 2, 4, 1, 3, 5])
    depth = graph.Mul(channels, op.sizes[0] * op.sizes[1])
    return graph.reshaped(moved, [images, depth, *counts])


def _places(graph: Graph, count: Tensor, stride: int, taps: Array) -> Tensor:
    """Return the position in the padded image of each position of a patch [kernel, window]."""
    return graph.Add(graph.Mul(graph.positions_below(count), stride), taps)


# --------------------------------------------------------------------------- Col2Im


@exports(
    Col2Im,
    to="Col2Im; ScatterElements for other types than f32, f16 and bf16, and before opset 18",
    limits="ScatterElements needs constant sizes",
)
def col_to_image(graph: Graph, op: Col2Im, data: Tensor, image_size: Tensor, kernel_size: Tensor) -> Tensor:
    """Export as Col2Im, or as a sum of the elements at their positions in the image."""
    is_batched = graph.rank(data) == 3
    if graph.opset < 18 or data.element_type not in (f32, f16, bf16):
        sizes = graph.known(image_size, "output_size"), graph.known(kernel_size, "kernel_size")
        return _summed_at_places(graph, op, data, *sizes)
    made = graph.Col2Im(
        data if is_batched else graph.Unsqueeze(data, [0]),
        graph.as_list(image_size),
        graph.as_list(kernel_size),
        dilations=list(op.dilations),
        pads=[*op.pads_begin, *op.pads_end],
        strides=list(op.strides),
    )
    return made if is_batched else graph.Squeeze(made, [0])


def _summed_at_places(graph: Graph, op: Col2Im, data: Tensor, image_size: Array, kernel_size: Array) -> Tensor:
    *batch, blocks, _ = graph.sizes_of(data)
    height, width = (int(size) for size in image_size)
    taps = int(np.prod(kernel_size))
    planes = graph.product([*batch, graph.Div(blocks, taps)])
    places = _places_in_image(op, (height, width), kernel_size)
    computed = data.summed_in
    parts = graph.reshaped(graph.cast(data, computed), [planes, places.size])
    zero = graph.constant(np.zeros((1, 1), computed.to_dtype()), computed)
    zeros = graph.expanded(zero, [planes, height * width + 1])
    indices = graph.expanded(graph.constant(places.reshape(1, -1)), [planes, places.size])
    summed = graph.Slice(graph.ScatterElements(zeros, indices, parts, axis=1, reduction="add"), [0], [-1], [1])
    channels = graph.Div(blocks, taps)
    return graph.cast(graph.reshaped(summed, [*batch, channels, height, width]), data.element_type)


def _places_in_image(op: Col2Im, sizes: Sequence[int], kernel_size: Array) -> Array:
    """Return the position in the image of each position of the kernel in each window; padding comes after the image."""
    per_axis = []
    for axis, (size, kernel) in enumerate(zip(sizes, kernel_size.tolist(), strict=True)):
        numbers = (op.strides[axis], op.dilations[axis], op.pads_begin[axis], op.pads_end[axis])
        windows = output_size(size, kernel, *numbers)
        taps = np.arange(kernel)[:, np.newaxis] * op.dilations[axis] - op.pads_begin[axis]
        per_axis.append(taps + np.arange(windows) * op.strides[axis])
    rows, columns = per_axis[0][:, np.newaxis, :, np.newaxis], per_axis[1][np.newaxis, :, np.newaxis, :]
    inside = (rows >= 0) & (rows < sizes[0]) & (columns >= 0) & (columns < sizes[1])
    return np.where(inside, rows * sizes[1] + columns, sizes[0] * sizes[1]).astype(np.int64)
