"""Inverse."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import f32
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import known_sizes, part, rank, scalar, sizes, swapped
from ovir.ops.matmul import Inverse

_MOST = 16
"""The largest side of a matrix whose elimination is written out."""


@lowers("Inverse", 14)
def inverse(op: Inverse, data: Port) -> LayerOrPort:
    """Write out the elimination by Gauss and Jordan, beside the identity, with the largest pivot of each column."""
    last = rank(data) - 1
    (side,) = known_sizes(data.shape.slice(last))
    if side > _MOST:
        refuse(f"the elimination is written out for matrices up to {_MOST} x {_MOST}, and these are {side} x {side}")
    matrix = ops.convert(data, f32)
    identity = ops.broadcast(ops.constant(np.eye(side), f32), sizes(data))
    both = ops.concat([matrix, identity], axis=last)
    numbers = ops.constant(np.arange(side), "i32")
    for step in range(side):
        both = _eliminated(both, step, side, last, numbers)
    result: LayerOrPort = ops.convert(part(both, last, side), data.element_type)
    return swapped(result, last - 1, last) if op.adjoint else result


def _eliminated(both: Layer, step: int, side: int, last: int, numbers: Layer) -> Layer:
    """Exchange the row of a column's largest pivot with row ``step``, and make the column one of the identity."""
    column = ops.abs(part(both, last, step, step + 1))
    column = ops.select(ops.equal(column, column), column, scalar(np.inf, f32))  # a NaN is a pivot, and so spreads
    is_done = ops.constant((np.arange(side) < step).reshape(side, 1))
    found = ops.topk(ops.select(is_done, scalar(-1, f32), column), 1, axis=last - 1, mode="max", sort="none")
    rows = ops.unsqueeze(numbers, [1])
    is_pivot, is_own = ops.equal(rows, found[1]), ops.constant((np.arange(side) == step).reshape(side, 1))
    zero = scalar(0, f32)
    pivot, own = (
        ops.reduce_sum(ops.select(mask, both, zero), [last - 1], keep_dims=True) for mask in (is_pivot, is_own)
    )
    exchanged = ops.select(is_own, pivot, ops.select(is_pivot, own, both))
    scaled = ops.divide(pivot, part(pivot, last, step, step + 1))
    factors = ops.subtract(part(exchanged, last, step, step + 1), ops.convert(is_own, f32))
    return ops.select(is_own, scaled, ops.subtract(exchanged, ops.multiply(factors, scaled)))
