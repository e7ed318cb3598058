"""TopK, NonZero, Unique, Bucketize and SearchSorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovir.core.element_types import ElementType, boolean, f32, f64, i32, i64, u8, u64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.sorting import Bucketize, NonZero, SearchSorted, TopK1, TopK3, TopK11, Unique

_NAN_IS_LAST = "NaN is not ordered as OpenVINO's reference orders it"
_UNIQUE_LIMITS = "NaN is not told apart from other numbers; data must not be empty if there is an axis"


@exports(TopK1, TopK3, TopK11, to="TopK; twice for sort index", limits=_NAN_IS_LAST)
def top_k(graph: Graph, op: TopK3, data: Tensor, k: Tensor) -> Sequence[Tensor]:
    """Export as TopK, whose indices are sorted by a second one if the results are ordered by index."""
    count, largest = graph.as_list(k), int(op.mode == "max")
    keys = _biased(graph, data) if data.element_type == u64 else data
    values, indices = graph.node("TopK", keys, count, outputs=2, axis=op.axis, largest=largest, sorted=1)
    if op.sort == "index":
        indices, _ = graph.node("TopK", indices, count, outputs=2, axis=op.axis, largest=0, sorted=1)
    if op.sort == "index" or keys is not data:
        values = graph.GatherElements(data, indices, axis=op.axis)
    return values, indices


def _biased(graph: Graph, data: Tensor) -> Tensor:
    """Return numbers of u64 as numbers of i64 in the same order."""
    return graph.Add(graph.cast(data, i64), np.array(-(2**63), np.int64))


@exports(NonZero, to="NonZero")
def non_zero(graph: Graph, op: NonZero, data: Tensor) -> Tensor:
    if data.element_type not in (boolean, u8, f32, i32, i64):
        data = graph.cast(data, boolean)
    if data.rank == 0:
        data = graph.Reshape(data, [1])
    return graph.NonZero(data)


@exports(Unique, to="Unique", limits=_UNIQUE_LIMITS)
def unique(graph: Graph, op: Unique, data: Tensor, axis: Tensor | None = None) -> Sequence[Tensor]:
    along = None if axis is None else int(graph.known(axis, "axis").item())
    is_empty = data.shape.is_static and 0 in data.shape.to_tuple()
    graph.require(along is None or not is_empty, "data of shape {} is empty, which ends onnxruntime", data.shape)
    keys = _biased(graph, data) if data.element_type == u64 else data
    values, *places, counts = graph.node("Unique", keys, outputs=4, axis=along, sorted=int(op.sorted))
    if keys is not data:
        values = graph.Sub(values, np.array(-(2**63), np.int64))
    return values, *places, counts


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

    return positions(graph, buckets, data, is_before)


@exports(SearchSorted, to="a binary search by Gather; comparisons with each of few elements")
def search_sorted(graph: Graph, op: SearchSorted, sorted_sequence: Tensor, values: Tensor) -> Tensor:
    """Export as a binary search; the decomposition compares each value with all elements."""
    compared = _compared_in(sorted_sequence.element_type, values.element_type)
    rows, values = (graph.shaped(graph.cast(tensor, compared), tensor.shape) for tensor in (sorted_sequence, values))
    is_before = graph.LessOrEqual if op.right_mode else graph.Less
    return positions(graph, rows, values, is_before)


_FEW = 16
"""With up to this many elements, each is compared."""


def positions(graph: Graph, rows: Tensor, values: Tensor, is_before: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return the number of elements of a sorted sequence that precede each value, as i64.

    ``rows`` has one dimension, or the dimensions of ``values`` except the last; then each row of values is searched in
    its own row. ``is_before(element, value)`` is true for the first elements of a sequence and false for the others.
    """
    rank = graph.rank(rows, "the sorted sequence")
    length = rows.shape[-1]
    if not length.is_static or length.length <= _FEW:
        elements = rows if rank == 1 else graph.Unsqueeze(rows, [-2])
        precede = is_before(elements, graph.Unsqueeze(values, [-1]))
        axis = -1 if values.rank is None else values.rank  # onnxruntime keeps an empty axis -1
        return graph.ReduceSum(graph.cast(precede, i64), [axis], keepdims=0)
    pick = graph.Gather if rank == 1 else graph.GatherElements
    found = graph.Expand(np.array(0, np.int64), graph.Shape(values))
    for step in reversed([1 << bit for bit in range(length.length.bit_length())]):
        wanted = graph.Add(found, step)
        place = graph.Min(wanted, length.length)
        element = pick(rows, graph.Sub(place, 1), axis=rank - 1)
        goes_on = graph.And(graph.LessOrEqual(wanted, length.length), is_before(element, values))
        found = graph.Where(goes_on, wanted, found)
    return found


def _compared_in(*types: ElementType) -> ElementType:
    """Return a type that holds the numbers of both types."""
    if len(set(types)) == 1:
        return types[0]
    if any(t.is_real for t in types):
        return f32 if all(t.is_real and t.bits < 32 for t in types) else f64
    return i64
