"""BatchToSpace, SpaceToBatch, DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from ovir.core.element_types import f16, f32, f64, i8, u8
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import Size, compute, items, product, reshaped, sizes_of, vector
from ovir.ops.space_blocks import BatchToSpace, DepthToSpace, SpaceToBatch, SpaceToDepth

_NATIVE = (f16, f32, f64, i8, u8)
"""The types that onnxruntime moves between depth and space by itself."""


@exports(BatchToSpace, to="Reshape, Transpose, Reshape, Slice")
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


@exports(SpaceToBatch, to="Pad, Reshape, Transpose, Reshape")
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
