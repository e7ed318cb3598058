"""Eye and OneHot."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import below, joined, older, reshaped, scalar
from ovir.ops.generate import Eye, OneHot16


@lowers("Eye", 9, onnx="Equal of two Ranges", limits="negative sizes count as 0")
def eye(op: Eye, num_rows: Port, num_columns: Port, diagonal: Port, batch_shape: Port | None = None) -> LayerOrPort:
    """Compare the number of each column with that of its row."""
    rows, columns, shift = (ops.convert(reshaped(port, _SCALAR), i64) for port in (num_rows, num_columns, diagonal))
    row = ops.unsqueeze(below(rows), [1])
    matrix = ops.convert(ops.equal(ops.add(row, shift), below(columns)), op.output_type)
    if batch_shape is None:
        return matrix
    return ops.broadcast(matrix, joined(ops.convert(batch_shape, i64), ops.shape_of(matrix)))


_SCALAR = np.zeros(0, np.int64)
"""The shape of a scalar."""


@lowers("OneHot", 16)
def one_hot_16(op: OneHot16, indices: Port, depth: Port, on_value: Port, off_value: Port) -> Layer:
    """Count negative indices from the end before the older version, which ignores them."""
    if op.negative_indices_mode == "ignore_negative":
        return older(op, 1, indices, depth, on_value, off_value)
    wide = ops.convert(indices, i64)
    moved = ops.add(wide, ops.convert(depth, i64))
    return older(op, 1, ops.select(ops.less(wide, scalar(0, i64)), moved, wide), depth, on_value, off_value)
