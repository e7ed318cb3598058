"""MulticlassNms and MatrixNms: suppress overlapping boxes in each class, then keep the best boxes of each image."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import Dimension, min_dimension
from ovir.core.tensor_types import Outputs, TensorType
from ovir.kernels.boxes import upright_overlaps
from ovir.kernels.precision import as_f32
from ovir.kernels.suppression import candidates, first_of_rows
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Domain, by_input, size_of
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import NARROW, ClassNmsBase, with_exact_shapes

_SHARED_BOXES = f"boxes T[N, P, 4]; scores T[N, C, P]; T {NARROW}; output_type index"


class ImageNmsBase(ClassNmsBase):
    """Base of operations that select the best boxes of each image after suppressing overlapping boxes in each class.

    boxes are x, y, x, y of two corners, the smaller coordinates first. For each class except ``background_class``, the
    ``nms_top_k`` boxes with the highest scores that pass ``score_threshold`` are candidates. From them the operation
    selects boxes, and each image keeps the ``keep_top_k`` selected boxes with the highest scores. -1 means no limit, or
    no class. Unless ``normalized``, coordinates are pixel numbers, and 1 is added to each length.

    The outputs are rows of class, score and the four coordinates; the indices of the boxes, counted through all images;
    and the number of boxes of each image. ``sort_result_type`` orders the boxes of an image by score, or with classid
    by class and then by score; equal ones are ordered by class and index. none leaves the order open; here it is by
    score. (The specification calls the attribute sort_result and its value class.) ``sort_result_across_batch`` orders
    the boxes of all images together, unless the type is none. Everything is computed in f32.
    """

    takes: ClassVar[str | tuple[str, ...]] = _SHARED_BOXES
    gives = "rows T[..Most, 6]; indices output_type[..Most, 1]; counts output_type[N]"
    recipe = (
        "T narrow; P=1|4|7 score_threshold=|0.1 nms_top_k=|-1|0|3 keep_top_k=|-1|0|2 background_class=|-1|0 "
        "iou_threshold=|0.4 nms_eta=|1.0|0.8"
    )
    sort_result_type: str = attribute(default="none", choices=("classid", "score", "none"))
    sort_result_across_batch: bool = attribute(default=False)
    output_type: ElementType = attribute(default=i64)
    score_threshold: float = attribute(default=0.0)
    nms_top_k: int = attribute(default=-1, minimum=-1)
    keep_top_k: int = attribute(default=-1, minimum=-1)
    background_class: int = attribute(default=-1, minimum=-1)
    normalized: bool = attribute(default=True)

    @property
    def last_pixel(self) -> float:
        """Return the number that is added to the difference of two coordinates to get a length."""
        return 0.0 if self.normalized else 1.0

    def passes_threshold(self, scores: Array) -> Array:
        """Return the mask of the float32 scores that pass ``score_threshold``."""
        raise NotImplementedError

    def suppress(self, rows: Array, edges: Array, scores: Array) -> tuple[Array, Array]:
        """Select from candidates with edges [4, n], ordered by row (the class of an image) and score; return their
        numbers, ordered by row, and new scores."""
        raise NotImplementedError

    # ----- inference

    def infer(self, *inputs: TensorType | None) -> Outputs:
        found = self.solved(*inputs)
        most = _at_most(_at_most(found["P"], self.nms_top_k) * found["C"], self.keep_top_k) * found["N"]
        found.sizes["Most"] = most
        return with_exact_shapes(self, found.outputs(), inputs)

    # ----- kernel

    def run(self, boxes: Array, scores: Array) -> tuple[Array, ...]:
        """Return the outputs for classes that share the boxes of their image."""
        images, classes, count = scores.shape
        flat = as_f32(scores).reshape(images * classes, count)
        eligible = self.passes_threshold(flat)
        if 0 <= self.background_class < classes:
            eligible[self.background_class :: classes] = False
        rows, columns, chosen = candidates(eligible, flat)
        places = rows // max(classes, 1) * count + columns
        return self.best_of_images((images, classes), rows, chosen, boxes.reshape(-1, 4), places, places)

    def best_of_images(
        self, sizes: tuple[int, int], rows: Array, scores: Array, boxes: Array, sources: Array, places: Array
    ) -> tuple[Array, ...]:
        """Return the outputs for candidates in any order.

        ``sizes`` are the numbers of images and classes; ``rows`` the image of each candidate times classes, plus its
        class; ``sources`` the number of its box among ``boxes`` [n, 4]; ``places`` its index in the output.
        """
        images, classes = sizes
        order = self.suppression.ranked(rows, scores, None if self.nms_top_k < 0 else self.nms_top_k)
        chosen = as_f32(boxes.take(sources[order], axis=0))
        kept, final = self.suppress(rows[order], chosen.T, scores[order])
        order = order[kept]
        label, places = rows[order], places[order]
        if images == 1:
            image = np.zeros(label.size, np.intp)
            best = np.lexsort((places, label, -final))[: None if self.keep_top_k < 0 else self.keep_top_k]
        else:
            image, label = np.divmod(label, max(classes, 1))
            best = np.lexsort((places, label, -final, image))
            if self.keep_top_k >= 0:
                best = first_of_rows(best, image, self.keep_top_k)
        if self.sort_result_type == "classid":
            across = () if self.sort_result_across_batch else (image[best],)
            best = best[np.lexsort((label[best], *across))]
        elif self.sort_result_type == "score" and self.sort_result_across_batch:
            best = best[np.argsort(-final[best], kind="stable")]
        found = np.empty((best.size, 6), np.float32)
        found[:, 0], found[:, 1], found[:, 2:] = label[best], final[best], chosen.take(kept[best], axis=0)
        index = self.output_type.to_dtype()
        counts = np.bincount(image[best], minlength=images).astype(index)
        return found.astype(boxes.dtype, copy=False), places[best, np.newaxis].astype(index, copy=False), counts


def _at_most(size: Dimension, limit: int) -> Dimension:
    return size if limit < 0 else min_dimension(size, Dimension(limit, limit))


@operator("MulticlassNms", opset=8)
class MulticlassNms8(ImageNmsBase):
    """The best boxes of each image that do not overlap better boxes of their class. See ImageNmsBase.

    Candidates have a score of at least score_threshold. A candidate is selected unless a selected box overlaps it
    (intersection over union) by more than a threshold. The threshold starts at ``iou_threshold``; while it exceeds 0.5,
    each selected box multiplies it by ``nms_eta`` for itself and those that follow.

    Source: MulticlassNonMaxSuppression-8
    """

    unmatched = "choose the best boxes of all classes"
    arguments = (
        "boxes scores sort_result_type= sort_result_across_batch= output_type= iou_threshold= "
        "score_threshold= nms_top_k= keep_top_k= background_class= nms_eta= normalized="
    )
    iou_threshold: float = attribute(default=0.0)
    nms_eta: float = attribute(default=1.0, minimum=0.0)

    def infer(self, *inputs: TensorType | None) -> Outputs:
        self.require(self.nms_eta <= 1, "nms_eta must be in [0, 1], got {}", self.nms_eta)
        return super().infer(*inputs)

    def passes_threshold(self, scores: Array) -> Array:
        return scores >= np.float32(self.score_threshold)

    def suppress(self, rows: Array, edges: Array, scores: Array) -> tuple[Array, Array]:
        # An image keeps at most as many boxes of one class as of all classes.
        most = scores.size if self.keep_top_k < 0 else min(scores.size, self.keep_top_k)
        threshold = self.iou_threshold if self.nms_eta == 1 else self._thresholds(most)
        kept = self.suppression.keep_apart(rows, most, upright_overlaps(edges, self.last_pixel), threshold)
        return kept, scores[kept]

    def _thresholds(self, count: int) -> Array:
        """Return the overlap by which the first, second, ... selected box excludes later ones."""
        thresholds = np.full(count, self.iou_threshold, np.float32)
        for k in range(count):
            if not thresholds[k] > 0.5:
                break
            thresholds[k:] *= np.float32(self.nms_eta)
        return thresholds


@operator("MulticlassNms", opset=9)
class MulticlassNms9(MulticlassNms8):
    """MulticlassNms-8, or with ``roisnum`` for boxes that belong to one class each.

    The boxes of each class are then first those of the first image, then those of the second, and so on, as many as
    roisnum says. The index of a box in the output is its index times classes, plus the class.

    >>> boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
    >>> ops.multiclass_nms(boxes, np.float32([[[0.9, 0.8, 0.7]]]), iou_threshold=0.5)
    [[0. 0.9 0. 0. 1. 1. ] [0. 0.7 2. 2. 3. 3. ]]
    [[0] [2]]
    [2]

    Source: MulticlassNonMaxSuppression-9
    """

    arguments = MulticlassNms8.arguments.replace("scores", "scores roisnum=", 1)
    takes = (_SHARED_BOXES, f"boxes T[C, P, 4]; scores T[C, P]; roisnum index[N]; T {NARROW}; output_type index")
    domains = by_input(  # the sum is at most the number of boxes
        roisnum=lambda op, inputs: Domain(0, size_of(op, inputs, "boxes", 1) // size_of(op, inputs, "roisnum", 0))
    )

    def run(self, boxes: Array, scores: Array, roisnum: Array | None = None) -> tuple[Array, ...]:
        if roisnum is None:
            return super().run(boxes, scores)
        classes, count = scores.shape
        # A negative number counts as 0, as on devices.
        numbers = np.maximum(roisnum, 0)
        total = sum(numbers.tolist())  # a sum of NumPy might wrap around
        self.require(total <= count, "roisnum {} counts {} boxes, but there are {}", roisnum.tolist(), total, count)
        image = np.arange(roisnum.size).repeat(numbers)
        scores = as_f32(scores)[:, :total]
        eligible = self.passes_threshold(scores)
        if 0 <= self.background_class < classes:
            eligible[self.background_class] = False
        label, column, chosen = candidates(eligible, scores)
        rows, sources, places = image[column] * classes + label, label * count + column, column * classes + label
        sizes = roisnum.size, classes
        return self.best_of_images(sizes, rows, chosen, boxes.reshape(-1, 4), sources, places)


# Avoids dividing by 0 for a box that coincides with another.
_TINY = np.float64(np.float32(1e-10))


@operator("MatrixNms", opset=8)
class MatrixNms(ImageNmsBase):
    """The best boxes of each image, with scores that decay by overlap with boxes of higher scores. See ImageNmsBase.

    Candidates have a score above score_threshold. Let x[j] be the overlap (intersection over union) with the j-th
    better box, and m[j] the greatest overlap of that box with a box better than itself. The score is multiplied by the
    minimum over j, at most 1, of (1 - x[j]) / (1 - m[j]), or of exp((m[j]**2 - x[j]**2) * ``gaussian_sigma``) if
    ``decay_function`` is gaussian. Boxes whose score then exceeds ``post_threshold`` are selected.

    >>> boxes = np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]])
    >>> ops.matrix_nms(boxes, np.float32([[[0.9, 0.8, 0.7]]]))
    [[0. 0.9 0. 0. 1. 1. ] [0. 0.7 2. 2. 3. 3. ] [0. 0.08000002 0. 0. 1. 0.9 ]]
    [[0] [2] [1]]
    [3]

    Source: MatrixNonMaxSuppression-8
    """

    unmatched = "lower the scores of overlapping boxes"
    arguments = (
        "boxes scores sort_result_type= sort_result_across_batch= output_type= score_threshold= nms_top_k= "
        "keep_top_k= background_class= decay_function= gaussian_sigma= post_threshold= normalized="
    )
    decay_function: str = attribute(default="linear", choices=("gaussian", "linear"))
    gaussian_sigma: float = attribute(default=2.0)
    post_threshold: float = attribute(default=0.0)

    pair_time = 100

    def passes_threshold(self, scores: Array) -> Array:
        return scores > np.float32(self.score_threshold)

    def suppress(self, rows: Array, edges: Array, scores: Array) -> tuple[Array, Array]:
        # Boxes with a gap between them do not overlap, even if their coordinates are pixel numbers.
        overlaps = upright_overlaps(edges, self.last_pixel, bridged=False)
        final = scores * self.suppression.decays(rows, overlaps, self._decay)
        kept = (final > np.float32(self.post_threshold)).nonzero()[0]
        return kept, final[kept]

    def _decay(self, overlap: Array, greatest: Array) -> Array:
        """Return the factor of each overlap; ``greatest`` is the greatest overlap of the overlapped box."""
        if self.decay_function == "gaussian":
            decay: Array = np.exp((greatest * greatest - overlap * overlap) * np.float32(self.gaussian_sigma))
        else:
            decay = (1 - overlap.astype(np.float64)) / (1 - greatest.astype(np.float64) + _TINY)
        return decay.astype(np.float32, copy=False)
