"""NMSRotated: non-maximum suppression of boxes turned by an angle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.tensor_types import TensorType
from ovir.kernels.boxes import Overlaps
from ovir.kernels.rotated_boxes import rotated_overlaps
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, by_input
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import SuppressionBase, suppression_time


@operator("NMSRotated", opset=13)
class NMSRotated(SuppressionBase):
    """The boxes with the highest scores among overlapping rotated ones, class by class. See SuppressionBase.

    A box is x and y of the center, width, height, and an angle in radians. ``clockwise`` tells in which direction a
    positive angle turns in an image whose y axis points down. The outputs are one triplet of batch, class and box for
    each selected box; triplets of batch, class and score; and their number, [1].

    Source: NMSRotated-13
    """

    domains = by_input(max_output_boxes_per_class=SMALL)
    output_type: ElementType = attribute(default=i64)
    clockwise: bool = attribute(default=True)

    coordinates = 5

    def kernel_time(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        return suppression_time(inputs[1], per_pair=500)

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType,
        iou_threshold: TensorType,
        score_threshold: TensorType,
    ) -> tuple[TensorType, ...]:
        thresholds = {"iou_threshold": iou_threshold, "score_threshold": score_threshold}
        return self.infer_outputs(boxes, scores, max_output_boxes_per_class, **thresholds)

    def overlaps(self, boxes: Array) -> Overlaps:
        return rotated_overlaps(boxes if self.clockwise else boxes * np.array([1, 1, 1, 1, -1], boxes.dtype))

    def run(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array,
        iou_threshold: Array,
        score_threshold: Array,
    ) -> tuple[Array, ...]:
        return self.run_outputs(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
