"""SoftMax and GroupNormalization."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import older, rank, reshaped, sizes
from ovir.ops.normalization import GroupNormalization, SoftMax8


@lowers("SoftMax", 8)
def softmax_8(op: SoftMax8, data: Port) -> Layer:
    return older(op, 1, data, axis=op.axis if op.axis >= 0 else op.axis + rank(data))


@lowers("GroupNormalization", 12)
def group_normalization(op: GroupNormalization, data: Port, scale: Port, bias: Port) -> Layer:
    """Normalize groups as rows, then scale and shift the channels."""
    trailing = list(range(1, rank(data) - 1))
    groups = ops.reshape(data, [0, op.num_groups, -1], special_zero=True)
    normalized = ops.mvn(groups, [2], normalize_variance=True, eps=op.epsilon, eps_mode="INSIDE_SQRT")
    restored = reshaped(normalized, sizes(data))
    factor, shift = (ops.unsqueeze(port, trailing) if trailing else port for port in (scale, bias))
    return ops.add(ops.multiply(restored, factor), shift)
