"""ScaledDotProductAttention."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ovir import opset8 as ops
from ovir.core.element_types import boolean
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import below, number, part, rank, reshaped, scalar, size, sizes, tensor
from ovir.ops.attention import ScaledDotProductAttention


# onnxruntime 1.32 takes 1.3 to 3 times as long for Attention of opset 23.
@lowers("ScaledDotProductAttention", 13, onnx="MatMul, Add or Where, Softmax and MatMul")
def attention(op: ScaledDotProductAttention, query: Port, key: Port, value: Port, *others: Port | None) -> Layer:
    """Multiply queries and keys, mask the scores, and average the values by their softmax."""
    mask, scale, sink = (*others, None, None, None)[:3]
    scores = ops.matmul(_scaled(query, scale), key, transpose_a=False, transpose_b=True)
    attended = _causal(query, key) if op.causal else mask
    if attended is not None and tensor(attended).element_type == boolean:
        attended = ops.select(attended, scalar(0, query.element_type), scalar(-np.inf, query.element_type))
    if attended is not None and number(attended) != 0:
        scores = ops.add(scores, attended)
    return ops.matmul(_softmax(scores, sink), value, transpose_a=False, transpose_b=False)


def _scaled(query: Port, scale: Port | None) -> Layer:
    if scale is not None:
        return ops.multiply(query, reshaped(scale, [1]))
    features = query.shape[-1] if query.shape.rank else None
    if features is not None and features.is_static:
        return ops.multiply(query, 1 / sqrt(max(features.length, 1)))
    return ops.divide(query, ops.sqrt(ops.convert_like(size(query, -1), query)))


def _causal(query: Port, key: Port) -> Layer:
    """Return the mask of the keys that each query attends to: those up to its own position."""
    own, others = (below(size(port, -2)) for port in (query, key))
    return ops.less_equal(others, ops.unsqueeze(own, [1]))


def _softmax(scores: Layer, sink: Port | None) -> Layer:
    """Return the weights of the keys; a sink takes part in the sum, and its own weight is left out."""
    if sink is None:
        return ops.softmax(scores, -1)
    rows = ops.concat([part(sizes(scores), 0, 0, -1), [1]], axis=0)
    beside = ops.concat([scores, ops.broadcast(sink, rows)], axis=-1)
    last = rank(scores, "query") - 1
    return part(ops.softmax(beside, -1), last, 0, -1)
