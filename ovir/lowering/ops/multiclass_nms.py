"""MulticlassNms."""

from __future__ import annotations

from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import older
from ovir.ops.multiclass_nms import MulticlassNms9


@lowers("MulticlassNms", 9)
def multiclass_nms_9(op: MulticlassNms9, boxes: Port, scores: Port, roisnum: Port | None = None) -> Layer:
    if roisnum is not None:
        refuse("MulticlassNms-8 has no input roisnum")
    return older(op, 8, boxes, scores)
