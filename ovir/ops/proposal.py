"""Proposal, GenerateProposals and its Detectron form: the regions where a two-stage detector looks for objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import Outputs, TensorType
from ovir.kernels.boxes import clipped, decoded, moved, upright_overlaps
from ovir.kernels.precision import as_f32, stored
from ovir.kernels.rounding import round_half_away
from ovir.kernels.suppression import ranks
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import BoxSelectionBase, limited

Numbers = tuple[float, ...]


class ProposalBase(BoxSelectionBase):
    """Base of region proposals, from predictions for anchors.

    Every point of the map has K anchors, one for each ``ratio`` (height / width) and ``scale``, with the area
    (``base_size`` * scale)**2; points are ``feat_stride`` pixels apart. bbox_deltas move each anchor: (dx * width, dy *
    height) divided by ``box_coordinate_scale`` is added to its center, and its size is multiplied by (exp dw, exp dh)
    with dw and dh divided by ``box_size_scale``. With ``clip_before_nms`` the boxes are clipped to the image. The
    scores are the second K channels of class_probs; a score becomes 0 if a side is shorter than ``min_size`` times the
    image's scale. Each of the ``pre_nms_topn`` boxes with the highest scores is kept unless it overlaps a kept box of a
    higher score by more than ``nms_thresh``. With ``clip_after_nms`` the kept boxes are clipped. image_shape is
    [height, width, scale] or [height, width, scale of height, scale of width].

    The output has rows [image, x0, y0, x1, y1], ``post_nms_topn`` per image; the first missing row of an image begins
    with -1. With ``normalize`` coordinates are relative to the image.

    A box includes its last pixel, and anchors have sides of whole pixels. With ``framework`` tensorflow neither holds,
    anchors are clipped to the image too, and x runs down the map, so that image_shape begins with [width, height].
    Equal scores are ordered by point, then by anchor. Everything is computed in f32.
    """

    takes = "class_probs T[N, 2*K, H, W]; bbox_deltas T[N, 4*K, H, W]; image_shape T[3|4]; T real; K = kinds"
    recipe = (
        "T narrow, image_shape = image; N=1|2 H=1|4 W=1|3 ratio=1|1,2 scale=4|4,8 base_size=8 pre_nms_topn=1|50 "
        "post_nms_topn=1|9 nms_thresh=0.7 feat_stride=8 min_size=1"
    )
    arguments = "class_probs bbox_deltas image_shape attrs:**"
    bounded = False

    base_size: int = attribute(default=0, minimum=0, specified=True)
    pre_nms_topn: int = attribute(default=0, minimum=0, specified=True)
    post_nms_topn: int = attribute(default=0, minimum=0, specified=True)
    nms_thresh: float = attribute(default=0.0, specified=True)
    feat_stride: int = attribute(default=1, minimum=0, specified=True)
    min_size: int = attribute(default=1, minimum=0, specified=True)
    ratio: tuple[float, ...] = attribute(default=(), specified=True)
    scale: tuple[float, ...] = attribute(default=(), specified=True)
    clip_before_nms: bool = attribute(default=True)
    clip_after_nms: bool = attribute(default=False)
    normalize: bool = attribute(default=False)
    box_size_scale: float = attribute(default=1.0)
    box_coordinate_scale: float = attribute(default=1.0)
    framework: str = attribute(default="")

    has_scores: ClassVar[bool] = False
    """Whether the scores of the rows are a second output."""

    @property
    def is_tensorflow(self) -> bool:
        return self.framework == "tensorflow"

    @property
    def last_pixel(self) -> float:
        """Return the number that is added to the difference of two coordinates to get a length."""
        return 0.0 if self.is_tensorflow else 1.0

    @property
    def kinds(self) -> int | None:
        """Return the number of anchors at each point; without any, nothing is proposed, whatever the inputs are."""
        return len(self.ratio) * len(self.scale) or None

    # ----- inference

    def infer(self, *inputs: TensorType) -> Outputs:
        framework = self.framework
        self.require(framework in ("", "tensorflow"), "framework must be empty or 'tensorflow', got '{}'", framework)
        return super().infer(*inputs)

    def groups(self, inputs: Sequence[TensorType]) -> tuple[Dimension, Dimension]:
        scores = inputs[0].shape
        return scores[0], limited(scores.slice(1).size(), self.pre_nms_topn)

    # ----- kernel

    def run(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> Array | tuple[Array, ...]:
        """Return the rows and, if ``has_scores``, their scores."""
        images = len(class_probs)
        scores, deltas, image = map(as_f32, (class_probs, bbox_deltas, image_shape))
        height, width = self._image_size(image)
        rows = np.zeros((images, self.post_nms_topn + 1, 5), np.float32)  # and a last one, which is dropped
        row_scores = np.zeros((images, self.post_nms_topn), np.float32)
        boxes, scores = self._boxes(scores, deltas, image, height, width)
        image = np.arange(images).repeat(scores.shape[1])
        order = self.suppression.ranked(image, scores.ravel(), self.pre_nms_topn)
        image, boxes = image[order], boxes.reshape(-1, 4)[order]
        kept = self.suppression.keep_apart(
            image, self.post_nms_topn, upright_overlaps(boxes.T, self.last_pixel, bridged=False), self.nms_thresh
        )
        image = image[kept]
        rank = ranks(image)
        rows[np.arange(images), np.bincount(image, minlength=images), 0] = -1
        rows[image, rank, 0] = image
        rows[image, rank, 1:] = self._finish(boxes[kept], height, width)
        row_scores[image, rank] = scores.ravel()[order[kept]]
        dtype = class_probs.dtype
        found = stored(rows[:, :-1].reshape(-1, 5), dtype)
        return (found, stored(row_scores.ravel(), dtype)) if self.has_scores else found

    def _image_size(self, image: Array) -> tuple[np.float32, np.float32]:
        """Check the numbers of image_shape and return the extent of the image along y and x."""
        tiny = np.finfo(np.float32).tiny
        fits = ((image[:2] >= tiny) & np.isfinite(image[:2])).all()
        self.require(fits, "the image's height and width must be positive, got {} and {}", image[0], image[1])
        fits = ((image[2:] >= 0) & np.isfinite(image[2:])).all()
        self.require(fits, "the image's scale must not be negative, got {}", image[2:].tolist())
        height, width = image[1::-1] if self.is_tensorflow else image[:2]
        return height, width

    def _boxes(
        self, class_probs: Array, bbox_deltas: Array, image: Array, height: np.float32, width: np.float32
    ) -> tuple[Array, Array]:
        """Return the boxes [H * W * K, 4] and scores of each image."""
        count = len(self.ratio) * len(self.scale)
        images, _, rows, columns = class_probs.shape
        deltas = bbox_deltas[:, : 4 * count].reshape(images, count, 4, rows, columns).transpose(2, 0, 3, 4, 1)
        scores = class_probs[:, count : 2 * count].transpose(0, 2, 3, 1)
        add, ends = self.last_pixel, np.array([width, height]).reshape(2, 1, 1, 1)
        grid = rows, columns, self.feat_stride
        start, stop = anchors(self.base_size, self.ratio, self.scale, grid, is_tensorflow=self.is_tensorflow)
        if self.is_tensorflow:
            start, stop = clipped(start, ends), clipped(stop, ends)
        length = stop - start + add
        shift = deltas[:2] / np.float32(self.box_coordinate_scale)
        stretch = deltas[2:] / np.float32(self.box_size_scale)
        middle = start + length / 2
        # [axis, image, row, column, anchor]
        edges = decoded(middle[:, np.newaxis], length[:, np.newaxis], shift, stretch)
        if self.clip_before_nms:
            ends = ends[:, np.newaxis] - add
            edges = clipped(edges[0], ends), clipped(edges[1], ends)
        lengths = edges[1] - edges[0] + add
        least = np.float32(self.min_size) * image[2:]
        large = (lengths[0] >= least[-1]) & (lengths[1] >= least[0])
        boxes = np.empty((images, rows, columns, count, 4), np.float32)
        boxes[..., :2], boxes[..., 2:] = (edge.transpose(1, 2, 3, 4, 0) for edge in edges)
        total = rows * columns * count
        return boxes.reshape(images, total, 4), np.where(large, scores, np.float32(0)).reshape(images, total)

    def _finish(self, boxes: Array, height: np.float32, width: np.float32) -> Array:
        ends = np.array([width, height, width, height], np.float32)
        boxes = clipped(boxes, ends) if self.clip_after_nms else boxes
        return boxes / ends if self.normalize else boxes


@lru_cache(maxsize=16)
def anchors(
    base_size: int, ratio: Numbers, scale: Numbers, grid: tuple[int, int, int], *, is_tensorflow: bool
) -> tuple[Array, Array]:
    """Return the lower and upper edges of the anchors, both [axis x and y, rows, columns, K].

    ``grid`` are the rows and columns of points and their distance.
    """
    ratios, scales = np.array(ratio, np.float32), np.array(scale, np.float32)
    width = np.sqrt(np.float32(base_size**2) / ratios)
    width = width if is_tensorflow else round_half_away(width)
    height = width * ratios
    height = height if is_tensorflow else round_half_away(height)
    sides = np.stack([width, height])[:, :, np.newaxis] * scales
    reach = ((sides - (0 if is_tensorflow else 1)) / 2).reshape(2, 1, 1, len(ratios) * len(scales))
    middle = np.float32(0 if is_tensorflow else (base_size - 1) / 2)
    down, along = (np.arange(n, dtype=np.float32) * np.float32(grid[2]) for n in grid[:2])
    points = np.meshgrid(down, along, indexing="ij")
    places = np.stack(points if is_tensorflow else points[::-1])[..., np.newaxis]
    return places + (middle - reach), places + (middle + reach)


@operator("Proposal", opset=1)
class Proposal1(ProposalBase):
    """The regions in which a two-stage detector looks for objects, from predictions for anchors. See ProposalBase."""

    gives = "rois T[N*post_nms_topn, 5]"


@operator("Proposal", opset=4, is_extension=True)
class Proposal4(ProposalBase):
    """Proposal-1 with a second output: the score of each region, [rows], 0 for missing regions.

    >>> scores = np.float32([0.1, 0.9]).reshape(1, 2, 1, 1)
    >>> settings = {
    ...     "base_size": 16, "pre_nms_topn": 2, "post_nms_topn": 2, "nms_thresh": 0.7, "feat_stride": 16,
    ...     "min_size": 1, "ratio": [1.0], "scale": [1.0],
    ... }
    >>> ops.proposal(scores, np.zeros((1, 4, 1, 1), np.float32), [64.0, 64.0, 1.0], settings)
    [[ 0. 0. 0. 16. 16.] [-1. 0. 0. 0. 0.]]
    [0.9 0. ]
    """

    gives = "rois T[N*post_nms_topn, 5]; scores T[N*post_nms_topn]"
    has_scores = True


# Boxes grow by a factor of at most 1000 / 16.
MAX_LOG_SCALE = np.float32(log(1000 / 16))


class GenerateProposalsBase(BoxSelectionBase):
    """Base of proposal generators: anchors at each point of a map, moved and selected according to predictions.

    An anchor [x0, y0, x1, y1] is moved by deltas [dx, dy, dw, dh]: (dx * width, dy * height) is added to its center,
    and (exp dw, exp dh) multiplies its size. Boxes are clipped to the image, whose height and width are in im_info.
    Boxes shorter than ``min_size`` are dropped. The boxes of the ``pre_nms_count`` highest scores are kept unless they
    overlap a kept better box by more than ``nms_threshold``; at most ``post_nms_count`` remain. Equal scores are
    ordered by point, then by anchor. Everything is computed in f32.
    """

    recipe = (
        "T narrow, im_info = image; A=1|3 H=1|4 W=1|3 min_size=0|1 nms_threshold=0.7 post_nms_count=1|10 "
        "pre_nms_count=5|100"
    )
    bounded = False

    min_size: float = attribute(default=0.0, specified=True)
    nms_threshold: float = attribute(default=0.0, specified=True)

    def groups(self, inputs: Sequence[TensorType]) -> tuple[Dimension, Dimension]:
        scores = inputs[3].shape
        return scores.slice(0, -3).size(), limited(scores.slice(-3).size(), self.pre_nms_count)

    pre_nms_count: int
    post_nms_count: int

    def boxes(
        self, image: Array, anchors: Array, deltas: Array, scores: Array, *, margin: float
    ) -> tuple[Array, Array, Array]:
        """Return the clipped boxes [n, 4], their sides [n, 2] and scores [n] of one image, point by point.

        ``margin`` is 1 if the last pixel belongs to a box, else 0.
        """
        points = deltas.reshape(len(scores), 4, *deltas.shape[1:]).transpose(2, 3, 0, 1).reshape(-1, 4)
        boxes = moved(anchors.reshape(-1, 4), points, margin, MAX_LOG_SCALE)
        boxes = clipped(boxes, np.tile(image[1::-1] - np.float32(margin), 2))
        return boxes, boxes[:, 2:] - boxes[:, :2] + np.float32(margin), scores.transpose(1, 2, 0).ravel()

    def select_boxes(self, boxes: Array, candidates: Array, margin: float) -> Array:
        """Return the remaining candidates (indices of boxes in descending order of score)."""
        overlaps = upright_overlaps(boxes[candidates].T, margin, bridged=False)
        rows = np.zeros(candidates.size, np.intp)
        return candidates[self.suppression.keep_apart(rows, self.post_nms_count, overlaps, self.nms_threshold)]


@operator("GenerateProposals", opset=9)
class GenerateProposals(GenerateProposalsBase):
    """The proposals of a two-stage detector for each image, from predictions for anchors. See GenerateProposalsBase.

    im_info is height, width and scale (or scales of height and width), by which min_size is multiplied. Unless
    ``normalized``, the last pixel belongs to a box. Short boxes are dropped after the highest scores are selected.
    ``nms_eta``, which would lower the threshold with each box, must be 1 as in OpenVINO. The outputs are the boxes of
    all images, their scores, and the number of boxes of each image.

    >>> anchors = np.float32([[0, 0, 10, 10], [5, 5, 30, 30]]).reshape(1, 1, 2, 4)
    >>> ops.generate_proposals(
    ...     np.float32([[64, 64, 1]]), anchors, np.zeros((1, 8, 1, 1), np.float32),
    ...     np.float32([0.3, 0.9]).reshape(1, 2, 1, 1), 0.0, 0.7, 2, 2,
    ... )
    [[ 5. 5. 30. 30.] [ 0. 0. 10. 10.]]
    [0.9 0.3]
    [2]
    """

    takes = (
        "im_info T[N, 3|4]; anchors T[H, W, A, 4]; deltas T[N, 4*A, H, W]; scores T[N, A, H, W]; T real; "
        "roi_num_type index"
    )
    gives = "rois T[..N*post_nms_count, 4]; scores T[..N*post_nms_count]; counts roi_num_type[N]"
    unmatched = "make proposals for several images"
    arguments = (
        "im_info anchors deltas scores min_size nms_threshold pre_nms_count post_nms_count normalized= "
        "nms_eta= roi_num_type="
    )
    post_nms_count: int = attribute(minimum=0)
    pre_nms_count: int = attribute(minimum=0)
    normalized: bool = attribute(default=True)
    nms_eta: float = attribute(default=1.0)
    roi_num_type: ElementType = attribute(default=i64)

    def infer(self, *inputs: TensorType) -> Outputs:
        self.require(self.nms_eta == 1, "nms_eta must be 1, got {}", self.nms_eta)
        return super().infer(*inputs)

    def run(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array, Array]:
        dtype = im_info.dtype
        im_info, anchors, deltas, scores = map(as_f32, (im_info, anchors, deltas, scores))
        margin = 0.0 if self.normalized else 1.0
        best_boxes, best_scores = [np.empty((0, 4), np.float32)], [np.empty(0, np.float32)]
        for image, image_deltas, image_scores in zip(im_info, deltas, scores, strict=True):
            boxes, sides, box_scores = self.boxes(image, anchors, image_deltas, image_scores, margin=margin)
            least = np.float32(self.min_size) * np.broadcast_to(image[2:], 2)[::-1]
            large: Array = np.all(sides >= least, axis=1)
            candidates = self.suppression.descending(box_scores)[: self.pre_nms_count]
            best = self.select_boxes(boxes, candidates[large[candidates]], margin)
            best_boxes.append(boxes[best])
            best_scores.append(box_scores[best])
        counts = np.array([len(boxes) for boxes in best_boxes[1:]], self.roi_num_type.to_dtype())
        return stored(np.concatenate(best_boxes), dtype), stored(np.concatenate(best_scores), dtype), counts


@operator("ExperimentalDetectronGenerateProposalsSingleImage", opset=6, is_extension=True)
class ExperimentalDetectronGenerateProposalsSingleImage(GenerateProposalsBase):
    """The proposals of a two-stage detector for one image, from predictions for anchors. See GenerateProposalsBase.

    im_info is height, width and scale. The last pixel belongs to a box but is not counted when overlaps are measured.
    Short boxes are dropped before the highest scores are selected. The rest of both outputs is 0.

    >>> anchors = np.float32([[0, 0, 10, 10], [5, 5, 30, 30]])
    >>> ops.experimental_detectron_generate_proposals_single_image(
    ...     np.float32([64, 64, 1]), anchors, np.zeros((8, 1, 1), np.float32), np.float32([[[0.3]], [[0.9]]]),
    ...     nms_threshold=0.7, post_nms_count=2, pre_nms_count=2,
    ... )
    [[ 5. 5. 30. 30.] [ 0. 0. 10. 10.]]
    [0.9 0.3]
    """

    takes = "im_info T[3]; anchors T[H*W*A, 4]; deltas T[4*A, H, W]; scores T[A, H, W]; T real"
    gives = "rois T[post_nms_count, 4]; scores T[post_nms_count]"
    unmatched = "compute the heads of Detectron"

    post_nms_count: int = attribute(default=0, minimum=0, specified=True)
    pre_nms_count: int = attribute(default=0, minimum=0, specified=True)

    def run(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        rois = np.zeros((self.post_nms_count, 4), im_info.dtype)
        roi_scores = np.zeros(self.post_nms_count, im_info.dtype)
        boxes, sides, box_scores = self.boxes(*map(as_f32, (im_info, anchors, deltas, scores)), margin=1.0)
        large = np.all(sides >= np.float32(self.min_size), axis=1).nonzero()[0]
        order = self.suppression.descending(box_scores[large])[: self.pre_nms_count]
        best = self.select_boxes(boxes, large[order], margin=0.0)
        rois[: best.size], roi_scores[: best.size] = boxes[best], box_scores[best]
        return rois, roi_scores
