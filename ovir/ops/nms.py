"""NonMaxSuppression and NMSRotated: keep the boxes with the highest scores among overlapping ones, in each class.

NonMaxSuppression-9 comes before version 5, which is derived from it and differs in one flag.
"""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import Dimension, min_dimension
from ovir.kernels.boxes import Overlaps, edges_of_centered, edges_of_corners, rotated_overlaps, upright_overlaps
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, by_input
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import (
    NARROW,
    SuppressionBase,
    class_limit,
)


class NonMaxSuppressionBase(SuppressionBase):
    """Base of non-maximum suppression of upright boxes; SuppressionBase has the contract.

    ``box_encoding`` corner: y, x, y, x of any two opposite corners; center: x and y of the center, width, height.
    """

    is_filled = True  # NonZero was tried as well: 2021.4 refuses it

    domains = by_input(max_output_boxes_per_class=SMALL)
    fillers = (("max_output_boxes_per_class", 0, "i64"), ("iou_threshold", 0, "f32"), ("score_threshold", 0, "f32"))
    box_encoding: str = attribute(default="corner", choices=("corner", "center"))

    def overlaps(self, boxes: Array) -> Overlaps:
        return upright_overlaps(edges_of_corners(boxes) if self.box_encoding == "corner" else edges_of_centered(boxes))


@operator("NonMaxSuppression", opset=1)
class NonMaxSuppression1(NonMaxSuppressionBase):
    """The boxes with the highest scores among overlapping ones, class by class. See SuppressionBase.

    The output always has min(boxes, max_output_boxes_per_class * classes) triplets: excess ones are dropped, missing
    ones are -1.
    """

    takes = (
        "boxes real[N, P, 4]; scores real[N, C, P]; ?max_output_boxes_per_class integer[]; ?iou_threshold real[]; "
        "?score_threshold real[]; output_type index"
    )
    gives = "output_type[Rows, 3]"
    arguments = (
        "boxes scores max_output_boxes_per_class= iou_threshold= score_threshold= box_encoding= sort_result_descending="
    )
    output_type: ElementType = i64

    def rows(self, batches: Dimension, classes: Dimension, boxes: Dimension, max_boxes: Dimension) -> Dimension:
        return min_dimension(boxes, max_boxes * classes)

    def run(self, boxes: Array, scores: Array, *inputs: Array | None) -> Array:
        triplets, _ = self.select_boxes(boxes, scores, *inputs)
        batches, classes, count = scores.shape
        sizes = batches, classes, count, class_limit(inputs[0] if inputs else None, count)
        padded = np.full((self.rows(*(Dimension(n, n) for n in sizes)).length, 3), -1, self.output_type.to_dtype())
        padded[: len(triplets)] = triplets[: len(padded)]
        return padded


@operator("NonMaxSuppression", opset=3)
class NonMaxSuppression3(NonMaxSuppression1):
    """NonMaxSuppression-1 with a choice of the output's type."""

    arguments = NonMaxSuppression1.arguments + " output_type="
    output_type: ElementType = attribute(default=i64)


@operator("NonMaxSuppression", opset=4)
class NonMaxSuppression4(NonMaxSuppression3):
    """NonMaxSuppression-3 with min(boxes, max_output_boxes_per_class) triplets for each class of each batch element."""

    def rows(self, batches: Dimension, classes: Dimension, boxes: Dimension, max_boxes: Dimension) -> Dimension:
        return min_dimension(boxes, max_boxes) * batches * classes


@operator("NonMaxSuppression", opset=9)
class NonMaxSuppression9(NonMaxSuppressionBase):
    """The boxes with the highest scores among overlapping ones, class by class, or Soft-NMS. See SuppressionBase.

    The outputs are one triplet for each selected box; triplets of batch, class and score; and their number. With
    soft_nms_sigma above 0 (Soft-NMS), a box that overlaps a selected one is not removed; its score is multiplied by
    exp(-iou**2 / (2 * sigma)).

    >>> boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
    >>> ops.non_max_suppression(boxes, np.float32([[[0.9, 0.8, 0.7]]]), 3, np.float32(0.5))
    [[0 0 0] [0 0 2]]
    [[0. 0. 0.9] [0. 0. 0.7]]
    [2]
    """

    takes = (
        f"boxes {NARROW}[N, P, 4]; scores {NARROW}[N, C, P]; ?max_output_boxes_per_class integer[]|[1]; "
        f"?iou_threshold {NARROW}[]|[1]; ?score_threshold {NARROW}[]|[1]; ?soft_nms_sigma {NARROW}[]|[1]; "
        "output_type index"
    )
    arguments = (
        "boxes scores max_output_boxes_per_class= iou_threshold= score_threshold= soft_nms_sigma= "
        "box_encoding= sort_result_descending= output_type="
    )
    output_type: ElementType = attribute(default=i64)


@operator("NonMaxSuppression", opset=5)
class NonMaxSuppression5(NonMaxSuppression9):
    """NonMaxSuppression-9, except that Soft-NMS also removes boxes that overlap by more than iou_threshold."""

    removes_when_soft = True


@operator("NMSRotated", opset=13)
class NMSRotated(SuppressionBase):
    """The boxes with the highest scores among overlapping rotated ones, class by class. See SuppressionBase.

    A box is x and y of the center, width, height, and an angle in radians. ``clockwise`` tells in which direction a
    positive angle turns in an image whose y axis points down. The outputs are one triplet of batch, class and box for
    each selected box; triplets of batch, class and score; and their number.

    >>> boxes = np.float32([[[5, 5, 4, 2, 0], [5, 5, 4, 2, 0.1], [20, 20, 4, 2, 0]]])
    >>> ops.nms_rotated(boxes, np.float32([[[0.9, 0.8, 0.7]]]), 3, 0.5, 0.0)
    [[0 0 0] [0 0 2]]
    [[0. 0. 0.9] [0. 0. 0.7]]
    [2]
    """

    takes = (
        "boxes real[N, P, 5]; scores real[N, C, P]; max_output_boxes_per_class integer[]|[1]; "
        "iou_threshold real[]|[1]; score_threshold real[]|[1]; output_type index"
    )
    unmatched = "compare rotated boxes"
    domains = by_input(max_output_boxes_per_class=SMALL)
    output_type: ElementType = attribute(default=i64)
    clockwise: bool = attribute(default=True)

    pair_time = 500

    def overlaps(self, boxes: Array) -> Overlaps:
        return rotated_overlaps(boxes if self.clockwise else boxes * np.array([1, 1, 1, 1, -1], boxes.dtype))
