"""Operations of the Detectron detectors: grids of priors, features of regions, and detections.

ExperimentalDetectronGenerateProposalsSingleImage is in proposal.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import Outputs, TensorType
from ovir.kernels.boxes import moved, upright_overlaps
from ovir.kernels.precision import as_computed, as_f32, compute_dtype, stored
from ovir.kernels.roi import pixel_rows
from ovir.kernels.suppression import candidates
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.regions import RegionBase
from ovir.ops.base.registry import operator
from ovir.ops.base.suppression import BoxSelectionBase


@operator("ExperimentalDetectronPriorGridGenerator", opset=6, is_extension=True)
class ExperimentalDetectronPriorGridGenerator(Operator):
    """Every prior box at the center of every cell of a grid, ordered by row, cell and prior.

    priors are x0, y0, x1, y1. The grid has ``h`` x ``w`` cells; 0 means the size of the feature map. A cell has the
    size ``stride_y`` x ``stride_x``; 0 means the size of im_data divided by the number of cells. The output is [H, W,
    P, 4], or [H*W*P, 4] with ``flatten``; if the grid is smaller than the feature map, the rest is 0.

    >>> maps, image = np.zeros((1, 8, 1, 2), np.float32), np.zeros((1, 3, 8, 16), np.float32)
    >>> ops.experimental_detectron_prior_grid_generator([[-4.0, -4.0, 4.0, 4.0]], maps, image)
    [[ 0. 0. 8. 8.] [ 8. 0. 16. 8.]]
    """

    takes = "priors T[P, 4]; feature_map T[N, ?, H, W]; im_data T[N, ?, ?, ?]; T real"
    recipe = "T narrow; stride_x=0|4 stride_y=0|4"
    unmatched = "compute the heads of Detectron"
    shape_inputs = (1, 2)
    flatten: bool = attribute(default=True, misread="false")
    h: int = attribute(default=0, minimum=0)
    w: int = attribute(default=0, minimum=0)
    stride_x: float = attribute(default=0.0)
    stride_y: float = attribute(default=0.0)

    def infer(self, *inputs: TensorType) -> Outputs:
        solution = self.solved(*inputs)
        for name, cells, points in (("h", self.h, solution["H"]), ("w", self.w, solution["W"])):
            fits = points.upper is None or cells <= points.upper
            self.require(fits, "{} {} exceeds the number of points of feature_map {}", name, cells, inputs[1].shape)
        return solution.outputs("T[H*W*P, 4]" if self.flatten else "T[H, W, P, 4]")

    def run(self, priors: Array, feature_map: Array, im_data: Array) -> Array:
        points, count, dtype = feature_map.shape[2:], len(priors), compute_dtype(priors.dtype)
        cells = self.h or points[0], self.w or points[1]
        middles = []
        for cell, stride, size in zip(cells, (self.stride_y, self.stride_x), im_data.shape[2:], strict=True):
            step = np.float32(stride) or np.float32(size) / np.float32(max(cell, 1))
            middles.append(step * (np.arange(cell, dtype=np.float32) + np.float32(0.5)))
        y, x = np.meshgrid(*middles, indexing="ij")
        grid = priors.astype(dtype) + np.stack([x, y, x, y], axis=-1)[:, :, np.newaxis].astype(dtype)
        out = np.zeros((prod(points) * count, 4), priors.dtype)
        out[: grid.size // 4] = grid.reshape(-1, 4)
        return out if self.flatten else out.reshape(*points, count, 4)


@operator("ExperimentalDetectronROIFeatureExtractor", opset=6, is_extension=True)
class ExperimentalDetectronROIFeatureExtractor(RegionBase):
    """ROIAlign of each region in one level of a pyramid of feature maps; the regions are the second output.

    A region [x0, y0, x1, y1] uses level floor(2 + log2(sqrt(area) / 224 + 1e-6)), or the nearest existing level. Its
    coordinates are divided by the level's ``pyramid_scales`` and moved by -0.5 if ``aligned``. Sides are at least one
    pixel long. Each output is the mean of ``sampling_ratio`` samples per axis; 0 means the length of the bin, rounded
    up. A region without area has features of 0.

    >>> maps = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> ops.experimental_detectron_roi_feature_extractor(
    ...     np.float32([[0, 0, 4, 4]]), [maps], output_size=2, sampling_ratio=1, pyramid_scales=(1,)
    ... )
    [[[[ 5. 7.] [13. 15.]]]]
    [[0. 0. 4. 4.]]
    """

    takes = "rois T[R, 4]; *feature_maps T[1, C, ?, ?]; T real"
    gives = "features T[R, C, output_size, output_size]; rois T[R, 4]"
    recipe = "T narrow; output_size=1|3 sampling_ratio=0|1|2 pyramid_scales=4,8,16"
    unmatched = "compute the heads of Detectron"

    output_size: int = attribute(default=0, minimum=0, specified=True)
    sampling_ratio: int = attribute(default=0, minimum=0, specified=True)
    pyramid_scales: tuple[int, ...] = attribute(default=(), minimum=1, specified=True)
    aligned: bool = attribute(default=False)

    def infer(self, *inputs: TensorType) -> Outputs:
        levels, scales = len(inputs) - 1, self.pyramid_scales
        message = "pyramid_scales {} must have one item for each of the {} feature maps"
        self.require(levels <= len(scales), message, scales, levels)
        return super().infer(*inputs)

    def positions(self) -> int | None:
        return self.sampling_ratio**2 or None

    def run(self, rois: Array, *features: Array) -> tuple[Array, Array]:
        bins, channels = (self.output_size, self.output_size), features[0].shape[1]
        boxes = as_computed(rois)
        dtype = boxes.dtype
        levels = _levels(boxes, len(features))
        pooled = np.zeros((len(rois), self.output_size**2, channels), dtype)
        for level, (data, pyramid_scale) in enumerate(zip(features, self.pyramid_scales, strict=False)):
            members = np.flatnonzero(levels == level)
            if not (members.size and data.size):
                continue
            ends = boxes[members] * dtype.type(np.float32(1) / np.float32(pyramid_scale))
            ends -= dtype.type(0.5 if self.aligned else 0)
            start = ends[:, 1::-1]
            size = np.maximum(ends[:, :1:-1] - start, 1)
            images = np.zeros(members.size, np.intp)
            own = np.zeros((members.size, *pooled.shape[1:]), dtype)
            regions = self.sampled(images, start, size, bins, self.sampling_ratio)
            regions.pool(pixel_rows(data), data.shape[2], data.shape[3], own, largest=False)
            pooled[members] = own
        shape = len(rois), channels, *bins
        features_of_rois = stored(pooled.swapaxes(1, 2).reshape(shape), rois.dtype)
        return features_of_rois, stored(rois.copy(), rois.dtype)


def _levels(boxes: Array, count: int) -> Array:
    """Return the pyramid level of each box, -1 for a box without area."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    level = np.floor(np.log2(np.sqrt(area) / np.float32(224) + np.float32(1e-6)) + np.float32(2))
    levels: Array = np.where(area > 0, np.clip(level, 0, count - 1), -1)
    return levels


@operator("ExperimentalDetectronTopKROIs", opset=6, is_extension=True, function_name="experimental_detectron_topk_rois")
class ExperimentalDetectronTopKROIs(BoxSelectionBase, RegionBase):
    """The ``max_rois`` regions with the highest probabilities, in descending order; the first of equal ones wins.

    The rest of the output is 0. A probability of NaN is less than any other.

    >>> boxes = np.float32([[0, 0, 1, 1], [0, 0, 2, 2], [0, 0, 3, 3]])
    >>> ops.experimental_detectron_topk_rois(boxes, [0.2, 0.9, 0.5], max_rois=2)
    [[0. 0. 2. 2.] [0. 0. 3. 3.]]
    """

    takes = "rois T[R, 4]; probabilities T[R]; T real"
    gives = "T[max_rois, 4]"
    recipe = "T narrow; max_rois=0|1|3|100"
    unmatched = "compute the heads of Detectron"

    max_rois: int = attribute(default=0, minimum=0)

    def run(self, rois: Array, probabilities: Array) -> Array:
        best = self.suppression.descending(as_computed(probabilities))[: self.max_rois]
        chosen = np.zeros((self.max_rois, 4), rois.dtype)
        chosen[: best.size] = rois[best]
        return chosen


@operator("ExperimentalDetectronDetectionOutput", opset=6, is_extension=True)
class ExperimentalDetectronDetectionOutput(BoxSelectionBase, RegionBase):
    """Boxes, classes and scores detected in one image, padded with zeros to ``max_detections_per_image``.

    im_info and ``class_agnostic_box_regression`` have no effect, as in OpenVINO.

    For each class, a region [x0, y0, x1, y1], whose last pixel belongs to it, is moved by its deltas [dx, dy, dw, dh]
    divided by ``deltas_weights``: (dx * width, dy * height) is added to the center, and (exp dw, exp dh) multiplies the
    size, with dw and dh at most ``max_delta_log_wh``. Negative coordinates become 0. For each class except the
    background 0, boxes with scores above ``score_threshold`` are kept unless they overlap a kept box of a higher score
    by more than ``nms_threshold``; at most ``post_nms_count`` (-1: all) remain. Detections are ordered by class and
    descending score; if there are too many for the image, the best of all are ordered by descending score. Equal scores
    are ordered by region. Everything is computed in f32.

    >>> boxes = np.float32([[0, 0, 10, 10], [20, 20, 40, 40]])
    >>> scores = np.float32([[0.1, 0.9], [0.3, 0.7]])
    >>> ops.experimental_detectron_detection_output(
    ...     boxes, np.zeros((2, 8), np.float32), scores, np.float32([[64, 64, 1]]),
    ...     num_classes=2, score_threshold=0.05, nms_threshold=0.5, max_delta_log_wh=4.0, post_nms_count=10,
    ...     max_detections_per_image=2, deltas_weights=(10.0, 10.0, 5.0, 5.0),
    ... )
    [[ 0. 0. 10. 10.] [20. 20. 40. 40.]]
    [1 1]
    [0.9 0.7]
    """

    takes = (
        "rois T[R, 4]; deltas T[R, 4*num_classes]; scores T[R, num_classes]; im_info T[1, 3]; T real; "
        "M = max_detections_per_image"
    )
    gives = "boxes T[M, 4]; classes i32[M]; scores T[M]"
    recipe = (
        "T narrow, im_info = image; num_classes=1|2|4 deltas_weights=10,10,5,5 score_threshold=0.05 "
        "nms_threshold=0.5 max_delta_log_wh=4.1 post_nms_count=1|10 max_detections_per_image=1|5"
    )
    unmatched = "compute the heads of Detectron"
    shape_inputs = (3,)
    score_threshold: float = attribute(default=0.0, specified=True)
    nms_threshold: float = attribute(default=0.0, specified=True)
    max_delta_log_wh: float = attribute(default=0.0, specified=True)
    num_classes: int = attribute(minimum=0)
    post_nms_count: int = attribute(default=0, minimum=-1, specified=True)
    max_detections_per_image: int = attribute(default=0, minimum=0, specified=True)
    class_agnostic_box_regression: bool = attribute(default=False)
    deltas_weights: tuple[float, ...] = attribute(default=(), specified=True)

    def infer(self, *inputs: TensorType) -> Outputs:
        weights = self.deltas_weights
        self.require(len(weights) == 4, "deltas_weights must be 4 numbers, got {}", list(weights))
        return super().infer(*inputs)

    def groups(self, inputs: Sequence[TensorType]) -> tuple[Dimension, Dimension]:
        regions, classes = inputs[2].shape[0], inputs[2].shape[1]
        return classes, regions

    def run(self, rois: Array, deltas: Array, scores: Array, im_info: Array) -> tuple[Array, Array, Array]:
        boxes, class_scores = self._of_classes(*map(as_f32, (rois, deltas, scores)))
        classes, regions = self._select_boxes(boxes, class_scores)
        most = self.max_detections_per_image
        if classes.size > most:
            best = np.lexsort((regions, -class_scores[classes, regions]))[:most]
            classes, regions = classes[best], regions[best]
        chosen, numbers = np.zeros((most, 4), rois.dtype), np.zeros(most, np.int32)
        chosen_scores = np.zeros(most, rois.dtype)
        count = classes.size
        chosen[:count], numbers[:count] = boxes[classes, regions], classes
        chosen_scores[:count] = class_scores[classes, regions]
        return chosen, numbers, chosen_scores

    def _of_classes(self, rois: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        """Return the moved box and the score for each class and region, both 0 where the region has no area."""
        shifts = deltas.reshape(len(rois), self.num_classes, 4) / np.array(self.deltas_weights, np.float32)
        boxes = np.maximum(moved(rois[:, np.newaxis], shifts, 1, self.max_delta_log_wh), np.float32(0))
        proper: Array = np.all(rois[:, 2:] > rois[:, :2], axis=1)
        boxes = np.where(proper[:, np.newaxis], boxes.swapaxes(0, 1), np.float32(0))
        return boxes, np.where(proper, scores.T, np.float32(0))

    def _select_boxes(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """Return classes and regions of the detections, ordered by class."""
        eligible = scores > np.float32(self.score_threshold)
        eligible[:1] = False
        limit = boxes.shape[1] if self.post_nms_count == -1 else self.post_nms_count
        classes, regions, found = candidates(eligible, scores)
        order = self.suppression.ranked(classes, found)
        classes, regions = classes[order], regions[order]
        overlaps = upright_overlaps(boxes[classes, regions].T, 1, bridged=False)
        kept = self.suppression.keep_apart(classes, limit, overlaps, self.nms_threshold)
        return classes[kept], regions[kept]
