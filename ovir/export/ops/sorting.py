"""TopK, NonZero, Unique, Bucketize and SearchSorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import ElementType, boolean, f32, f64, i32, i64, u8, u64
from ovir.export.graph import Graph, Tensor
from ovir.export.ranking import positions
from ovir.export.registry import exports
from ovir.export.sizes import as_list
from ovir.ops.sorting import Bucketize, NonZero, SearchSorted, TopK1, TopK3, TopK11, Unique

_NAN_IS_LAST = "NaN is not ordered as OpenVINO's reference orders it"
_UNIQUE_LIMITS = "NaN is not told apart from other numbers; data must not be empty if there is an axis"


@exports(TopK1, TopK3, TopK11, to="TopK; twice for sort index", limits=_NAN_IS_LAST)
def top_k(graph: Graph, op: TopK3, data: Tensor, k: Tensor) -> Sequence[Tensor]:
    """Export as TopK, whose indices are sorted by a second one if the results are ordered by index."""
    count, largest = as_list(graph, k), int(op.mode == "max")
    keys = _biased(graph, data) if data.element_type == u64 else data
    values, indices = graph.node("TopK", keys, count, outputs=2, axis=op.axis, largest=largest, sorted=1)
    if op.sort == "index":
        indices, _ = graph.node("TopK", indices, count, outputs=2, axis=op.axis, largest=0, sorted=1)
    if op.sort == "index" or keys is not data:
        values = graph.GatherElements(data, indices, axis=op.axis)
    return values, graph.cast(indices, op.index_element_type)


def _biased(graph: Graph, data: Tensor) -> Tensor:
    """Return numbers of u64 as numbers of i64 in the same order."""
    return graph.Add(graph.cast(data, i64), np.array(-(2**63), np.int64))


@exports(NonZero, to="NonZero")
def non_zero(graph: Graph, op: NonZero, data: Tensor) -> Tensor:
    """Export as NonZero."""
    if data.element_type not in (boolean, u8, f32, i32, i64):
        data = graph.cast(data, boolean)
    if data.rank == 0:
        data = graph.Reshape(data, [1])
    return graph.cast(graph.NonZero(data), op.output_type)


@exports(
    Unique,
    to="Unique",
    limits=_UNIQUE_LIMITS,
)
def unique(graph: Graph, op: Unique, data: Tensor, axis: Tensor | None = None) -> Sequence[Tensor]:
    """Export as Unique."""
    along = None if axis is None else int(graph.known(axis, "axis").item())
    is_empty = data.shape.is_static and 0 in data.shape.to_tuple()
    graph.require(along is None or not is_empty, "data of shape {} is empty, which ends onnxruntime", data.shape)
    keys = _biased(graph, data) if data.element_type == u64 else data
    values, *places, counts = graph.node("Unique", keys, outputs=4, axis=along, sorted=int(op.sorted))
    if keys is not data:
        values = graph.cast(graph.Sub(values, np.array(-(2**63), np.int64)), u64)
    indices = (graph.cast(place, op.index_element_type) for place in places)
    return values, *indices, graph.cast(counts, op.count_element_type)


# --------------------------------------------------------------------------- search


@exports(Bucketize, to="a binary search by Gather; comparisons with each of few buckets")
def bucketize(graph: Graph, op: Bucketize, data: Tensor, buckets: Tensor) -> Tensor:
    """Export as the number of boundaries before each element, where NaN precedes all or none."""
    compared = _compared_in(data.element_type, buckets.element_type)
    data = graph.shaped(graph.cast(data, compared), data.shape)
    buckets = graph.shaped(graph.cast(buckets, compared), [buckets.shape.size()])

    def is_before(boundary: Tensor, element: Tensor) -> Tensor:
        if op.with_right_bound:
            return graph.Less(boundary, element)
        return graph.Not(graph.Less(element, boundary))

    return graph.cast(positions(graph, buckets, data, is_before), op.output_type)


@exports(SearchSorted, to="a binary search by Gather; comparisons with each of few elements")
def search_sorted(graph: Graph, op: SearchSorted, sorted_sequence: Tensor, values: Tensor) -> Tensor:
    """Export as the number of elements before each value."""
    compared = _compared_in(sorted_sequence.element_type, values.element_type)
    rows, values = (graph.shaped(graph.cast(tensor, compared), tensor.shape) for tensor in (sorted_sequence, values))
    is_before = graph.LessOrEqual if op.right_mode else graph.Less
    return graph.cast(positions(graph, rows, values, is_before), op.output_type)


def _compared_in(*types: ElementType) -> ElementType:
    """Return a type that holds the numbers of both types."""
    if len(set(types)) == 1:
        return types[0]
    if any(t.is_real for t in types):
        return f32 if all(t.is_real and t.bits < 32 for t in types) else f64
    return i64
