"""ExtractImagePatches and Col2Im."""

from __future__ import annotations

import numpy as np

from ovir.export.graph import Graph
from ovir.export.registry import exports
from ovir.export.sizes import Size, as_scalar, compute, reshaped, size_of, vector
from ovir.export.tensors import Tensor
from ovir.kernels.windows import extent
from ovir.ops.patches import ExtractImagePatches


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
        return graph.Add(graph.Mul(graph.Range(0, as_scalar(graph, self.count), 1), self.stride), taps)
