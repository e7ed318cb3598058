"""MulticlassNms: non-maximum suppression in each class, then the best boxes of each image."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import TensorType
from ovir.kernels.boxes import Overlaps, candidates, upright_overlaps
from ovir.kernels.precision import as_f32
from ovir.kernels.suppression import Candidates, Kept, excluded_boxes, grids, keep_apart, keep_few
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Domain, Inputs, by_input, size_of
from ovir.ops.base.image_nms import ImageNmsBase
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import box_counts


@operator("MulticlassNms", opset=8)
class MulticlassNms8(ImageNmsBase):
    """The best boxes of each image that do not overlap better boxes of their class. See ImageNmsBase.

    Candidates have a score of at least score_threshold. A candidate is selected unless a selected box overlaps it
    (intersection over union) by more than a threshold. The threshold starts at ``iou_threshold``; while it exceeds 0.5,
    each selected box multiplies it by ``nms_eta`` for itself and those that follow.

    Source: MulticlassNonMaxSuppression-8
    """

    arguments = (
        "boxes scores sort_result_type= sort_result_across_batch= output_type= iou_threshold= "
        "score_threshold= nms_top_k= keep_top_k= background_class= nms_eta= normalized="
    )
    iou_threshold: float = attribute(default=0.0)
    nms_eta: float = attribute(default=1.0, minimum=0.0)

    def infer(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, ...]:
        return self.infer_outputs(*box_counts(self, boxes.shape, scores.shape), boxes, scores)

    def infer_outputs(
        self, images: Dimension, classes: Dimension, count: Dimension, *inputs: TensorType
    ) -> tuple[TensorType, ...]:
        self.require(self.nms_eta <= 1, "nms_eta must be in [0, 1], got {}", self.nms_eta)
        return super().infer_outputs(images, classes, count, *inputs)

    def run(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        return self.run_outputs(boxes, scores)

    def passes_threshold(self, scores: Array) -> Array:
        return scores >= np.float32(self.score_threshold)

    def suppress(self, rows: Array, edges: Array, scores: Array) -> tuple[Array, Array]:
        # An image keeps at most as many boxes of one class as of all classes.
        most = scores.size if self.keep_top_k < 0 else min(scores.size, self.keep_top_k)
        threshold = self.iou_threshold if self.nms_eta == 1 else self._thresholds(most)
        kept = keep_apart(rows, most, upright_overlaps(edges, self.last_pixel), threshold)
        return kept, scores[kept]

    def select_few(self, boxes: Array, candidates: Candidates) -> list[Kept] | None:
        if self.nms_eta != 1:
            return None
        images, count, _ = boxes.shape
        edges = np.ascontiguousarray(boxes.reshape(-1, 4).T)
        excluded = excluded_boxes(upright_overlaps(edges, self.last_pixel), images, count, self.iou_threshold)
        return keep_few(candidates, excluded, count)

    def _thresholds(self, count: int) -> Array:
        """Return the overlap by which the first, second, ... selected box excludes later ones."""
        thresholds = np.full(count, self.iou_threshold, np.float32)
        for k in range(count):
            if not thresholds[k] > 0.5:
                break
            thresholds[k:] *= np.float32(self.nms_eta)
        return thresholds


def _shares_of_boxes(op: Operator, inputs: Inputs) -> Domain:
    """Return counts for the images whose sum does not exceed the number of boxes."""
    return Domain(0, size_of(op, inputs, "boxes", 1) // size_of(op, inputs, "roisnum", 0))


@operator("MulticlassNms", opset=9)
class MulticlassNms9(MulticlassNms8):
    """MulticlassNms-8, or with ``roisnum`` [images] boxes that belong to one class each.

    boxes are then [classes, boxes, 4] and scores [classes, boxes]: first the boxes of the first image, then of the
    second, and so on, as many as roisnum says. The index of a box in the output is its index times classes, plus the
    class.

    Source: MulticlassNonMaxSuppression-9
    """

    arguments = (
        "boxes scores roisnum= sort_result_type= sort_result_across_batch= output_type= iou_threshold= "
        "score_threshold= nms_top_k= keep_top_k= background_class= nms_eta= normalized="
    )
    domains = by_input(roisnum=_shares_of_boxes)

    def infer(self, boxes: TensorType, scores: TensorType, roisnum: TensorType | None = None) -> tuple[TensorType, ...]:
        if roisnum is None:
            return super().infer(boxes, scores)
        self.require_index_type("roisnum", roisnum.element_type)
        self.require_rank("roisnum", roisnum.shape, 1)
        self.require_rank("boxes", boxes.shape, 3)
        self.require_rank("scores, as there is roisnum,", scores.shape, 2)
        self.require(boxes.shape[2].contains(4), "a box must have 4 coordinates, got boxes {}", boxes.shape)
        classes = self.merge_dims("classes", boxes=(boxes.shape, 0), scores=(scores.shape, 0))
        count = self.merge_dims("boxes", boxes=(boxes.shape, 1), scores=(scores.shape, 1))
        return self.infer_outputs(roisnum.shape[0], classes, count, boxes, scores, roisnum)

    def run(self, boxes: Array, scores: Array, roisnum: Array | None = None) -> tuple[Array, ...]:
        if roisnum is None:
            return super().run(boxes, scores)
        expected = (*scores.shape, 4)
        self.require(boxes.shape == expected, "boxes must have shape {}, got {}", expected, boxes.shape)
        classes, count = scores.shape
        # A negative number counts as 0, as on devices.
        image = np.arange(roisnum.size).repeat(np.maximum(roisnum, 0))
        message = "roisnum {} counts {} boxes, but there are {}"
        self.require(image.size <= count, message, roisnum.tolist(), image.size, count)
        scores = as_f32(scores)[:, : image.size]
        eligible = self.passes_threshold(scores)
        if 0 <= self.background_class < classes:
            eligible[self.background_class] = False
        label, column = candidates(eligible)
        rows, sources, places = image[column] * classes + label, label * count + column, column * classes + label
        sizes = roisnum.size, classes
        return self.best_of_images(sizes, rows, scores[label, column], boxes.reshape(-1, 4), sources, places)


# Candidates whose decay is computed at a time.
_BLOCK = 128
# Avoids dividing by 0 for a box that coincides with another.
_TINY = np.float64(np.float32(1e-10))


@operator("MatrixNms", opset=8)
class MatrixNms(ImageNmsBase):
    """The best boxes of each image, with scores that decay by overlap with boxes of higher scores. See ImageNmsBase.

    Candidates have a score above score_threshold. Let x[j] be the overlap (intersection over union) with the j-th
    better box, and m[j] the greatest overlap of that box with a box better than itself. The score is multiplied by the
    minimum over j, at most 1, of (1 - x[j]) / (1 - m[j]), or of exp((m[j]**2 - x[j]**2) * ``gaussian_sigma``) if
    ``decay_function`` is gaussian. Boxes whose score then exceeds ``post_threshold`` are selected.

    Source: MatrixNonMaxSuppression-8
    """

    arguments = (
        "boxes scores sort_result_type= sort_result_across_batch= output_type= score_threshold= nms_top_k= "
        "keep_top_k= background_class= decay_function= gaussian_sigma= post_threshold= normalized="
    )
    decay_function: str = attribute(default="linear", choices=("gaussian", "linear"))
    gaussian_sigma: float = attribute(default=2.0)
    post_threshold: float = attribute(default=0.0)

    def infer(self, boxes: TensorType, scores: TensorType) -> tuple[TensorType, ...]:
        return self.infer_outputs(*box_counts(self, boxes.shape, scores.shape), boxes, scores)

    def run(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        return self.run_outputs(boxes, scores)

    def passes_threshold(self, scores: Array) -> Array:
        return scores > np.float32(self.score_threshold)

    def suppress(self, rows: Array, edges: Array, scores: Array) -> tuple[Array, Array]:
        # Boxes with a gap between them do not overlap, even if their coordinates are pixel numbers.
        overlaps = upright_overlaps(edges, self.last_pixel, bridged=False)
        final = np.empty_like(scores)
        for grid, exists in grids(rows, _BLOCK):
            final[grid[exists]] = self._decayed(grid, overlaps, scores[grid])[exists]
        kept = np.nonzero(final > np.float32(self.post_threshold))[0]
        return kept, final[kept]

    def _decayed(self, grid: Array, overlaps: Overlaps, scores: Array) -> Array:
        """Return the new scores of some rows of candidates, all [R, m]."""
        length = grid.shape[1]
        greatest = np.zeros(grid.shape, np.float32)
        for start in range(0, length, _BLOCK):
            stop = min(start + _BLOCK, length)
            block = slice(start, stop)
            overlap = overlaps(grid[:, block], grid[:, :stop])
            later = np.arange(stop) >= np.arange(start, stop)[:, np.newaxis]
            np.copyto(overlap, np.float32(0), where=later)
            np.maximum.reduce(overlap, axis=2, out=greatest[:, block])
            decay = self._decay(overlap, greatest[:, np.newaxis, :stop])
            np.copyto(decay, np.float32(1), where=later)
            scores[:, block] *= np.minimum.reduce(decay, axis=2, initial=1)
        return scores

    def _decay(self, overlap: Array, greatest: Array) -> Array:
        """Return the factor of each overlap; ``greatest`` is the greatest overlap of the overlapped box."""
        if self.decay_function == "gaussian":
            decay: Array = np.exp((greatest * greatest - overlap * overlap) * np.float32(self.gaussian_sigma))
        else:
            decay = (1 - overlap.astype(np.float64)) / (1 - greatest.astype(np.float64) + _TINY)
        return decay.astype(np.float32, copy=False)
