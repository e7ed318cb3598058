"""ExtractImagePatches and Col2Im."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32
from ovir.export.exporters import exports
from ovir.export.nodes import summed_in
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import (
    Size,
    as_list,
    compute,
    expanded,
    positions_below,
    product,
    reshaped,
    size_of,
    sizes_of,
    vector,
)
from ovir.kernels.windows import extent
from ovir.ops.base.spatial import output_size
from ovir.ops.patches import Col2Im, ExtractImagePatches


@exports(ExtractImagePatches, to="Pad, Gather of rows and of columns, Transpose, Reshape")
def extract_image_patches(graph: Graph, op: ExtractImagePatches, data: Tensor) -> Tensor:
    """Export as Gather of the rows, then of the columns, at every position of every patch."""
    images, channels, *sizes = [size_of(graph, data, axis) for axis in range(4)]
    axes = [_Axis(graph, op, i, size) for i, size in enumerate(sizes)]
    if any(axis.begin != 0 or axis.end != 0 for axis in axes):
        pads = [0, 0, *(axis.begin for axis in axes), 0, 0, *(axis.end for axis in axes)]
        data = graph.Pad(data, vector(graph, pads))
    rows, columns = (axis.places(graph) for axis in axes)
    taken = graph.Gather(graph.Gather(data, rows, axis=2), columns, axis=4)
    moved = graph.Transpose(taken, perm=[0, 2, 4, 1, 3, 5])
    depth = compute(graph, "Mul", channels, op.sizes[0] * op.sizes[1])
    return reshaped(graph, moved, [images, depth, *(axis.count for axis in axes)])


class _Axis:
    """The windows along one axis of an image."""

    def __init__(self, graph: Graph, op: ExtractImagePatches, axis: int, size: Size) -> None:
        self.kernel, self.stride, self.rate = op.sizes[axis], op.strides[axis], op.rates[axis]
        covered = extent(self.kernel, self.rate)
        first = covered if op.auto_pad == "valid" else 1
        steps = compute(graph, "Div", compute(graph, "Sub", size, first - self.stride), self.stride)
        self.count = compute(graph, "Max", steps, 0)
        self.begin: Size = 0
        self.end: Size = 0
        if op.auto_pad == "valid":
            return
        needed = compute(graph, "Add", compute(graph, "Mul", self.count, self.stride), covered - self.stride)
        total = compute(graph, "Max", compute(graph, "Sub", needed, size), 0)
        small = compute(graph, "Div", total, 2)
        large = compute(graph, "Sub", total, small)
        self.begin, self.end = (small, large) if op.auto_pad == "same_upper" else (large, small)

    def places(self, graph: Graph) -> Tensor:
        """Return the position in the padded image of each position of a patch [kernel, window]."""
        taps = np.arange(self.kernel)[:, np.newaxis] * self.rate
        if isinstance(self.count, int):
            return graph.constant(taps + np.arange(self.count) * self.stride)
        return graph.Add(graph.Mul(positions_below(graph, self.count), self.stride), taps)


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
        as_list(graph, image_size),
        as_list(graph, kernel_size),
        dilations=list(op.dilations),
        pads=[*op.pads_begin, *op.pads_end],
        strides=list(op.strides),
    )
    return made if is_batched else graph.Squeeze(made, [0])


def _summed_at_places(graph: Graph, op: Col2Im, data: Tensor, image_size: Array, kernel_size: Array) -> Tensor:
    *batch, blocks, _ = sizes_of(graph, data)
    height, width = (int(size) for size in image_size)
    taps = int(np.prod(kernel_size))
    planes = product(graph, [*batch, compute(graph, "Div", blocks, taps)])
    places = _places_in_image(op, (height, width), kernel_size)
    computed = summed_in(data)
    parts = reshaped(graph, graph.cast(data, computed), [planes, places.size])
    zero = graph.constant(np.zeros((1, 1), computed.to_dtype()), computed)
    zeros = expanded(graph, zero, [planes, height * width + 1])
    indices = expanded(graph, graph.constant(places.reshape(1, -1)), [planes, places.size])
    summed = graph.Slice(graph.ScatterElements(zeros, indices, parts, axis=1, reduction="add"), [0], [-1], [1])
    channels = compute(graph, "Div", blocks, taps)
    return graph.cast(reshaped(graph, summed, [*batch, channels, height, width]), data.element_type)


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
