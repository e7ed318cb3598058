"""The embedding bags."""

from __future__ import annotations

from ovir.core.element_types import i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import LAST, Graph, Tensor
from ovir.export.ops.sorting import positions
from ovir.ops import segments as ops

_PADDED = "Gather of bags padded to the longest one, ReduceSum"
_NEGATIVE = "negative indices that depend on the run count from the end"


@exports(ops.EmbeddingBagPackedSum, to="Gather, ReduceSum", limits=_NEGATIVE)
def embedding_bag_packed(
    graph: Graph, op: ops.EmbeddingBagPackedSum, table: Tensor, indices: Tensor, weights: Tensor | None = None
) -> Tensor:
    computed = table.summed_in
    rows = graph.cast(graph.Gather(table, indices), computed)
    if weights is not None:
        rank = graph.rank(table, "emb_table")
        rows = graph.Mul(rows, _spread(graph, graph.cast(weights, computed), 2, rank))
    return graph.ReduceSum(rows, [1], keepdims=0)


@exports(
    ops.EmbeddingBagOffsetsSum,
    ops.EmbeddingBagOffsets,
    to=_PADDED,
    limits=f"{_NEGATIVE}; offsets that are negative or decrease are not an error",
)
def embedding_bag_offsets(
    graph: Graph, op: ops.EmbeddingBagBase, table: Tensor, indices: Tensor, offsets: Tensor, *others: Tensor | None
) -> Tensor:
    """Export as Gather and ReduceSum over the rows of each bag, padded with zeros."""
    limits = graph.Concat(graph.as_list(offsets), graph.Shape(indices), axis=0)
    return _bags(graph, op.reduction, table, indices, limits, *others)


@exports(
    ops.EmbeddingSegmentsSum,
    to=_PADDED,
    limits="segment_ids must be sorted, as the specification demands; a negative num_segments counts as 0; "
    + _NEGATIVE,
)
def embedding_segments_sum(
    graph: Graph,
    op: ops.EmbeddingSegmentsSum,
    table: Tensor,
    indices: Tensor,
    segment_ids: Tensor,
    num_segments: Tensor,
    *others: Tensor | None,
) -> Tensor:
    """Export as Gather and ReduceSum over the rows of each segment, padded with zeros."""
    count = graph.cast(graph.as_scalar(num_segments), i64)
    ids = graph.shaped(graph.cast(segment_ids, i64), segment_ids.shape if segment_ids.rank == 1 else [-1])
    limits = positions(graph, ids, graph.positions_below(graph.Add(count, 1)), graph.Less)
    return _bags(graph, "sum", table, indices, limits, *others)


def _bags(
    graph: Graph,
    reduction: str,
    table: Tensor,
    indices: Tensor,
    limits: Tensor,
    default_index: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Return the sum or the mean of the rows of each bag, and the default row for empty bags.

    Each bag begins at one of the ``limits``, and ends before the next one.
    """
    rank = graph.rank(table, "emb_table")
    computed = table.summed_in
    starts = graph.Slice(limits, [0], [-1])
    counts = graph.Sub(graph.Slice(limits, [1], [LAST]), starts)
    steps = graph.positions_below(graph.ReduceMax(graph.Concat(counts, [0], axis=0), keepdims=0))
    exist = graph.Less(steps, graph.Unsqueeze(counts, [1]))
    places = graph.Where(exist, graph.Add(steps, graph.Unsqueeze(starts, [1])), 0)
    rows = graph.cast(graph.Gather(table, graph.Gather(indices, places)), computed)
    if weights is not None:
        factors = graph.Gather(graph.cast(weights, computed), places)
        rows = graph.Mul(rows, _spread(graph, factors, 2, rank))
    mask = _spread(graph, exist, 2, rank)
    sums = graph.ReduceSum(graph.Where(mask, rows, 0), [1], keepdims=0)
    if reduction == "mean":
        sums = graph.Div(sums, _spread(graph, graph.cast(graph.Max(counts, 1), computed), 1, rank))
    sums = graph.cast(sums, table.element_type)
    default = _default_row(graph, table, default_index)
    if default is None:
        return sums
    return graph.Where(_spread(graph, graph.Equal(counts, 0), 1, rank), default, sums)


def _default_row(graph: Graph, table: Tensor, index: Tensor | None) -> Tensor | None:
    """Return the row of empty bags; None if it is zero."""
    if index is None or (index.constant is not None and index.constant.item() < 0):
        return None
    wanted = graph.cast(graph.as_scalar(index), i64)
    if index.constant is not None:
        return graph.Gather(table, wanted)
    return graph.Where(graph.Less(wanted, 0), 0, graph.Gather(table, graph.Max(wanted, 0)))


def _spread(graph: Graph, numbers: Tensor, axis: int, rank: int) -> Tensor:
    """Return a number for each bag or row of a bag with dimensions of size 1, from an axis on, for the elements."""
    return graph.Unsqueeze(numbers, list(range(axis, axis + rank - 1))) if rank > 1 else numbers
