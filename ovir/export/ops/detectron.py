"""Operations of the Detectron detectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log

import numpy as np

from ovir.core.element_types import f32, f64, i32
from ovir.export.boxes import GAPS, NOT_FINITE, Selection, corners, halves, moved, selected, selection
from ovir.export.graph import Graph, Tensor
from ovir.export.parts import real_type
from ovir.export.ranking import of_rank, order, padded, part, picked, top
from ovir.export.regions import Pixels, columns, sampled
from ovir.export.registry import exports
from ovir.export.sizes import Size, compute, expanded, positions_below, product, reshaped, size_of, sizes_of, vector
from ovir.ops.detectron import (
    ExperimentalDetectronDetectionOutput,
    ExperimentalDetectronPriorGridGenerator,
    ExperimentalDetectronROIFeatureExtractor,
    ExperimentalDetectronTopKROIs,
)


@exports(ExperimentalDetectronPriorGridGenerator, to="Range, Add")
def prior_grid(
    graph: Graph, op: ExperimentalDetectronPriorGridGenerator, priors: Tensor, feature_map: Tensor, im_data: Tensor
) -> Tensor:
    """Export as the sum of priors and the centers of cells."""
    element_type = priors.element_type
    computed = real_type(priors)
    count = size_of(graph, of_rank(graph, priors, 2), 0)
    points = sizes_of(graph, of_rank(graph, feature_map, 4))[2:]
    pixels = sizes_of(graph, of_rank(graph, im_data, 4))[2:]
    cells = [op.h or points[0], op.w or points[1]]
    middles = [_middles(graph, *sizes) for sizes in zip(cells, (op.stride_y, op.stride_x), pixels, strict=True)]
    y, x = (
        expanded(graph, graph.Reshape(middle, shape), [*cells, 1])
        for middle, shape in zip(middles, ([-1, 1, 1], [1, -1, 1]), strict=True)
    )
    centers = graph.cast(graph.Unsqueeze(graph.Concat(x, y, x, y, axis=2), [2]), computed)
    grid = graph.Reshape(graph.Add(graph.cast(priors, computed), centers), [-1, 4])
    if (op.h, op.w) != (0, 0):
        grid = padded(graph, grid, product(graph, [*points, count]), 0, 4)
    grid = graph.cast(grid, element_type)
    return grid if op.flatten else reshaped(graph, grid, [*points, count, 4])


def _middles(graph: Graph, count: Size, stride: float, pixels: Size) -> Tensor:
    """Return the centers of cells along an axis."""
    step: Tensor | float = float(np.float32(stride))
    if not step:
        size = graph.cast(vector(graph, [pixels]), f32)
        step = graph.Div(size, graph.cast(vector(graph, [compute(graph, "Max", count, 1)]), f32))
    return graph.Mul(graph.Add(graph.cast(positions_below(graph, count), f32), 0.5), step)


# --------------------------------------------------------------------------- features of regions


@exports(
    ExperimentalDetectronROIFeatureExtractor,
    to="RoiAlign for each level; gathered pixels from opset 22 on, where onnxruntime has no kernel",
    limits="features that are NaN or infinite may give other results",
)
def roi_features(
    graph: Graph, op: ExperimentalDetectronROIFeatureExtractor, rois: Tensor, *features: Tensor
) -> Sequence[Tensor]:
    """Export as the pooling of the regions of each level of the pyramid, scattered into the output."""
    element_type = rois.element_type
    computed = real_type(rois)
    boxes = graph.cast(of_rank(graph, rois, 2), computed)
    regions = size_of(graph, boxes, 0)
    channels = size_of(graph, of_rank(graph, features[0], 4), 1)
    low, high = halves(graph, boxes)
    width, height = graph.node("Split", graph.Sub(high, low), [1, 1], axis=1, outputs=2)
    area = graph.Squeeze(graph.Mul(width, height), [1])
    has_area = graph.Greater(area, 0.0)
    share = graph.Add(graph.Div(graph.Sqrt(area), 224.0), float(np.float32(1e-6)))
    level = graph.cast(graph.Mul(graph.Log(graph.cast(share, f64)), 1 / log(2)), computed)
    level = graph.Floor(graph.Add(level, 2.0))
    level = graph.Where(has_area, graph.Clip(level, 0.0, float(len(features) - 1)), -1.0)
    pooled = expanded(graph, graph.number(0, computed), [regions, channels, op.output_size, op.output_size])
    for number, (data, scale) in enumerate(zip(features, op.pyramid_scales, strict=False)):
        members = graph.Squeeze(graph.NonZero(graph.Equal(level, float(number))), [0])
        own = graph.Mul(graph.Gather(boxes, members, axis=0), float(np.float32(1) / np.float32(scale)))
        own = graph.Sub(own, 0.5) if op.aligned else own
        found = _pooled(graph, op, graph.cast(data, computed), own, graph.Mul(members, 0))
        pooled = graph.ScatterND(pooled, graph.Unsqueeze(members, [1]), found)
    return graph.cast(pooled, element_type), graph.Identity(rois)


def _pooled(
    graph: Graph, op: ExperimentalDetectronROIFeatureExtractor, data: Tensor, regions: Tensor, images: Tensor
) -> Tensor:
    """Return the features of regions in one feature map; sides are at least one pixel long."""
    if graph.opset < 22:
        return graph.RoiAlign(
            data,
            regions,
            images,
            coordinate_transformation_mode="output_half_pixel",
            output_height=op.output_size,
            output_width=op.output_size,
            sampling_ratio=op.sampling_ratio,
        )
    pixels = Pixels(graph, data)
    left, upper, right, lower = columns(graph, regions, range(4), 5)
    size = [graph.Max(graph.Sub(lower, upper), 1.0), graph.Max(graph.Sub(right, left), 1.0)]
    return sampled(pixels, images, [upper, left], size, (op.output_size, op.output_size), op.sampling_ratio)


@exports(ExperimentalDetectronTopKROIs, to="TopK, Gather", limits="a probability of NaN may count as any number")
def top_rois(graph: Graph, op: ExperimentalDetectronTopKROIs, rois: Tensor, probabilities: Tensor) -> Tensor:
    """Export as TopK and Gather, padded with zeros."""
    count = size_of(graph, of_rank(graph, probabilities, 1), 0)
    _, indices = top(graph, probabilities, compute(graph, "Min", count, op.max_rois))
    found = graph.Gather(rois, indices, axis=0)
    return found if isinstance(count, int) and count >= op.max_rois else padded(graph, found, op.max_rois, 0, 4)


# --------------------------------------------------------------------------- detections


@exports(
    ExperimentalDetectronDetectionOutput,
    to="NonMaxSuppression, TopK",
    limits=f"{GAPS}; {NOT_FINITE}",
)
def detection_output(
    graph: Graph,
    op: ExperimentalDetectronDetectionOutput,
    rois: Tensor,
    deltas: Tensor,
    scores: Tensor,
    im_info: Tensor,
) -> Sequence[Tensor]:
    """Export as the decoding of boxes, NonMaxSuppression in each class, and TopK."""
    element_type = rois.element_type
    rois, deltas, scores = (graph.cast(of_rank(graph, t, 2), f32) for t in (rois, deltas, scores))
    regions = size_of(graph, rois, 0)
    low, high, class_scores = _of_classes(graph, op, rois, deltas, scores, regions)
    classes, most = op.num_classes - 1, op.max_detections_per_image
    select = partial(
        selected,
        graph,
        most=regions if op.post_nms_count == -1 else op.post_nms_count,
        overlap=op.nms_threshold,
        least=float(np.float32(op.score_threshold)),
    )
    boxes = graph.Unsqueeze(corners(graph, low, high, 1.0), [0])
    found = selection(
        graph, boxes, graph.Unsqueeze(class_scores, [0]), (1, classes, regions), select, shared=False, best=None
    )
    found = _best(graph, found, most)
    chosen = picked(graph, graph.Concat(low, high, axis=2), found.label, found.place)
    label = graph.cast(graph.Add(found.label, 1), i32)
    return (
        graph.cast(padded(graph, chosen, most, 0, 4), element_type),
        padded(graph, label, most, 0),
        graph.cast(padded(graph, found.score, most, 0), element_type),
    )


def _of_classes(
    graph: Graph,
    op: ExperimentalDetectronDetectionOutput,
    rois: Tensor,
    deltas: Tensor,
    scores: Tensor,
    regions: Size,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the edges [classes, regions, 2] of the moved boxes and their scores [classes, regions], without the class
    0; all are 0 where the region has no area."""
    each = part(graph, reshaped(graph, deltas, [regions, op.num_classes, 4]), 1, op.num_classes, axis=1)
    shifts = graph.Div(graph.Transpose(each, perm=[1, 0, 2]), np.array(op.deltas_weights, np.float32))
    low, high = halves(graph, graph.Unsqueeze(rois, [0]))
    along_x, along_y = graph.node("Split", graph.Greater(high, low), [1, 1], axis=2, outputs=2)
    proper = graph.And(along_x, along_y)
    edges = moved(graph, (low, high), *halves(graph, shifts), 1.0, float(np.float32(op.max_delta_log_wh)))
    first, last = (graph.Where(proper, graph.Max(edge, 0.0), 0.0) for edge in edges)
    of_class = graph.Transpose(part(graph, scores, 1, op.num_classes, axis=1), perm=[1, 0])
    return first, last, graph.Where(graph.Squeeze(proper, [2]), of_class, 0.0)


def _best(graph: Graph, found: Selection, most: int) -> Selection:
    """Return the boxes ordered by class and score, but the best of all by score if there are more than ``most``."""
    by_place = order(graph, found.place)
    best = picked(graph, by_place, order(graph, picked(graph, found.score, by_place), descending=True))
    count = graph.Shape(found.score)
    chosen = graph.Where(graph.Greater(count, most), best, positions_below(graph, count))
    return found.taken(graph, part(graph, chosen, 0, most))
