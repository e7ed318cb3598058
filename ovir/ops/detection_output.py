"""DetectionOutput: the detections of a single-shot detector, from its predictions for prior boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.boxes import clipped, decoded, upright_overlaps
from ovir.kernels.precision import as_f32, stored
from ovir.kernels.suppression import candidates, ranks
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import BoxSelectionBase, limited

_CORNER, _CENTER_SIZE = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"
_ROW = 7


class DetectionOutputBase(BoxSelectionBase):
    """Base of the detections of a single-shot detector: rows [image, class, confidence, xmin, ymin, xmax, ymax].

    The output is [1, 1, rows, 7]. After the last detection comes a row that begins with -1; the rest is 0.

    box_logits [N, priors * location classes * 4] move the prior boxes, for each class separately unless
    ``share_location``. With ``code_type`` CORNER they are added to the corners; with CENTER_SIZE (dx * width, dy *
    height) is added to the center, and the size is multiplied by (exp dw, exp dh). proposals [1 or N, 2, priors * 4]
    hold the corners and the variances by which the logits are multiplied, or only the corners with
    ``variance_encoded_in_target``. If they are not ``normalized``, a prior has 5 numbers, the first of which is an
    image id (-1 ends the list), and is in pixels of ``input_width`` and ``input_height``. With five inputs, the priors
    are first moved by aux_box_preds, and those whose second number in aux_class_preds [N, priors * 2] is below
    ``objectness_score`` are background.

    For each class except ``background_label_id`` (-1: for each class), at most ``top_k`` boxes (-1: all) whose
    class_preds [N, priors * classes] exceed ``confidence_threshold`` enter non-maximum suppression: a box is kept
    unless it overlaps a kept box of higher confidence by more than ``nms_threshold``. At most ``keep_top_k`` (its first
    item; -1: all) of the kept boxes of an image are detections. With ``decrease_label_id`` each prior counts only for
    its best class other than 0, a confidence equal to the threshold is enough, top_k applies to all classes together,
    and class 1 is written as 0. Boxes are clipped to [0, 1] before the suppression with ``clip_before_nms``, after it
    with ``clip_after_nms``. Detections are ordered by image, class and descending confidence; equal confidences are
    ordered by prior. Everything is computed in f32.
    """

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

    def declared_classes(self) -> Dimension:
        """Return the number of classes as far as the attributes determine it."""
        return UNKNOWN

    # ----- inference

    def infer(
        self,
        box_logits: TensorType,
        class_preds: TensorType,
        proposals: TensorType,
        aux_class_preds: TensorType | None = None,
        aux_box_preds: TensorType | None = None,
    ) -> TensorType:
        self._check_attributes()
        inputs = [box_logits, class_preds, proposals]
        if aux_class_preds is not None:
            inputs += [aux_class_preds, self.require_known(aux_box_preds, "expected 3 or 5 inputs, got 4")]
        # Proposals may have a different type: PriorBox gives f32, whatever the predictions are.
        element_type = self.shared_type(
            box_logits=box_logits, class_preds=class_preds, aux_class_preds=aux_class_preds, aux_box_preds=aux_box_preds
        )
        self.require_real("box_logits", element_type)
        self.require_real("proposals", proposals)
        images, priors, classes = self._sizes(*(tensor.shape for tensor in inputs))
        return TensorType(element_type, PartialShape([1, 1, self._rows(images, priors, classes), _ROW]))

    def _check_attributes(self) -> None:
        known = self.code_type in (_CORNER, _CENTER_SIZE)
        self.require(known, "code_type must be {} or {}, got '{}'", _CORNER, _CENTER_SIZE, self.code_type)
        self.require(self.keep_top_k, "keep_top_k must be a number, got an empty list")
        message = "input_height {} and input_width {} must be positive, because proposals are not normalized"
        fits = self.normalized or min(self.input_height, self.input_width) > 0
        self.require(fits, message, self.input_height, self.input_width)

    def _rows(self, images: Dimension, priors: Dimension, classes: Dimension) -> Dimension:
        if self.keep_top_k[0] > 0:
            return images * self.keep_top_k[0]
        of_class = self.top_k if self.keep_top_k[0] == -1 and self.top_k > 0 else priors
        return images * of_class * classes

    def groups(self, inputs: Sequence[TensorType]) -> tuple[Dimension, Dimension]:
        images, priors, classes = self._sizes(*(tensor.shape for tensor in inputs))
        return images * classes, limited(priors, self.top_k)

    def _sizes(self, *shapes: PartialShape) -> tuple[Dimension, Dimension, Dimension]:
        """Return the number of images, prior boxes and classes, on which the shapes of all inputs must agree."""
        named = dict(zip(("box_logits", "class_preds", "proposals", "aux_class_preds"), shapes, strict=False))
        for name, shape in named.items():
            self.require_rank(name, shape, 3 if name == "proposals" else 2)
        box_logits, class_preds, proposals, *aux = shapes
        if aux:
            message = "aux_box_preds {} and box_logits {} must have equal shapes"
            box_logits = self.require_known(box_logits.merged_with(aux[1]), message, aux[1], box_logits)
            named["box_logits"] = box_logits
        places = {name: (shape, 0) for name, shape in named.items() if name != "proposals"}
        images = self.merge_dims("images", **places)
        if not proposals[0].contains(1):
            message = "dimension 0 of proposals {} must be 1 or the number of images, {}"
            images = self.require_known(images.merged_with(proposals[0]), message, proposals, images)
        depth = 1 if self.variance_encoded_in_target else 2
        message = "dimension 1 of proposals {} must be {}, because variance_encoded_in_target is {}"
        fits = proposals[1].contains(depth)
        self.require(fits, message, proposals, depth, str(self.variance_encoded_in_target).lower())

        per_prior = {"proposals": (proposals, proposals[2], 4 if self.normalized else 5)}
        if aux:
            per_prior["aux_class_preds"] = aux[0], aux[0][1], 2
        if self.share_location:
            per_prior["box_logits"] = box_logits, box_logits[1], 4
        priors = self._quotient("prior", per_prior, UNKNOWN)
        self.require(priors.upper != 0, "proposals {} contain no prior boxes", proposals)

        locations = {"class_preds": (class_preds, class_preds[1], 1)}
        if not self.share_location:
            locations["box_logits"] = box_logits, box_logits[1], 4
        classes = self.declared_classes()
        if priors.is_static:
            each = {name: (shape, size, n * priors.length) for name, (shape, size, n) in locations.items()}
            classes = self._quotient("class", each, classes)
        elif classes.is_static:
            each = {name: (shape, size, n * classes.length) for name, (shape, size, n) in locations.items()}
            priors = self._quotient("prior", each, priors)
        return images, priors, classes

    def _quotient(
        self, what: str, parts: dict[str, tuple[PartialShape, Dimension, int]], known: Dimension
    ) -> Dimension:
        """Return a partly known count: the given dimension of each input divided by its number of elements per item."""
        for name, (shape, size, each) in parts.items():
            divided = size.exact_div(each)
            message = "the last dimension of {} {} must be a multiple of {}, the number of elements per {}"
            count = self.require_known(divided, message, name, shape, each, what)
            message = "{} {} with {:element} per {} gives a count of {}, but the other inputs give {}"
            known = self.require_known(known.merged_with(count), message, name, shape, each, what, count, known)
        return known

    # ----- kernel

    def run(self, *inputs: Array) -> Array:
        sizes = self._sizes(*(PartialShape(a.shape) for a in inputs))
        images, priors, classes = (size.length for size in sizes)
        rows = self._rows(*sizes).length

        logits, confidences, proposals, *aux = map(as_f32, inputs)
        scores = np.ascontiguousarray(confidences.reshape(images, priors, classes).transpose(0, 2, 1))
        if aux:
            is_background = aux[0].reshape(images, 1, priors, 2)[..., 1] < np.float32(self.objectness_score)
            background = np.arange(classes)[:, np.newaxis] == self.background_label_id
            scores = np.where(is_background, background.astype(np.float32), scores)
        eligible = self._eligible(scores)
        declared = proposals[:, :1].reshape(len(proposals), 1, priors, 4 if self.normalized else 5)
        if not self.normalized:
            is_end = declared[..., 0] == -1
            eligible &= ~np.logical_or.accumulate(is_end, axis=-1)
        variances = None
        if not self.variance_encoded_in_target:
            # Each prior has four variances, side by side, even where it has five numbers.
            variances = proposals[:, 1:, : 4 * priors].reshape(len(proposals), 1, priors, 4)
        boxes = declared[..., -4:]
        for deltas in (*aux[1:], logits):
            moves = deltas.reshape(images, priors, 1 if self.share_location else classes, 4)
            boxes = self._decoded(boxes, variances, moves.transpose(0, 2, 1, 3))
        image, label, prior = self._kept(scores, eligible, boxes)

        result = np.zeros((rows, _ROW), np.float32)
        filled = result[: image.size]
        filled[:, 0], filled[:, 1] = image, label - self.decrease_label_id
        filled[:, 2] = scores[image, label, prior]
        kept = boxes[image, 0 if self.share_location else label, prior]
        filled[:, 3:] = clipped(kept, 1) if self.clip_after_nms else kept
        if image.size < rows:
            result[image.size, 0] = -1
        return stored(result.reshape(1, 1, rows, _ROW), inputs[0].dtype)

    def _decoded(self, priors: Array, variances: Array | None, deltas: Array) -> Array:
        """Return boxes moved by deltas, [images, location classes, priors, 4]."""
        if not self.normalized:
            width, height = self.input_width, self.input_height
            priors = priors / np.array([width, height, width, height], np.float32)
        if variances is not None:
            deltas = variances * deltas
        if self.code_type == _CORNER:
            boxes = priors + deltas
        else:
            low, high = priors[..., :2], priors[..., 2:]
            edges = decoded((low + high) / 2, high - low, deltas[..., :2], deltas[..., 2:])
            boxes = np.concatenate(edges, axis=-1)
        return clipped(boxes, 1) if self.clip_before_nms else boxes

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

    def _kept(self, scores: Array, eligible: Array, boxes: Array) -> tuple[Array, Array, Array]:
        """Return image, class and prior of each detection, in order."""
        images, classes, priors = scores.shape
        most = self.top_k if self.top_k >= 0 else None
        # At most keep_top_k of a class can be kept in the end.
        limit = self.keep_top_k[0] if self.keep_top_k[0] >= 0 else priors
        slices, prior = candidates(eligible.reshape(images * classes, priors))
        image = slices // max(classes, 1)
        confidence = scores.reshape(-1, priors)[slices, prior]
        order = self.suppression.ranked(image if self.decrease_label_id else slices, confidence, most)
        if self.decrease_label_id:
            order = order[np.argsort(slices[order], kind="stable")]
        slices, prior, image = slices[order], prior[order], image[order]
        label = slices - image * classes
        edges = boxes[image, 0 if self.share_location else label, prior].T
        kept = self.suppression.keep_apart(slices, limit, upright_overlaps(edges), self.nms_threshold)
        return self._best(scores, image[kept], label[kept], prior[kept])

    def _best(self, scores: Array, image: Array, label: Array, prior: Array) -> tuple[Array, Array, Array]:
        """Select at most ``keep_top_k`` detections of each image; equal scores are ordered by prior, then by class."""
        if self.keep_top_k[0] < 0:
            return image, label, prior
        order = np.lexsort((label, prior, -scores[image, label, prior], image))
        best = np.sort(order[ranks(image) < self.keep_top_k[0]])
        return image[best], label[best], prior[best]


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

    def declared_classes(self) -> Dimension:
        return Dimension(self.num_classes, self.num_classes)
