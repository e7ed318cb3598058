"""Slice and StridedSlice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.export.exporters import exports
from ovir.export.onnx_graph import FIRST, LAST, Graph, Tensor
from ovir.ops.slicing import Slice, StridedSlice


@exports(Slice, to="Slice")
def slice_(
    graph: Graph, op: Slice, data: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None
) -> Tensor:
    if axes is None and start.shape.size().is_static:
        axes = graph.constant(np.arange(start.shape.size().length))
    along = None if axes is None else graph.as_list(axes)
    return _strided(graph, data, graph.as_list(start), graph.as_list(stop), along, graph.as_list(step))


_TO_THE_END = 2**31 - 1, LAST
"""The stops that onnxruntime reads as the end in the direction of the step: the beginning for a negative step."""


def _strided(graph: Graph, data: Tensor, starts: Tensor, stops: Tensor, axes: Tensor | None, steps: Tensor) -> Tensor:
    """Return a slice whose stops are positions, however large they are and whatever the steps are."""
    if steps.constant is None or (steps.constant < 0).any():
        marked = graph.Or(*(graph.Equal(stops, mark) for mark in _TO_THE_END))
        stops = graph.Where(marked, LAST - 1, stops)
    return graph.Slice(data, starts, stops, axes, steps)


# --------------------------------------------------------------------------- StridedSlice


@exports(StridedSlice, to="Slice; Gather for shrink_axis_mask; Unsqueeze for new_axis_mask")
def strided_slice(
    graph: Graph, op: StridedSlice, data: Tensor, begin: Tensor, end: Tensor, stride: Tensor | None = None
) -> Tensor:
    """Export as Slice, Gather and Unsqueeze, as far as the masks ask for them."""
    lengths = [tensor.shape.size() for tensor in (begin, end, stride) if tensor is not None]
    count = next((length.length for length in lengths if length.is_static), None)
    begins, ends = graph.items(begin, "begin", count), graph.items(end, "end", count)
    strides = [graph.constant([1])] * len(begins) if stride is None else graph.items(stride, "stride", count)
    rank = data.rank
    if rank is None:  # it matters for an ellipsis only
        graph.require(not any(op.ellipsis_mask), "the rank of data is unknown")
        rank = len(begins)
    sliced: list[tuple[int, Tensor, Tensor, Tensor]] = []
    dropped: list[tuple[int, Tensor]] = []
    added: list[int] = []
    place = 0
    for role, i, axis in op.roles(len(begins), rank):
        if role == "new axis":
            added.append(place)
        elif role == "shrink":
            dropped.append((axis, begins[i]))
        elif role == "slice":
            first = _end_of(graph, strides[i], LAST, 0) if _is_set(op.begin_mask, i) else begins[i]
            last = _end_of(graph, strides[i], FIRST, LAST) if _is_set(op.end_mask, i) else ends[i]
            if (first.number, last.number, strides[i].number) != (0, float(LAST), 1):
                sliced.append((axis, first, last, strides[i]))
        place += role != "shrink"
    if sliced:
        axes, starts, stops, steps = (graph.vector(sizes) for sizes in zip(*sliced, strict=True))
        data = _strided(graph, data, starts, stops, axes, steps)
    for axis, position in reversed(dropped):
        data = graph.Gather(data, graph.as_scalar(graph.shaped(position, [1])), axis=axis)
    return graph.Unsqueeze(data, added) if added else data


def _end_of(graph: Graph, step: Tensor, backwards: int, forwards: int) -> Tensor:
    """Return the end of a dimension at which a slice starts or stops, which depends on its direction."""
    return graph.Where(graph.Less(step, 0), graph.constant([backwards]), graph.constant([forwards]))


def _is_set(mask: Sequence[int], index: int) -> bool:
    return index < len(mask) and mask[index] == 1
