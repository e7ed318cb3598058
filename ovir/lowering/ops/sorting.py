"""TopK, SearchSorted and Unique."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.core.element_types import i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import Tensors, lowers, refuse
from ovir.lowering.sizes import below, older, rank, reshaped, scalar, size
from ovir.ops.sorting import SearchSorted, TopK11, Unique


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


@lowers("Unique", 10)
def unique(op: Unique, data: Port, axis: Port | None = None) -> Tensors:
    """Compare all elements with each other, which takes the square of their number in memory."""
    if axis is not None and rank(data) != 1:
        refuse("older operations do not find distinct slices")
    elements = reshaped(data, [-1])
    count = ops.squeeze(size(elements, 0), [0])
    places = below(count)
    equal = ops.equal(ops.unsqueeze(elements, [1]), ops.unsqueeze(elements, [0]))
    earlier = ops.select(equal, ops.unsqueeze(places, [0]), count)
    first = ops.minimum(ops.reduce_min(earlier, [1], keep_dims=False), places)  # NaN is equal to nothing
    chosen: LayerOrPort = reshaped(ops.non_zero(ops.equal(first, places)), [-1])
    if op.sorted:
        values = ops.gather(elements, chosen, 0)
        number = ops.squeeze(size(values, 0), [0])
        keys = _ranks(values, number) if data.element_type.is_real else values
        order = ops.topk(keys, number, axis=0, mode="min", sort="value", index_element_type="i64")
        chosen = ops.gather(chosen, order[1], 0)
    owner = ops.convert(ops.equal(ops.unsqueeze(first, [1]), ops.unsqueeze(chosen, [0])), i64)
    inverse = ops.reduce_sum(ops.multiply(owner, below(size(chosen, 0))), [1], keep_dims=False)
    index, total = op.index_element_type, op.count_element_type
    return [
        ops.gather(elements, chosen, 0),
        lambda: ops.convert(chosen, index),
        lambda: ops.convert(inverse, index),
        lambda: ops.convert(ops.reduce_sum(owner, [0], keep_dims=False), total),
    ]


def _ranks(values: Layer, count: Layer) -> Layer:
    """Return different integers in the order of different real numbers; each NaN comes after all other numbers."""
    is_before = ops.less(ops.unsqueeze(values, [0]), ops.unsqueeze(values, [1]))
    ranks = ops.reduce_sum(ops.convert(is_before, i64), [1], keep_dims=False)
    last = ops.range(count, ops.add(count, count), scalar(1, i64), i64)
    return ops.select(ops.equal(values, values), ranks, last)
