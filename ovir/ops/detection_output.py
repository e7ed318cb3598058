"""DetectionOutput: the detections of a single-shot detector, from its predictions for prior boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, sized
from ovir.core.tensor_types import TensorType
from ovir.kernels.boxes import clipped, decoded, upright_overlaps
from ovir.kernels.precision import as_f32, stored
from ovir.kernels.suppression import candidates, first_of_rows
from ovir.ops.base.attributes import attribute
from ovir.ops.base.layouts import Solved
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import BoxSelectionBase, limited

_CORNER, _CENTER_SIZE = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"
_ROW = 7
# Proposals may have another type: PriorBox gives f32, whatever the predictions are.
_PREDICTIONS = (
    "box_logits T[N, 4*L*P]; class_preds T[N, K*P]; proposals real[1|N, depth, numbers*P]; T real; L = locations; "
    "K = num_classes"
)


class DetectionOutputBase(BoxSelectionBase):
    """Base of the detections of a single-shot detector: rows [image, class, confidence, xmin, ymin, xmax, ymax].

    After the last detection comes a row that begins with -1; the rest is 0.

    box_logits, four of each location class of each prior box, move the prior boxes, for each class separately unless
    ``share_location``. With ``code_type`` CORNER they are added to the corners; with CENTER_SIZE (dx * width, dy *
    height) is added to the center, and the size is multiplied by (exp dw, exp dh). proposals hold the corners, and in a
    second row the variances by which the logits are multiplied unless ``variance_encoded_in_target``. If they are not
    ``normalized``, a prior has 5 numbers, the first of which is an image id (-1 ends the list), and is in pixels of
    ``input_width`` and ``input_height``. With five inputs, the priors are first moved by aux_box_preds, and those whose
    second number in aux_class_preds is below ``objectness_score`` are background.

    For each class except ``background_label_id`` (-1: for each class), at most ``top_k`` boxes (-1: all) whose
    class_preds exceed ``confidence_threshold`` enter non-maximum suppression: a box is kept unless it overlaps a kept
    box of higher confidence by more than ``nms_threshold``. At most ``keep_top_k`` (its first item; -1: all) of the
    kept boxes of an image are detections. With ``decrease_label_id`` each prior counts only for its best class other
    than 0, a confidence equal to the threshold is enough, top_k applies to all classes together, and class 1 is written
    as 0. Boxes are clipped to [0, 1] before the suppression with ``clip_before_nms``, after it with ``clip_after_nms``.
    Detections are ordered by image, class and descending confidence; equal confidences are ordered by prior. Everything
    is computed in f32.
    """

    takes = (_PREDICTIONS, f"{_PREDICTIONS}; aux_class_preds T[N, 2*P]; aux_box_preds T[N, 4*L*P]")
    gives = "T[1, 1, Rows, 7]"
    arguments = "box_logits class_preds proposals attrs:** aux_class_preds= aux_box_preds="
    bounded = False

    background_label_id: int = attribute(default=0)
    top_k: int = attribute(default=-1)
    variance_encoded_in_target: bool = attribute(default=False)
    keep_top_k: tuple[int, ...] = attribute()
    code_type: str = attribute(default=_CORNER)
    share_location: bool = attribute(default=True)
    nms_threshold: float = attribute(default=0.0, specified=True)
    confidence_threshold: float = attribute(default=0.0)
    clip_after_nms: bool = attribute(default=False)
    clip_before_nms: bool = attribute(default=False)
    decrease_label_id: bool = attribute(default=False)
    normalized: bool = attribute(default=False)
    input_height: int = attribute(default=1)
    input_width: int = attribute(default=1)
    objectness_score: float = attribute(default=0.0)

    num_classes: int | None = None
    """The number of classes, None if only the inputs tell it."""

    @property
    def depth(self) -> int:
        """Return the number of rows of proposals: corners, and variances unless these are encoded."""
        return 1 if self.variance_encoded_in_target else 2

    @property
    def numbers(self) -> int:
        """Return the number of coordinates of a prior box in proposals."""
        return 4 if self.normalized else 5

    @property
    def locations(self) -> int | None:
        """Return the number of boxes that are predicted for each prior box, None if it is that of the classes."""
        return 1 if self.share_location else None

    # ----- inference

    def infer(self, *inputs: TensorType) -> TensorType | tuple[TensorType, ...]:
        known = self.code_type in (_CORNER, _CENTER_SIZE)
        self.require(known, "code_type must be {} or {}, got '{}'", _CORNER, _CENTER_SIZE, self.code_type)
        self.require(self.keep_top_k, "keep_top_k must be a number, got an empty list")
        message = "input_height {} and input_width {} must be positive, because proposals are not normalized"
        fits = self.normalized or min(self.input_height, self.input_width) > 0
        self.require(fits, message, self.input_height, self.input_width)
        solution = self._sizes(inputs)
        self.require(solution["P"].upper != 0, "proposals {} contain no prior boxes", inputs[2].shape)
        solution.sizes["Rows"] = self._rows(solution["N"], solution["P"], solution["K"])
        return solution.outputs()

    def _sizes(self, inputs: Sequence[TensorType]) -> Solved:
        found = self.solved(*inputs)
        if not self.share_location:
            message = "box_logits {} have locations of {:class}, but class_preds {} have {}"
            classes = found["K"].merged_with(found["L"])
            shapes = inputs[0].shape, found["L"], inputs[1].shape, found["K"]
            found.sizes["K"] = self.require_known(classes, message, *shapes)
        return found

    def _rows(self, images: Dimension, priors: Dimension, classes: Dimension) -> Dimension:
        if self.keep_top_k[0] > 0:
            return images * self.keep_top_k[0]
        of_class = self.top_k if self.keep_top_k[0] == -1 and self.top_k > 0 else priors
        return images * of_class * classes

    def groups(self, inputs: Sequence[TensorType]) -> tuple[Dimension, Dimension]:
        solution = self._sizes(inputs)
        return solution["N"] * solution["K"], limited(solution["P"], self.top_k)

    # ----- kernel

    def run(self, *inputs: Array) -> Array:
        images, priors = len(inputs[0]), inputs[2].shape[2] // self.numbers
        classes = inputs[1].shape[1] // priors
        rows = self._rows(*map(sized, (images, priors, classes))).length

        logits, confidences, proposals, *aux = map(as_f32, inputs)
        scores = np.ascontiguousarray(confidences.reshape(images, priors, classes).transpose(0, 2, 1))
        if aux:
            is_background = aux[0].reshape(images, 1, priors, 2)[..., 1] < np.float32(self.objectness_score)
            background = np.arange(classes)[:, np.newaxis] == self.background_label_id
            scores = np.where(is_background, background.astype(np.float32), scores)
        eligible = self._eligible(scores)
        if not self.normalized:
            is_end = proposals[:, :1, : 5 * priors : 5] == -1
            eligible &= ~np.logical_or.accumulate(is_end, axis=-1)
        slices, prior, confidence = self._ranked(scores, eligible)
        image, label = np.divmod(slices, max(classes, 1))
        location = prior if self.share_location else prior * classes + label
        boxes = self._boxes(proposals, [*aux[1:], logits], image, prior, location)
        kept = self._kept(slices, image, label, prior, confidence, boxes)

        result = np.zeros((rows, _ROW), np.float32)
        filled = result[: kept.size]
        filled[:, 0], filled[:, 1], filled[:, 2] = image[kept], label[kept] - self.decrease_label_id, confidence[kept]
        found = boxes.take(kept, axis=1).T
        filled[:, 3:] = clipped(found, 1) if self.clip_after_nms else found
        if kept.size < rows:
            result[kept.size, 0] = -1
        return stored(result.reshape(1, 1, rows, _ROW), inputs[0].dtype)

    def _boxes(self, proposals: Array, deltas: Sequence[Array], image: Array, prior: Array, location: Array) -> Array:
        """Return the corners [4, n] of candidates: of their priors, which move at some location of each of the deltas
        [images, 4 * locations]."""
        of_image = 0 if len(proposals) == 1 else image
        each, count = len(proposals), proposals.shape[2] // self.numbers
        size = np.array([self.input_width, self.input_height] * 2, np.float32)

        def chosen(numbers: Array, *place: Array | int) -> Array:
            return np.ascontiguousarray(numbers[place].T)

        boxes = chosen(proposals[:, 0].reshape(each, count, self.numbers)[..., -4:], of_image, prior)
        if not self.variance_encoded_in_target:
            # Each prior has four variances, side by side, even where it has five numbers.
            variances = chosen(proposals[:, 1, : 4 * count].reshape(each, count, 4), of_image, prior)
        for numbers in deltas:
            moves = chosen(numbers.reshape(len(numbers), numbers.shape[1] // 4, 4), image, location)
            if not self.normalized:
                boxes = boxes / size[:, np.newaxis]
            if not self.variance_encoded_in_target:
                moves = variances * moves
            if self.code_type == _CORNER:
                boxes = boxes + moves
            else:
                low, high = boxes[:2], boxes[2:]
                boxes = np.concatenate(decoded((low + high) / 2, high - low, moves[:2], moves[2:]))
            if self.clip_before_nms:
                boxes = clipped(boxes, 1)
        return boxes

    def _eligible(self, scores: Array) -> Array:
        """Return the mask of the scores [images, classes, priors] that may become detections."""
        least = np.float32(self.confidence_threshold)
        ignored = np.arange(scores.shape[1]) == self.background_label_id
        if not self.decrease_label_id:
            eligible: Array = scores > least
            eligible[:, ignored] = False
            return eligible
        ignored[:1] = True
        eligible = np.zeros(scores.shape, bool)
        if ignored.size:
            counted = np.where((scores > -1) & ~ignored[:, np.newaxis], scores, np.float32(-1))
            best = counted.argmax(axis=1, keepdims=True)
            highest = np.take_along_axis(counted, best, axis=1)
            np.put_along_axis(eligible, best, (highest > -1) & (highest >= least), axis=1)
        return eligible

    def _ranked(self, scores: Array, eligible: Array) -> tuple[Array, Array, Array]:
        """Return slice (class of an image), prior and score of the candidates, ordered by slice and score."""
        classes, priors = scores.shape[1:]
        most = self.top_k if self.top_k >= 0 else None
        slices, prior, confidence = candidates(eligible.reshape(-1, priors), scores.reshape(-1, priors))
        rows = slices // max(classes, 1) if self.decrease_label_id else slices
        order = self.suppression.ranked(rows, confidence, most)
        if self.decrease_label_id:
            order = order[np.argsort(slices[order], kind="stable")]
        return slices[order], prior[order], confidence[order]

    def _kept(self, slices: Array, image: Array, label: Array, prior: Array, confidence: Array, boxes: Array) -> Array:
        """Return the numbers of the candidates that are detections, in order.

        At most ``keep_top_k`` of an image are; equal scores are ordered by prior, then by class.
        """
        most = self.keep_top_k[0] if self.keep_top_k[0] >= 0 else slices.size
        kept = self.suppression.keep_apart(slices, most, upright_overlaps(boxes), self.nms_threshold)
        image = image[kept]
        order = np.lexsort((label[kept], prior[kept], -confidence[kept], image))
        return kept[np.sort(first_of_rows(order, image, most))]


@operator("DetectionOutput", opset=8)
class DetectionOutput8(DetectionOutputBase):
    """The detections of a single-shot detector, from its predictions for prior boxes. See DetectionOutputBase.

    The number of classes is the number of class_preds per prior.

    >>> boxes = np.zeros((1, 8), np.float32)
    >>> scores = np.float32([[0.1, 0.9, 0.8, 0.2]])
    >>> priors = np.float32([[[0, 0, 0.4, 0.4, 0.5, 0.5, 1, 1], [1] * 8]])
    >>> settings = {"keep_top_k": [2], "nms_threshold": 0.5, "confidence_threshold": 0.3, "normalized": True}
    >>> ops.detection_output(boxes, scores, priors, settings)
    [[[[ 0. 1. 0.9 0. 0. 0.4 0.4] [-1. 0. 0. 0. 0. 0. 0. ]]]]
    """


@operator("DetectionOutput", opset=1)
class DetectionOutput1(DetectionOutputBase):
    """DetectionOutput-8 with the number of classes as an attribute, ``num_classes``."""

    num_classes: int = attribute(minimum=1)
