"""ScatterElementsUpdate and ScatterNDUpdate."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import i64, value_range
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import from_front, joined, known, known_sizes, older, rank, reshaped, scalar, size, sizes
from ovir.ops.scatter import ScatterElementsUpdate12, ScatterNDUpdate15

_SUMS = ("sum", "sub", "mean")
_MOST = 1 << 22
"""The largest product of the numbers of elements and updates that are compared with each other."""


@lowers("ScatterElementsUpdate", 12)
def scatter_elements_12(op: ScatterElementsUpdate12, data: Port, indices: Port, updates: Port, axis: Port) -> Layer:
    """Count negative indices from the front; reduce the updates of each element before they are written."""
    counted = from_front(indices, data, axis)
    if op.reduction == "none":
        return older(op, 3, data, counted, updates, axis)
    shape = known_sizes(data.shape)
    along = known(axis, "axis")[0] % len(shape)
    positions: LayerOrPort = ops.multiply(ops.convert(counted, "i64"), scalar(prod(shape[along + 1 :]), i64))
    offsets = np.zeros([1] * len(shape), np.int64)
    for other, length_of_other in enumerate(known_sizes(indices.shape, "indices")):
        if other != along:
            steps = np.arange(length_of_other) * prod(shape[other + 1 :])
            offsets = offsets + steps.reshape(-1, *[1] * (len(shape) - other - 1))
    positions = reshaped(ops.add(positions, ops.constant(offsets)), [-1])
    rows = reshaped(updates, [-1, 1])
    return _reduced(data, rows, positions, op.reduction, prod(shape), 1, with_data=op.use_init_val)


@lowers("ScatterNDUpdate", 15)
def scatter_nd_15(op: ScatterNDUpdate15, data: Port, indices: Port, updates: Port) -> Layer:
    if op.reduction == "none":
        return older(op, 4, data, indices, updates)
    (count,) = known_sizes(indices.shape.slice(-1), "indices")
    shape = known_sizes(data.shape)
    steps = ops.constant(np.array([prod(shape[axis + 1 : count]) for axis in range(count)], np.int64))
    lengths = ops.constant(np.array(shape[:count], np.int64))
    wide = ops.convert(indices, "i64")
    counted = ops.select(ops.less(wide, scalar(0, i64)), ops.add(wide, lengths), wide)
    flat = ops.reduce_sum(ops.multiply(counted, steps), [rank(indices, "indices") - 1], keep_dims=False)
    positions = reshaped(flat, [-1])
    length = prod(shape[count:])
    rows = reshaped(updates, [-1, length])
    return _reduced(data, rows, positions, op.reduction, prod(shape[:count]), length)


# --------------------------------------------------------------------------- reductions


def _reduced(
    data: Port, rows: Layer, positions: Layer, reduction: str, count: int, length: int, *, with_data: bool = True
) -> Layer:
    """Return data, as ``count`` rows, reduced with the rows of the same position, in its own shape.

    Without ``with_data``, the rows take the place of the row of data that they belong to.
    """
    element_type = data.element_type
    if element_type.kind == "boolean" or (reduction == "mean" and not element_type.is_real):
        refuse(f"older operations do not reduce {element_type} by {reduction}")
    held = reshaped(data, [count, length])
    if reduction in _SUMS:
        found, is_updated = _by_sums(held, rows, positions, reduction, count, with_data)
    else:
        found, is_updated = _by_comparison(held, rows, positions, reduction, count, with_data)
    return reshaped(found if with_data else ops.select(is_updated, found, held), sizes(data))


def _by_sums(
    held: Layer, rows: Layer, positions: Layer, reduction: str, count: int, with_data: bool
) -> tuple[Layer, Layer]:
    element_type = held.element_type
    total = _sums(rows, positions, count)
    ones = ops.broadcast(scalar(1, element_type), joined(size(rows, 0), 1))
    number = _sums(ones, positions, count)
    is_updated = ops.greater(number, scalar(0, element_type))
    if with_data:
        total = ops.subtract(held, total) if reduction == "sub" else ops.add(held, total)
    if reduction != "mean":
        return total, is_updated
    least = scalar(1, element_type)
    divisor = ops.add(number, least) if with_data else ops.maximum(number, least)
    return ops.divide(total, divisor), is_updated


def _sums(rows: Layer, positions: Layer, count: int) -> Layer:
    """Return the sums [count, length] of the rows with the same position."""
    number = ops.squeeze(size(positions, 0), [0])
    order = ops.topk(positions, number, axis=0, mode="min", sort="value", index_element_type="i64")
    return ops.embedding_segments_sum(rows, order[1], order[0], scalar(count, i64))


def _by_comparison(
    held: Layer, rows: Layer, positions: Layer, reduction: str, count: int, with_data: bool
) -> tuple[Layer, Layer]:
    """Compare the position of each row with the number of each element, which takes their product in memory."""
    updates, length = known_sizes(rows.shape, "updates")
    if updates * length * count > _MOST:
        refuse(f"{updates} updates of {count} elements are too many to be reduced by {reduction}")
    element_type = held.element_type
    belongs = ops.equal(ops.unsqueeze(ops.constant(np.arange(count)), [1]), ops.unsqueeze(positions, [0]))
    mask = ops.unsqueeze(belongs, [2])
    low, high = (-np.inf, np.inf) if element_type.is_real else value_range(element_type)
    neutral = scalar({"prod": 1, "min": high, "max": low}[reduction], element_type)
    chosen = ops.select(mask, ops.unsqueeze(rows, [0]), neutral)
    reduce, combine = {
        "prod": (ops.reduce_prod, ops.multiply),
        "min": (ops.reduce_min, ops.minimum),
        "max": (ops.reduce_max, ops.maximum),
    }[reduction]
    found = reduce(chosen, [1], keep_dims=False)
    return combine(held, found) if with_data else found, ops.reduce_logical_or(mask, [1], keep_dims=False)
