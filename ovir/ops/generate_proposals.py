"""GenerateProposals and its variant for one image: the proposals of a two-stage detector."""

from __future__ import annotations

from math import log

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.boxes import clipped, moved, upright_overlaps
from ovir.kernels.precision import as_f32, stored
from ovir.kernels.ranking import ranked_one
from ovir.kernels.suppression import keep_apart
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

# Boxes grow by a factor of at most 1000 / 16.
MAX_LOG_SCALE = np.float32(log(1000 / 16))


class GenerateProposalsBase(Operator):
    """Base of proposal generators: anchors at each point of a map, moved and selected according to predictions.

    An anchor [x0, y0, x1, y1] is moved by deltas [dx, dy, dw, dh]: (dx * width, dy * height) is added to its center,
    and (exp dw, exp dh) multiplies its size. Boxes are clipped to the image, whose height and width are in im_info.
    Boxes shorter than ``min_size`` are dropped. The boxes of the ``pre_nms_count`` highest scores are kept unless they
    overlap a kept better box by more than ``nms_threshold``; at most ``post_nms_count`` remain. Equal scores are
    ordered by point, then by anchor. Everything is computed in f32.
    """

    bounded = False

    min_size: float = attribute(default=0.0, specified=True)
    nms_threshold: float = attribute(default=0.0, specified=True)

    pre_nms_count: int
    post_nms_count: int

    def require_deltas(self, deltas: Dimension, anchors: Dimension) -> None:
        fits = deltas.compatible(anchors * 4)
        self.require(fits, "deltas must have 4 channels for each of {} anchors, got {}", anchors, deltas)

    def boxes(
        self, image: Array, anchors: Array, deltas: Array, scores: Array, *, margin: float
    ) -> tuple[Array, Array, Array]:
        """Return the clipped boxes [n, 4], their sides [n, 2] and scores [n] of one image, point by point.

        ``margin`` is 1 if the last pixel belongs to a box, else 0.
        """
        points = deltas.reshape(len(scores), 4, *deltas.shape[1:]).transpose(2, 3, 0, 1).reshape(-1, 4)
        boxes = moved(anchors.reshape(-1, 4), points, margin, MAX_LOG_SCALE)
        boxes = clipped(boxes, np.tile(image[1::-1] - np.float32(margin), 2))
        return boxes, boxes[:, 2:] - boxes[:, :2] + np.float32(margin), scores.transpose(1, 2, 0).reshape(-1)

    def select_boxes(self, boxes: Array, candidates: Array, margin: float) -> Array:
        """Return which of the candidates (indices of boxes in descending order of score) remain."""
        overlaps = upright_overlaps(boxes[candidates].T, margin, bridged=False)
        rows = np.zeros(candidates.size, np.intp)
        return candidates[keep_apart(rows, self.post_nms_count, overlaps, self.nms_threshold)]


@operator("GenerateProposals", opset=9)
class GenerateProposals(GenerateProposalsBase):
    """The proposals of a two-stage detector for each image, from predictions for anchors. See GenerateProposalsBase.

    im_info [N, 3 or 4] is height, width and scale (or scales of height and width), by which min_size is multiplied.
    anchors are [H, W, A, 4], deltas [N, 4 * A, H, W], scores [N, A, H, W]. Unless ``normalized``, the last pixel
    belongs to a box. Short boxes are dropped after the highest scores are selected. ``nms_eta``, which would lower the
    threshold with each box, must be 1 as in OpenVINO. The outputs are the boxes [n, 4] of all images, their scores [n],
    and the number of boxes of each image, [N], of type ``roi_num_type`` (i32 or i64).

    Source: GenerateProposals-9
    """

    arguments = (
        "im_info anchors deltas scores min_size nms_threshold pre_nms_count post_nms_count normalized= "
        "nms_eta= roi_num_type="
    )
    post_nms_count: int = attribute(minimum=0)
    pre_nms_count: int = attribute(minimum=0)
    normalized: bool = attribute(default=True)
    nms_eta: float = attribute(default=1.0)
    roi_num_type: ElementType = attribute(default=i64)

    def infer(
        self, im_info: TensorType, anchors: TensorType, deltas: TensorType, scores: TensorType
    ) -> tuple[TensorType, ...]:
        self.require(self.nms_eta == 1, "nms_eta must be 1, got {}", self.nms_eta)
        self.require_index_type("roi_num_type", self.roi_num_type, known=True)
        inputs = {"im_info": im_info, "anchors": anchors, "deltas": deltas, "scores": scores}
        element_type = self.merge_types(*(t.element_type for t in inputs.values()), names=list(inputs))
        self.require_real("im_info", element_type)
        images = self._images(*(tensor.shape for tensor in inputs.values()))
        count = Dimension(0, (images * self.post_nms_count).upper)
        return (
            TensorType(element_type, PartialShape([count, 4])),
            TensorType(element_type, PartialShape([count])),
            TensorType(self.roi_num_type, PartialShape([images])),
        )

    def _images(
        self, im_info: PartialShape, anchors: PartialShape, deltas: PartialShape, scores: PartialShape
    ) -> Dimension:
        """Check the shapes and return the number of images."""
        named = {"im_info": im_info, "anchors": anchors, "deltas": deltas, "scores": scores}
        for name, shape in named.items():
            self.require_rank(name, shape, 2 if name == "im_info" else 4)
        numbers = im_info[1]
        fits = numbers.contains(3) or numbers.contains(4)
        self.require(fits, "im_info must have 3 or 4 numbers for each image, got shape {}", im_info)
        self.require(anchors[3].contains(4), "anchors must have 4 numbers each, got shape {}", anchors)
        self.merge_dims("rows", anchors=(anchors, 0), deltas=(deltas, 2), scores=(scores, 2))
        self.merge_dims("columns", anchors=(anchors, 1), deltas=(deltas, 3), scores=(scores, 3))
        self.require_deltas(deltas[1], self.merge_dims("anchors", anchors=(anchors, 2), scores=(scores, 1)))
        return self.merge_dims("images", im_info=(im_info, 0), deltas=(deltas, 0), scores=(scores, 0))

    def run(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array, Array]:
        inputs = im_info, anchors, deltas, scores
        self._images(*(PartialShape(array.shape) for array in inputs))
        dtype = im_info.dtype
        im_info, anchors, deltas, scores = map(as_f32, inputs)
        margin = 0.0 if self.normalized else 1.0
        best_boxes, best_scores = [np.empty((0, 4), np.float32)], [np.empty(0, np.float32)]
        for image, image_deltas, image_scores in zip(im_info, deltas, scores, strict=True):
            with np.errstate(all="ignore"):  # boxes can be infinite, or without area
                boxes, sides, box_scores = self.boxes(image, anchors, image_deltas, image_scores, margin=margin)
                least = np.float32(self.min_size) * np.broadcast_to(image[2:], 2)[::-1]
                large: Array = np.all(sides >= least, axis=1)
                candidates = ranked_one(box_scores, most=self.pre_nms_count)
                best = self.select_boxes(boxes, candidates[large[candidates]], margin)
            best_boxes.append(boxes[best])
            best_scores.append(box_scores[best])
        counts = np.array([len(boxes) for boxes in best_boxes[1:]], self.roi_num_type.to_dtype())
        return stored(np.concatenate(best_boxes), dtype), stored(np.concatenate(best_scores), dtype), counts


@operator("ExperimentalDetectronGenerateProposalsSingleImage", opset=6, is_extension=True)
class ExperimentalDetectronGenerateProposalsSingleImage(GenerateProposalsBase):
    """The proposals of a two-stage detector for one image, from predictions for anchors. See GenerateProposalsBase.

    im_info is [height, width, scale], anchors are [H * W * A, 4], deltas [4 * A, H, W], scores [A, H, W]. The last
    pixel belongs to a box but is not counted when overlaps are measured. Short boxes are dropped before the highest
    scores are selected. The outputs are the boxes [post_nms_count, 4] and their scores [post_nms_count], both padded
    with zeros.

    Source: ExperimentalDetectronGenerateProposalsSingleImage-6
    """

    post_nms_count: int = attribute(default=0, minimum=0, specified=True)
    pre_nms_count: int = attribute(default=0, minimum=0, specified=True)

    def infer(
        self, im_info: TensorType, anchors: TensorType, deltas: TensorType, scores: TensorType
    ) -> tuple[TensorType, TensorType]:
        inputs = {"im_info": im_info, "anchors": anchors, "deltas": deltas, "scores": scores}
        element_type = self.merge_types(*(t.element_type for t in inputs.values()), names=list(inputs))
        self.require_real("im_info", element_type)
        self._require_shapes(*(tensor.shape for tensor in inputs.values()))
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
        rows = self.merge_dims("rows", deltas=(deltas, 1), scores=(scores, 1))
        columns = self.merge_dims("columns", deltas=(deltas, 2), scores=(scores, 2))
        self.require_deltas(deltas[0], scores[0])
        count = scores[0] * rows * columns
        fits = anchors[0].compatible(count)
        self.require(fits, "there are {} anchors, but scores of shape {} need {}", anchors[0], scores, count)

    def run(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        inputs = im_info, anchors, deltas, scores
        self._require_shapes(*(PartialShape(array.shape) for array in inputs))
        rois = np.zeros((self.post_nms_count, 4), im_info.dtype)
        roi_scores = np.zeros(self.post_nms_count, im_info.dtype)
        with np.errstate(all="ignore"):
            boxes, sides, box_scores = self.boxes(*map(as_f32, inputs), margin=1.0)
            large: Array = np.all(sides >= np.float32(self.min_size), axis=1)
            candidates = ranked_one(box_scores, large, self.pre_nms_count)
            best = self.select_boxes(boxes, candidates, margin=0.0)
            rois[: best.size], roi_scores[: best.size] = boxes[best], box_scores[best]
        return rois, roi_scores
