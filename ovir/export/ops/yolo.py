"""RegionYolo and ReorgYolo."""

from __future__ import annotations

from itertools import groupby
from math import prod

import numpy as np

from ovir.export.exporters import exports
from ovir.export.onnx_graph import LAST, Graph, Size, Tensor
from ovir.ops.yolo import RegionYolo, ReorgYolo


@exports(RegionYolo, to="Sigmoid and Softmax")
def region_yolo(graph: Graph, op: RegionYolo, data: Tensor) -> Tensor:
    """Export as Sigmoid and Softmax of parts of the channels."""
    data = graph.shaped(data, data.shape if data.rank else [-1] * 4)
    channels = op.regions * op.entries
    blocks, rest = data, None
    if data.shape[1] != channels:  # regions follow each other regardless of the batch
        flat = graph.Reshape(data, [-1])
        count = graph.Mul(graph.Div(graph.Size(data), graph.scalar_size_of(data, 1)), channels)
        used = graph.Reshape(count, [1])
        blocks = graph.Slice(flat, [0], used, [0])
        rest = graph.Slice(flat, used, [LAST], [0]) if op.do_softmax else None
    area = graph.product(graph.sizes_of(data)[2:])
    blocks = graph.Reshape(blocks, graph.vector([-1, op.entries, area]))
    made = _activated(graph, op, blocks)
    if rest is not None:
        made = graph.Concat(graph.Reshape(made, [-1]), rest, axis=0)
    return graph.Reshape(made, _output_shape(graph, op, data))


def _activated(graph: Graph, op: RegionYolo, blocks: Tensor) -> Tensor:
    """Return blocks [regions, entries, points] with the sigmoid of coordinates and objectness, and the scores."""
    scores = op.coords + 1
    last = scores if op.do_softmax else op.entries

    def passes(entry: int) -> int:
        return -1 if op.do_softmax and entry >= scores else (entry < 2) + (op.coords <= entry < last)

    runs = [(times, len(list(entries))) for times, entries in groupby(range(op.entries), passes)]
    parts = graph.node("Split", blocks, [count for _, count in runs], outputs=len(runs), axis=1)
    found = []
    for (times, _), part in zip(runs, parts, strict=True):
        if times < 0:
            part = graph.Softmax(part, axis=1)
        for _ in range(times):
            part = graph.Sigmoid(part)
        found.append(part)
    return graph.Concat(*found, axis=1) if len(found) > 1 else found[0]


def _output_shape(graph: Graph, op: RegionYolo, data: Tensor) -> Tensor:
    sizes = graph.sizes_of(data)
    if not op.do_softmax:
        return graph.vector([sizes[0], op.regions * op.entries, *sizes[2:]])
    first = op.normalize_axis(op.axis, 4)
    stop = max(op.normalize_axis(op.end_axis, 4, "end_axis"), first) + 1
    return graph.vector([*sizes[:first], -1, *sizes[stop:]])


@exports(
    ReorgYolo, to="Reshape and Transpose", limits="channels that stride * stride does not divide need a static shape"
)
def reorg_yolo(graph: Graph, op: ReorgYolo, data: Tensor) -> Tensor:
    """Export as Transpose between Reshape; else gather the elements one by one."""
    stride = op.stride[0]
    area = stride * stride
    channels = data.shape[1]
    if not channels.is_static or channels.length % area:
        sizes = graph.sizes(data)
        places = op.run(np.arange(prod(sizes)).reshape(sizes))
        return graph.Gather(graph.Reshape(data, [-1]), graph.constant(np.asarray(places, np.int64)))
    images, _, height, width = graph.sizes_of(data)
    spread: list[Size] = [images, channels.length // area, height, stride, width, stride]
    blocks = graph.Transpose(graph.reshaped(data, spread), perm=[0, 3, 5, 1, 2, 4])
    smaller = (graph.Div(size, stride) for size in (height, width))
    return graph.reshaped(blocks, [images, channels.length * area, *smaller])
