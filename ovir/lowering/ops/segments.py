"""EmbeddingBagOffsets, EmbeddingBagPacked, SegmentMax and SparseFillEmptyRows."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.core.element_types import f16, i64, value_range
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import Tensors, lowers, refuse
from ovir.lowering.sizes import below, joined, number, part, rank, reshaped, scalar, size, sizes
from ovir.ops.segments import EmbeddingBagOffsets, EmbeddingBagPacked, SegmentMax, SparseFillEmptyRows


@lowers(
    "EmbeddingBagPacked",
    15,
    onnx="Gather, ReduceSum; Div for the mean",
    limits="negative indices that depend on the run count from the end",
)
def embedding_bag_packed(op: EmbeddingBagPacked, table: Port, indices: Port, *weights: Port) -> Layer:
    if op.reduction == "sum":
        return ops.embedding_bag_packed_sum(table, indices, weights[0] if weights else None)
    count = ops.maximum(size(indices, 1), scalar(1, i64))
    if table.element_type == f16:  # the sum may be too large
        share = ops.divide(scalar(1, table.element_type), ops.convert(count, table.element_type))
        return ops.embedding_bag_packed_sum(table, indices, ops.broadcast(share, sizes(indices)))
    total = ops.embedding_bag_packed_sum(table, indices)
    if table.element_type.is_real:
        return ops.divide(total, ops.convert(count, table.element_type))
    return ops.convert(ops.divide(ops.convert(total, i64), count, m_pythondiv=False), table.element_type)


@lowers("EmbeddingBagOffsets", 15)
def embedding_bag_offsets(op: EmbeddingBagOffsets, table: Port, indices: Port, offsets: Port, *more: Port) -> Layer:
    """Divide a sum by the sum of a table of ones, which counts the rows of each bag."""
    default_index, weights = (*more, None, None)[:2]
    if default_index is not None and weights is None and number(default_index) == -1:
        default_index = None  # older releases look up any index that is given
    if op.reduction == "sum":
        return ops.embedding_bag_offsets_sum(table, indices, offsets, default_index, weights)
    if not table.element_type.is_real:
        refuse(f"older operations do not round the {op.reduction} of {table.element_type}")
    total = ops.embedding_bag_offsets_sum(table, indices, offsets, default_index)
    trailing = [1] * (rank(table, "emb_table") - 1)
    ones = ops.broadcast(scalar(1, table.element_type), ops.concat([size(table, 0), ops.constant([1], i64)], axis=0))
    counts = ops.embedding_bag_offsets_sum(ones, indices, offsets, default_index)
    counts = ops.maximum(counts, scalar(1, table.element_type))
    return ops.divide(total, reshaped(counts, [-1, *trailing]))


@lowers(
    "SegmentMax",
    16,
    onnx="Gather of segments padded to the longest one, ReduceMax",
    limits="segments of NaN alone are -inf; segment_ids that are negative or not sorted, and a negative num_segments, "
    "are not an error",
)
def segment_max(op: SegmentMax, data: Port, segment_ids: Port, num_segments: Port | None = None) -> LayerOrPort:
    """Gather the rows of each segment, filled up to the longest one with its first row."""
    element_type, one = data.element_type, scalar(1, i64)
    ids = ops.convert(segment_ids, i64)
    if num_segments is None:
        count = ops.add(ops.reduce_max(ops.concat([ops.constant([-1], i64), ids], axis=0), [0], keep_dims=False), one)
    else:
        count = ops.convert(num_segments, i64)
    limits = ops.bucketize(below(ops.add(count, one)), ids, i64, with_right_bound=True)
    starts = part(limits, 0, 0, -1)
    counts = ops.subtract(part(limits, 0, 1), starts)
    steps = below(ops.reduce_max(ops.concat([counts, [1]], axis=0), [0], keep_dims=False))
    exist = ops.less(steps, ops.unsqueeze(counts, [1]))
    places = ops.add(ops.select(exist, steps, scalar(0, i64)), ops.unsqueeze(starts, [1]))
    trailing = range(1, rank(data))
    row = ops.broadcast(scalar(0, element_type), joined([1], *(size(data, axis) for axis in trailing)))
    # An empty segment at the end reads the row behind the data.
    largest = ops.reduce_max(ops.gather(ops.concat([data, row], axis=0), places, 0), [1], keep_dims=False)
    empty: LayerOrPort = ops.equal(counts, scalar(0, i64))
    if trailing:
        empty = ops.unsqueeze(empty, list(trailing))
    fill = 0 if op.fill_mode == "zero" else value_range(element_type)[0]
    return ops.select(empty, scalar(fill, element_type), largest)


@lowers(
    "SparseFillEmptyRows",
    16,
    onnx="Equal, NonZero, TopK, Gather",
    limits="columns that dense_shape lacks are not an error",
)
def sparse_fill_empty_rows(
    op: SparseFillEmptyRows, values: Port, dense_shape: Port, indices: Port, default_value: Port
) -> Tensors:
    """Find the rows without an index, and sort their entries into the others."""
    places = ops.convert(indices, i64)
    height, width = (ops.gather(ops.convert(dense_shape, i64), [index], 0) for index in (0, 1))
    rows, columns = (ops.gather(places, index, 1) for index in (0, 1))
    entries = ops.equal(ops.unsqueeze(below(height), [1]), ops.unsqueeze(rows, [0]))
    is_empty = ops.logical_not(ops.reduce_logical_or(entries, [1], keep_dims=False))
    added = reshaped(ops.non_zero(is_empty), [-1])
    count = ops.shape_of(added)
    all_rows = ops.concat([rows, added], axis=0)
    all_columns = ops.concat([columns, ops.broadcast(scalar(0, i64), count)], axis=0)
    all_values = ops.concat([values, ops.broadcast(default_value, count)], axis=0)
    keys = ops.add(ops.multiply(all_rows, width), all_columns)
    total = ops.squeeze(ops.shape_of(keys), [0])
    order = ops.topk(keys, total, axis=0, mode="min", sort="value", index_element_type="i64")[1]
    pairs = ops.concat([ops.unsqueeze(axis, [1]) for axis in (all_rows, all_columns)], axis=1)
    sorted_pairs = ops.convert(ops.gather(pairs, order, 0), indices.element_type)
    return [sorted_pairs, ops.gather(all_values, order, 0), is_empty]
