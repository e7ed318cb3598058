"""GenerateProposals, and its like for one image: where a two-stage detector looks, from predictions for anchors."""

from __future__ import annotations

from math import log

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, i64
from ovir.kernels import half
from ovir.kernels.box_deltas import moved
from ovir.kernels.boxes import iou
from ovir.kernels.suppression import Overlaps, keep_apart, ranked
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, operator
from ovir.types import UNKNOWN, Dimension, PartialShape
from ovir.values import TensorType

_F32 = np.dtype(np.float32)
# Boxes grow by a factor of at most 1000 / 16.
_MOST = np.float32(log(1000 / 16))


class ProposalsBase(Operator):
    """Anchors [x0, y0, x1, y1], a number of them at each point of a map, are moved by deltas [dx, dy, dw, dh].

    (dx * width, dy * height) is added to the center, (exp dw, exp dh) multiplies the size. The boxes are clipped to the
    image, of which image information has the height and the width. Those shorter than ``min_size`` are left out, and of
    the ``pre_nms_count`` of the highest scores those that overlap a better one by more than ``nms_threshold``;
    ``post_nms_count`` remain. Of equal scores the first point is first, and of a point the first anchor. Computed in
    f32.
    """

    min_size: float = attribute(default=0.0)
    nms_threshold: float = attribute(default=0.0)

    pre_nms_count: int
    post_nms_count: int

    def merged(self, what: str, **dims: Dimension) -> Dimension:
        """The one size that the inputs have of something."""
        result: Dimension | None = UNKNOWN
        for dim in dims.values():
            result = None if result is None else result.merged_with(dim)
        if result is None:
            self.fail("the number of {} differs: {}", what, ", ".join(f"{dim} of {name}" for name, dim in dims.items()))
        return result

    def require_deltas(self, deltas: Dimension, anchors: Dimension) -> None:
        fits = deltas.compatible(anchors * 4)
        self.require(fits, "deltas must have 4 channels for each of {} anchors, got {}", anchors, deltas)

    def boxes(
        self, image: Array, anchors: Array, deltas: Array, scores: Array, *, margin: float
    ) -> tuple[Array, Array, Array]:
        """Of one image the clipped boxes [n, 4], their sides [n, 2] and scores [n], point by point."""
        points = deltas.reshape(len(scores), 4, *deltas.shape[1:]).transpose(2, 3, 0, 1).reshape(-1, 4)
        boxes = moved(anchors.reshape(-1, 4), points, margin, _MOST)
        ends = np.tile(image[1::-1] - np.float32(margin), 2)
        boxes = np.maximum(np.minimum(boxes, ends), np.float32(0))
        return boxes, boxes[:, 2:] - boxes[:, :2] + np.float32(margin), scores.transpose(1, 2, 0).reshape(-1)

    def kept(self, boxes: Array, candidates: Array, margin: float) -> Array:
        """Those of the candidates, indices of boxes in descending order of their scores, that remain."""
        limits = np.broadcast_to(np.float32(self.nms_threshold), self.post_nms_count)
        return candidates[keep_apart(candidates.size, overlaps_of(boxes[candidates], margin), limits)]


def overlaps_of(boxes: Array, margin: float) -> Overlaps:
    """How much boxes [n, 4] overlap each other; ``margin`` is 1 where the last pixel belongs to a box."""
    corners = boxes.T
    return lambda some, others: iou(corners[:, some], corners[:, others], margin, bridged=False)


@operator("GenerateProposals", opset=9)
class GenerateProposals(ProposalsBase):
    """The boxes of all images, their scores, and how many there are of each image.

    im_info [N, 3 or 4] is height, width and scale (or scales of height and width), by which min_size is multiplied.
    anchors are [H, W, A, 4], deltas [N, 4 * A, H, W], scores [N, A, H, W]. Unless they are ``normalized`` the last
    pixel belongs to a box. Short boxes are left out after the choice of the highest scores. ``nms_eta``, which would
    lower the threshold with each box, must be 1 as in OpenVINO. Source: GenerateProposals-9
    """

    post_nms_count: int = attribute(minimum=1)
    pre_nms_count: int = attribute(minimum=1)
    normalized: bool = attribute(default=True)
    nms_eta: float = attribute(default=1.0)
    roi_num_type: ElementType = attribute(default=i64)

    def infer(
        self, im_info: TensorType, anchors: TensorType, deltas: TensorType, scores: TensorType
    ) -> tuple[TensorType, ...]:
        self.require(self.nms_eta == 1, "nms_eta must be 1, got {}", self.nms_eta)
        self.require_index_type("roi_num_type", self.roi_num_type, known=True)
        tensors = {"im_info": im_info, "anchors": anchors, "deltas": deltas, "scores": scores}
        for name, tensor in tensors.items():
            self.require_type(name, tensor.element_type, lambda t: t.is_real, "of a floating-point type")
        images = self._images(*(tensor.shape for tensor in tensors.values()))
        most = images * self.post_nms_count
        found = Dimension(0, most.upper)
        return (
            TensorType(im_info.element_type, PartialShape([found, 4])),
            TensorType(im_info.element_type, PartialShape([found])),
            TensorType(self.roi_num_type, PartialShape([images])),
        )

    def _images(
        self, im_info: PartialShape, anchors: PartialShape, deltas: PartialShape, scores: PartialShape
    ) -> Dimension:
        """How many images there are; the shapes are checked."""
        named = {"im_info": im_info, "anchors": anchors, "deltas": deltas, "scores": scores}
        for name, shape in named.items():
            self.require_rank(name, shape, 2 if name == "im_info" else 4)
        numbers = im_info[1]
        fits = numbers.contains(3) or numbers.contains(4)
        self.require(fits, "im_info must have 3 or 4 numbers for each image, got shape {}", im_info)
        self.require(anchors[3].contains(4), "anchors must have 4 numbers each, got shape {}", anchors)
        self.merged("rows", anchors=anchors[0], deltas=deltas[2], scores=scores[2])
        self.merged("columns", anchors=anchors[1], deltas=deltas[3], scores=scores[3])
        self.require_deltas(deltas[1], self.merged("anchors", anchors=anchors[2], scores=scores[1]))
        return self.merged("images", im_info=im_info[0], deltas=deltas[0], scores=scores[0])

    def run(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array, Array]:
        inputs = im_info, anchors, deltas, scores
        self._images(*(PartialShape(array.shape) for array in inputs))
        information, anchors, deltas, scores = (half.converted(array, _F32) for array in inputs)
        margin = 0.0 if self.normalized else 1.0
        found, probabilities = [np.empty((0, 4), _F32)], [np.empty(0, _F32)]
        for image, image_deltas, image_scores in zip(information, deltas, scores, strict=True):
            with np.errstate(all="ignore"):  # boxes can be infinite, or without area
                boxes, sides, rates = self.boxes(image, anchors, image_deltas, image_scores, margin=margin)
                least = np.float32(self.min_size) * np.broadcast_to(image[2:], 2)[::-1]
                large: Array = np.all(sides >= least, axis=1)
                best = np.empty(0, np.intp)
                for _, candidates in ranked(rates[np.newaxis], np.ones((1, rates.size), bool), self.pre_nms_count):
                    best = self.kept(boxes, candidates[large[candidates]], margin)
            found.append(boxes[best])
            probabilities.append(rates[best])
        counts = np.array([len(boxes) for boxes in found[1:]], self.roi_num_type.to_dtype())
        dtype = im_info.dtype
        return np.concatenate(found).astype(dtype), np.concatenate(probabilities).astype(dtype), counts


@operator("ExperimentalDetectronGenerateProposalsSingleImage", opset=6)
class ExperimentalDetectronGenerateProposalsSingleImage(ProposalsBase):
    """The boxes and their scores, filled up with zeros to ``post_nms_count``.

    im_info is [height, width, scale], anchors are [H * W * A, 4], deltas [4 * A, H, W], scores [A, H, W]. The last
    pixel belongs to a box, but is not counted where overlaps are measured. Short boxes are left out before the choice
    of the highest scores. Source: ExperimentalDetectronGenerateProposalsSingleImage-6
    """

    post_nms_count: int = attribute(default=0, minimum=0)
    pre_nms_count: int = attribute(default=0, minimum=0)

    def infer(
        self, im_info: TensorType, anchors: TensorType, deltas: TensorType, scores: TensorType
    ) -> tuple[TensorType, TensorType]:
        tensors = {"im_info": im_info, "anchors": anchors, "deltas": deltas, "scores": scores}
        element_type = self.merge_types(*(t.element_type for t in tensors.values()), names=list(tensors))
        self.require_type("im_info", element_type, lambda t: t.is_real, "of a floating-point type")
        self._require_shapes(*(tensor.shape for tensor in tensors.values()))
        boxes = PartialShape([self.post_nms_count, 4])
        return TensorType(element_type, boxes), TensorType(element_type, boxes.slice(0, 1))

    def _require_shapes(
        self, im_info: PartialShape, anchors: PartialShape, deltas: PartialShape, scores: PartialShape
    ) -> None:
        named = {"im_info": (im_info, 1), "anchors": (anchors, 2), "deltas": (deltas, 3), "scores": (scores, 3)}
        for name, (shape, rank) in named.items():
            self.require_rank(name, shape, rank)
        self.require(im_info[0].contains(3), "im_info must be 3 numbers, got shape {}", im_info)
        self.require(anchors[1].contains(4), "anchors must have 4 numbers each, got shape {}", anchors)
        rows = self.merged("rows", deltas=deltas[1], scores=scores[1])
        columns = self.merged("columns", deltas=deltas[2], scores=scores[2])
        self.require_deltas(deltas[0], scores[0])
        self.merged("anchors", anchors=anchors[0], scores=scores[0] * rows * columns)

    def run(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        inputs = im_info, anchors, deltas, scores
        self._require_shapes(*(PartialShape(array.shape) for array in inputs))
        found = np.zeros((self.post_nms_count, 4), im_info.dtype)
        probabilities = np.zeros(self.post_nms_count, im_info.dtype)
        with np.errstate(all="ignore"):
            boxes, sides, rates = self.boxes(*(half.converted(array, _F32) for array in inputs), margin=1.0)
            large: Array = np.all(sides >= np.float32(self.min_size), axis=1)
            for _, candidates in ranked(rates[np.newaxis], large[np.newaxis], self.pre_nms_count):
                best = self.kept(boxes, candidates, margin=0.0)
                found[: best.size], probabilities[: best.size] = boxes[best], rates[best]
        return found, probabilities
