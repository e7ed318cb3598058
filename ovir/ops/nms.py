"""NonMaxSuppression: of boxes that overlap only those with the highest scores are kept, for each class on its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, bf16, f16, f32, i64
from ovir.integers import MAX_SIZE
from ovir.kernels import half
from ovir.kernels.boxes import corners, corners_of_centered, iou
from ovir.kernels.suppression import Overlaps, keep_apart, ranked, soften
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, can_fold, operator
from ovir.types import UNKNOWN, Dimension, PartialShape
from ovir.values import TensorType

_F32 = np.dtype(np.float32)


class Suppression(Operator):
    """What NonMaxSuppression and NMSRotated have in common.

    boxes are [batches, boxes, coordinates], scores [batches, classes, boxes]. In each class of each batch element the
    box with the highest score is taken, of equal ones the first; the boxes that overlap it by more than
    iou_threshold are removed; and again, until max_output_boxes_per_class are taken or no box is left whose score is
    above score_threshold. A negative maximum is none. A left out input is 0, so that without the maximum nothing is
    selected. The selected are triplets of batch, class and box: class by class in the order in which they were taken,
    or with ``sort_result_descending`` all by score, where it is equal by batch, class and box. Computed in f32.
    """

    sort_result_descending: bool = attribute(default=True)
    output_type: ElementType

    coordinates: ClassVar[int] = 4
    only_scalars: ClassVar[bool] = False
    """Whether an input of one number must be a scalar, and not 1-D."""
    removes_when_soft: ClassVar[bool] = False
    """Whether iou_threshold holds in Soft-NMS too."""

    # ----- inference

    def rows(self, batches: Dimension, classes: Dimension, boxes: Dimension, most: Dimension) -> Dimension:
        """How many triplets there are; ``most`` of a class."""
        return Dimension(0, (smaller(boxes, most) * batches * classes).upper)

    def selected(
        self, boxes: TensorType, scores: TensorType, most: TensorType | None, **thresholds: TensorType | None
    ) -> PartialShape:
        """The shape of the triplets. All inputs are checked."""
        self.require_index_type("output_type", self.output_type, known=True)
        self.require_real("boxes", boxes.element_type)
        self.require_real("scores", scores.element_type)
        batches, classes, count = box_counts(self, boxes.shape, scores.shape, self.coordinates)
        if most is not None:
            self.require_integers("max_output_boxes_per_class", most.element_type)
            self._require_single("max_output_boxes_per_class", most.shape)
        for name, tensor in thresholds.items():
            if tensor is not None:
                self.require_real(name, tensor.element_type)
                self._require_single(name, tensor.shape)
        rows = self.rows(batches, classes, count, _most(most, count))
        # A maximum that stands for none may be the largest integer.
        return PartialShape([rows if rows.upper is None or rows.upper < MAX_SIZE else Dimension(rows.lower), 3])

    def found(
        self, boxes: TensorType, scores: TensorType, most: TensorType | None, **thresholds: TensorType | None
    ) -> tuple[TensorType, ...]:
        """The types of the triplets, of triplets of batch, class and score, and of the number of both."""
        shape = self.selected(boxes, scores, most, **thresholds)
        types = self.output_type, f32, self.output_type
        return found_types(self, types, (shape, shape, PartialShape([1])), boxes, scores, most, *thresholds.values())

    def require_real(self, name: str, element_type: ElementType) -> None:
        """Raise unless boxes, scores and thresholds may have the element type."""
        self.require_type(name, element_type, lambda t: t.is_real, "of a floating-point type")

    def _require_single(self, name: str, shape: PartialShape) -> None:
        single = shape.compatible(PartialShape([])) or (not self.only_scalars and shape.compatible(PartialShape([1])))
        words = "be a scalar" if self.only_scalars else "be a scalar or have one element"
        self.require(single, "{} must {}, got shape {}", name, words, shape)

    # ----- kernel

    @abstractmethod
    def overlaps(self, boxes: Array) -> Overlaps:
        """How much the float32 boxes [n, coordinates] overlap each other."""

    def select(
        self,
        boxes: Array,
        scores: Array,
        most: Array | None,
        iou_threshold: Array | None,
        score_threshold: Array | None,
        soft_nms_sigma: Array | None = None,
    ) -> tuple[Array, Array]:
        """The triplets [n, 3], and the score of each."""
        batches, classes, count = scores.shape
        expected = (batches, count, self.coordinates)
        self.require(boxes.shape == expected, "boxes must have shape {}, got {}", expected, boxes.shape)
        limit = _limit(most, count)
        suppressing, least, sigma = (_number(a) for a in (iou_threshold, score_threshold, soft_nms_sigma))
        boxes, rows = half.converted(boxes, _F32), half.converted(scores, _F32).reshape(batches * classes, count)

        taken: list[tuple[int, Array, Array]] = []
        for row, candidates in ranked(rows, rows > least) if limit else ():
            if sigma > 0:
                candidates.sort()  # they will change places
            overlaps = self.overlaps(boxes[row // classes].take(candidates, axis=0))
            final = rows[row, candidates]
            if sigma > 0:
                removing = suppressing if self.removes_when_soft else np.inf
                kept, final = soften(final, overlaps, sigma, least=least, limit=limit, removing=removing)
            else:
                kept = keep_apart(candidates.size, overlaps, np.full(limit, suppressing, np.float32))
                final = final[kept]
            taken.append((row, candidates[kept], final))

        sources = np.repeat([row for row, _, _ in taken], [kept.size for _, kept, _ in taken]).astype(np.int64)
        places = np.concatenate([np.empty(0, np.int64), *(kept for _, kept, _ in taken)])
        final = np.concatenate([np.empty(0, _F32), *(part for _, _, part in taken)])
        if self.sort_result_descending:
            order = np.lexsort((places, sources, -final))
            sources, places, final = sources[order], places[order], final[order]
        return np.stack([*np.divmod(sources, max(classes, 1)), places], axis=1), final

    def select_found(self, *inputs: Array | None) -> tuple[Array, ...]:
        """The arrays that ``found`` gives the types of; ``inputs`` are those of ``select``."""
        triplets, final = self.select(*inputs)  # type: ignore[arg-type]
        indices = triplets.astype(self.output_type.to_dtype(), copy=False)
        scores = triplets.astype(_F32)
        scores[:, 2] = final
        return indices, scores, np.array([len(triplets)], indices.dtype)


def box_counts(
    op: Operator, boxes: PartialShape, scores: PartialShape, coordinates: int = 4
) -> tuple[Dimension, Dimension, Dimension]:
    """Of boxes [batches, boxes, coordinates] and scores [batches, classes, boxes]: batches, classes and boxes."""
    op.require_rank("boxes", boxes, 3)
    op.require_rank("scores", scores, 3)
    op.require(boxes[2].contains(coordinates), "a box must have {} coordinates, got boxes {}", coordinates, boxes)
    batches, count = boxes[0].merged_with(scores[0]), boxes[1].merged_with(scores[2])
    if batches is None:
        op.fail("boxes {} and scores {} differ in the number of batches, their first dimension", boxes, scores)
    if count is None:
        op.fail("boxes {} and scores {} differ in the number of boxes, {} and {}", boxes, scores, boxes[1], scores[2])
    return batches, scores[1], count


def smaller(a: Dimension, b: Dimension) -> Dimension:
    """The smaller of two sizes."""
    uppers = [d.upper for d in (a, b) if d.upper is not None]
    return Dimension(min(a.lower, b.lower), min(uppers, default=None))


def found_types(
    op: Operator, types: tuple[ElementType, ...], shapes: tuple[PartialShape, ...], *inputs: TensorType | None
) -> tuple[TensorType, ...]:
    """Outputs of these types and shapes; the exact shapes, which the kernel tells, where all inputs are constants."""
    given = [tensor for tensor in inputs if tensor is not None]
    if can_fold(op, given):
        shapes = tuple(PartialShape(array.shape) for array in op.run(*(tensor.constant for tensor in given)))
    return tuple(TensorType(t, shape) for t, shape in zip(types, shapes, strict=True))


def _most(most: TensorType | None, boxes: Dimension) -> Dimension:
    """How many boxes of a class can be selected at most, as the input tells."""
    if most is None:
        return Dimension(0, 0)
    if most.constant is not None and int(most.constant.reshape(())) < 0:
        return boxes
    if most.value is None or most.value.lower.min() < 0:
        return UNKNOWN
    return most.value.dimensions()[0]


def _limit(most: Array | None, boxes: int) -> int:
    """The same in a run."""
    limit = 0 if most is None else int(most.reshape(()))
    return boxes if limit < 0 else min(limit, boxes)


def _number(array: Array | None) -> float:
    return 0.0 if array is None else float(array.reshape(()).astype(_F32))


# --------------------------------------------------------------------------- versions


class NonMaxSuppression(Suppression):
    """NonMaxSuppression of upright boxes.

    ``box_encoding`` corner: y, x, y, x of any two opposite corners; center: x and y of the center, width, height.
    """

    box_encoding: str = attribute(default="corner", choices=("corner", "center"))

    def overlaps(self, boxes: Array) -> Overlaps:
        planes = corners(boxes) if self.box_encoding == "corner" else corners_of_centered(boxes)
        return lambda some, others: iou(planes.take(some, axis=1), planes.take(others, axis=1))


@operator("NonMaxSuppression", opset=1)
class NonMaxSuppression1(NonMaxSuppression):
    """Always min(boxes, maximum * classes) triplets: those that are too many are left out, those that lack are of -1.

    Source: NonMaxSuppression-1.
    """

    output_type: ElementType = i64
    only_scalars = True

    def rows(self, batches: Dimension, classes: Dimension, boxes: Dimension, most: Dimension) -> Dimension:
        return smaller(boxes, most * classes)

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType | None = None,
        iou_threshold: TensorType | None = None,
        score_threshold: TensorType | None = None,
    ) -> TensorType:
        thresholds = {"iou_threshold": iou_threshold, "score_threshold": score_threshold}
        return TensorType(self.output_type, self.selected(boxes, scores, max_output_boxes_per_class, **thresholds))

    def run(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
    ) -> Array:
        triplets, _ = self.select(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
        batches, classes, count = scores.shape
        sizes = batches, classes, count, _limit(max_output_boxes_per_class, count)
        padded = np.full((self.rows(*(Dimension(n, n) for n in sizes)).length, 3), -1, self.output_type.to_dtype())
        padded[: len(triplets)] = triplets[: len(padded)]
        return padded


@operator("NonMaxSuppression", opset=3)
class NonMaxSuppression3(NonMaxSuppression1):
    """NonMaxSuppression-1 with a choice of the output's type. Source: NonMaxSuppression-3."""

    output_type: ElementType = attribute(default=i64)


@operator("NonMaxSuppression", opset=4)
class NonMaxSuppression4(NonMaxSuppression3):
    """NonMaxSuppression-3 with min(boxes, maximum) triplets for each class of each batch element.

    Source: NonMaxSuppression-4.
    """

    def rows(self, batches: Dimension, classes: Dimension, boxes: Dimension, most: Dimension) -> Dimension:
        return smaller(boxes, most) * batches * classes


@operator("NonMaxSuppression", opset=9)
class NonMaxSuppression9(NonMaxSuppression):
    """As many triplets as boxes are selected; then triplets of batch, class and score; then their number.

    With soft_nms_sigma above 0, in Soft-NMS, boxes are not removed where they overlap one that was taken: their scores
    are multiplied by exp(-iou**2 / (2 * sigma)). Source: NonMaxSuppression-9.
    """

    output_type: ElementType = attribute(default=i64)

    def require_real(self, name: str, element_type: ElementType) -> None:
        self.require_type(name, element_type, lambda t: t in (f32, f16, bf16), "f32, f16 or bf16")

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType | None = None,
        iou_threshold: TensorType | None = None,
        score_threshold: TensorType | None = None,
        soft_nms_sigma: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        return self.found(
            boxes,
            scores,
            max_output_boxes_per_class,
            iou_threshold=iou_threshold,
            score_threshold=score_threshold,
            soft_nms_sigma=soft_nms_sigma,
        )

    def run(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
        soft_nms_sigma: Array | None = None,
    ) -> tuple[Array, ...]:
        return self.select_found(
            boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma
        )


@operator("NonMaxSuppression", opset=5)
class NonMaxSuppression5(NonMaxSuppression9):
    """NonMaxSuppression-9, but that in Soft-NMS boxes are removed, too, where they overlap by more than iou_threshold.

    Source: NonMaxSuppression-5.
    """

    removes_when_soft = True
