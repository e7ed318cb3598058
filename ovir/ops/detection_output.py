"""DetectionOutput: what a single-shot detector has found, from its predictions for prior boxes."""

from __future__ import annotations

import numpy as np

from ovir.arrays import Array
from ovir.kernels import half
from ovir.kernels.boxes import iou
from ovir.kernels.suppression import Overlaps, keep_apart, ranked
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, operator
from ovir.types import UNKNOWN, Dimension, PartialShape
from ovir.values import TensorType

_CORNER, _CENTER_SIZE = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"
_F32 = np.dtype(np.float32)
_ROW = 7


class DetectionOutput(Operator):
    """Rows [image, class, confidence, xmin, ymin, xmax, ymax] of what is found; then one begins with -1, the rest is 0.

    box_logits [N, priors * location classes * 4] move the prior boxes, those of each class apart unless
    ``share_location``: by ``code_type`` CORNER they are added to the corners, by CENTER_SIZE they are (dx * width,
    dy * height) added to the center and (exp dw, exp dh) times the size. proposals [1 or N, 2, priors * 4] hold the
    corners and the variances that the logits are multiplied with, with ``variance_encoded_in_target`` only the corners.
    If they are not ``normalized``, a prior has 5 numbers, of which the first is an image id (-1 ends the list), and is
    in pixels of input_width and input_height. With five inputs, the priors are first moved by aux_box_preds, and those
    whose aux_class_preds [N, priors * 2], second of two, is below ``objectness_score`` are background.

    Of each class but the background, boxes whose class_preds [N, priors * classes] exceed ``confidence_threshold``, at
    most ``top_k`` of the class, pass non-maximum suppression. With ``decrease_label_id`` each prior counts for its best
    class only, class 0 aside; a confidence equal to the threshold will do, top_k is of all classes together, and class
    1 is written as 0. Then the first of ``keep_top_k`` of each image are kept. They stand in order of image, class and
    descending confidence; of equal confidences the first prior is first. Computed in f32.
    """

    background_label_id: int = attribute(default=0)
    top_k: int = attribute(default=-1)
    variance_encoded_in_target: bool = attribute(default=False)
    keep_top_k: tuple[int, ...] = attribute()
    code_type: str = attribute(default=_CORNER)
    share_location: bool = attribute(default=True)
    nms_threshold: float = attribute(default=0.0)
    confidence_threshold: float = attribute(default=0.0)
    clip_after_nms: bool = attribute(default=False)
    clip_before_nms: bool = attribute(default=False)
    decrease_label_id: bool = attribute(default=False)
    normalized: bool = attribute(default=False)
    input_height: int = attribute(default=1)
    input_width: int = attribute(default=1)
    objectness_score: float = attribute(default=0.0)

    def stated_classes(self) -> Dimension:
        """The number of classes as far as the attributes tell."""
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
        predictions = {"box_logits": box_logits, "class_preds": class_preds}
        if aux_class_preds is not None:
            if aux_box_preds is None:
                self.fail("takes 3 or 5 inputs, got 4")
            inputs += [aux_class_preds, aux_box_preds]
            predictions |= {"aux_class_preds": aux_class_preds, "aux_box_preds": aux_box_preds}
        element_type = self.merge_types(*(t.element_type for t in predictions.values()), names=list(predictions))
        for name, found in (("box_logits", element_type), ("proposals", proposals.element_type)):
            self.require_type(name, found, lambda t: t.is_real, "of a floating-point type")
        images, priors, classes = self._sizes(*(tensor.shape for tensor in inputs))
        return TensorType(element_type, PartialShape([1, 1, self._rows(images, priors, classes), _ROW]))

    def _check_attributes(self) -> None:
        known = self.code_type in (_CORNER, _CENTER_SIZE)
        self.require(known, "code_type must be {} or {}, got '{}'", _CORNER, _CENTER_SIZE, self.code_type)
        self.require(self.keep_top_k, "keep_top_k is empty, it must be a number")
        self.require(
            self.normalized or min(self.input_height, self.input_width) > 0,
            "input_height {} and input_width {} must be positive, as proposals are not normalized",
            *(self.input_height, self.input_width),
        )

    def _rows(self, images: Dimension, priors: Dimension, classes: Dimension) -> Dimension:
        if self.keep_top_k[0] > 0:
            return images * self.keep_top_k[0]
        of_class = self.top_k if self.keep_top_k[0] == -1 and self.top_k > 0 else priors
        return images * of_class * classes

    def _sizes(
        self,
        box_logits: PartialShape,
        class_preds: PartialShape,
        proposals: PartialShape,
        aux_class_preds: PartialShape | None = None,
        aux_box_preds: PartialShape | None = None,
    ) -> tuple[Dimension, Dimension, Dimension]:
        """The number of images, prior boxes and classes, of which all inputs must have as many."""
        self.require_rank("box_logits", box_logits, 2)
        self.require_rank("class_preds", class_preds, 2)
        self.require_rank("proposals", proposals, 3)
        if aux_class_preds is not None and aux_box_preds is not None:
            self.require_rank("aux_class_preds", aux_class_preds, 2)
            merged = box_logits.merged_with(aux_box_preds)
            if merged is None:
                self.fail("aux_box_preds {} and box_logits {} must have equal shapes", aux_box_preds, box_logits)
            box_logits = merged
        images = self._images(box_logits, class_preds, proposals, aux_class_preds)
        depth = 1 if self.variance_encoded_in_target else 2
        self.require(
            proposals[1].contains(depth),
            "dimension 1 of proposals {} must be {}, as variance_encoded_in_target is {}",
            *(proposals, depth, str(self.variance_encoded_in_target).lower()),
        )

        per_prior = {"proposals": (proposals, proposals[2], 4 if self.normalized else 5)}
        if aux_class_preds is not None:
            per_prior["aux_class_preds"] = aux_class_preds, aux_class_preds[1], 2
        if self.share_location:
            per_prior["box_logits"] = box_logits, box_logits[1], 4
        priors = self._quotient("prior", per_prior, UNKNOWN)
        self.require(priors.upper != 0, "there are no prior boxes in proposals {}", proposals)

        locations = {"class_preds": (class_preds, class_preds[1], 1)}
        if not self.share_location:
            locations["box_logits"] = box_logits, box_logits[1], 4
        classes = self.stated_classes()
        if priors.is_static:
            each = {name: (shape, size, n * priors.length) for name, (shape, size, n) in locations.items()}
            classes = self._quotient("class", each, classes)
        elif classes.is_static:
            each = {name: (shape, size, n * classes.length) for name, (shape, size, n) in locations.items()}
            priors = self._quotient("prior", each, priors)
        return images, priors, classes

    def _images(
        self,
        box_logits: PartialShape,
        class_preds: PartialShape,
        proposals: PartialShape,
        aux_class_preds: PartialShape | None,
    ) -> Dimension:
        images = box_logits[0]
        for name, shape in (("class_preds", class_preds), ("aux_class_preds", aux_class_preds)):
            merged = images if shape is None else images.merged_with(shape[0])
            if merged is None:
                self.fail("{} {} and box_logits {} differ in dimension 0, the images", name, shape, box_logits)
            images = merged
        if proposals[0].contains(1):
            return images
        merged = images.merged_with(proposals[0])
        if merged is None:
            self.fail("dimension 0 of proposals {} must be 1 or the number of images, {}", proposals, images)
        return merged

    def _quotient(
        self, what: str, parts: dict[str, tuple[PartialShape, Dimension, int]], known: Dimension
    ) -> Dimension:
        """How many there are, known in part, if the given dimension of each input has so many elements for each."""
        for name, (shape, size, each) in parts.items():
            divided = size.exact_div(each)
            message = "the last dimension of {} {} is no multiple of {}, the elements for each {}"
            self.require(divided is not None, message, name, shape, each, what)
            merged = None if divided is None else known.merged_with(divided)
            if merged is None:
                message = "{} {} has {} elements for each {}, so there are {} of these; otherwise there are {}"
                self.fail(message, name, shape, each, what, divided, known)
            known = merged
        return known

    # ----- kernel

    def run(
        self,
        box_logits: Array,
        class_preds: Array,
        proposals: Array,
        aux_class_preds: Array | None = None,
        aux_box_preds: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        inputs = [a for a in (box_logits, class_preds, proposals, aux_class_preds, aux_box_preds) if a is not None]
        sizes = self._sizes(*(PartialShape(a.shape) for a in inputs))
        images, priors, classes = (size.length for size in sizes)
        rows = self._rows(*sizes).length

        logits, confidences, proposals, *aux = (half.converted(a, _F32) for a in inputs)
        scores = np.ascontiguousarray(confidences.reshape(images, priors, classes).transpose(0, 2, 1))
        if aux:
            is_background = aux[0].reshape(images, 1, priors, 2)[..., 1] < np.float32(self.objectness_score)
            background = np.arange(classes)[:, np.newaxis] == self.background_label_id
            scores = np.where(is_background, background.astype(_F32), scores)
        eligible = self._eligible(scores)
        corners = proposals[:, :1].reshape(len(proposals), 1, priors, 4 if self.normalized else 5)
        if not self.normalized:
            is_end = corners[..., 0] == -1
            eligible &= ~np.logical_or.accumulate(is_end, axis=-1)
        variances = None
        if not self.variance_encoded_in_target:
            # There are four for each prior, side by side also where a prior has five numbers.
            variances = proposals[:, 1:, : 4 * priors].reshape(len(proposals), 1, priors, 4)
        decoded = corners[..., -4:]
        with np.errstate(all="ignore"):  # boxes can be infinite
            for deltas in (*aux[1:], logits):
                moves = deltas.reshape(images, priors, 1 if self.share_location else classes, 4)
                decoded = self._decoded(decoded, variances, moves.transpose(0, 2, 1, 3))
            image, label, prior = self._kept(scores, eligible, decoded)

        result = np.zeros((rows, _ROW), _F32)
        found = result[: image.size]
        found[:, 0], found[:, 1] = image, label - self.decrease_label_id
        found[:, 2] = scores[image, label, prior]
        kept = decoded[image, 0 if self.share_location else label, prior]
        found[:, 3:] = np.clip(kept, 0, 1) if self.clip_after_nms else kept
        if image.size < rows:
            result[image.size, 0] = -1
        out = np.empty((1, 1, rows, _ROW), box_logits.dtype) if out is None else out
        half.copy(result.reshape(out.shape), out)
        return out

    def _decoded(self, priors: Array, variances: Array | None, deltas: Array) -> Array:
        """Boxes moved by deltas, as [images, location classes, priors, 4]."""
        if not self.normalized:
            width, height = self.input_width, self.input_height
            priors = priors / np.array([width, height, width, height], _F32)
        if variances is not None:
            deltas = variances * deltas
        if self.code_type == _CORNER:
            boxes = priors + deltas
        else:
            low, high = priors[..., :2], priors[..., 2:]
            size, center = high - low, (low + high) / 2
            reach = np.exp(deltas[..., 2:]) * size / 2
            center = deltas[..., :2] * size + center
            boxes = np.concatenate([center - reach, center + reach], axis=-1)
        return np.clip(boxes, 0, 1, out=boxes) if self.clip_before_nms else boxes

    def _eligible(self, scores: Array) -> Array:
        """Which of the scores [images, classes, priors] may be found."""
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
        """Image, class and prior of each box that is found, in order."""
        images, classes, priors = scores.shape
        rows = images if self.decrease_label_id else images * classes
        most = self.top_k if self.top_k >= 0 else None
        # Of a class no more than keep_top_k can be kept in the end.
        limit = self.keep_top_k[0] if self.keep_top_k[0] >= 0 else priors
        thresholds = np.broadcast_to(np.float32(self.nms_threshold), limit)
        found_slices, found_priors = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        length = classes * priors if self.decrease_label_id else priors
        for row, candidates in ranked(scores.reshape(rows, length), eligible.reshape(rows, length), most):
            slices, prior = np.divmod(row * length + candidates, priors)
            for one in np.unique(slices):
                chosen = prior[slices == one]
                image, label = divmod(int(one), classes)
                overlaps = _overlaps(boxes[image, 0 if self.share_location else label].take(chosen, axis=0))
                kept = keep_apart(chosen.size, overlaps, thresholds)
                found_slices.append(np.full(kept.size, one))
                found_priors.append(chosen[kept])
        images_found, labels = np.divmod(np.concatenate(found_slices), max(classes, 1))
        return self._best(scores, images_found, labels, np.concatenate(found_priors))

    def _best(self, scores: Array, image: Array, label: Array, prior: Array) -> tuple[Array, Array, Array]:
        """At most ``keep_top_k`` of each image; of equal scores the first priors, and of one prior the first class."""
        if self.keep_top_k[0] < 0:
            return image, label, prior
        order = np.lexsort((label, prior, -scores[image, label, prior], image))
        rank = np.arange(image.size) - np.searchsorted(image, image)
        best = np.sort(order[rank < self.keep_top_k[0]])
        return image[best], label[best], prior[best]


def _overlaps(boxes: Array) -> Overlaps:
    """How much boxes [n, 4] overlap each other."""
    corners = boxes.T
    return lambda first, second: iou(corners[:, first], corners[:, second])


@operator("DetectionOutput", opset=8)
class DetectionOutput8(DetectionOutput):
    """The number of classes is the number of class predictions for each prior. Source: DetectionOutput-8."""


@operator("DetectionOutput", opset=1)
class DetectionOutput1(DetectionOutput):
    """There are ``num_classes``. Source: DetectionOutput-1."""

    num_classes: int = attribute(minimum=1)

    def stated_classes(self) -> Dimension:
        return Dimension(self.num_classes, self.num_classes)
