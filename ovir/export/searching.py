"""Searches in sorted sequences, which ONNX has no operator for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.element_types import i64
from ovir.export.graph import Graph
from ovir.export.tensors import Tensor

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
