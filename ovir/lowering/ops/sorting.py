"""TopK, SearchSorted and Unique."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import older, rank
from ovir.lowering.registry import lowers
from ovir.ops.sorting import SearchSorted, TopK11


@lowers("TopK", 11)
def topk_11(op: TopK11, data: Port, k: Port) -> Layer:
    """Leave out ``stable``: the older version does not specify the order of equal elements."""
    return older(op, 3, data, k)


@lowers("SearchSorted", 15)
def search_sorted(op: SearchSorted, sorted_sequence: Port, values: Port) -> Layer:
    """Count the elements of the row that are before each value."""
    last = rank(values, "values")
    rows: LayerOrPort = sorted_sequence
    if rank(sorted_sequence, "sorted_sequence") > 1:
        rows = ops.unsqueeze(sorted_sequence, [last - 1])
    value = ops.unsqueeze(values, [last])
    is_before = ops.less_equal(rows, value) if op.right_mode else ops.less(rows, value)
    return ops.reduce_sum(ops.convert(is_before, op.output_type), [-1], keep_dims=False)
