"""GenerateProposals and its variant for one image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import f32, i64
from ovir.export.boxes import GAPS, LOWEST, NEVER, NOT_FINITE, clipped, corners, halves, moved, selected, shifted
from ovir.export.graph import Graph, Tensor
from ovir.export.ranking import column, group_counts, of_rank, padded, picked, top
from ovir.export.registry import exports
from ovir.export.sizes import Size, compute, product, reshaped, sizes_of
from ovir.ops.generate_proposals import (
    MAX_LOG_SCALE,
    ExperimentalDetectronGenerateProposalsSingleImage,
    GenerateProposals,
)

_MOST = float(MAX_LOG_SCALE)
Edges = tuple[Tensor, Tensor]


@exports(
    GenerateProposals,
    to="NonMaxSuppression, TopK",
    limits=f"unless normalized, {GAPS}; {NOT_FINITE}",
)
def generate_proposals(
    graph: Graph, op: GenerateProposals, im_info: Tensor, anchors: Tensor, deltas: Tensor, scores: Tensor
) -> Sequence[Tensor]:
    """Export as TopK, the decoding of the best boxes, and NonMaxSuppression."""
    element_type = im_info.element_type
    im_info, anchors = (graph.cast(t, f32) for t in (im_info, anchors))
    deltas, scores = (graph.cast(of_rank(graph, t, 4), f32) for t in (deltas, scores))
    images, *sizes = sizes_of(graph, scores)
    moves, points, total = _by_point(graph, deltas, scores, images, *sizes)
    best = compute(graph, "Min", op.pre_nms_count, total)
    values, indices = top(graph, points, best)
    margin = 0.0 if op.normalized else 1.0
    edges = halves(graph, graph.Gather(graph.Reshape(anchors, [-1, 4]), indices, axis=0))
    offsets = halves(graph, graph.GatherND(moves, graph.Unsqueeze(indices, [2]), batch_dims=1))
    ends = graph.Gather(im_info, graph.constant([[1, 0]], i64), axis=1)  # [images, 1, 2], along x and y
    low, high = _clipped(graph, moved(graph, edges, *offsets, margin, _MOST), shifted(graph, ends, -margin))

    scales = graph.Gather(im_info, graph.constant([[-1, 2]], i64), axis=1)
    values = _of_large(graph, values, low, high, margin, graph.Mul(scales, float(np.float32(op.min_size))))
    triplets = selected(
        graph,
        corners(graph, low, high, margin),
        reshaped(graph, values, [images, 1, best]),
        most=op.post_nms_count,
        overlap=op.nms_threshold,
        least=LOWEST,
    )
    image, place = column(graph, triplets, 0), column(graph, triplets, 2)
    boxes = picked(graph, graph.Concat(low, high, axis=2), image, place)
    counts = graph.cast(group_counts(graph, image, images), op.roi_num_type)
    return graph.cast(boxes, element_type), graph.cast(picked(graph, values, image, place), element_type), counts


@exports(ExperimentalDetectronGenerateProposalsSingleImage, to="NonMaxSuppression, TopK", limits=NOT_FINITE)
def generate_proposals_of_image(
    graph: Graph,
    op: ExperimentalDetectronGenerateProposalsSingleImage,
    im_info: Tensor,
    anchors: Tensor,
    deltas: Tensor,
    scores: Tensor,
) -> Sequence[Tensor]:
    """Export as the decoding of boxes, TopK and NonMaxSuppression."""
    element_type = im_info.element_type
    im_info, anchors = (graph.cast(t, f32) for t in (im_info, anchors))
    deltas, scores = (graph.cast(of_rank(graph, t, 3), f32) for t in (deltas, scores))
    moves, points, total = _by_point(graph, deltas, graph.Unsqueeze(scores, [0]), 1, *sizes_of(graph, scores))
    edges, offsets = halves(graph, graph.Unsqueeze(anchors, [0])), halves(graph, moves)
    ends = graph.Gather(im_info, graph.constant([1, 0], i64), axis=0)
    low, high = _clipped(graph, moved(graph, edges, *offsets, 1.0, _MOST), graph.Sub(ends, 1.0))
    large = _of_large(graph, points, low, high, 1.0, float(np.float32(op.min_size)))
    values, indices = top(graph, large, compute(graph, "Min", op.pre_nms_count, total))
    boxes = graph.GatherND(graph.Concat(low, high, axis=2), graph.Unsqueeze(indices, [2]), batch_dims=1)
    triplets = selected(
        graph,
        corners(graph, *halves(graph, boxes)),
        graph.Unsqueeze(values, [1]),
        most=op.post_nms_count,
        overlap=op.nms_threshold,
        least=LOWEST,
    )
    place = column(graph, triplets, 2)
    rois = picked(graph, graph.Squeeze(boxes, [0]), place)
    found = (
        padded(graph, rois, op.post_nms_count, 0, 4),
        padded(graph, picked(graph, graph.Squeeze(values, [0]), place), op.post_nms_count, 0),
    )
    return [graph.cast(result, element_type) for result in found]


def _by_point(
    graph: Graph, deltas: Tensor, scores: Tensor, images: Size, count: Size, rows: Size, columns: Size
) -> tuple[Tensor, Tensor, Size]:
    """Return deltas [images, n, 4] and scores [images, n] ordered by point and then by anchor, and n."""
    total = product(graph, [count, rows, columns])
    each = graph.Transpose(reshaped(graph, deltas, [images, count, 4, rows, columns]), perm=[0, 3, 4, 1, 2])
    points = graph.Transpose(scores, perm=[0, 2, 3, 1])
    return reshaped(graph, each, [images, total, 4]), reshaped(graph, points, [images, total]), total


def _clipped(graph: Graph, edges: Edges, ends: Tensor) -> Edges:
    low, high = edges
    return clipped(graph, low, ends), clipped(graph, high, ends)


def _of_large(graph: Graph, scores: Tensor, low: Tensor, high: Tensor, margin: float, least: Tensor | float) -> Tensor:
    """Return the scores, -inf for boxes with a side that is shorter than ``least``."""
    sides = shifted(graph, graph.Sub(high, low), margin)
    along_x, along_y = graph.node("Split", graph.GreaterOrEqual(sides, least), [1, 1], axis=2, outputs=2)
    return graph.Where(graph.Squeeze(graph.And(along_x, along_y), [2]), scores, NEVER)
