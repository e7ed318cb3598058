"""Broadcast and Tile."""

from __future__ import annotations

import numpy as np

from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.broadcast import Broadcast1, Broadcast3, Tile


@exports(
    Broadcast1,
    Broadcast3,
    to="Expand; Reshape and Expand in modes explicit and pdpd",
    limits="sizes that depend on the run and do not fit the data are taken as those of the data",
)
def broadcast(graph: Graph, op: Broadcast3, data: Tensor, target: Tensor, axes_mapping: Tensor | None = None) -> Tensor:
    """Export as Expand, which broadcasts in both directions."""
    output = op.output_shapes[0]
    if op.mode in ("explicit", "none"):
        assert axes_mapping is not None
        data = _at_axes(graph, data, target, axes_mapping)
    elif op.mode == "pdpd" and op.start_axis >= 0:
        count = target.shape.size()
        graph.require(count.is_static, "target_shape has an unknown number of elements")
        after = count.length - op.start_axis - graph.rank(data)
        data = graph.reshaped(data, [*[1] * op.start_axis, *graph.sizes_of(data), *[1] * after])
    if data.shape == output and output.is_static:
        return data
    return graph.Expand(data, np.array(output.to_tuple(), np.int64) if output.is_static else graph.as_list(target))


def _at_axes(graph: Graph, data: Tensor, target: Tensor, axes_mapping: Tensor) -> Tensor:
    """Return data with its dimensions at the given axes and 1 elsewhere."""
    count = target.shape.size()
    if axes_mapping.constant is not None and count.is_static:
        axes = axes_mapping.constant.tolist() if data.rank != 0 else []
        missing = [axis for axis in range(count.length) if axis not in axes]
        return graph.Unsqueeze(data, missing) if missing else data
    axes = graph.as_list(axes_mapping)
    ones = graph.Expand(np.array(1, np.int64), graph.Shape(target))
    own = graph.Expand(np.array(1, np.int64), graph.Shape(axes)) if data.rank == 0 else graph.shape_of(data)
    return graph.in_shape(data, graph.ScatterElements(ones, axes, own))


@exports(Tile, to="Tile")
def tile(graph: Graph, op: Tile, data: Tensor, repeats: Tensor) -> Tensor:
    """Export as Tile, with dimensions or repeats of 1 added at the front."""
    rank, count = graph.rank(data), repeats.shape.size()
    graph.require(count.is_static, "repeats has an unknown number of elements")
    before = max(rank - count.length, 0)
    if count.length > rank:
        data = graph.Unsqueeze(data, list(range(count.length - rank)))
    times = graph.Max(graph.as_list(repeats), 0)
    return graph.Tile(data, graph.vector([*[1] * before, times]))
