"""Slice, StridedSlice and SliceScatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ovir.export.exporters import exports, exports_parts
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import FIRST, LAST, Size, as_list, items, vector
from ovir.ops.slicing import Slice, SliceScatter, StridedSlice


@exports(Slice, to="Slice")
def slice_(
    graph: Graph, op: Slice, data: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None
) -> Tensor:
    """Export as Slice."""
    return _sliced(graph, data, start, stop, step, axes)


def _sliced(
    graph: Graph, data: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None
) -> Tensor:
    if axes is None and start.shape.size().is_static:
        axes = graph.constant(np.arange(start.shape.size().length))
    along = None if axes is None else as_list(graph, axes)
    return _strided(graph, data, as_list(graph, start), as_list(graph, stop), along, as_list(graph, step))


_TO_THE_END = 2**31 - 1, LAST
"""The stops that onnxruntime reads as the end in the direction of the step: the beginning for a negative step."""


def _strided(graph: Graph, data: Tensor, starts: Tensor, stops: Tensor, axes: Tensor | None, steps: Tensor) -> Tensor:
    """Return a slice whose stops are positions, however large they are and whatever the steps are."""
    if steps.constant is None or (steps.constant < 0).any():
        if stops.constant is not None:
            beyond = np.isin(stops.constant, _TO_THE_END)
            stops = graph.constant(np.where(beyond, LAST - 1, stops.constant))
        else:
            marked = graph.Or(*(graph.Equal(stops, mark) for mark in _TO_THE_END))
            stops = graph.Where(marked, LAST - 1, stops)
    return graph.Slice(data, starts, stops, axes, steps)


exports_parts(SliceScatter, to="Range, Slice, Gather and ScatterND for each axis", limits="axes must be constant")


# --------------------------------------------------------------------------- StridedSlice


@dataclass
class _Plan:
    """The treatment of each axis of data by StridedSlice, and the places where it adds axes to the result."""

    axes: list[int] = field(default_factory=list)
    """The axes that are sliced, from starts to stops in steps."""
    starts: list[Size] = field(default_factory=list)
    stops: list[Size] = field(default_factory=list)
    steps: list[Size] = field(default_factory=list)
    dropped: list[tuple[int, Size]] = field(default_factory=list)
    """The axes of which one element is taken, and its position."""
    added: list[int] = field(default_factory=list)


@exports(StridedSlice, to="Slice; Gather for shrink_axis_mask; Unsqueeze for new_axis_mask")
def strided_slice(
    graph: Graph, op: StridedSlice, data: Tensor, begin: Tensor, end: Tensor, stride: Tensor | None = None
) -> Tensor:
    """Export as Slice, Gather and Unsqueeze, as far as the masks ask for them."""
    lengths = [tensor.shape.size() for tensor in (begin, end, stride) if tensor is not None]
    count = next((length.length for length in lengths if length.is_static), None)
    begins, ends = items(graph, begin, "begin", count), items(graph, end, "end", count)
    strides: list[Size] = [1] * len(begins) if stride is None else items(graph, stride, "stride", count)
    plan = _plan(graph, op, data, begins, ends, strides)
    if plan.axes:
        vectors = (vector(graph, sizes) for sizes in (plan.starts, plan.stops, plan.axes, plan.steps))
        data = _strided(graph, data, *vectors)
    for axis, place in reversed(plan.dropped):
        index = np.array(place, np.int64) if isinstance(place, int) else graph.Squeeze(place, [0])
        data = graph.Gather(data, index, axis=axis)
    return graph.Unsqueeze(data, plan.added) if plan.added else data


def _plan(
    graph: Graph, op: StridedSlice, data: Tensor, begins: Sequence[Size], ends: Sequence[Size], steps: Sequence[Size]
) -> _Plan:
    plan = _Plan()
    rank = data.rank
    if rank is None:  # it matters for an ellipsis only
        graph.require(not any(op.ellipsis_mask), "the rank of data is unknown")
        rank = len(begins)
    place = 0
    for role, i, axis in op.roles(len(begins), rank):
        if role == "new axis":
            plan.added.append(place)
        elif role == "shrink":
            plan.dropped.append((axis, begins[i]))
        elif role == "slice":
            _add_slice(graph, op, plan, i, axis, begins[i], ends[i], steps[i])
        place += role != "shrink"
    return plan


def _add_slice(
    graph: Graph, op: StridedSlice, plan: _Plan, i: int, axis: int, begin: Size, end: Size, step: Size
) -> None:
    if _is_set(op.begin_mask, i):
        begin = _end_of(graph, step, LAST, 0)
    if _is_set(op.end_mask, i):
        end = _end_of(graph, step, FIRST, LAST)
    if begin == 0 and end == LAST and step == 1:
        return
    plan.axes.append(axis)
    plan.starts.append(begin)
    plan.stops.append(end)
    plan.steps.append(step)


def _end_of(graph: Graph, step: Size, backwards: int, forwards: int) -> Size:
    """Return the end of a dimension at which a slice starts or stops, which depends on its direction."""
    if isinstance(step, int):
        return backwards if step < 0 else forwards
    choices = (graph.constant(np.array([end], np.int64)) for end in (backwards, forwards))
    return graph.Where(graph.Less(step, 0), *choices)


def _is_set(mask: Sequence[int], index: int) -> bool:
    return index < len(mask) and mask[index] == 1
