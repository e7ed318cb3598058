"""SegmentMax, the embedding bags and SparseFillEmptyRows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ovir.core.element_types import ElementType, i64
from ovir.export.exporters import exports, exports_parts
from ovir.export.nodes import real_type
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.ops.sorting import positions
from ovir.export.sizes import LAST, as_list, as_scalar, positions_below
from ovir.ops.segments import (
    EmbeddingBagBase,
    EmbeddingBagOffsets,
    EmbeddingBagOffsetsSum,
    EmbeddingBagPacked,
    EmbeddingBagPackedSum,
    EmbeddingSegmentsSum,
    SegmentMax,
    SparseFillEmptyRows,
)

# --------------------------------------------------------------------------- runs of rows, padded to the longest


@dataclass
class Runs:
    """Runs of rows: where each begins, and how many rows it has; both are i64 with one dimension."""

    starts: Tensor
    counts: Tensor

    def places(self, graph: Graph, least: int = 0) -> tuple[Tensor, Tensor]:
        """Return the positions [run, row] of the rows, for as many as the longest run has, and which of them exist.

        There are at least ``least`` positions for each run.
        """
        longest = graph.ReduceMax(graph.Concat(self.counts, np.array([least]), axis=0), keepdims=0)
        steps = positions_below(graph, longest)
        exist = graph.Less(steps, graph.Unsqueeze(self.counts, [1]))
        return graph.Add(steps, graph.Unsqueeze(self.starts, [1])), exist


def runs_of_ids(graph: Graph, ids: Tensor, count: Tensor) -> Runs:
    """Return the runs of equal ids, which are sorted, for the ids from 0 to ``count``, a scalar."""
    known = graph.shaped(graph.cast(ids, i64), ids.shape if ids.rank == 1 else [-1])
    wanted = positions_below(graph, graph.Add(count, 1))
    limits = positions(graph, known, wanted, graph.Less)
    starts = graph.Slice(limits, [0], [-1])
    return Runs(starts, graph.Sub(graph.Slice(limits, [1], [LAST]), starts))


def by_run(graph: Graph, numbers: Tensor, rank: int) -> Tensor:
    """Return the number or truth value of each run with dimensions of size 1 added up to a rank."""
    return graph.Unsqueeze(numbers, list(range(1, rank))) if rank > 1 else numbers


# --------------------------------------------------------------------------- segments


exports_parts(
    SegmentMax,
    to="Gather of segments padded to the longest one, ReduceMax",
    limits="segments of NaN alone are -inf; segment_ids that are negative or not sorted, and a negative num_segments, "
    "are not an error",
)


# --------------------------------------------------------------------------- bags


_PADDED = "Gather of bags padded to the longest one, ReduceSum"
_NEGATIVE = "negative indices that depend on the run count from the end"


@exports(EmbeddingBagPackedSum, to="Gather, ReduceSum", limits=_NEGATIVE)
def embedding_bag_packed(
    graph: Graph, op: EmbeddingBagPackedSum, table: Tensor, indices: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Export as Gather and ReduceSum over the rows of each bag."""
    computed = _computed_in(table)
    rows = graph.cast(graph.Gather(table, indices), computed)
    if weights is not None:
        rank = graph.rank(table, "emb_table")
        rows = graph.Mul(rows, _weights(graph, graph.cast(weights, computed), rank))
    return graph.cast(graph.ReduceSum(rows, [1], keepdims=0), table.element_type)


exports_parts(EmbeddingBagPacked, to="Gather, ReduceSum; Div for the mean", limits=_NEGATIVE)


@exports(
    EmbeddingBagOffsetsSum,
    EmbeddingBagOffsets,
    to=_PADDED,
    limits=f"{_NEGATIVE}; offsets that are negative or decrease are not an error",
)
def embedding_bag_offsets(
    graph: Graph,
    op: EmbeddingBagBase,
    table: Tensor,
    indices: Tensor,
    offsets: Tensor,
    default_index: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Export as Gather and ReduceSum over the rows of each bag, padded with zeros."""
    starts = as_list(graph, offsets)
    ends = graph.Concat(graph.Slice(starts, [1], [LAST]), graph.Shape(indices), axis=0)
    counts = graph.Slice(graph.Sub(ends, starts), [0], graph.Shape(starts))
    return _bags(graph, op.reduction, table, indices, Runs(starts, counts), default_index, weights)


@exports(
    EmbeddingSegmentsSum,
    to=_PADDED,
    limits="segment_ids must be sorted, as the specification demands; a negative num_segments counts as 0; "
    + _NEGATIVE,
)
def embedding_segments_sum(
    graph: Graph,
    op: EmbeddingSegmentsSum,
    table: Tensor,
    indices: Tensor,
    segment_ids: Tensor,
    num_segments: Tensor,
    default_index: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Export as Gather and ReduceSum over the rows of each segment, padded with zeros."""
    runs = runs_of_ids(graph, segment_ids, graph.cast(as_scalar(graph, num_segments), i64))
    return _bags(graph, "sum", table, indices, runs, default_index, weights)


def _bags(
    graph: Graph,
    reduction: str,
    table: Tensor,
    indices: Tensor,
    runs: Runs,
    default_index: Tensor | None,
    weights: Tensor | None,
) -> Tensor:
    """Return the sum or the mean of the rows of each bag, and the default row for empty bags."""
    rank = graph.rank(table, "emb_table")
    computed = _computed_in(table)
    places, exist = runs.places(graph)
    places = graph.Where(exist, places, 0)
    rows = graph.cast(graph.Gather(table, graph.Gather(indices, places)), computed)
    if weights is not None:
        factors = graph.Gather(graph.cast(weights, computed), places)
        rows = graph.Mul(rows, _weights(graph, factors, rank))
    mask = _weights(graph, exist, rank)
    sums = graph.ReduceSum(graph.Where(mask, rows, 0), [1], keepdims=0)
    if reduction == "mean":
        sums = graph.Div(sums, by_run(graph, graph.cast(graph.Max(runs.counts, 1), computed), rank))
    sums = graph.cast(sums, table.element_type)
    default = _default_row(graph, table, default_index)
    if default is None:
        return sums
    return graph.Where(by_run(graph, graph.Equal(runs.counts, 0), rank), default, sums)


def _default_row(graph: Graph, table: Tensor, index: Tensor | None) -> Tensor | None:
    """Return the row of empty bags; None if it is zero."""
    if index is None or (index.constant is not None and index.constant.item() < 0):
        return None
    wanted = graph.cast(as_scalar(graph, index), i64)
    if index.constant is not None:
        return graph.Gather(table, wanted)
    return graph.Where(graph.Less(wanted, 0), 0, graph.Gather(table, graph.Max(wanted, 0)))


def _weights(graph: Graph, factors: Tensor, rank: int) -> Tensor:
    """Return the number of each row of each bag, with dimensions of size 1 for the elements of a row."""
    return graph.Unsqueeze(factors, list(range(2, rank + 1))) if rank > 1 else factors


def _computed_in(table: Tensor) -> ElementType:
    """Return the type in which rows are summed: narrow floating-point numbers are rounded once."""
    element_type = table.element_type
    if element_type.is_real:
        return real_type(table)
    return i64 if element_type.bits < 8 else element_type


# --------------------------------------------------------------------------- sparse matrices


exports_parts(
    SparseFillEmptyRows,
    to="Equal, NonZero, TopK, Gather",
    limits="columns that dense_shape lacks are not an error",
)
