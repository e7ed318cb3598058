"""MulticlassNms: non-maximum suppression in each class, then the best boxes of each image."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, bf16, f16, f32, i64
from ovir.kernels import half
from ovir.kernels.boxes import iou
from ovir.kernels.suppression import keep_apart, ranked
from ovir.ops.attributes import attribute
from ovir.ops.nms import box_counts, found_types, smaller
from ovir.ops.operator import Operator, operator
from ovir.types import Dimension, PartialShape
from ovir.values import TensorType

_F32 = np.dtype(np.float32)


class ImageNms(Operator):
    """What MulticlassNms and MatrixNms have in common.

    boxes are [images, boxes, 4], x, y, x, y of two corners, the lesser coordinates first; scores are
    [images, classes, boxes]. Of each class but ``background_class`` the ``nms_top_k`` boxes with the highest scores
    are candidates, if ``score_threshold`` admits them. Of those that the operation selects each image keeps the
    ``keep_top_k`` with the highest scores. -1 is no limit, and no class.

    The results are rows of class, score and the four coordinates; the places of the boxes, counted through all images,
    as [n, 1]; and the number of boxes of each image. An image's boxes stand by score, with ``sort_result_type`` classid
    by class and then by score; where these are equal by class and place. ``sort_result_across_batch`` sorts the boxes
    of all images together; it needs a type. Unless they are ``normalized`` coordinates are those of pixels: 1 is added
    to each length. Computed in f32.
    """

    sort_result_type: str = attribute(default="none", choices=("classid", "score", "none"))
    sort_result_across_batch: bool = attribute(default=False)
    output_type: ElementType = attribute(default=i64)
    score_threshold: float = attribute(default=0.0)
    nms_top_k: int = attribute(default=-1, minimum=-1)
    keep_top_k: int = attribute(default=-1, minimum=-1)
    background_class: int = attribute(default=-1, minimum=-1)
    normalized: bool = attribute(default=True)

    @abstractmethod
    def admitted(self, scores: Array) -> Array:
        """Which of the float32 scores ``score_threshold`` admits."""

    @abstractmethod
    def survivors(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """Of candidates [4, n] in the order of their scores: the indices of those selected, and their new scores."""

    # ----- inference

    def found(
        self, images: Dimension, classes: Dimension, count: Dimension, *inputs: TensorType
    ) -> tuple[TensorType, ...]:
        """The types of the outputs."""
        self.require_index_type("output_type", self.output_type, known=True)
        boxes, scores = inputs[0].element_type, inputs[1].element_type
        for name, element_type in (("boxes", boxes), ("scores", scores)):
            self.require_type(name, element_type, lambda t: t in (f32, f16, bf16), "f32, f16 or bf16")
        row_type = self.merge_types(boxes, scores, names=("boxes", "scores"))
        most = _at_most(_at_most(count, self.nms_top_k) * classes, self.keep_top_k) * images
        rows = Dimension(0, most.upper)
        shapes = PartialShape([rows, 6]), PartialShape([rows, 1]), PartialShape([images])
        return found_types(self, (row_type, self.output_type, self.output_type), shapes, *inputs)

    # ----- kernel

    def select_shared(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        """The outputs where the classes share the boxes of their image."""
        images, classes, count = scores.shape
        expected = (images, count, 4)
        self.require(boxes.shape == expected, "boxes must have shape {}, got {}", expected, boxes.shape)
        each = np.broadcast_to(boxes[:, np.newaxis], (images, classes, count, 4))
        places = np.broadcast_to(np.arange(images * count).reshape(images, 1, count), scores.shape)
        return self.select(boxes.dtype, zip(each, scores, places, strict=True))

    def select(self, row_dtype: np.dtype[Any], images: Iterable[tuple[Array, Array, Array]]) -> tuple[Array, ...]:
        """The outputs, given boxes [classes, boxes, 4], scores and places [classes, boxes] of each image."""
        found = [self._best(*image) for image in images]
        rows = np.concatenate([np.empty((0, 6), _F32), *(rows for rows, _ in found)])
        places = np.concatenate([np.empty(0, np.int64), *(places for _, places in found)])
        if self.sort_result_across_batch and self.sort_result_type != "none":
            order = np.argsort(rows[:, 0] if self.sort_result_type == "classid" else -rows[:, 1], kind="stable")
            rows, places = rows[order], places[order]
        index = self.output_type.to_dtype()
        counts = np.array([len(rows) for rows, _ in found], index)
        return rows.astype(row_dtype, copy=False), places[:, np.newaxis].astype(index, copy=False), counts

    def _best(self, boxes: Array, scores: Array, places: Array) -> tuple[Array, Array]:
        """The rows of one image, and the places of their boxes."""
        scores = np.ascontiguousarray(half.converted(scores, _F32))
        admitted = self.admitted(scores)
        if 0 <= self.background_class < len(admitted):
            admitted[self.background_class] = False
        parts = [(np.empty((0, 6), _F32), np.empty(0, np.int64))]
        for label, candidates in ranked(scores, admitted, None if self.nms_top_k < 0 else self.nms_top_k):
            chosen = boxes[label].take(candidates, axis=0).astype(_F32, copy=False)
            kept, final = self.survivors(np.ascontiguousarray(chosen.T), scores[label, candidates])
            rows = np.column_stack([np.full(kept.size, label, _F32), final, chosen[kept]])
            parts.append((rows, places[label, candidates[kept]]))
        rows = np.concatenate([rows for rows, _ in parts])
        found = np.concatenate([part for _, part in parts])
        order = np.lexsort((found, rows[:, 0], -rows[:, 1]))
        if self.keep_top_k >= 0:
            order = order[: self.keep_top_k]
        if self.sort_result_type == "classid":
            order = order[np.argsort(rows[order, 0], kind="stable")]
        return rows[order], found[order]


def _at_most(size: Dimension, limit: int) -> Dimension:
    return size if limit < 0 else smaller(size, Dimension(limit, limit))


# --------------------------------------------------------------------------- versions


@operator("MulticlassNms", opset=8)
class MulticlassNms8(ImageNms):
    """A candidate is selected unless one selected before it overlaps it by more than a threshold.

    Candidates have a score of at least score_threshold. The threshold of the overlap (intersection over union) begins
    with ``iou_threshold``. As long as it is above 0.5 each selected box multiplies it by ``nms_eta``, for itself and
    those that follow. Source: MulticlassNonMaxSuppression-8.
    """

    iou_threshold: float = attribute(default=0.0)
    nms_eta: float = attribute(default=1.0, minimum=0.0)

    def infer(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, ...]:
        return self.found(*box_counts(self, boxes.shape, scores.shape), boxes, scores)

    def found(
        self, images: Dimension, classes: Dimension, count: Dimension, *inputs: TensorType
    ) -> tuple[TensorType, ...]:
        self.require(self.nms_eta <= 1, "nms_eta must be in [0, 1], got {}", self.nms_eta)
        return super().found(images, classes, count, *inputs)

    def run(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        return self.select_shared(boxes, scores)

    def admitted(self, scores: Array) -> Array:
        return scores >= np.float32(self.score_threshold)

    def survivors(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        margin = 0 if self.normalized else 1

        def overlaps(some: Array, others: Array) -> Array:
            return iou(boxes.take(some, axis=1), boxes.take(others, axis=1), margin)

        # An image keeps no more of one class than of all.
        most = scores.size if self.keep_top_k < 0 else min(scores.size, self.keep_top_k)
        kept = keep_apart(scores.size, overlaps, self._thresholds(most))
        return kept, scores[kept]

    def _thresholds(self, count: int) -> Array:
        """By what overlap the first, second, ... selected box excludes those that follow."""
        thresholds = np.full(count, self.iou_threshold, np.float32)
        for k in range(count):
            if self.nms_eta == 1 or not thresholds[k] > 0.5:
                break
            thresholds[k:] *= np.float32(self.nms_eta)
        return thresholds


@operator("MulticlassNms", opset=9)
class MulticlassNms9(MulticlassNms8):
    """MulticlassNms-8, or with ``roisnum`` [images] of boxes that belong to one class each.

    boxes are then [classes, boxes, 4] and scores [classes, boxes]: side by side those of the first image, the second,
    and so on, as many as roisnum tells. A box's place in the output is its index times classes, plus the class.
    Source: MulticlassNonMaxSuppression-9.
    """

    def infer(self, boxes: TensorType, scores: TensorType, roisnum: TensorType | None = None) -> tuple[TensorType, ...]:
        if roisnum is None:
            return super().infer(boxes, scores)
        self.require_index_type("roisnum", roisnum.element_type)
        self.require_rank("roisnum", roisnum.shape, 1)
        self.require_rank("boxes", boxes.shape, 3)
        self.require_rank("scores, as there is roisnum,", scores.shape, 2)
        self.require(boxes.shape[2].contains(4), "a box must have 4 coordinates, got boxes {}", boxes.shape)
        shared = boxes.shape.slice(0, 2).merged_with(scores.shape)
        if shared is None:
            self.fail(
                "boxes {} and scores {} differ in classes or boxes, their first dimensions", boxes.shape, scores.shape
            )
        return self.found(roisnum.shape[0], shared[0], shared[1], boxes, scores, roisnum)

    def run(self, boxes: Array, scores: Array, roisnum: Array | None = None) -> tuple[Array, ...]:
        if roisnum is None:
            return super().run(boxes, scores)
        expected = (*scores.shape, 4)
        self.require(boxes.shape == expected, "boxes must have shape {}, got {}", expected, boxes.shape)
        classes, count = scores.shape
        # As devices do, a number below 0 counts as 0.
        ends = [0, *np.maximum(roisnum, 0).cumsum().tolist()]
        self.require(ends[-1] <= count, "roisnum {} is of {} boxes, there are {}", roisnum.tolist(), ends[-1], count)
        places = np.arange(count * classes).reshape(count, classes).T
        parts = [slice(*part) for part in pairwise(ends)]
        return self.select(boxes.dtype, ((boxes[:, part], scores[:, part], places[:, part]) for part in parts))
