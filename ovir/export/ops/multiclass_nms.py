"""MulticlassNms and MatrixNms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ovir.core.element_types import f32, i64
from ovir.export import nms_graph as nms
from ovir.export.exporters import exports
from ovir.export.loops import LoopStep, loop
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.multiclass_nms import ImageNmsBase, MatrixNms, MulticlassNms8, MulticlassNms9

_TO = "NonMaxSuppression, TopK; a Loop if nms_eta is below 1"


@exports(MulticlassNms8, MulticlassNms9, to=_TO, limits=nms.NOT_FINITE)
def multiclass_nms(
    graph: Graph, op: MulticlassNms8, boxes: Tensor, scores: Tensor, roisnum: Tensor | None = None
) -> Sequence[Tensor]:
    """Export as NonMaxSuppression in each class, and TopK of the scores of each image."""
    if roisnum is not None:
        return _of_shares(graph, op, boxes, scores, roisnum)
    scores = graph.of_rank(graph.cast(scores, f32), 3)
    images, classes, count = graph.sizes_of(scores)
    scores = nms.without_background(graph, op.background_class, scores, classes)
    all_boxes = _corners(graph, op, boxes)
    select = _select(graph, op, count)
    found = nms.selection(graph, all_boxes, scores, (images, classes, count), select, shared=True, best=op.nms_top_k)
    found = nms.best_of_images(graph, op, found, images)
    return _of_images(graph, op, found, boxes, images, count)


def _of_images(
    graph: Graph, op: ImageNmsBase, found: nms.Selection, boxes: Tensor, images: Tensor, count: Tensor
) -> Sequence[Tensor]:
    """Return the outputs for selected ones of the ``count`` boxes of each image."""
    places = found.place
    if images.number != 1:
        places = graph.Add(graph.Mul(found.image, count), places)
    return nms.outputs(graph, op, found, nms.picked(graph, boxes, found.image, found.place), places, images)


def _of_shares(graph: Graph, op: MulticlassNms8, boxes: Tensor, scores: Tensor, roisnum: Tensor) -> Sequence[Tensor]:
    """Return the outputs for boxes that belong to one class each and are shared out among the images."""
    scores = graph.of_rank(graph.cast(scores, f32), 2)
    classes, count = graph.sizes_of(scores)
    images = graph.size_of(graph.of_rank(roisnum, 1), 0)
    shares = graph.Unsqueeze(graph.Max(graph.cast(roisnum, i64), 0), [1])
    ends = graph.CumSum(shares, graph.constant(0, i64))
    number = graph.positions_below(count)
    own = graph.And(graph.Less(number, ends), graph.GreaterOrEqual(number, graph.Sub(ends, shares)))
    dense = graph.Where(graph.Unsqueeze(own, [1]), graph.Unsqueeze(scores, [0]), nms.NEVER)
    dense = nms.without_background(graph, op.background_class, graph.reshaped(dense, [images, classes, count]), classes)
    all_boxes = graph.expanded(graph.Unsqueeze(_corners(graph, op, boxes), [0]), [images, classes, count, 4])
    select = _select(graph, op, count)
    found = nms.selection(graph, all_boxes, dense, (images, classes, count), select, shared=False, best=op.nms_top_k)
    found = nms.best_of_images(graph, op, found, images)
    places = graph.Add(graph.Mul(found.place, classes), found.label)
    return nms.outputs(graph, op, found, nms.picked(graph, boxes, found.label, found.place), places, images)


def _corners(graph: Graph, op: MulticlassNms8, boxes: Tensor) -> Tensor:
    return nms.corners(graph, *nms.halves(graph, graph.cast(boxes, f32)), op.last_pixel)


def _select(graph: Graph, op: MulticlassNms8, count: Tensor) -> nms.Select:
    """Return the function that selects boxes of each class."""
    most = count if op.keep_top_k < 0 else graph.constant([op.keep_top_k])
    least = float(np.nextafter(np.float32(op.score_threshold), nms.NEVER))  # scores of the threshold exceed it
    if op.nms_eta == 1 or not np.float32(op.iou_threshold) > 0.5:
        return partial(nms.selected, graph, most=most, overlap=op.iou_threshold, least=least)

    def select(boxes: Tensor, scores: Tensor) -> Tensor:
        table = nms.upright(graph, *nms.halves(graph, boxes))
        return nms.greedy(graph, table, scores, most=most, least=least, update=partial(_update, op))[0]

    return select


def _update(op: MulticlassNms8, body: Graph, scores: Tensor, overlaps: Tensor, step: Tensor) -> Tensor:
    found = [np.float32(op.iou_threshold) * np.float32(op.nms_eta)]
    while found[-1] > 0.5 and len(found) < _MANY:
        found.append(found[-1] * np.float32(op.nms_eta))
    thresholds = np.array(found, np.float32)
    place = body.Min(step, len(thresholds) - 1)
    return nms.removing(body, scores, body.Greater(overlaps, body.Gather(body.constant(thresholds), place, axis=0)))


_MANY = 1 << 16
"""A number that exceeds the number of boxes selected of a class."""


@exports(MatrixNms, to="Loop over the classes of all images, TopK", limits=nms.NOT_FINITE)
def matrix_nms(graph: Graph, op: MatrixNms, boxes: Tensor, scores: Tensor) -> Sequence[Tensor]:
    """Export as a Loop that computes the overlaps of the candidates of each class, and TopK of the new scores."""
    scores = graph.of_rank(graph.cast(scores, f32), 3)
    images, classes, count = graph.sizes_of(scores)
    scores = nms.without_background(graph, op.background_class, scores, classes)
    best = count if op.nms_top_k < 0 else graph.Min(count, op.nms_top_k)
    values, indices = nms.top(graph, scores, best)
    rows = graph.product([images, classes])
    values, indices = graph.reshaped(values, [rows, best]), graph.reshaped(indices, [rows, best])
    low, high = nms.halves(graph, graph.cast(boxes, f32))
    table = nms.upright(graph, low, high, op.last_pixel)
    blank = graph.expanded(graph.number(nms.NEVER, f32), [count])

    def step(body: Graph, number: Tensor, states: Sequence[Tensor]) -> LoopStep:
        row, place = (body.Gather(data, number, axis=0) for data in (values, indices))
        eligible = body.Greater(row, float(np.float32(op.score_threshold)))
        some = body.Max(body.reduced("ReduceSum", body.cast(eligible, i64), [0]), 1)
        row, place, eligible = (body.part(data, 0, some) for data in (row, place, eligible))
        image = body.Div(number, body.as_scalar(body.Max(classes, 1)))
        own = body.Gather(body.Gather(table, image, axis=0), place, axis=0)
        final = body.Where(eligible, body.Mul(row, _decay(body, op, own)), nms.NEVER)
        return LoopStep([], [body.ScatterElements(blank, place, final, axis=0)])

    (final,) = loop(graph, rows, [], step)
    final = graph.reshaped(final, [images, classes, count])
    where = graph.NonZero(graph.Greater(final, float(np.float32(op.post_threshold))))
    where = graph.Transpose(where, perm=[1, 0])
    image, label, place = (nms.column(graph, where, axis) for axis in range(3))
    found = nms.best_of_images(graph, op, nms.Selection(image, label, place, graph.GatherND(final, where)), images)
    return _of_images(graph, op, found, boxes, images, count)


def _decay(graph: Graph, op: MatrixNms, table: Tensor) -> Tensor:
    """Return the factors [n] for the scores of candidates [n, 5], which are in descending order."""
    numbers = graph.positions_below(graph.part(graph.Shape(table), 0, 1))
    is_better = graph.Less(graph.Unsqueeze(numbers, [0]), graph.Unsqueeze(numbers, [1]))
    some = graph.node("Split", table, [1] * 5, axis=1, outputs=5)
    others = graph.node("Split", graph.Transpose(table, perm=[1, 0]), [1] * 5, axis=0, outputs=5)
    shares = graph.Where(is_better, nms.overlap(graph, some, others, op.last_pixel), 0.0)
    greatest = graph.Transpose(graph.reduced("ReduceMax", shares, [1]), perm=[1, 0])
    if op.decay_function == "gaussian":
        squares = graph.Sub(graph.Mul(greatest, greatest), graph.Mul(shares, shares))
        decay = graph.Exp(graph.Mul(squares, float(np.float32(op.gaussian_sigma))))
    else:  # a box may coincide with a better one
        decay = graph.Div(graph.Sub(1.0, shares), graph.Max(graph.Sub(1.0, greatest), 1e-10))
    return graph.reduced("ReduceMin", graph.Where(is_better, decay, 1.0), [1], keep=False)
