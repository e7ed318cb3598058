"""Operations of the detectors of Detectron: grids of priors, features of regions, and what was detected.

ExperimentalDetectronGenerateProposalsSingleImage stands with its like in generate_proposals.py.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.arrays import Array
from ovir.element_types import i32
from ovir.kernels import half
from ovir.kernels.box_deltas import moved
from ovir.kernels.roi import float_dtype, pixel_rows, stored
from ovir.kernels.suppression import keep_apart, ranked
from ovir.ops.attributes import attribute
from ovir.ops.generate_proposals import overlaps_of
from ovir.ops.operator import Operator, operator
from ovir.ops.roi_align import RegionOperator
from ovir.types import UNKNOWN, Dimension, PartialShape
from ovir.values import TensorType

_F32 = np.dtype(np.float32)
_BOXES = "rois must have 4 numbers for each region, got shape {}"


@operator("ExperimentalDetectronPriorGridGenerator", opset=6)
class ExperimentalDetectronPriorGridGenerator(Operator):
    """Every prior [x0, y0, x1, y1] at the middle of every cell of a grid: row by row, cell by cell, prior by prior.

    The grid has ``h`` x ``w`` cells, with 0 as many as the feature map [N, C, rows, columns] has points, of the size
    ``stride_y`` x ``stride_x``, with 0 that of im_data [N, C, height, width] divided among the cells. The output is
    [rows, columns, priors, 4], or with ``flatten`` [boxes, 4]; what a smaller grid leaves of it is 0.
    Source: ExperimentalDetectronPriorGridGenerator-6
    """

    flatten: bool = attribute(default=True)
    h: int = attribute(default=0, minimum=0)
    w: int = attribute(default=0, minimum=0)
    stride_x: float = attribute(default=0.0)
    stride_y: float = attribute(default=0.0)

    def infer(self, priors: TensorType, feature_map: TensorType, im_data: TensorType) -> TensorType:
        types = (priors.element_type, feature_map.element_type, im_data.element_type)
        element_type = self.merge_types(*types, names=("priors", "feature_map", "im_data"))
        self.require_type("priors", element_type, lambda t: t.is_real, "of a floating-point type")
        self.require_rank("priors", priors.shape, 2)
        self.require_rank("feature_map", feature_map.shape, 4)
        self.require_rank("im_data", im_data.shape, 4)
        self.require(priors.shape[1].contains(4), "priors must have 4 numbers each, got shape {}", priors.shape)
        fits = feature_map.shape[0].compatible(im_data.shape[0])
        self.require(fits, "feature_map {} and im_data {} differ in dimension 0", feature_map.shape, im_data.shape)
        rows, columns = self._require_grid(feature_map.shape)
        count = priors.shape[0]
        shape = [rows * columns * count] if self.flatten else [rows, columns, count]
        return TensorType(element_type, PartialShape([*shape, 4]))

    def _require_grid(self, feature_map: PartialShape) -> tuple[Dimension, Dimension]:
        """Rows and columns of the feature map."""
        rows, columns = feature_map[2], feature_map[3]
        for name, cells, points in (("h", self.h, rows), ("w", self.w, columns)):
            fits = points.upper is None or cells <= points.upper
            self.require(fits, "{} {} is more than feature_map {} has points", name, cells, feature_map)
        return rows, columns

    def run(self, priors: Array, feature_map: Array, im_data: Array) -> Array:
        self._require_grid(PartialShape(feature_map.shape))
        points, count, dtype = feature_map.shape[2:], len(priors), float_dtype(priors.dtype)
        cells = self.h or points[0], self.w or points[1]
        middles = []
        for cell, stride, size in zip(cells, (self.stride_y, self.stride_x), im_data.shape[2:], strict=True):
            step = np.float32(stride) or np.float32(size) / np.float32(max(cell, 1))
            middles.append(step * (np.arange(cell, dtype=_F32) + np.float32(0.5)))
        y, x = np.meshgrid(*middles, indexing="ij")
        grid = priors.astype(dtype) + np.stack([x, y, x, y], axis=-1)[:, :, np.newaxis].astype(dtype)
        out = np.zeros((prod(points) * count, 4), priors.dtype)
        out[: grid.size // 4] = grid.reshape(-1, 4)
        return out if self.flatten else out.reshape(*points, count, 4)


@operator("ExperimentalDetectronROIFeatureExtractor", opset=6)
class ExperimentalDetectronROIFeatureExtractor(RegionOperator):
    """ROIAlign of each region in one level of a pyramid of feature maps, and the regions once more.

    A region [x0, y0, x1, y1] is looked up in level floor(2 + log2(sqrt(area) / 224 + 1e-6)), or else in the nearest
    that there is; its coordinates are divided by the level's ``pyramid_scales``, and moved by -0.5 if ``aligned``.
    Sides are at least a pixel long; each output is the mean of its samples. A region without area has features of 0.
    Source: ExperimentalDetectronROIFeatureExtractor-6
    """

    output_size: int = attribute(default=0, minimum=0)
    sampling_ratio: int = attribute(default=0, minimum=0)
    pyramid_scales: tuple[int, ...] = attribute(default=(), minimum=1)
    aligned: bool = attribute(default=False)

    def infer(self, rois: TensorType, *features: TensorType) -> tuple[TensorType, TensorType]:
        self.require(features, "there must be at least one feature map")
        levels, scales = len(features), self.pyramid_scales
        self.require(levels <= len(scales), "there are {} feature maps, pyramid_scales {} has too few", levels, scales)
        names = ["rois", *(f"feature map {i}" for i in range(levels))]
        element_type = self.merge_types(rois.element_type, *(f.element_type for f in features), names=names)
        self.require_type("rois", element_type, lambda t: t.is_real, "of a floating-point type")
        self.require_rank("rois", rois.shape, 2)
        self.require(rois.shape[1].contains(4), _BOXES, rois.shape)
        channels = UNKNOWN
        for name, tensor in zip(names[1:], features, strict=True):
            self.require_rank(name, tensor.shape, 4)
            self.require(tensor.shape[0].contains(1), "{} must be of one image, got shape {}", name, tensor.shape)
            both = channels.merged_with(tensor.shape[1])
            if both is None:
                self.fail("{} {} must have {} channels, as those before", name, tensor.shape, channels)
            channels = both
        pooled = PartialShape([rois.shape[0], channels, self.output_size, self.output_size])
        return TensorType(element_type, pooled), TensorType(element_type, PartialShape([rois.shape[0], 4]))

    def run(self, rois: Array, *features: Array, out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        dtype, bins, channels = float_dtype(rois.dtype), (self.output_size, self.output_size), features[0].shape[1]
        boxes = rois.astype(dtype, copy=False)
        levels = _levels(boxes, len(features))
        pooled = np.zeros((len(rois), self.output_size**2, channels), dtype)
        for level, (data, pyramid_scale) in enumerate(zip(features, self.pyramid_scales, strict=False)):
            members = np.flatnonzero(levels == level)
            if not (members.size and data.size):
                continue
            with np.errstate(all="ignore"):
                ends = boxes[members] * dtype.type(np.float32(1) / np.float32(pyramid_scale))
                ends -= dtype.type(0.5 if self.aligned else 0)
                start = ends[:, 1::-1]
                size = np.maximum(ends[:, :1:-1] - start, 1)
            images = np.zeros(members.size, np.intp)
            found = np.zeros((members.size, *pooled.shape[1:]), dtype)
            regions = self.sampled(images, start, size, bins, self.sampling_ratio)
            regions.pool(pixel_rows(data), data.shape[2], data.shape[3], found)
            pooled[members] = found
        shape = len(rois), channels, *bins
        first, second = out or (None, None)
        features_of_rois = stored(pooled.swapaxes(1, 2).reshape(shape), rois.dtype, first)
        return features_of_rois, stored(rois, rois.dtype, second)


def _levels(boxes: Array, count: int) -> Array:
    """The level of the pyramid for each box, -1 for one without area."""
    with np.errstate(all="ignore"):
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        level = np.floor(np.log2(np.sqrt(area) / np.float32(224) + np.float32(1e-6)) + np.float32(2))
        levels: Array = np.where(area > 0, np.clip(level, 0, count - 1), -1)
    return levels


@operator("ExperimentalDetectronTopKROIs", opset=6)
class ExperimentalDetectronTopKROIs(Operator):
    """The ``max_rois`` regions of the highest probabilities, in descending order; of equal ones the first is first.

    Where there are not so many, the rest is 0. Source: ExperimentalDetectronTopKROIs-6
    """

    max_rois: int = attribute(default=0, minimum=0)

    def infer(self, rois: TensorType, probabilities: TensorType) -> TensorType:
        types = (rois.element_type, probabilities.element_type)
        element_type = self.merge_types(*types, names=("rois", "probabilities"))
        self.require_type("rois", element_type, lambda t: t.is_real, "of a floating-point type")
        self.require_rank("rois", rois.shape, 2)
        self.require_rank("probabilities", probabilities.shape, 1)
        self.require(rois.shape[1].contains(4), _BOXES, rois.shape)
        fits = rois.shape[0].compatible(probabilities.shape[0])
        message = "rois {} and probabilities {} must be of equally many regions"
        self.require(fits, message, rois.shape, probabilities.shape)
        return TensorType(element_type, PartialShape([self.max_rois, 4]))

    def run(self, rois: Array, probabilities: Array) -> Array:
        best = np.argsort(-probabilities.astype(float_dtype(rois.dtype)), kind="stable")[: self.max_rois]
        chosen = np.zeros((self.max_rois, 4), rois.dtype)
        chosen[: best.size] = rois[best]
        return chosen


@operator("ExperimentalDetectronDetectionOutput", opset=6)
class ExperimentalDetectronDetectionOutput(Operator):
    """Boxes, classes and scores of what is found in one image, filled up with zeros to ``max_detections_per_image``.

    A region [x0, y0, x1, y1], whose last pixel belongs to it, is moved for each class by its deltas [dx, dy, dw, dh]
    divided by ``deltas_weights``: (dx * width, dy * height) is added to the center, (exp dw, exp dh) multiplies the
    size, dw and dh being at most ``max_delta_log_wh``. Coordinates below 0 become 0. Of each class but 0, the
    background, the boxes whose scores are above ``score_threshold`` are kept, unless they overlap one of a higher score
    by more than ``nms_threshold``, and at most ``post_nms_count`` (-1: all). They stand class by class, of descending
    scores; only if there are too many for the image, the best of all stand in descending order. Of equal scores the
    first region is first. deltas are [regions, num_classes * 4], scores [regions, num_classes]; im_info [1, 3] and
    ``class_agnostic_box_regression`` have no effect, as in OpenVINO. Computed in f32.
    Source: ExperimentalDetectronDetectionOutput-6
    """

    score_threshold: float = attribute(default=0.0)
    nms_threshold: float = attribute(default=0.0)
    max_delta_log_wh: float = attribute(default=0.0)
    num_classes: int = attribute(minimum=0)
    post_nms_count: int = attribute(default=0, minimum=-1)
    max_detections_per_image: int = attribute(default=0, minimum=0)
    class_agnostic_box_regression: bool = attribute(default=False)
    deltas_weights: tuple[float, ...] = attribute(default=())

    def infer(
        self, rois: TensorType, deltas: TensorType, scores: TensorType, im_info: TensorType
    ) -> tuple[TensorType, TensorType, TensorType]:
        tensors = {"rois": rois, "deltas": deltas, "scores": scores, "im_info": im_info}
        element_type = self.merge_types(*(t.element_type for t in tensors.values()), names=list(tensors))
        self.require_type("rois", element_type, lambda t: t.is_real, "of a floating-point type")
        for name, tensor in tensors.items():
            self.require_rank(name, tensor.shape, 2)
        weights, classes = self.deltas_weights, self.num_classes
        self.require(len(weights) == 4, "deltas_weights must be 4 numbers, got {}", list(weights))
        self.require(rois.shape[1].contains(4), _BOXES, rois.shape)
        message = "{} must have {} numbers for each region, num_classes is {}, got shape {}"
        self.require(deltas.shape[1].contains(classes * 4), message, "deltas", classes * 4, classes, deltas.shape)
        self.require(scores.shape[1].contains(classes), message, "scores", classes, classes, scores.shape)
        fits = im_info.shape[0].contains(1) and im_info.shape[1].contains(3)
        self.require(fits, "im_info must have the shape [1,3], got {}", im_info.shape)
        both = rois.shape[0].merged_with(deltas.shape[0])
        if both is None or not both.compatible(scores.shape[0]):
            message = "rois {}, deltas {} and scores {} must be of equally many regions"
            self.fail(message, rois.shape, deltas.shape, scores.shape)
        shape = PartialShape([self.max_detections_per_image])
        boxes = TensorType(element_type, shape + PartialShape([4]))
        return boxes, TensorType(i32, shape), TensorType(element_type, shape)

    def run(self, rois: Array, deltas: Array, scores: Array, im_info: Array) -> tuple[Array, Array, Array]:
        with np.errstate(all="ignore"):  # boxes can be infinite, or without area
            boxes, rates = self._of_classes(*(half.converted(array, _F32) for array in (rois, deltas, scores)))
            classes, regions = self._detected(boxes, rates)
        most = self.max_detections_per_image
        if classes.size > most:
            best = np.lexsort((regions, -rates[classes, regions]))[:most]
            classes, regions = classes[best], regions[best]
        found, numbers = np.zeros((most, 4), rois.dtype), np.zeros(most, np.int32)
        probabilities = np.zeros(most, rois.dtype)
        count = classes.size
        found[:count], numbers[:count] = boxes[classes, regions], classes
        probabilities[:count] = rates[classes, regions]
        return found, numbers, probabilities

    def _of_classes(self, rois: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        """For each class and region the moved box and the score, both 0 where the region has no area."""
        shifts = deltas.reshape(len(rois), self.num_classes, 4) / np.array(self.deltas_weights, _F32)
        boxes = np.maximum(moved(rois[:, np.newaxis], shifts, 1, self.max_delta_log_wh), np.float32(0))
        proper: Array = np.all(rois[:, 2:] > rois[:, :2], axis=1)
        boxes = np.where(proper[:, np.newaxis], boxes.swapaxes(0, 1), np.float32(0))
        return boxes, np.where(proper, scores.T, np.float32(0))

    def _detected(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """Classes and regions of what is found, class by class."""
        eligible = scores > np.float32(self.score_threshold)
        eligible[:1] = False
        limit = boxes.shape[1] if self.post_nms_count == -1 else self.post_nms_count
        thresholds = np.broadcast_to(np.float32(self.nms_threshold), limit)
        classes, regions = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for number, candidates in ranked(scores, eligible):
            kept = candidates[keep_apart(candidates.size, overlaps_of(boxes[number, candidates], 1), thresholds)]
            classes.append(np.full(kept.size, number))
            regions.append(kept)
        return np.concatenate(classes), np.concatenate(regions)
