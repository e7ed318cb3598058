"""NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ovir.core.element_types import f32, i64
from ovir.export.exporters import exports
from ovir.export.nms_graph import NOT_FINITE, greedy, halves, order, padded, removing, selected, upright
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops import nms as ops
from ovir.ops.base.suppression import SuppressionBase


@exports(ops.NonMaxSuppression1, ops.NonMaxSuppression3, ops.NonMaxSuppression4, to="{}, padded", limits=NOT_FINITE)
@exports(ops.NonMaxSuppression5, ops.NonMaxSuppression9, to="NonMaxSuppression; for Soft-NMS a Loop", limits=NOT_FINITE)
def nms(
    graph: Graph,
    op: ops.NonMaxSuppressionBase,
    boxes: Tensor,
    scores: Tensor,
    max_boxes: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    sigma: Tensor | None = None,
) -> Sequence[Tensor]:
    """Export as NonMaxSuppression, followed by TopK where boxes of all classes are sorted together; older versions pad
    or cut the triplets."""
    boxes, scores = graph.cast(boxes, f32), graph.cast(graph.of_rank(scores, 3), f32)
    images, classes, count = graph.sizes_of(scores)
    most = class_limit(graph, max_boxes, count)
    numbers = number(graph, iou_threshold), number(graph, score_threshold)
    if sigma is None or sigma.constant is not None:
        is_soft = sigma is not None and sigma.constant is not None and float(sigma.constant.item()) > 0
        function = partial(_softened, sigma=number(graph, sigma)) if is_soft else _selected
        triplets, final = function(graph, op, boxes, scores, most, *numbers)
        if isinstance(op, ops.NonMaxSuppression9):
            return outputs(graph, op, triplets, final)
        if isinstance(op, ops.NonMaxSuppression4):
            rows = graph.product([graph.Min(count, most), images, classes])
        else:
            rows = graph.Min(count, graph.product([most, classes]))
        return [padded(graph, triplets, rows, -1, 3)]
    variance = number(graph, sigma)
    bodies = {}
    for name, function in (("then", partial(_softened, sigma=variance)), ("else", _selected)):
        child = graph.child()
        bodies[f"{name}_branch"] = child.body([], function(child, op, boxes, scores, most, *numbers), name)
    condition = graph.Squeeze(graph.Greater(variance, 0.0))
    triplets, final = graph.node("If", condition, outputs=2, element_type=[i64, f32], **bodies)
    return outputs(graph, op, triplets, final)


def class_limit(graph: Graph, max_boxes: Tensor | None, count: Tensor) -> Tensor:
    """Return the number of the ``count`` boxes of a class that max_output_boxes_per_class allows."""
    if max_boxes is None:
        return graph.constant([0])
    given = graph.as_list(max_boxes)
    least = graph.Min(given, count)
    if given.number is not None:
        return count if given.number < 0 else least
    return graph.Where(graph.Less(given, 0), count, least)


def number(graph: Graph, tensor: Tensor | None) -> float | Tensor:
    """Return the number in an optional input, f32; 0 if it is missing."""
    if tensor is None:
        return 0.0
    if tensor.constant is not None:
        return float(tensor.constant.astype("f4").item())
    return graph.cast(graph.Reshape(tensor, [1]), f32)


def outputs(graph: Graph, op: SuppressionBase, triplets: Tensor, final: Tensor) -> Sequence[Tensor]:
    """Return the three outputs for triplets [n, 3] and scores [n]."""
    places = graph.cast(graph.part(triplets, 0, 2, axis=1), f32)
    scored = graph.Concat(places, graph.Unsqueeze(final, [1]), axis=1)
    return triplets, scored, graph.part(graph.Shape(triplets), 0, 1)


def by_score(graph: Graph, op: SuppressionBase, triplets: Tensor, final: Tensor) -> tuple[Tensor, Tensor]:
    """Return triplets and scores in descending order of the scores, if the operation asks for it."""
    if not op.sort_result_descending:
        return triplets, final
    best = order(graph, final, descending=True)
    return graph.Gather(triplets, best, axis=0), graph.Gather(final, best, axis=0)


def _selected(
    graph: Graph,
    op: ops.NonMaxSuppressionBase,
    boxes: Tensor,
    scores: Tensor,
    most: Tensor,
    overlap: float | Tensor,
    least: float | Tensor,
) -> tuple[Tensor, Tensor]:
    centered = op.box_encoding == "center"
    triplets = selected(graph, boxes, scores, most=most, overlap=overlap, least=least, centered=centered)
    return by_score(graph, op, triplets, graph.GatherND(scores, triplets))


def _softened(
    graph: Graph,
    op: ops.NonMaxSuppressionBase,
    boxes: Tensor,
    scores: Tensor,
    most: Tensor,
    overlap: float | Tensor,
    least: float | Tensor,
    *,
    sigma: float | Tensor,
) -> tuple[Tensor, Tensor]:
    assert isinstance(op, ops.NonMaxSuppression9)
    removes_more = op.removes_when_soft

    def update(body: Graph, current: Tensor, overlaps: Tensor, step: Tensor) -> Tensor:
        softer = body.Mul(current, body.Exp(body.Mul(body.Mul(overlaps, overlaps), scale)))
        removed = body.IsNaN(softer)  # infinity * 0
        if removes_more:
            removed = body.Or(removed, body.Greater(overlaps, overlap))
        return removing(body, softer, removed)

    scale = graph.Div(-0.5, sigma) if isinstance(sigma, Tensor) else -0.5 / sigma
    table = upright(graph, *_edges(graph, op, boxes))
    triplets, final = greedy(graph, table, scores, most=most, least=least, update=update)
    return by_score(graph, op, triplets, final)


def _edges(graph: Graph, op: ops.NonMaxSuppressionBase, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and upper edges of boxes, [images, boxes, 2]."""
    first, last = halves(graph, boxes)
    if op.box_encoding == "corner":
        return graph.Min(first, last), graph.Max(first, last)
    reach = graph.Mul(last, 0.5)
    return graph.Sub(first, reach), graph.Add(first, reach)
