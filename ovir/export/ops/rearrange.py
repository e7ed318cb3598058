"""Reversals, rolls and shuffles, and moves between spatial axes and batch or channels."""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import f16, f32, f64, i8, i64, u8
from ovir.export.exporters import exports
from ovir.export.onnx_graph import FIRST, LAST, Graph, Size, Tensor
from ovir.ops import rearrange as ops


@exports(ops.Reverse, to="Slice")
def reverse(graph: Graph, op: ops.Reverse, data: Tensor, axes: Tensor) -> Tensor:
    """Export as Slice with steps of -1."""
    if axes.constant is None:
        along = graph.Reshape(graph.NonZero(axes), [-1]) if op.mode == "mask" else graph.as_list(axes)
        ends = (graph.Expand(np.array(end, np.int64), graph.Shape(along)) for end in (-1, FIRST, -1))
        starts, stops, steps = ends
        return graph.Slice(data, starts, stops, along, steps)
    listed = np.flatnonzero(axes.constant) if op.mode == "mask" else axes.constant
    chosen = sorted(set(op.normalize_axes(listed.tolist(), data.rank, unique=False)))
    if not chosen or data.rank == 0:
        return data
    count = len(chosen)
    return graph.Slice(data, [-1] * count, [FIRST] * count, chosen, [-1] * count)


@exports(
    ops.ReverseSequence,
    to="ReverseSequence, between Transposes unless the axes are 0 and 1",
    limits="negative lengths count as 1",
)
def reverse_sequence(graph: Graph, op: ops.ReverseSequence, data: Tensor, seq_lengths: Tensor) -> Tensor:
    """Export as ReverseSequence of data with both axes moved to the front."""
    rank = graph.rank(data)
    batch, seq = op.batch_axis % rank, op.seq_axis % rank
    lengths = graph.Max(graph.cast(seq_lengths, i64), 1)  # onnxruntime 1.21 leaves sequences of length 0 unwritten
    if {batch, seq} == {0, 1}:
        return graph.ReverseSequence(data, lengths, batch_axis=batch, time_axis=seq)
    order = [batch, seq, *(axis for axis in range(rank) if axis not in (batch, seq))]
    moved = graph.ReverseSequence(graph.Transpose(data, perm=order), lengths, batch_axis=0, time_axis=1)
    return graph.Transpose(moved, perm=np.argsort(order).tolist())


# --------------------------------------------------------------------------- Roll


@exports(ops.Roll, to="Concat of two Slices for each axis")
def roll(graph: Graph, op: ops.Roll, data: Tensor, shift: Tensor, axes: Tensor) -> Tensor:
    """Export as Concat of the two parts of each axis."""
    rank = graph.rank(data)
    for axis, distance in enumerate(_distances(graph, op, rank, shift, axes)):
        size = graph.size_of(data, axis)
        front = graph.Mod(distance, graph.Max(size, 1))
        if front.number != 0:
            cut = graph.Sub(size, front)
            data = graph.Concat(graph.Slice(data, cut, [LAST], [axis]), graph.Slice(data, [0], cut, [axis]), axis=axis)
    return data


def _distances(graph: Graph, op: ops.Roll, rank: int, shift: Tensor, axes: Tensor) -> list[Tensor]:
    """Return the sum of the shifts of each axis."""
    if axes.constant is None:
        along = graph.axes_from_front(axes, rank)
        shifts = graph.Expand(graph.as_list(shift), graph.Shape(along))
        chosen = graph.Equal(graph.Unsqueeze(along, [0]), np.arange(rank)[:, np.newaxis])
        total = graph.ReduceSum(graph.Where(chosen, shifts, 0), [1], keepdims=0)
        return graph.items(total, "axes", rank)
    listed = op.normalize_axes(axes.constant.ravel().tolist(), rank, unique=False)
    given = graph.items(shift, "shift", 1 if shift.rank == 0 else len(listed))
    places = dict.fromkeys(range(rank), graph.constant([0]))
    for axis, distance in zip(listed, given * len(listed) if len(given) == 1 else given, strict=True):
        places[axis] = graph.Add(places[axis], distance)
    return [places[axis] for axis in range(rank)]


@exports(ops.ShuffleChannels, to="Reshape, Transpose, Reshape")
def shuffle_channels(graph: Graph, op: ops.ShuffleChannels, data: Tensor) -> Tensor:
    """Export as Transpose of the groups and the channels in each."""
    sizes = graph.sizes_of(data)
    axis = op.axis % len(sizes)
    before, after = graph.product(sizes[:axis]), graph.product(sizes[axis + 1 :])
    channels = graph.Div(sizes[axis], op.group)
    split = graph.reshaped(data, [before, op.group, channels, after])
    return graph.reshaped(graph.Transpose(split, perm=[0, 2, 1, 3]), sizes)


_NATIVE = (f16, f32, f64, i8, u8)
"""The types that onnxruntime moves between depth and space by itself."""


@exports(
    ops.BatchToSpace,
    to="Reshape, Transpose, Reshape, Slice",
    limits="crops of the run that are negative or exceed the data are not an error",
)
def batch_to_space(
    graph: Graph, op: ops.BatchToSpace, data: Tensor, block_shape: Tensor, crops_begin: Tensor, crops_end: Tensor
) -> Tensor:
    """Export as Transpose of the blocks in the batch, followed by Slice if something is cropped."""
    rank = graph.rank(data)
    blocks, begins, ends = _lists(graph, rank, block_shape=block_shape, crops_begin=crops_begin, crops_end=crops_end)
    batch, *sizes = graph.sizes_of(data)
    images = graph.Div(batch, graph.product(blocks))
    split = graph.reshaped(data, [*blocks, images, *sizes])
    order = [rank, 0, *(i for axis in range(1, rank) for i in (rank + axis, axis))]
    grown = [graph.Mul(size, block) for size, block in zip((images, *sizes), blocks, strict=True)]
    whole = graph.reshaped(graph.Transpose(split, perm=order), grown)
    axes = [axis for axis in range(rank) if not begins[axis].number == ends[axis].number == 0]
    if not axes:
        return whole
    starts = graph.vector([begins[axis] for axis in axes])
    stops = graph.vector([graph.Sub(grown[axis], ends[axis]) for axis in axes])
    return graph.Slice(whole, starts, stops, axes)


@exports(ops.SpaceToBatch, to="Pad, Reshape, Transpose, Reshape", limits="negative pads of the run crop the data")
def space_to_batch(
    graph: Graph, op: ops.SpaceToBatch, data: Tensor, block_shape: Tensor, pads_begin: Tensor, pads_end: Tensor
) -> Tensor:
    """Export as Transpose of the blocks in space, after Pad if something is padded."""
    rank = graph.rank(data)
    blocks, begins, ends = _lists(graph, rank, block_shape=block_shape, pads_begin=pads_begin, pads_end=pads_end)
    batch, *sizes = graph.sizes_of(data)
    if any(pad.number != 0 for pad in (*begins, *ends)):
        data = graph.Pad(data, graph.vector([*begins, *ends]))
    padded = [graph.Add(graph.Add(size, b), e) for size, b, e in zip(sizes, begins[1:], ends[1:], strict=True)]
    counts = [graph.Div(size, block) for size, block in zip(padded, blocks[1:], strict=True)]
    split = graph.reshaped(data, [batch, *(size for pair in zip(counts, blocks[1:], strict=True) for size in pair)])
    order = [*range(2, 2 * rank - 1, 2), 0, *range(1, 2 * rank - 1, 2)]
    images = graph.Mul(batch, graph.product(blocks))
    return graph.reshaped(graph.Transpose(split, perm=order), [images, *counts])


def _lists(graph: Graph, rank: int, **tensors: Tensor) -> list[list[Tensor]]:
    """Return inputs of one number for each dimension, by the names that errors show."""
    return [graph.items(tensor, name, rank) for name, tensor in tensors.items()]


@exports(ops.DepthToSpace, to="DepthToSpace; Reshape, Transpose, Reshape for other ranks and types")
def depth_to_space(graph: Graph, op: ops.DepthToSpace, data: Tensor) -> Tensor:
    """Export as DepthToSpace, or as Transpose of the blocks in the depth."""
    b, k = op.block_size, graph.rank(data) - 2
    if k == 2 and data.element_type in _NATIVE:
        return graph.DepthToSpace(data, blocksize=b, mode="DCR" if op.mode == "blocks_first" else "CRD")
    images, whole, *sizes = graph.sizes_of(data)
    depth = graph.Div(whole, b**k)
    split: list[Size]
    if op.mode == "blocks_first":
        split, first_block, depth_axis = [images, *[b] * k, depth, *sizes], 1, k + 1
    else:
        split, first_block, depth_axis = [images, depth, *[b] * k, *sizes], 2, 1
    order = [0, depth_axis, *(i for axis in range(k) for i in (k + 2 + axis, first_block + axis))]
    moved = graph.Transpose(graph.reshaped(data, split), perm=order)
    return graph.reshaped(moved, [images, depth, *(graph.Mul(size, b) for size in sizes)])


@exports(ops.SpaceToDepth, to="SpaceToDepth; Reshape, Transpose, Reshape for other ranks, types and mode depth_first")
def space_to_depth(graph: Graph, op: ops.SpaceToDepth, data: Tensor) -> Tensor:
    """Export as SpaceToDepth, or as Transpose of the blocks in space."""
    b, k = op.block_size, graph.rank(data) - 2
    if k == 2 and data.element_type in _NATIVE and op.mode == "blocks_first":
        return graph.SpaceToDepth(data, blocksize=b)
    images, depth, *sizes = graph.sizes_of(data)
    counts = [graph.Div(size, b) for size in sizes]
    split = graph.reshaped(data, [images, depth, *(size for count in counts for size in (count, b))])
    blocks, space = range(3, 2 * k + 2, 2), range(2, 2 * k + 2, 2)
    order = [0, *blocks, 1, *space] if op.mode == "blocks_first" else [0, 1, *blocks, *space]
    return graph.reshaped(graph.Transpose(split, perm=order), [images, graph.Mul(depth, b**k), *counts])
