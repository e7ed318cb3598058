"""NonMaxSuppression."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import number, older, scalar
from ovir.ops.nms import NonMaxSuppression9


@lowers("NonMaxSuppression", 9)
def non_max_suppression_9(op: NonMaxSuppression9, *inputs: Port) -> Layer:
    """Let no box be removed under Soft-NMS, as only the older version removes boxes then."""
    if len(inputs) < 6 or number(inputs[5]) == 0:
        return older(op, 5, *inputs)
    boxes, scores, count, threshold, least, sigma = inputs
    is_soft = ops.greater(sigma, scalar(0, sigma.element_type))
    limit = ops.select(is_soft, scalar(1, threshold.element_type), threshold)
    return older(op, 5, boxes, scores, count, limit, least, sigma)
