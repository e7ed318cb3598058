"""EmbeddingBagOffsets, EmbeddingBagPacked and SegmentMax."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import ElementType, i64, value_range
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import rank, scalar, size
from ovir.lowering.registry import lowers, refuse
from ovir.ops.segments import EmbeddingBagOffsets, EmbeddingBagPacked, SegmentMax


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
    count = (
        ops.convert(num_segments, i64)
        if num_segments is not None
        else ops.add(
            ops.reduce_max(ops.concat([ids, ops.constant([-1], i64)], axis=0), [0], keep_dims=False), scalar(1, i64)
        )
    )
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
