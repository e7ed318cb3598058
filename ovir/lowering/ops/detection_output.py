"""DetectionOutput."""

from __future__ import annotations

from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import known_sizes, older
from ovir.ops.detection_output import DetectionOutput8


@lowers("DetectionOutput", 8)
def detection_output_8(
    op: DetectionOutput8, box_logits: Port, class_preds: Port, proposals: Port, *more: Port
) -> Layer:
    """Name the number of classes: the predictions per prior."""
    (numbers,) = known_sizes(proposals.shape.slice(-1), "proposals")
    (predictions,) = known_sizes(class_preds.shape.slice(-1), "class_preds")
    classes = predictions // (numbers // (4 if op.normalized else 5))
    return older(op, 1, box_logits, class_preds, proposals, *more, num_classes=classes)
