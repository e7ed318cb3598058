"""EmbeddingBagOffsets, EmbeddingBagPacked, SegmentMax and SparseFillEmptyRows."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import ElementType, i64, value_range
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import number, rank, scalar, size
from ovir.lowering.registry import Tensors, lowers, refuse
from ovir.ops.segments import EmbeddingBagOffsets, EmbeddingBagPacked, SegmentMax, SparseFillEmptyRows


@lowers("EmbeddingBagPacked", 15)
def embedding_bag_packed(
    op: EmbeddingBagPacked, table: Port, indices: Port, per_sample_weights: Port | None = None
) -> Layer:
    total = ops.embedding_bag_packed_sum(table, indices, per_sample_weights)
    if op.reduction == "sum":
        return total
    _require_real(op.reduction, table)
    return ops.divide(total, ops.convert_like(ops.maximum(size(indices, 1), scalar(1, i64)), table))


@lowers("EmbeddingBagOffsets", 15)
def embedding_bag_offsets(
    op: EmbeddingBagOffsets,
    table: Port,
    indices: Port,
    offsets: Port,
    default_index: Port | None = None,
    per_sample_weights: Port | None = None,
) -> Layer:
    """Divide a sum by the sum of a table of ones, which counts the rows of each bag."""
    if default_index is not None and per_sample_weights is None and number(default_index) == -1:
        default_index = None  # older releases look up any index that is given
    if op.reduction == "sum":
        return ops.embedding_bag_offsets_sum(table, indices, offsets, default_index, per_sample_weights)
    _require_real(op.reduction, table)
    total = ops.embedding_bag_offsets_sum(table, indices, offsets, default_index)
    trailing = [1] * (rank(table, "emb_table") - 1)
    ones = ops.broadcast(scalar(1, table.element_type), ops.concat([size(table, 0), ops.constant([1], i64)], axis=0))
    counts = ops.embedding_bag_offsets_sum(ones, indices, offsets, default_index)
    counts = ops.maximum(counts, scalar(1, table.element_type))
    return ops.divide(total, ops.reshape(counts, [-1, *trailing], special_zero=False))


def _require_real(reduction: str, table: Port) -> None:
    if not table.element_type.is_real:
        refuse(f"older operations do not round the {reduction} of {table.element_type}")


@lowers("SegmentMax", 16)
def segment_max(op: SegmentMax, data: Port, segment_ids: Port, num_segments: Port | None = None) -> LayerOrPort:
    """Take the largest of all rows, of which those of other segments count as the lowest number."""
    element_type = data.element_type
    ids = ops.convert(segment_ids, i64)
    if num_segments is None:
        ended = ops.concat([ops.constant([-1], i64), ids], axis=0)
        last = ops.strided_slice(ended, [-1], [0], [1], [0], [1], [], [1])  # the ids are sorted
        count = ops.add(last, scalar(1, i64))
    else:
        count = ops.convert(num_segments, i64)
    segments = ops.range(scalar(0, i64), count, scalar(1, i64), i64)
    belongs = ops.equal(ops.unsqueeze(segments, [1]), ops.unsqueeze(ids, [0]))
    trailing = rank(data) - 1
    mask: Layer = ops.unsqueeze(belongs, list(range(2, 2 + trailing))) if trailing else belongs
    dtype = element_type.to_dtype()
    neutral = scalar(-np.inf if element_type.is_real else np.iinfo(dtype).min, element_type)
    largest = ops.reduce_max(ops.select(mask, ops.unsqueeze(data, [0]), neutral), [1], keep_dims=False)
    filled = ops.reduce_logical_or(mask, [1], keep_dims=False)
    return ops.select(filled, largest, scalar(_lowest(op, element_type), element_type))


def _lowest(op: SegmentMax, element_type: ElementType) -> float:
    """Return what an empty segment holds."""
    return 0 if op.fill_mode == "zero" else value_range(element_type)[0]


@lowers("SparseFillEmptyRows", 16)
def sparse_fill_empty_rows(
    op: SparseFillEmptyRows, values: Port, dense_shape: Port, indices: Port, default_value: Port
) -> Tensors:
    """Find the rows without an index, and sort their entries into the others."""
    places = ops.convert(indices, i64)
    height, width = (ops.gather(ops.convert(dense_shape, i64), [index], 0) for index in (0, 1))
    rows, columns = (ops.gather(places, index, 1) for index in (0, 1))
    numbers = ops.range(scalar(0, i64), ops.squeeze(height, [0]), scalar(1, i64), i64)
    entries = ops.equal(ops.unsqueeze(numbers, [1]), ops.unsqueeze(rows, [0]))
    is_empty = ops.logical_not(ops.reduce_logical_or(entries, [1], keep_dims=False))
    added = ops.reshape(ops.non_zero(is_empty), [-1], special_zero=False)
    count = ops.shape_of(added)
    all_rows = ops.concat([rows, added], axis=0)
    all_columns = ops.concat([columns, ops.broadcast(scalar(0, i64), count)], axis=0)
    all_values = ops.concat([values, ops.broadcast(default_value, count)], axis=0)
    keys = ops.add(ops.multiply(all_rows, width), all_columns)
    number = ops.squeeze(ops.shape_of(keys), [0])
    order = ops.topk(keys, number, axis=0, mode="min", sort="value", index_element_type="i64")[1]
    pairs = ops.concat([ops.unsqueeze(part, [1]) for part in (all_rows, all_columns)], axis=1)
    sorted_pairs = ops.convert(ops.gather(pairs, order, 0), indices.element_type)
    return [sorted_pairs, ops.gather(all_values, order, 0), is_empty]
