"""NonMaxSuppression."""

from __future__ import annotations

from ovir.graph.layers import Layer, Port
from ovir.lowering.parts import older
from ovir.lowering.registry import lowers
from ovir.ops.nms import NonMaxSuppression9


@lowers("NonMaxSuppression", 9)
def non_max_suppression_9(op: NonMaxSuppression9, *inputs: Port) -> Layer:
    return older(op, 5, *inputs)
