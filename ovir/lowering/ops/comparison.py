"""IsFinite, IsInf and IsNaN."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import scalar
from ovir.ops.comparison import IsFinite, IsInf, IsNaN


@lowers("IsNaN", 10)
def is_nan(op: IsNaN, data: Port) -> Layer:
    """Find the numbers that differ from themselves."""
    return ops.not_equal(data, data)


@lowers("IsFinite", 10)
def is_finite(op: IsFinite, data: Port) -> Layer:
    return ops.less(ops.abs(data), scalar(np.inf, data.element_type))


@lowers("IsInf", 10)
def is_inf(op: IsInf, data: Port) -> Layer:
    if op.detect_negative and op.detect_positive:
        return ops.equal(ops.abs(data), scalar(np.inf, data.element_type))
    if op.detect_negative:
        return ops.equal(data, scalar(-np.inf, data.element_type))
    if op.detect_positive:
        return ops.equal(data, scalar(np.inf, data.element_type))
    return ops.less(ops.abs(data), scalar(0, data.element_type))  # nothing is detected
