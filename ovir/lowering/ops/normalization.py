"""SoftMax and GroupNormalization."""

from __future__ import annotations

from ovir.graph.layers import Layer, Port
from ovir.lowering.parts import older, rank
from ovir.lowering.registry import lowers
from ovir.ops.normalization import SoftMax8


@lowers("SoftMax", 8)
def softmax_8(op: SoftMax8, data: Port) -> Layer:
    return older(op, 1, data, axis=op.axis if op.axis >= 0 else op.axis + rank(data))
