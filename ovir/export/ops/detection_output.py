"""DetectionOutput."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ovir.core.element_types import f32, i64
from ovir.export import nms_graph as nms
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.detection_output import DetectionOutput1, DetectionOutput8, DetectionOutputBase

_CENTER_SIZE = "caffe.PriorBoxParameter.CENTER_SIZE"


@exports(DetectionOutput1, DetectionOutput8, to="NonMaxSuppression, TopK", limits=nms.NOT_FINITE)
def detection_output(
    graph: Graph,
    op: DetectionOutputBase,
    box_logits: Tensor,
    class_preds: Tensor,
    proposals: Tensor,
    aux_class_preds: Tensor | None = None,
    aux_box_preds: Tensor | None = None,
) -> Tensor:
    """Export as the decoding of boxes, NonMaxSuppression in each class, and TopK of the confidences of each image."""
    class_preds, proposals = (
        graph.cast(graph.of_rank(tensor, rank), f32) for tensor, rank in ((class_preds, 2), (proposals, 3))
    )
    images, priors = graph.size_of(class_preds, 0), graph.Div(graph.size_of(proposals, 2), op.numbers)
    if op.num_classes is not None:
        classes = graph.constant([op.num_classes])
    else:
        classes = graph.Div(graph.size_of(class_preds, 1), priors)
    sizes = images, classes, priors
    table = graph.reshaped(class_preds, [images, priors, classes])
    scores = graph.swapped(table)
    if aux_class_preds is not None:
        scores = _with_background(graph, op, scores, graph.cast(aux_class_preds, f32), sizes)
    anchors = graph.reshaped(graph.part(proposals, 0, 1, axis=1), [graph.size_of(proposals, 0), 1, priors, op.numbers])
    if not op.normalized:
        ended = graph.Equal(graph.Gather(anchors, graph.constant(0, i64), axis=3), -1.0)
        ended = graph.Greater(graph.CumSum(graph.cast(ended, i64), graph.constant(2, i64)), 0)
        scores = graph.Where(ended, nms.NEVER, scores)
    offsets = [aux_box_preds, box_logits] if aux_box_preds is not None else [box_logits]
    low, high = _boxes(graph, op, anchors, proposals, [graph.cast(t, f32) for t in offsets], sizes)
    found = _selected(graph, op, scores, low, high, sizes)
    found = _best(graph, op, found, images)
    rows = _rows(graph, op, found, graph.Concat(low, high, axis=3))
    return _finished(graph, op, rows, sizes)


# --------------------------------------------------------------------------- scores and boxes


def _with_background(
    graph: Graph, op: DetectionOutputBase, scores: Tensor, objectness: Tensor, sizes: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Return the scores, in which priors that hold no object are background."""
    images, classes, priors = sizes
    second = graph.part(graph.reshaped(objectness, [images, 1, priors, 2]), 1, 2, axis=3)
    is_background = graph.Less(graph.Squeeze(second, [3]), float(np.float32(op.objectness_score)))
    label = graph.Equal(graph.Unsqueeze(graph.positions_below(classes), [1]), op.background_label_id)
    return graph.shaped(graph.Where(is_background, graph.cast(label, f32), scores), scores.shape)


def _boxes(
    graph: Graph,
    op: DetectionOutputBase,
    anchors: Tensor,
    proposals: Tensor,
    offsets: Sequence[Tensor],
    sizes: tuple[Tensor, Tensor, Tensor],
) -> tuple[Tensor, Tensor]:
    """Return the lower and upper edges of the boxes, [images, location classes, priors, 2]."""
    images, classes, priors = sizes
    variances = None
    if not op.variance_encoded_in_target:
        end = graph.Mul(priors, 4)
        flat = graph.part(graph.part(proposals, 1, 2, axis=1), 0, end, axis=2)
        variances = graph.reshaped(flat, [graph.size_of(proposals, 0), 1, priors, 4])
    edges = nms.halves(graph, anchors if op.normalized else graph.part(anchors, 1, 5, axis=3))
    for deltas in offsets:
        if op.share_location:
            moves = graph.reshaped(deltas, [images, 1, priors, 4])
        else:
            moves = graph.Transpose(graph.reshaped(deltas, [images, priors, classes, 4]), perm=[0, 2, 1, 3])
        edges = _decoded(graph, op, edges, moves if variances is None else graph.Mul(variances, moves))
    return edges


def _decoded(
    graph: Graph, op: DetectionOutputBase, edges: tuple[Tensor, Tensor], deltas: Tensor
) -> tuple[Tensor, Tensor]:
    low, high = edges
    if not op.normalized:
        extent = np.array([op.input_width, op.input_height], np.float32)
        low, high = graph.Div(low, extent), graph.Div(high, extent)
    first, last = nms.halves(graph, deltas)
    if op.code_type == _CENTER_SIZE:
        center = graph.Mul(graph.Add(low, high), 0.5)
        low, high = nms.decoded(graph, center, graph.Sub(high, low), first, last)
    else:
        low, high = graph.Add(low, first), graph.Add(high, last)
    return (nms.clipped(graph, low, 1.0), nms.clipped(graph, high, 1.0)) if op.clip_before_nms else (low, high)


# --------------------------------------------------------------------------- selection


def _selected(
    graph: Graph,
    op: DetectionOutputBase,
    scores: Tensor,
    low: Tensor,
    high: Tensor,
    sizes: tuple[Tensor, Tensor, Tensor],
) -> nms.Selection:
    """Return the boxes that non-maximum suppression keeps, ordered by image, class and score."""
    least = float(np.float32(op.confidence_threshold))
    best = op.top_k
    boxes = nms.corners(graph, low, high)
    _, classes, priors = sizes
    if op.decrease_label_id:
        scores, least, best = _best_classes(graph, op, scores, sizes), nms.LOWEST, -1
    else:
        scores = nms.without_background(graph, op.background_label_id, scores, classes)
    boxes = graph.Squeeze(boxes, [1]) if op.share_location else boxes
    most = graph.constant([op.keep_top_k[0]]) if op.keep_top_k[0] >= 0 else priors
    select = partial(nms.selected, graph, most=most, overlap=op.nms_threshold, least=least)
    return nms.selection(graph, boxes, scores, sizes, select, shared=op.share_location, best=best)


def _best_classes(
    graph: Graph, op: DetectionOutputBase, scores: Tensor, sizes: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Return the scores of the best class of each prior, other than 0, -inf for all others; only the ``top_k`` best of
    an image remain."""
    images, classes, priors = sizes
    labels = graph.Unsqueeze(graph.positions_below(classes), [1])
    ignored = graph.Or(graph.Equal(labels, 0), graph.Equal(labels, op.background_label_id))
    known = graph.Where(graph.Or(ignored, graph.Not(graph.Greater(scores, -1.0))), -1.0, scores)
    best = graph.ArgMax(known, axis=1)
    is_best = graph.And(graph.Equal(labels, best), graph.Greater(known, -1.0))
    is_best = graph.And(is_best, graph.GreaterOrEqual(known, float(np.float32(op.confidence_threshold))))
    kept = graph.Where(is_best, scores, nms.NEVER)
    if op.top_k < 0:
        return kept
    total = graph.product([classes, priors])
    flat = graph.reshaped(kept, [images, total])
    values, indices = nms.top(graph, flat, graph.Min(op.top_k, total))
    blank = graph.Expand(graph.number(nms.NEVER, f32), graph.Shape(flat))
    return graph.reshaped(graph.ScatterElements(blank, indices, values, axis=1), [images, classes, priors])


def _best(graph: Graph, op: DetectionOutputBase, found: nms.Selection, images: Tensor) -> nms.Selection:
    """Return at most ``keep_top_k`` boxes of each image; equal scores are ordered by prior, then by class."""
    if op.keep_top_k[0] < 0:
        return found
    by_prior = nms.order(graph, found.place)
    best = nms.picked(graph, by_prior, nms.order(graph, nms.picked(graph, found.score, by_prior), descending=True))
    best = nms.first_of_images(graph, found, best, op.keep_top_k[0], images)
    return found.taken(graph, graph.node("TopK", best, graph.Shape(best), outputs=2, axis=0, largest=0)[0])


# --------------------------------------------------------------------------- the output


def _rows(graph: Graph, op: DetectionOutputBase, found: nms.Selection, boxes: Tensor) -> Tensor:
    """Return the rows of the detections, [n, 7]."""
    if op.share_location:
        kept = nms.picked(graph, graph.Squeeze(boxes, [1]), found.image, found.place)
    else:
        kept = nms.picked(graph, boxes, found.image, found.label, found.place)
    if op.clip_after_nms:
        kept = nms.clipped(graph, kept, 1.0)
    label = graph.Sub(found.label, 1) if op.decrease_label_id else found.label
    columns = graph.cast(found.image, f32), graph.cast(label, f32), found.score
    return graph.Concat(*(graph.Unsqueeze(c, [1]) for c in columns), kept, axis=1)


def _finished(graph: Graph, op: DetectionOutputBase, rows: Tensor, sizes: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return the rows, the row that ends them and rows of 0, [1, 1, rows, 7]."""
    images, classes, priors = sizes
    if op.keep_top_k[0] > 0:
        count = graph.Mul(images, op.keep_top_k[0])
    else:
        each = op.top_k if op.keep_top_k[0] == -1 and op.top_k > 0 else priors
        count = graph.product([images, each, classes])
    end = graph.constant(np.array([[-1, 0, 0, 0, 0, 0, 0]], np.float32))
    filled = nms.padded(graph, graph.Concat(rows, end, axis=0), count, 0, 7)
    return graph.Reshape(filled, graph.vector([1, 1, -1, 7]))
