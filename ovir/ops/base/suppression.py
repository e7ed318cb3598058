"""Base classes of the non-maximum suppressions: NonMaxSuppression and NMSRotated, MulticlassNms and MatrixNms."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import MAX_SIZE, UNKNOWN, Dimension, min_dimension
from ovir.core.tensor_types import TensorType
from ovir.kernels.boxes import Overlaps
from ovir.kernels.precision import as_f32
from ovir.kernels.suppression import Suppression, candidates
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator, can_fold
from ovir.ops.base.traits import ALL

# --------------------------------------------------------------------------- sizes and types


NARROW = "f32|f16|bf16"
"""The types of boxes and scores; the specification allows all floating-point types, OpenVINO only these."""


def limited(boxes: Dimension, most: int) -> Dimension:
    """Return a number of boxes of which an operation looks at ``most``, or at all if that is not positive."""
    return min_dimension(boxes, Dimension(most, most)) if most > 0 else boxes


def with_exact_shapes(
    op: Operator, outputs: TensorType | tuple[TensorType, ...], inputs: Sequence[TensorType | None]
) -> TensorType | tuple[TensorType, ...]:
    """Return the outputs; if all inputs are small constants, with the exact shapes, which the kernel determines."""
    known = [tensor for tensor in inputs if tensor is not None]
    if not isinstance(outputs, tuple) or not can_fold(op, known, outputs):
        return outputs
    with np.errstate(all="ignore"):
        arrays = op.run(*(None if tensor is None else tensor.constant for tensor in inputs))
    return tuple(TensorType(t.element_type, a.shape) for t, a in zip(outputs, arrays, strict=True))


_STEP = 3e4
"""Nanoseconds of a step in Python, which each box of a class is."""


# --------------------------------------------------------------------------- NMS of each class


class BoxSelectionBase(Operator):
    """Base of operations that select boxes by their scores."""

    copies = 40

    suppression = Suppression()
    """The steps that these operations share, which their fast form replaces."""

    pair_time: ClassVar[float] = 20
    """The time for each pair of boxes of a group in nanoseconds, if all boxes are kept."""

    def groups(self, inputs: Sequence[TensorType]) -> tuple[Dimension, Dimension]:
        """Return the number of groups and of the boxes in a group, each of which is compared with all others."""
        return Dimension(0, 0), Dimension(0, 0)

    def work(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        groups, boxes = (dim.upper for dim in self.groups(inputs))
        if groups is None or boxes is None:
            return inf
        return super().work(inputs, outputs) + groups * boxes * (_STEP + boxes * self.pair_time)


class ClassNmsBase(BoxSelectionBase):
    """Base of operations that suppress boxes in each class, given as boxes and scores [images, classes, boxes]."""

    value_inputs = ALL

    def groups(self, inputs: Sequence[TensorType]) -> tuple[Dimension, Dimension]:
        scores = inputs[1].shape
        return scores.slice(0, -1).size(), scores[-1]


class SuppressionBase(ClassNmsBase):
    """Base of operations that keep the boxes with the highest scores among overlapping ones, for each class and batch
    separately.

    The box with the highest score is selected (of equal scores the first), and boxes that overlap it by more than
    iou_threshold are removed. This repeats until max_output_boxes_per_class boxes are selected or no remaining score is
    above score_threshold. (In the specification a score equal to the threshold qualifies, but removed boxes get the
    score 0, which would then qualify again under the default threshold 0.) A negative maximum means no limit. A missing
    input is 0, so without the maximum nothing is selected.

    The selected boxes are triplets of batch, class and box. They are ordered by class and then by selection, or all by
    score with ``sort_result_descending``; equal scores are ordered by batch, class and box. Everything is computed in
    f32.
    """

    sort_result_descending: bool = attribute(default=True)
    output_type: ElementType

    removes_when_soft: ClassVar[bool] = False
    """Whether iou_threshold applies to Soft-NMS too."""

    gives = "triplets output_type[Rows, 3]; scores f32[Rows, 3]; count output_type[1]"
    recipe = (
        f"real half, {NARROW} half, max_output_boxes_per_class = 0..4, iou_threshold = 0.5, score_threshold = 0.0, "
        "soft_nms_sigma = 0.5"
    )

    # ----- inference

    def rows(self, batches: Dimension, classes: Dimension, boxes: Dimension, max_boxes: Dimension) -> Dimension:
        """Return the number of triplets; ``max_boxes`` is the limit per class."""
        return Dimension(0, (min_dimension(boxes, max_boxes) * batches * classes).upper)

    def infer(self, *inputs: TensorType | None) -> TensorType | tuple[TensorType, ...]:
        found = self.solved(*inputs)
        limit = _known_limit(inputs[2] if len(inputs) > 2 else None, found["P"])
        rows = self.rows(found["N"], found["C"], found["P"], limit)
        # The largest integer may be used to express that there is no limit.
        unlimited = rows.upper is None or rows.upper >= MAX_SIZE
        found.sizes["Rows"] = Dimension(rows.lower, None) if unlimited else rows
        return with_exact_shapes(self, found.outputs(), inputs)

    # ----- kernel

    def overlaps(self, boxes: Array) -> Overlaps:
        """Return a function that computes how much the float32 boxes [n, coordinates] overlap each other."""
        raise NotImplementedError

    def select_boxes(
        self,
        boxes: Array,
        scores: Array,
        max_boxes: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
        soft_nms_sigma: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return the triplets [n, 3] and the score of each."""
        batches, classes, count = scores.shape
        limit = class_limit(max_boxes, count)
        suppressing, least, sigma = (_number(a) for a in (iou_threshold, score_threshold, soft_nms_sigma))
        scores = as_f32(scores).reshape(batches * classes, count)
        rows, places, final = candidates(scores > least if limit else np.zeros(scores.shape, bool), scores)
        if sigma <= 0:  # the scores of Soft-NMS change, and with them the order
            order = self.suppression.ranked(rows, final)
            rows, places, final = rows[order], places[order], final[order]
        images = rows // max(classes, 1)
        overlaps = self.overlaps(as_f32(boxes)[images, places])
        if sigma > 0:
            removing = suppressing if self.removes_when_soft else np.inf
            kept, final = self.suppression.soften(
                rows, final, overlaps, sigma, least=least, limit=limit, removing=removing
            )
        else:
            kept = self.suppression.keep_apart(rows, limit, overlaps, suppressing)
            final = final[kept]
        if self.sort_result_descending:
            order = self.suppression.descending(final)  # equal ones come by row and place as they are
            kept, final = kept[order], final[order]
        triplets = np.empty((kept.size, 3), np.int64)
        triplets[:, 0], triplets[:, 2] = images[kept], places[kept]
        triplets[:, 1] = rows[kept] - triplets[:, 0] * classes
        return triplets, final

    def run(self, boxes: Array, scores: Array, *inputs: Array | None) -> Array | tuple[Array, ...]:
        """Return the arrays that ``gives`` names, from the inputs of ``select_boxes``."""
        triplets, final = self.select_boxes(boxes, scores, *inputs)
        indices = triplets.astype(self.output_type.to_dtype(), copy=False)
        scores = triplets.astype(np.float32)
        scores[:, 2] = final
        return indices, scores, np.array([len(triplets)], indices.dtype)


def class_limit(max_boxes: Array | None, boxes: int) -> int:
    """Return the number of boxes of a class that max_output_boxes_per_class allows."""
    limit = 0 if max_boxes is None else int(max_boxes.item())
    return boxes if limit < 0 else min(limit, boxes)


def _known_limit(max_boxes: TensorType | None, boxes: Dimension) -> Dimension:
    """Return ``class_limit`` as far as it is known."""
    if max_boxes is None:
        return Dimension(0, 0)
    if max_boxes.constant is not None and max_boxes.constant.item() < 0:
        return boxes
    if max_boxes.value is None or max_boxes.value.lower.min() < 0:
        return UNKNOWN
    return max_boxes.value.dimensions()[0]


def _number(array: Array | None) -> float:
    return 0.0 if array is None else float(array.astype(np.float32, copy=False).item())
