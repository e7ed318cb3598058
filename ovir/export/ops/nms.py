"""NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ovir.core.element_types import f32, i64
from ovir.export.exporters import exports
from ovir.export.nms_graph import NOT_FINITE, greedy, halves, order, padded, removing, selected, upright
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import Size, compute, of_rank, part, product, size_of, sizes_of, vector
from ovir.ops.base.suppression import SuppressionBase
from ovir.ops.nms import (
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
    NonMaxSuppressionBase,
)


@exports(NonMaxSuppression1, NonMaxSuppression3, NonMaxSuppression4, to="NonMaxSuppression, padded", limits=NOT_FINITE)
def nms_padded(
    graph: Graph,
    op: NonMaxSuppression1,
    boxes: Tensor,
    scores: Tensor,
    max_boxes: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
) -> Tensor:
    """Export as NonMaxSuppression, whose triplets are cut or padded with -1."""
    scores = of_rank(graph, scores, 3)
    images, classes, count = sizes_of(graph, scores)
    most = class_limit(graph, max_boxes, count)
    numbers = number(graph, iou_threshold), number(graph, score_threshold)
    triplets, _ = _selected(graph, op, boxes, scores, most, *numbers)
    if isinstance(op, NonMaxSuppression4):
        rows = product(graph, [compute(graph, "Min", count, most), images, classes])
    else:
        rows = compute(graph, "Min", count, product(graph, [most, classes]))
    return graph.cast(padded(graph, triplets, rows, -1, 3), op.output_type)


@exports(NonMaxSuppression5, NonMaxSuppression9, to="NonMaxSuppression; for Soft-NMS a Loop", limits=NOT_FINITE)
def nms(
    graph: Graph,
    op: NonMaxSuppression9,
    boxes: Tensor,
    scores: Tensor,
    max_boxes: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    sigma: Tensor | None = None,
) -> Sequence[Tensor]:
    """Export as NonMaxSuppression, followed by TopK where boxes of all classes are sorted together."""
    boxes, scores = graph.cast(boxes, f32), graph.cast(of_rank(graph, scores, 3), f32)
    most = class_limit(graph, max_boxes, size_of(graph, scores, 2))
    numbers = number(graph, iou_threshold), number(graph, score_threshold)
    if sigma is None or sigma.constant is not None:
        is_soft = sigma is not None and sigma.constant is not None and float(sigma.constant.item()) > 0
        function = partial(_softened, sigma=number(graph, sigma)) if is_soft else _selected
        return outputs(graph, op, *function(graph, op, boxes, scores, most, *numbers))
    variance = number(graph, sigma)
    bodies = {}
    for name, function in (("then", partial(_softened, sigma=variance)), ("else", _selected)):
        child = graph.child()
        bodies[f"{name}_branch"] = child.body([], function(child, op, boxes, scores, most, *numbers), name)
    condition = graph.Squeeze(graph.Greater(variance, 0.0))
    triplets, final = graph.node("If", condition, outputs=2, element_type=[i64, f32], **bodies)
    return outputs(graph, op, triplets, final)


def class_limit(graph: Graph, max_boxes: Tensor | None, count: Size) -> Size:
    """Return the number of the ``count`` boxes of a class that max_output_boxes_per_class allows."""
    if max_boxes is None:
        return 0
    if max_boxes.constant is not None:
        limit = int(max_boxes.constant.item())
        return count if limit < 0 else compute(graph, "Min", limit, count)
    given = graph.cast(graph.Reshape(max_boxes, [1]), i64)
    return graph.Where(graph.Less(given, 0), vector(graph, [count]), graph.Min(given, vector(graph, [count])))


def number(graph: Graph, tensor: Tensor | None) -> float | Tensor:
    """Return the number in an optional input, f32; 0 if it is missing."""
    if tensor is None:
        return 0.0
    if tensor.constant is not None:
        return float(tensor.constant.astype("f4").item())
    return graph.cast(graph.Reshape(tensor, [1]), f32)


def outputs(graph: Graph, op: SuppressionBase, triplets: Tensor, final: Tensor) -> Sequence[Tensor]:
    """Return the three outputs for triplets [n, 3] and scores [n]."""
    places = graph.cast(part(graph, triplets, 0, 2, axis=1), f32)
    scored = graph.Concat(places, graph.Unsqueeze(final, [1]), axis=1)
    count = part(graph, graph.Shape(triplets), 0, 1)
    return graph.cast(triplets, op.output_type), scored, graph.cast(count, op.output_type)


def by_score(graph: Graph, op: SuppressionBase, triplets: Tensor, final: Tensor) -> tuple[Tensor, Tensor]:
    """Return triplets and scores in descending order of the scores, if the operation asks for it."""
    if not op.sort_result_descending:
        return triplets, final
    best = order(graph, final, descending=True)
    return graph.Gather(triplets, best, axis=0), graph.Gather(final, best, axis=0)


def _selected(
    graph: Graph,
    op: NonMaxSuppressionBase,
    boxes: Tensor,
    scores: Tensor,
    most: Size,
    overlap: float | Tensor,
    least: float | Tensor,
) -> tuple[Tensor, Tensor]:
    boxes, scores = graph.cast(boxes, f32), graph.cast(scores, f32)
    centered = op.box_encoding == "center"
    triplets = selected(graph, boxes, scores, most=most, overlap=overlap, least=least, centered=centered)
    return by_score(graph, op, triplets, graph.GatherND(scores, triplets))


def _softened(
    graph: Graph,
    op: NonMaxSuppression9,
    boxes: Tensor,
    scores: Tensor,
    most: Size,
    overlap: float | Tensor,
    least: float | Tensor,
    *,
    sigma: float | Tensor,
) -> tuple[Tensor, Tensor]:
    def update(body: Graph, current: Tensor, overlaps: Tensor, step: Tensor) -> Tensor:
        softer = body.Mul(current, body.Exp(body.Mul(body.Mul(overlaps, overlaps), scale)))
        removed = body.IsNaN(softer)  # infinity * 0
        if op.removes_when_soft:
            removed = body.Or(removed, body.Greater(overlaps, overlap))
        return removing(body, softer, removed)

    scale = graph.Div(-0.5, sigma) if isinstance(sigma, Tensor) else -0.5 / sigma
    table = upright(graph, *_edges(graph, op, boxes))
    triplets, final = greedy(graph, table, scores, most=most, least=least, update=update)
    return by_score(graph, op, triplets, final)


def _edges(graph: Graph, op: NonMaxSuppressionBase, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and upper edges of boxes, [images, boxes, 2]."""
    first, last = halves(graph, boxes)
    if op.box_encoding == "corner":
        return graph.Min(first, last), graph.Max(first, last)
    reach = graph.Mul(last, 0.5)
    return graph.Sub(first, reach), graph.Add(first, reach)
