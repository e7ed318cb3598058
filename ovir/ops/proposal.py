"""Proposal: the regions in which a two-stage detector looks for objects."""

from __future__ import annotations

import numpy as np

from ovir.arrays import Array
from ovir.kernels import half
from ovir.kernels.boxes import iou
from ovir.kernels.suppression import Overlaps, keep_apart, ranked
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, operator
from ovir.types import Dimension, PartialShape
from ovir.values import TensorType

_F32 = np.dtype(np.float32)


class Proposal(Operator):
    """Rows [image, x0, y0, x1, y1], ``post_nms_topn`` of each image; a first one that is missing begins with -1.

    At every point of the H by W map stand K anchors, one for each ``ratio`` (height / width) and ``scale``, of the area
    (``base_size`` * scale)**2, ``feat_stride`` pixels apart. bbox_deltas [N, 4 * K, H, W] move each: (dx * width,
    dy * height) is added to its center, (exp dw, exp dh) times its size. The boxes are clipped to the image
    (``clip_before_nms``); the score, of the second K of class_probs [N, 2 * K, H, W], becomes 0 where a side is
    shorter than ``min_size`` times the image's scale. The ``pre_nms_topn`` boxes of the highest scores pass
    non-maximum suppression. image_shape is [height, width, scale] or [height, width, scale of height, of width].

    A box includes its last pixel, and anchors have sides of whole pixels; not so in ``framework`` tensorflow, where
    anchors are clipped to the image too, and x runs down the map, so that image_shape is [width, height]. Of equal
    scores the first point is first, and of a point the first anchor. Computed in f32.
    """

    base_size: int = attribute(default=0, minimum=0)
    pre_nms_topn: int = attribute(default=0, minimum=0)
    post_nms_topn: int = attribute(default=0, minimum=0)
    nms_thresh: float = attribute(default=0.0)
    feat_stride: int = attribute(default=1, minimum=0)
    min_size: int = attribute(default=1, minimum=0)
    ratio: tuple[float, ...] = attribute(default=())
    scale: tuple[float, ...] = attribute(default=())
    clip_before_nms: bool = attribute(default=True)
    clip_after_nms: bool = attribute(default=False)
    normalize: bool = attribute(default=False)
    box_size_scale: float = attribute(default=1.0)
    box_coordinate_scale: float = attribute(default=1.0)
    framework: str = attribute(default="")

    @property
    def is_tensorflow(self) -> bool:
        return self.framework == "tensorflow"

    @property
    def last_pixel(self) -> float:
        """What is added to the difference of two coordinates to give a length."""
        return 0.0 if self.is_tensorflow else 1.0

    # ----- inference

    def rows(self, class_probs: TensorType, bbox_deltas: TensorType, image_shape: TensorType) -> Dimension:
        """The number of rows. All inputs are checked."""
        named = {"class_probs": class_probs, "bbox_deltas": bbox_deltas, "image_shape": image_shape}
        for name, tensor in named.items():
            self.require_type(name, tensor.element_type, lambda t: t.is_real, "of a floating-point type")
        framework = self.framework
        self.require(framework in ("", "tensorflow"), "framework must be empty or 'tensorflow', got '{}'", framework)
        return self._images(*(tensor.shape for tensor in named.values())) * self.post_nms_topn

    def _images(self, class_probs: PartialShape, bbox_deltas: PartialShape, image_shape: PartialShape) -> Dimension:
        self.require_rank("class_probs", class_probs, 4)
        self.require_rank("bbox_deltas", bbox_deltas, 4)
        self.require_rank("image_shape", image_shape, 1)
        numbers = image_shape[0]
        self.require(
            numbers.contains(3) or numbers.contains(4), "image_shape must hold 3 or 4 numbers, got {}", numbers
        )
        anchors = len(self.ratio) * len(self.scale)
        if anchors:  # without any nothing is proposed
            for name, shape, each in (("class_probs", class_probs, 2), ("bbox_deltas", bbox_deltas, 4)):
                self.require(
                    shape[1].contains(each * anchors),
                    "dimension 1 of {} {} must be {} for each of {} anchors ({} ratios by {} scales), {}",
                    *(name, shape, each, anchors, len(self.ratio), len(self.scale), each * anchors),
                )
        both = "class_probs {} and bbox_deltas {}"
        fits = bbox_deltas[1].compatible(class_probs[1] * 2)
        self.require(fits, both + " must have 2 and 4 channels for each anchor", class_probs, bbox_deltas)
        for axis in (2, 3):
            fits = class_probs[axis].compatible(bbox_deltas[axis])
            self.require(fits, both + " differ in dimension {}", class_probs, bbox_deltas, axis)
        images = class_probs[0].merged_with(bbox_deltas[0])
        if images is None:
            self.fail(both + " differ in dimension 0, the images", class_probs, bbox_deltas)
        return images

    # ----- kernel

    def propose(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        """The rows, and the score of each."""
        inputs = class_probs, bbox_deltas, image_shape
        images = self._images(*(PartialShape(a.shape) for a in inputs)).length
        scores, deltas, image = (half.converted(a, _F32) for a in inputs)
        height, width = self._image_size(image)
        rows = np.zeros((images, self.post_nms_topn, 5), _F32)
        probabilities = np.zeros((images, self.post_nms_topn), _F32)
        rows[:, :1, 0] = -1
        limits = np.broadcast_to(np.float32(self.nms_thresh), self.post_nms_topn)
        with np.errstate(all="ignore"):  # boxes can be infinite, or without area
            boxes, scores = self._boxes(scores, deltas, image, height, width)
            for row, candidates in ranked(scores, np.ones(scores.shape, bool), self.pre_nms_topn):
                chosen = boxes[row].take(candidates, axis=0)
                kept = keep_apart(candidates.size, self._overlaps(chosen), limits)
                rows[row, : kept.size, 0] = row
                rows[row, kept.size : kept.size + 1, 0] = -1
                rows[row, : kept.size, 1:] = self._finished(chosen[kept], height, width)
                probabilities[row, : kept.size] = scores[row, candidates[kept]]
        types = class_probs.dtype
        return half.converted(rows.reshape(-1, 5), types), half.converted(probabilities.reshape(-1), types)

    def _image_size(self, image: Array) -> tuple[np.float32, np.float32]:
        """The extent of the image along y and along x, after a check of all numbers."""
        tiny = np.finfo(_F32).tiny
        fits = ((image[:2] >= tiny) & np.isfinite(image[:2])).all()
        self.require(fits, "the image's height and width must be positive, got {} and {}", image[0], image[1])
        fits = ((image[2:] >= 0) & np.isfinite(image[2:])).all()
        self.require(fits, "the image's scale must not be negative, got {}", image[2:].tolist())
        height, width = image[1::-1] if self.is_tensorflow else image[:2]
        return height, width

    def _boxes(
        self, class_probs: Array, bbox_deltas: Array, image: Array, height: np.float32, width: np.float32
    ) -> tuple[Array, Array]:
        """Of each image the boxes [H * W * K, 4] and their scores."""
        count = len(self.ratio) * len(self.scale)
        images, _, rows, columns = class_probs.shape
        deltas = bbox_deltas[:, : 4 * count].reshape(images, count, 4, rows, columns).transpose(2, 0, 3, 4, 1)
        scores = class_probs[:, count : 2 * count].transpose(0, 2, 3, 1)
        down, along = (np.arange(n, dtype=_F32) * np.float32(self.feat_stride) for n in (rows, columns))
        x, y = down[:, np.newaxis], along
        if not self.is_tensorflow:
            x, y = along, down[:, np.newaxis]
        add = self.last_pixel
        edges: list[tuple[Array, Array]] = []
        lengths: list[Array] = []
        low, high = self._anchors()
        for axis, (place, end) in enumerate(((x, width), (y, height))):
            start, stop = place[..., np.newaxis] + low[axis], place[..., np.newaxis] + high[axis]
            if self.is_tensorflow:
                start, stop = _clipped(start, end), _clipped(stop, end)
            length = stop - start + add
            center = deltas[axis] / np.float32(self.box_coordinate_scale) * length + (start + length / 2)
            reach = np.exp(deltas[axis + 2] / np.float32(self.box_size_scale)) * length / 2
            edge = center - reach, center + reach
            if self.clip_before_nms:
                edge = _clipped(edge[0], end - add), _clipped(edge[1], end - add)
            edges.append(edge)
            lengths.append(edge[1] - edge[0] + add)
        least = np.float32(self.min_size) * image[2:]
        large = (lengths[0] >= least[-1]) & (lengths[1] >= least[0])
        boxes = np.stack([edges[0][0], edges[1][0], edges[0][1], edges[1][1]], axis=-1)
        total = rows * columns * count
        return boxes.reshape(images, total, 4), np.where(large, scores, np.float32(0)).reshape(images, total)

    def _anchors(self) -> tuple[Array, Array]:
        """The lower and the upper edges [2, K] of the anchors of the point (0, 0), of axis x and of axis y."""
        ratios, scales = np.array(self.ratio, _F32), np.array(self.scale, _F32)
        width = np.sqrt(np.float32(self.base_size**2) / ratios)
        width = width if self.is_tensorflow else _rounded(width)
        height = width * ratios
        height = height if self.is_tensorflow else _rounded(height)
        sides = np.stack([width, height])[:, :, np.newaxis] * scales
        reach = ((sides - self.last_pixel) / 2).reshape(2, len(ratios) * len(scales))
        middle = np.float32(0 if self.is_tensorflow else (self.base_size - 1) / 2)
        return middle - reach, middle + reach

    def _overlaps(self, boxes: Array) -> Overlaps:
        """How much boxes [n, 4] overlap each other."""
        corners = boxes.T
        return lambda first, second: iou(corners[:, first], corners[:, second], self.last_pixel, bridged=False)

    def _finished(self, boxes: Array, height: np.float32, width: np.float32) -> Array:
        ends = np.array([width, height, width, height], _F32)
        boxes = _clipped(boxes, ends) if self.clip_after_nms else boxes
        return boxes / ends if self.normalize else boxes


def _clipped(coordinates: Array, end: Array | np.float32) -> Array:
    """max(0, min(coordinates, end)), 0 where ``end`` is below it."""
    return np.maximum(np.minimum(coordinates, end), 0)


def _rounded(numbers: Array) -> Array:
    """To the nearest integer, halves up."""
    return np.floor(numbers.astype(np.float64) + 0.5).astype(_F32)


@operator("Proposal", opset=1)
class Proposal1(Proposal):
    """The boxes. Source: Proposal-1."""

    def infer(self, class_probs: TensorType, bbox_deltas: TensorType, image_shape: TensorType) -> TensorType:
        rows = self.rows(class_probs, bbox_deltas, image_shape)
        return TensorType(class_probs.element_type, PartialShape([rows, 5]))

    def run(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> Array:
        return self.propose(class_probs, bbox_deltas, image_shape)[0]


@operator("Proposal", opset=4)
class Proposal4(Proposal):
    """The boxes, and the score of each, 0 where there is none. Source: Proposal-4."""

    def infer(
        self, class_probs: TensorType, bbox_deltas: TensorType, image_shape: TensorType
    ) -> tuple[TensorType, TensorType]:
        rows = self.rows(class_probs, bbox_deltas, image_shape)
        element_type = class_probs.element_type
        return TensorType(element_type, PartialShape([rows, 5])), TensorType(element_type, PartialShape([rows]))

    def run(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        return self.propose(class_probs, bbox_deltas, image_shape)
