"""Reversals, rolls and shuffles, and moves between spatial axes and batch or channels."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ovir.core.element_types import f16, f32, f64, i8, i64, u8
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import (
    FIRST,
    LAST,
    Size,
    as_list,
    axes_from_front,
    compute,
    inverse,
    items,
    product,
    reshaped,
    size_of,
    sizes_of,
    vector,
)
from ovir.ops.rearrange import (
    BatchToSpace,
    DepthToSpace,
    Reverse,
    ReverseSequence,
    Roll,
    ShuffleChannels,
    SpaceToBatch,
    SpaceToDepth,
)


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


@exports(
    ReverseSequence,
    to="ReverseSequence, between Transposes unless the axes are 0 and 1",
    limits="negative lengths count as 1",
)
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
        along = axes_from_front(graph, axes, rank)
        shifts = graph.Expand(as_list(graph, shift), graph.Shape(along))
        chosen = graph.Equal(graph.Unsqueeze(along, [0]), np.arange(rank)[:, np.newaxis])
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


_NATIVE = (f16, f32, f64, i8, u8)
"""The types that onnxruntime moves between depth and space by itself."""


@exports(
    BatchToSpace,
    to="Reshape, Transpose, Reshape, Slice",
    limits="crops of the run that are negative or exceed the data are not an error",
)
def batch_to_space(
    graph: Graph, op: BatchToSpace, data: Tensor, block_shape: Tensor, crops_begin: Tensor, crops_end: Tensor
) -> Tensor:
    """Export as Transpose of the blocks in the batch, followed by Slice if something is cropped."""
    rank = graph.rank(data)
    blocks, begins, ends = _lists(graph, rank, block_shape=block_shape, crops_begin=crops_begin, crops_end=crops_end)
    batch, *sizes = sizes_of(graph, data)
    images = compute(graph, "Div", batch, product(graph, blocks))
    split = reshaped(graph, data, [*blocks, images, *sizes])
    order = [rank, 0, *(i for axis in range(1, rank) for i in (rank + axis, axis))]
    grown = [compute(graph, "Mul", size, block) for size, block in zip((images, *sizes), blocks, strict=True)]
    whole = reshaped(graph, graph.Transpose(split, perm=order), grown)
    axes = [axis for axis in range(rank) if not begins[axis] == ends[axis] == 0]
    if not axes:
        return whole
    starts = vector(graph, [begins[axis] for axis in axes])
    stops = vector(graph, [compute(graph, "Sub", grown[axis], ends[axis]) for axis in axes])
    return graph.Slice(whole, starts, stops, axes)


@exports(SpaceToBatch, to="Pad, Reshape, Transpose, Reshape", limits="negative pads of the run crop the data")
def space_to_batch(
    graph: Graph, op: SpaceToBatch, data: Tensor, block_shape: Tensor, pads_begin: Tensor, pads_end: Tensor
) -> Tensor:
    """Export as Transpose of the blocks in space, after Pad if something is padded."""
    rank = graph.rank(data)
    blocks, begins, ends = _lists(graph, rank, block_shape=block_shape, pads_begin=pads_begin, pads_end=pads_end)
    batch, *sizes = sizes_of(graph, data)
    if any(pad != 0 for pad in (*begins, *ends)):
        data = graph.Pad(data, vector(graph, [*begins, *ends]))
    padded = [compute(graph, "Add", *parts) for parts in zip(sizes, begins[1:], ends[1:], strict=True)]
    counts = [compute(graph, "Div", size, block) for size, block in zip(padded, blocks[1:], strict=True)]
    split = reshaped(graph, data, [batch, *(size for pair in zip(counts, blocks[1:], strict=True) for size in pair)])
    order = [*range(2, 2 * rank - 1, 2), 0, *range(1, 2 * rank - 1, 2)]
    images = compute(graph, "Mul", batch, product(graph, blocks))
    return reshaped(graph, graph.Transpose(split, perm=order), [images, *counts])


def _lists(graph: Graph, rank: int, **tensors: Tensor) -> list[list[Size]]:
    """Return inputs of one number for each dimension, by the names that errors show."""
    return [items(graph, tensor, name, rank) for name, tensor in tensors.items()]


@exports(DepthToSpace, to="DepthToSpace; Reshape, Transpose, Reshape for other ranks and types")
def depth_to_space(graph: Graph, op: DepthToSpace, data: Tensor) -> Tensor:
    """Export as DepthToSpace, or as Transpose of the blocks in the depth."""
    b, k = op.block_size, graph.rank(data) - 2
    if k == 2 and data.element_type in _NATIVE:
        return graph.DepthToSpace(data, blocksize=b, mode="DCR" if op.mode == "blocks_first" else "CRD")
    images, whole, *sizes = sizes_of(graph, data)
    depth = compute(graph, "Div", whole, b**k)
    if op.mode == "blocks_first":
        split, first_block, depth_axis = [images, *[b] * k, depth, *sizes], 1, k + 1
    else:
        split, first_block, depth_axis = [images, depth, *[b] * k, *sizes], 2, 1
    order = [0, depth_axis, *(i for axis in range(k) for i in (k + 2 + axis, first_block + axis))]
    moved = graph.Transpose(reshaped(graph, data, split), perm=order)
    return reshaped(graph, moved, [images, depth, *(compute(graph, "Mul", size, b) for size in sizes)])


@exports(SpaceToDepth, to="SpaceToDepth; Reshape, Transpose, Reshape for other ranks, types and mode depth_first")
def space_to_depth(graph: Graph, op: SpaceToDepth, data: Tensor) -> Tensor:
    """Export as SpaceToDepth, or as Transpose of the blocks in space."""
    b, k = op.block_size, graph.rank(data) - 2
    if k == 2 and data.element_type in _NATIVE and op.mode == "blocks_first":
        return graph.SpaceToDepth(data, blocksize=b)
    images, depth, *sizes = sizes_of(graph, data)
    counts = [compute(graph, "Div", size, b) for size in sizes]
    split = reshaped(graph, data, [images, depth, *(size for count in counts for size in (count, b))])
    blocks, space = range(3, 2 * k + 2, 2), range(2, 2 * k + 2, 2)
    order = [0, *blocks, 1, *space] if op.mode == "blocks_first" else [0, 1, *blocks, *space]
    return reshaped(graph, graph.Transpose(split, perm=order), [images, compute(graph, "Mul", depth, b**k), *counts])
