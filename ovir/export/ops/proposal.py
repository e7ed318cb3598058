"""Proposal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import f32, i64
from ovir.export import nms_graph as nms
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.proposal import Proposal1, Proposal4, ProposalBase, anchors

_LIMITS = f"{nms.GAPS}; {nms.NOT_FINITE}"


@exports(Proposal1, Proposal4, to="NonMaxSuppression, TopK", limits=_LIMITS)
def proposal(
    graph: Graph, op: ProposalBase, class_probs: Tensor, bbox_deltas: Tensor, image_shape: Tensor
) -> Sequence[Tensor]:
    scores, deltas = (graph.cast(graph.of_rank(t, 4), f32) for t in (class_probs, bbox_deltas))
    image = graph.cast(graph.of_rank(image_shape, 1), f32)
    images, _, rows, columns = graph.sizes_of(scores)
    axes = [0, 1] if op.is_tensorflow else [1, 0]
    extent = graph.Gather(image, graph.constant(axes, i64), axis=0)  # along x and y
    low, high, scores = _boxes(graph, op, scores, deltas, image, extent, (images, rows, columns))

    count = graph.product([rows, columns, len(op.ratio) * len(op.scale)])
    best = graph.Min(op.pre_nms_topn, count)
    values, indices = nms.top(graph, scores, best)
    boxes = graph.GatherND(graph.Concat(low, high, axis=2), graph.Unsqueeze(indices, [2]), batch_dims=1)
    found = nms.selected(
        graph,
        nms.corners(graph, *nms.halves(graph, boxes), op.last_pixel),
        graph.reshaped(values, [images, 1, best]),
        most=graph.constant([op.post_nms_topn]),
        overlap=op.nms_thresh,
        least=None,
    )
    image_of, place = nms.column(graph, found, 0), nms.column(graph, found, 2)
    chosen = _finished(graph, op, nms.picked(graph, boxes, image_of, place), extent)
    results = _slotted(graph, op, chosen, nms.picked(graph, values, image_of, place), image_of, images)
    return results[: len(op.output_types)]


def _boxes(
    graph: Graph,
    op: ProposalBase,
    class_probs: Tensor,
    bbox_deltas: Tensor,
    image: Tensor,
    extent: Tensor,
    sizes: tuple[Tensor, Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the lower and upper edges of the boxes, [images, H * W * K, 2], and their scores."""
    count = len(op.ratio) * len(op.scale)
    images, rows, columns = sizes
    each = graph.reshaped(graph.part(bbox_deltas, 0, 4 * count, axis=1), [images, count, 4, rows, columns])
    shift, stretch = nms.halves(graph, graph.Transpose(each, perm=[0, 3, 4, 1, 2]))
    shift, stretch = _over(graph, shift, op.box_coordinate_scale), _over(graph, stretch, op.box_size_scale)
    low, high = _anchors(graph, op, rows, columns, extent)
    length = nms.shifted(graph, graph.Sub(high, low), op.last_pixel)
    low, high = nms.decoded(graph, graph.Add(low, graph.Mul(length, 0.5)), length, shift, stretch)
    if op.clip_before_nms:
        ends = nms.shifted(graph, extent, -op.last_pixel)
        low, high = nms.clipped(graph, low, ends), nms.clipped(graph, high, ends)
    # The scale of the image, or its scales along y and x; image_shape is [height, width, ...].
    scales = graph.Gather(image, graph.constant([-1, 2], i64), axis=0)
    lengths = nms.shifted(graph, graph.Sub(high, low), op.last_pixel)
    large = graph.GreaterOrEqual(lengths, graph.Mul(scales, float(op.min_size)))
    along_x, along_y = graph.node("Split", large, [1, 1], axis=4, outputs=2)
    large = graph.Squeeze(graph.And(along_x, along_y), [4])
    scores = graph.Transpose(graph.part(class_probs, count, 2 * count, axis=1), perm=[0, 2, 3, 1])
    total = graph.product([rows, columns, count])
    scores = graph.reshaped(graph.Where(large, scores, 0.0), [images, total])
    return graph.reshaped(low, [images, total, 2]), graph.reshaped(high, [images, total, 2]), scores


def _over(graph: Graph, data: Tensor, divisor: float) -> Tensor:
    return data if divisor == 1 else graph.Div(data, float(np.float32(divisor)))


def _anchors(graph: Graph, op: ProposalBase, rows: Tensor, columns: Tensor, extent: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and upper edges of the anchors, [rows, columns, K, 2]."""
    edges = anchors(op.base_size, op.ratio, op.scale, (1, 1, op.feat_stride), is_tensorflow=op.is_tensorflow)
    down, along = (
        graph.Mul(graph.cast(graph.positions_below(count), f32), float(op.feat_stride)) for count in (rows, columns)
    )
    places = graph.Reshape(down, [-1, 1, 1]), graph.Reshape(along, [1, -1, 1])
    if not op.is_tensorflow:
        places = places[::-1]
    zero = graph.Mul(graph.Add(*places), 0.0)
    points = graph.Concat(*(graph.Unsqueeze(graph.Add(place, zero), [3]) for place in places), axis=3)
    found = [graph.Add(points, np.ascontiguousarray(edge[:, 0, 0].T)) for edge in edges]
    low, high = (nms.clipped(graph, edge, extent) for edge in found) if op.is_tensorflow else found
    return low, high


def _finished(graph: Graph, op: ProposalBase, boxes: Tensor, extent: Tensor) -> Tensor:
    """Return the selected boxes clipped and normalized."""
    ends = graph.Concat(extent, extent, axis=0)
    boxes = nms.clipped(graph, boxes, ends) if op.clip_after_nms else boxes
    return graph.Div(boxes, ends) if op.normalize else boxes


def _slotted(
    graph: Graph, op: ProposalBase, boxes: Tensor, scores: Tensor, image: Tensor, images: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the rows of all images, ``post_nms_topn`` for each, and their scores; the first missing row of an image
    begins with -1."""
    counts = graph.Unsqueeze(nms.group_counts(graph, image, images), [1])
    rank = graph.constant(np.arange(op.post_nms_topn, dtype=np.int64)[np.newaxis])
    filled, is_end = graph.Less(rank, counts), graph.Equal(rank, counts)
    starts = graph.CumSum(counts, graph.constant(0, i64), exclusive=1)
    index = graph.Where(filled, graph.Add(starts, rank), graph.Shape(image))
    number = graph.Where(filled, graph.cast(graph.Unsqueeze(graph.positions_below(images), [1]), f32), 0.0)
    number = graph.Where(is_end, -1.0, number)
    rows = graph.product([images, op.post_nms_topn])
    index, number = graph.reshaped(index, [rows]), graph.reshaped(number, [rows, 1])
    boxes = graph.Concat(boxes, np.zeros((1, 4), np.float32), axis=0)
    scores = graph.Concat(scores, np.zeros(1, np.float32), axis=0)
    return graph.Concat(number, nms.picked(graph, boxes, index), axis=1), nms.picked(graph, scores, index)
