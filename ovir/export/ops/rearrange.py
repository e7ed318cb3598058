"""Reverse, ReverseSequence, Roll and ShuffleChannels."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ovir.core.element_types import i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import (
    FIRST,
    LAST,
    Size,
    as_list,
    compute,
    inverse,
    items,
    product,
    reshaped,
    size_of,
    sizes_of,
    vector,
)
from ovir.ops.rearrange import Reverse, ReverseSequence, Roll, ShuffleChannels


@exports(Reverse, to="Slice")
def reverse(graph: Graph, op: Reverse, data: Tensor, axes: Tensor) -> Tensor:
    """Export as Slice with steps of -1."""
    if axes.constant is None:
        along = graph.Reshape(graph.NonZero(axes), [-1]) if op.mode == "mask" else as_list(graph, axes)
        ends = (graph.Expand(np.array(end, np.int64), graph.Shape(along)) for end in (-1, FIRST, -1))
        starts, stops, steps = ends
        return graph.Slice(data, starts, stops, along, steps)
    listed = np.flatnonzero(axes.constant) if op.mode == "mask" else axes.constant
    chosen = sorted(set(op.normalize_axes(listed.tolist(), data.rank, unique=False)))
    if not chosen or data.rank == 0:
        return data
    count = len(chosen)
    return graph.Slice(data, [-1] * count, [FIRST] * count, chosen, [-1] * count)


@exports(ReverseSequence, to="ReverseSequence, between Transposes unless the axes are 0 and 1")
def reverse_sequence(graph: Graph, op: ReverseSequence, data: Tensor, seq_lengths: Tensor) -> Tensor:
    """Export as ReverseSequence of data with both axes moved to the front."""
    rank = graph.rank(data)
    batch, seq = op.batch_axis % rank, op.seq_axis % rank
    lengths = graph.Max(graph.cast(seq_lengths, i64), 1)  # onnxruntime 1.21 leaves sequences of length 0 unwritten
    if {batch, seq} == {0, 1}:
        return graph.ReverseSequence(data, lengths, batch_axis=batch, time_axis=seq)
    order = [batch, seq, *(axis for axis in range(rank) if axis not in (batch, seq))]
    moved = graph.ReverseSequence(graph.Transpose(data, perm=order), lengths, batch_axis=0, time_axis=1)
    return graph.Transpose(moved, perm=inverse(order))


# --------------------------------------------------------------------------- Roll


@exports(Roll, to="Concat of two Slices for each axis")
def roll(graph: Graph, op: Roll, data: Tensor, shift: Tensor, axes: Tensor) -> Tensor:
    """Export as Concat of the two parts of each axis."""
    rank = graph.rank(data)
    for axis, distance in enumerate(_distances(graph, op, rank, shift, axes)):
        size = size_of(graph, data, axis)
        front = compute(graph, "Mod", distance, compute(graph, "Max", size, 1))
        if front != 0:
            cut = vector(graph, [compute(graph, "Sub", size, front)])
            data = graph.Concat(graph.Slice(data, cut, [LAST], [axis]), graph.Slice(data, [0], cut, [axis]), axis=axis)
    return data


def _distances(graph: Graph, op: Roll, rank: int, shift: Tensor, axes: Tensor) -> list[Size]:
    """Return the sum of the shifts of each axis."""
    if axes.constant is None:
        along = as_list(graph, axes)
        shifts = graph.Expand(as_list(graph, shift), graph.Shape(along))
        chosen = graph.Equal(graph.Unsqueeze(graph.Mod(along, rank), [0]), np.arange(rank)[:, np.newaxis])
        total = graph.ReduceSum(graph.Where(chosen, shifts, 0), [1], keepdims=0)
        return items(graph, total, "axes", rank)
    listed = op.normalize_axes(axes.constant.reshape(-1).tolist(), rank, unique=False)
    given = items(graph, shift, "shift", 1 if shift.rank == 0 else len(listed))
    places: dict[int, Size] = Counter()  # type: ignore[assignment]
    for axis, distance in zip(listed, given * len(listed) if len(given) == 1 else given, strict=True):
        places[axis] = compute(graph, "Add", places[axis], distance)
    return [places[axis] for axis in range(rank)]


@exports(ShuffleChannels, to="Reshape, Transpose, Reshape")
def shuffle_channels(graph: Graph, op: ShuffleChannels, data: Tensor) -> Tensor:
    """Export as Transpose of the groups and the channels in each."""
    sizes = sizes_of(graph, data)
    axis = op.axis % len(sizes)
    before, after = product(graph, sizes[:axis]), product(graph, sizes[axis + 1 :])
    channels = compute(graph, "Div", sizes[axis], op.group)
    split = reshaped(graph, data, [before, op.group, channels, after])
    return reshaped(graph, graph.Transpose(split, perm=[0, 2, 1, 3]), sizes)
