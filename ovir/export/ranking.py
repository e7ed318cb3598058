"""Sorted and searched elements: order, groups, padding, and positions in sorted sequences.

Equal keys stay in order, as TopK takes the first of equal elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.element_types import i64
from ovir.core.shapes import UNKNOWN
from ovir.export.graph import Graph, Tensor
from ovir.export.sizes import Size, expanded, positions_below, vector


def of_rank(graph: Graph, tensor: Tensor, rank: int) -> Tensor:
    """Return a tensor whose rank is known because the operation takes no other."""
    return tensor if tensor.rank is not None else graph.shaped(tensor, [UNKNOWN] * rank)


def top(graph: Graph, data: Tensor, count: Size) -> tuple[Tensor, Tensor]:
    """Return the ``count`` highest elements along the last axis, in descending order, and their indices."""
    values, indices = graph.node("TopK", data, vector(graph, [count]), outputs=2, axis=-1)
    return values, indices


def order(graph: Graph, key: Tensor, *, descending: bool = False) -> Tensor:
    """Return the order of the elements of a 1-D tensor."""
    return graph.node("TopK", key, graph.Shape(key), outputs=2, axis=0, largest=int(descending))[1]


def part(graph: Graph, data: Tensor, start: int, stop: Size, axis: int = 0) -> Tensor:
    """Return the elements along an axis from ``start`` up to ``stop``, which is excluded."""
    return graph.Slice(data, [start], vector(graph, [stop]), [axis])


def column(graph: Graph, rows: Tensor, index: int) -> Tensor:
    """Return a column of a matrix, 1-D."""
    return graph.Gather(rows, graph.constant(index, i64), axis=1)


def picked(graph: Graph, data: Tensor, *indices: Tensor) -> Tensor:
    """Return ``data[i, j, ...]`` for each position of the 1-D indices."""
    if len(indices) == 1:
        return graph.Gather(data, indices[0], axis=0)
    stacked = [graph.Unsqueeze(i, [-1]) for i in indices]
    return graph.GatherND(data, graph.Concat(*stacked, axis=1))


def group_counts(graph: Graph, groups: Tensor, count: Size) -> Tensor:
    """Return how many elements each of the groups 0, 1, ... has; ``groups`` is 1-D."""
    if count == 1:
        return graph.Shape(groups)
    same = graph.Equal(graph.Unsqueeze(positions_below(graph, count), [1]), graph.Unsqueeze(groups, [0]))
    return graph.ReduceSum(graph.cast(same, i64), [1], keepdims=0)


def group_starts(graph: Graph, counts: Tensor) -> Tensor:
    """Return how many elements precede each group."""
    return graph.CumSum(counts, graph.constant(0, i64), exclusive=1)


def ranks(graph: Graph, groups: Tensor, count: Size) -> Tensor:
    """Return the position of each element in its group; the numbers of the groups do not decrease."""
    numbers = positions_below(graph, graph.Shape(groups))
    if count == 1:
        return numbers
    starts = group_starts(graph, group_counts(graph, groups, count))
    return graph.Sub(numbers, graph.Gather(starts, groups, axis=0))


def padded(graph: Graph, rows: Tensor, count: Size, value: Any, *others: Size) -> Tensor:
    """Return exactly ``count`` rows: the first ones, and then rows of a number; a row has the sizes ``others``."""
    rest = expanded(graph, graph.number(value, rows.element_type), [count, *others])
    return part(graph, graph.Concat(rows, rest, axis=0), 0, count)


# --------------------------------------------------------------------------- binary search

_FEW = 16
"""With up to this many elements, each is compared."""


def positions(graph: Graph, rows: Tensor, values: Tensor, is_before: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return how many elements of a sorted sequence precede each value, as i64.

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
