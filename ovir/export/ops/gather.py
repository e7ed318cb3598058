"""Gather, GatherElements, GatherND and GatherTree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import bf16, f16, f32, i64
from ovir.core.shapes import Dimension
from ovir.export.block_quantized import in_blocks, rows
from ovir.export.exporters import exports
from ovir.export.loops import LoopStep, iterate
from ovir.export.onnx_graph import FIRST, LAST, Graph, Tensor
from ovir.export.support import data_type
from ovir.ops.compressed import Codes
from ovir.ops.gather import Gather1, Gather7, Gather8, GatherBase, GatherElements, GatherND5, GatherND8, GatherTree

_LIMITS = "indices outside of the data are an error, unless they and the size of the axis (not 0) are known"


@exports(Gather1, Gather7, Gather8, to="Gather; GatherND with batch_dims", limits=_LIMITS)
def gather(
    graph: Graph,
    op: GatherBase,
    data: Tensor,
    indices: Tensor,
    axis: Tensor,
    *,
    codes: Sequence[Codes | None] = (),
) -> Tensor | None:
    """Export as Gather, or with batch dimensions as GatherND of slices along the axis."""
    if codes:
        blocks = in_blocks(codes[0]) if graph.contrib and codes[0] is not None else None
        is_plain = axis.constant is not None and axis.constant.item() in (0, -2) and op.batch_dims == 0
        if blocks is None or not is_plain or indices.constant is not None:
            return None
        return rows(graph, graph.cast(indices, i64), blocks)
    needs_ranks = op.batch_dims and None in (data.rank, indices.rank)
    if axis.constant is None or needs_ranks:
        return _gathered_in_run(graph, data, indices, axis, op.batch_dims)
    along = int(axis.constant.item())
    if data.rank is not None:
        along %= data.rank
    batch_dims = op.batch_dims + (indices.rank or 0) if op.batch_dims < 0 else op.batch_dims
    outside = _outside(data, indices, along)
    if outside is not None:
        assert indices.constant is not None
        indices = graph.constant(np.where(outside, 0, indices.constant))
    narrow = _before_cast(graph, data)
    found = graph.cast(_gathered(graph, narrow, indices, along, batch_dims), data.element_type)
    if outside is None:
        return found
    sizes = outside.shape[:batch_dims] + (1,) * (along - batch_dims) + outside.shape[batch_dims:]
    mask = outside.reshape(*sizes, *[1] * (graph.rank(data) - 1 - along))
    return graph.Where(mask, graph.constant(np.zeros((), data.element_type.to_dtype()), data.element_type), found)


def _before_cast(graph: Graph, data: Tensor) -> Tensor:
    """Return the f16 or bf16 constant that a Cast turns into data, so that only gathered elements are cast."""
    node = data.value.producer()
    if node is None or node.op_type != "Cast" or data.element_type != f32:
        return data
    (source,) = node.inputs
    narrow = next((t for t in (f16, bf16) if source is not None and source.dtype == data_type(t)), None)
    if source is None or source.const_value is None or narrow is None:
        return data
    return Tensor(source, narrow, data.shape)


def _gathered(graph: Graph, data: Tensor, indices: Tensor, axis: int, batch_dims: int) -> Tensor:
    if batch_dims == 0:
        return graph.Gather(data, indices, axis=axis)
    if all(dim == Dimension(1, 1) for dim in indices.shape.dims[:batch_dims]):
        return graph.Gather(data, graph.Squeeze(indices, list(range(batch_dims))), axis=axis)
    rank, count = graph.rank(data), graph.rank(indices) - batch_dims
    slices = graph.Unsqueeze(indices, [-1])
    if axis == batch_dims:
        return graph.GatherND(data, slices, batch_dims=batch_dims)
    order = [i for i in range(rank) if i != axis]
    order.insert(batch_dims, axis)
    found = graph.GatherND(graph.Transpose(data, perm=order), slices, batch_dims=batch_dims)
    picked = range(axis, axis + count)  # what indices put in place of the axis
    order = [*range(batch_dims), *picked, *range(batch_dims, axis), *range(axis + count, rank + count - 1)]
    return graph.Transpose(found, perm=np.argsort(order).tolist())


def _outside(data: Tensor, indices: Tensor, axis: int) -> Array | None:
    """Return the mask of the constant indices that lie outside the data; None if no index is known to."""
    if indices.constant is None or data.rank is None or not data.shape[axis].is_static:
        return None
    size = data.shape[axis].length
    outside = (indices.constant >= size) | (indices.constant < -size)
    return outside if size and outside.any() else None


def _gathered_in_run(graph: Graph, data: Tensor, indices: Tensor, axis: Tensor, batch_dims: int) -> Tensor:
    """Return the elements picked along an axis that the run chooses. The data becomes [batch, before, axis, after]."""
    shape, counts = graph.Shape(data), graph.Shape(indices)
    along = graph.axes_from_front(axis, graph.Shape(shape))
    batch = graph.constant(np.array([batch_dims]))
    if batch_dims < 0:
        batch = graph.Add(batch, graph.Shape(counts))
    beyond = graph.Add(along, 1)
    batches, before, after = (
        graph.Slice(shape, first, last) for first, last in (([0], batch), (batch, along), (beyond, [LAST]))
    )
    picked = graph.Slice(counts, batch, [LAST])
    sizes = [graph.ReduceProd(part) for part in (batches, before, graph.Gather(shape, along), after)]
    data = graph.Transpose(graph.in_shape(data, graph.vector(sizes)), perm=[0, 2, 1, 3])
    places = graph.in_shape(indices, graph.vector([sizes[0], graph.ReduceProd(picked), 1]))
    found = graph.Transpose(graph.GatherND(data, places, batch_dims=1), perm=[0, 2, 1, 3])
    return graph.in_shape(found, graph.Concat(batches, before, picked, after, axis=0))


@exports(GatherElements, to="GatherElements")
def gather_elements(graph: Graph, op: GatherElements, data: Tensor, indices: Tensor) -> Tensor:
    return graph.GatherElements(data, indices, axis=op.axis)


@exports(GatherND5, GatherND8, to="GatherND")
def gather_nd(graph: Graph, op: GatherND8, data: Tensor, indices: Tensor) -> Tensor:
    batch = op.batch_dims
    if indices.shape[-1] == Dimension(0, 0):
        sizes, counts = graph.sizes_of(data), graph.sizes_of(indices, "indices")[batch:-1]
        slices = graph.reshaped(data, [*sizes[:batch], *[1] * len(counts), *sizes[batch:]])
        found = graph.Expand(slices, graph.vector([*sizes[:batch], *counts, *sizes[batch:]]))
    else:
        found = graph.GatherND(data, indices, batch_dims=batch)
    if isinstance(op, GatherND5) and batch > 1:
        shape = graph.Shape(found)
        batches = graph.ReduceProd(graph.Slice(shape, [0], [batch]))
        return graph.in_shape(found, graph.Concat(batches, graph.Slice(shape, [batch], [LAST]), axis=0))
    return found


@exports(GatherTree, to="Loop")
def gather_tree(
    graph: Graph, op: GatherTree, step_ids: Tensor, parent_ids: Tensor, max_seq_len: Tensor, end_token: Tensor
) -> Tensor:
    """Export as a Loop over the steps from the last one, which follows the parents of each beam."""
    count = graph.size_of(step_ids, 0)
    last = graph.Sub(graph.as_scalar(count), 1)
    lengths = graph.Unsqueeze(graph.cast(max_seq_len, i64), [1])
    beams, parents = graph.positions_below(graph.size_of(step_ids, 2)), graph.cast(parent_ids, i64)

    def step(body: Graph, number: Tensor, states: Sequence[Tensor]) -> LoopStep:
        (beam,) = states
        time = body.Sub(last, number)
        running = body.Less(time, lengths)
        token, parent = (
            body.GatherElements(body.Gather(tensor, time, axis=0), beam, axis=1) for tensor in (step_ids, parents)
        )
        return LoopStep([body.Where(running, parent, beam)], [body.Where(running, token, end_token)])

    first = graph.Expand(beams, graph.Shape(step_ids, start=1, end=3))
    _, tokens = iterate(graph, count, [first], step, graph.constant(True))
    # Without steps, the rank of what is stacked is unknown to onnxruntime.
    tokens = graph.in_shape(graph.Slice(tokens, [-1], [FIRST], [0], [-1]), graph.shape_of(step_ids))
    ended = graph.CumSum(graph.cast(graph.Equal(tokens, end_token), i64), 0)
    return graph.Where(graph.Greater(ended, 0), end_token, tokens)
