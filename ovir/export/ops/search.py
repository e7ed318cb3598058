"""Bucketize and SearchSorted."""

from __future__ import annotations

from ovir.core.element_types import ElementType, f32, f64, i64
from ovir.export.graph import Graph
from ovir.export.registry import exports
from ovir.export.searching import positions
from ovir.export.tensors import Tensor
from ovir.ops.search import Bucketize, SearchSorted


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
