"""NMSRotated: non-maximum suppression of boxes that are turned by an angle."""

from __future__ import annotations

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, i64
from ovir.kernels.boxes import rotated_iou
from ovir.kernels.suppression import Overlaps
from ovir.ops.attributes import attribute
from ovir.ops.nms import Suppression
from ovir.ops.operator import operator
from ovir.values import TensorType


@operator("NMSRotated", opset=13)
class NMSRotated(Suppression):
    """NonMaxSuppression of boxes given by x and y of the center, width, height, and an angle in radians.

    ``clockwise`` says which way a positive angle turns, in an image whose y grows downwards. As many triplets of batch,
    class and box as boxes are selected; then triplets of batch, class and score; then their number.
    Source: NMSRotated-13.
    """

    output_type: ElementType = attribute(default=i64)
    clockwise: bool = attribute(default=True)

    coordinates = 5

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType,
        iou_threshold: TensorType,
        score_threshold: TensorType,
    ) -> tuple[TensorType, ...]:
        thresholds = {"iou_threshold": iou_threshold, "score_threshold": score_threshold}
        return self.found(boxes, scores, max_output_boxes_per_class, **thresholds)

    def overlaps(self, boxes: Array) -> Overlaps:
        turned = boxes if self.clockwise else boxes * np.array([1, 1, 1, 1, -1], boxes.dtype)
        return lambda some, others: rotated_iou(turned.take(some, axis=0), turned.take(others, axis=0))

    def run(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array,
        iou_threshold: Array,
        score_threshold: Array,
    ) -> tuple[Array, ...]:
        return self.select_found(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
