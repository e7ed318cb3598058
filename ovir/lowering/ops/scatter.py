"""ScatterElementsUpdate and ScatterNDUpdate."""

from __future__ import annotations

from math import prod
from typing import NoReturn

import numpy as np

from ovir import opset7 as ops
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import constant, from_front, known, known_sizes, older, rank, size, sizes
from ovir.lowering.registry import lowers, refuse
from ovir.ops.scatter import ScatterElementsUpdate12, ScatterNDUpdate15

_SUMS = ("sum", "sub")


@lowers("ScatterElementsUpdate", 12)
def scatter_elements_12(op: ScatterElementsUpdate12, data: Port, indices: Port, updates: Port, axis: Port) -> Layer:
    """Count negative indices from the front; add sums up by EmbeddingSegmentsSum."""

    def length() -> LayerOrPort:
        return ops.squeeze(size(data, known(axis, "axis")[0]), [0])

    where = constant(axis)
    found = None if where is None or data.shape.rank is None else data.shape[int(where.item())]
    counted = from_front(indices, found, length)
    if op.reduction == "none":
        return older(op, 3, data, counted, updates, axis)
    if op.reduction != "sum" or not op.use_init_val:
        _refuse_reduction(op.reduction if op.use_init_val else f"{op.reduction} without the initial value")
    shape = known_sizes(data.shape)
    along = known(axis, "axis")[0] % len(shape)
    positions: LayerOrPort = ops.multiply(ops.convert(counted, "i64"), _integer(prod(shape[along + 1 :])))
    offsets = np.zeros([1] * len(shape), np.int64)
    for other, length_of_other in enumerate(known_sizes(indices.shape, "indices")):
        if other != along:
            steps = np.arange(length_of_other) * prod(shape[other + 1 :])
            offsets = offsets + steps.reshape(-1, *[1] * (len(shape) - other - 1))
    positions = ops.reshape(ops.add(positions, ops.constant(offsets)), [-1], special_zero=False)
    rows = ops.reshape(updates, [-1, 1], special_zero=False)
    total = _sums(rows, positions, prod(shape))
    return ops.add(data, ops.reshape(total, sizes(data), special_zero=False))


@lowers("ScatterNDUpdate", 15)
def scatter_nd_15(op: ScatterNDUpdate15, data: Port, indices: Port, updates: Port) -> Layer:
    if op.reduction == "none":
        return older(op, 4, data, indices, updates)
    if op.reduction not in _SUMS or data.element_type.kind == "boolean":
        _refuse_reduction(op.reduction)
    (count,) = known_sizes(indices.shape.slice(-1), "indices")
    shape = known_sizes(data.shape)
    steps = ops.constant(np.array([prod(shape[axis + 1 : count]) for axis in range(count)], np.int64))
    lengths = ops.constant(np.array(shape[:count], np.int64))
    wide = ops.convert(indices, "i64")
    counted = ops.select(ops.less(wide, _integer(0)), ops.add(wide, lengths), wide)
    flat = ops.reduce_sum(ops.multiply(counted, steps), [rank(indices, "indices") - 1], keep_dims=False)
    positions = ops.reshape(flat, [-1], special_zero=False)
    rows = ops.reshape(updates, [-1, prod(shape[count:])], special_zero=False)
    total = ops.reshape(_sums(rows, positions, prod(shape[:count])), sizes(data), special_zero=False)
    return ops.add(data, total) if op.reduction == "sum" else ops.subtract(data, total)


def _integer(value: int) -> Layer:
    return ops.constant(value, "i64")


def _refuse_reduction(reduction: str) -> NoReturn:
    refuse(f"older operations do not reduce updates of the same element by {reduction}")


def _sums(rows: Layer, positions: Layer, count: int) -> Layer:
    """Return the sums [count, length] of the rows with the same position."""
    if rows.element_type.kind == "boolean":
        _refuse_reduction("sum of booleans")
    number = ops.squeeze(size(positions, 0), [0])
    order = ops.topk(positions, number, axis=0, mode="min", sort="value", index_element_type="i64")
    return ops.embedding_segments_sum(rows, order[1], order[0], _integer(count))
