"""Boxes: how they are moved, and how the best of overlapping ones are selected, all in f32.

Equal scores stay in order, as TopK takes the first of equal elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ovir.core.element_types import f32, i64
from ovir.export.loops import LoopStep, loop
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.multiclass_nms import ImageNmsBase

LOWEST = float(np.finfo(np.float32).min)
"""The score threshold with which every finite score is a candidate. Scores of -inf are not candidates."""
NEVER = np.float32(-np.inf)
NOT_FINITE = "boxes and scores that are NaN or infinite may give other results"
"""A limit of the operations that select boxes."""
GAPS = "boxes shorter than a pixel that are less than a pixel apart count as overlapping"
"""A limit where the last pixel belongs to a box: NonMaxSuppression knows lengths only, not gaps."""


# --------------------------------------------------------------------------- rows, their order and their groups


def top(graph: Graph, data: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``count`` highest elements along the last axis, in descending order, and their indices."""
    values, indices = graph.node("TopK", data, count, outputs=2, axis=-1)
    return values, indices


def order(graph: Graph, key: Tensor, *, descending: bool = False) -> Tensor:
    """Return the order of the elements of a 1-D tensor."""
    return graph.node("TopK", key, graph.Shape(key), outputs=2, axis=0, largest=int(descending))[1]


def column(graph: Graph, rows: Tensor, index: int) -> Tensor:
    """Return a column of a matrix, 1-D."""
    return graph.Gather(rows, graph.constant(index, i64), axis=1)


def picked(graph: Graph, data: Tensor, *indices: Tensor) -> Tensor:
    """Return ``data[i, j, ...]`` for each position of the 1-D indices."""
    if len(indices) == 1:
        return graph.Gather(data, indices[0], axis=0)
    stacked = [graph.Unsqueeze(i, [-1]) for i in indices]
    return graph.GatherND(data, graph.Concat(*stacked, axis=1))


def group_counts(graph: Graph, groups: Tensor, count: Tensor) -> Tensor:
    """Return the number of elements of each of the groups 0, 1, ...; ``groups`` is 1-D."""
    if count.number == 1:
        return graph.Shape(groups)
    same = graph.Equal(graph.Unsqueeze(graph.positions_below(count), [1]), graph.Unsqueeze(groups, [0]))
    return graph.ReduceSum(graph.cast(same, i64), [1], keepdims=0)


def ranks(graph: Graph, groups: Tensor, count: Tensor) -> Tensor:
    """Return the position of each element in its group; the numbers of the groups do not decrease."""
    numbers = graph.positions_below(graph.Shape(groups))
    if count.number == 1:
        return numbers
    starts = graph.CumSum(group_counts(graph, groups, count), graph.constant(0, i64), exclusive=1)
    return graph.Sub(numbers, graph.Gather(starts, groups, axis=0))


def padded(graph: Graph, rows: Tensor, count: Tensor, value: Any, *others: int) -> Tensor:
    """Return exactly ``count`` rows: the first ones, and then rows of a number; a row has the sizes ``others``."""
    rest = graph.expanded(graph.number(value, rows.element_type), [count, *others])
    return graph.part(graph.Concat(rows, rest, axis=0), 0, count)


# --------------------------------------------------------------------------- moved and clipped


def halves(graph: Graph, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and the last two numbers of boxes [..., 4]."""
    first, last = graph.node("Split", boxes, [2, 2], axis=-1, outputs=2)
    return first, last


def decoded(graph: Graph, center: Tensor, extent: Tensor, shift: Tensor, stretch: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower and upper edges of boxes shifted by ``shift * extent`` and scaled by ``exp(stretch)``."""
    center = graph.Add(graph.Mul(shift, extent), center)
    reach = graph.Mul(graph.Exp(stretch), graph.Mul(extent, 0.5))
    return graph.Sub(center, reach), graph.Add(center, reach)


def shifted(graph: Graph, data: Tensor, distance: float) -> Tensor:
    """Return data plus a number."""
    return graph.Add(data, distance) if distance else data


def clipped(graph: Graph, coordinates: Tensor, ends: Tensor | float) -> Tensor:
    """Clip coordinates to [0, ends]; the result is 0 where an end is negative."""
    return graph.Max(graph.Min(coordinates, ends), 0.0)


def corners(graph: Graph, low: Tensor, high: Tensor, margin: float = 0.0) -> Tensor:
    """Return boxes [..., 4] for ``selected``. NonMaxSuppression exchanges corners in the wrong order, but such a box
    has no area and overlaps nothing. ``margin`` is 1 if the last pixel belongs to a box, else 0."""
    return graph.Concat(low, graph.Max(low, shifted(graph, high, margin)), axis=-1)


# --------------------------------------------------------------------------- selection


def selected(
    graph: Graph,
    boxes: Tensor,
    scores: Tensor,
    *,
    most: Tensor,
    overlap: float | Tensor,
    least: float | Tensor | None,
    centered: bool = False,
) -> Tensor:
    """Return triplets of batch, class and box of the best of overlapping boxes, ordered by batch, class and score.

    boxes are [batches, boxes, 4], scores [batches, classes, boxes]. Of each class at most ``most`` boxes with scores
    above ``least`` (None: all) are selected; boxes that overlap a better one by more than ``overlap`` are not.
    onnxruntime refuses thresholds outside of [0, 1]: with a negative one, a box excludes all others.
    """
    if isinstance(overlap, Tensor):
        alone = graph.Min(most, 1)
        most = graph.Where(graph.Less(overlap, 0.0), alone, most)
        overlap = graph.Clip(overlap, 0.0, 1.0)
    else:
        most = graph.Min(most, 1) if overlap < 0 else most
        overlap = 0.0 if overlap < 0 else overlap if overlap < 1 else 1.0  # nothing exceeds NaN
    numbers = [
        x if isinstance(x, Tensor) or x is None else graph.constant(np.array([x], np.float32)) for x in (overlap, least)
    ]
    encoding = 1 if centered else None
    return graph.NonMaxSuppression(boxes, scores, most, *numbers, center_point_box=encoding)


@dataclass(frozen=True)
class Selection:
    """Selected boxes: image, class, box and score of each, all [n]."""

    image: Tensor
    label: Tensor
    place: Tensor
    score: Tensor

    def taken(self, graph: Graph, indices: Tensor) -> Selection:
        """Return some of the boxes in a new order."""
        return Selection(*(graph.Gather(getattr(self, f.name), indices, axis=0) for f in fields(self)))


Select = Callable[[Tensor, Tensor], Tensor]
"""Returns triplets for boxes and scores, as ``selected`` does."""


def selection(
    graph: Graph,
    boxes: Tensor,
    scores: Tensor,
    sizes: tuple[Tensor, Tensor, Tensor],
    select: Select,
    *,
    shared: bool,
    best: int,
) -> Selection:
    """Select boxes of each class, ordered by image, class and selection.

    ``sizes`` are the numbers of images, classes and boxes. boxes are [images, boxes, 4] if the classes share them, else
    [images, classes, boxes, 4]; scores are [images, classes, boxes]. Only the ``best`` scores of each class enter,
    all for -1.
    """
    images, classes, count = sizes
    ranked = best >= 0 and not (count.number is not None and best >= count.number)
    if shared and not ranked:
        triplets = select(boxes, scores)
        image, label, place = (column(graph, triplets, i) for i in range(3))
        return Selection(image, label, place, graph.GatherND(scores, triplets))
    indices = None
    if ranked:
        count = graph.Min(best, count)
        scores, indices = top(graph, scores, count)
        if shared:
            flat = graph.reshaped(indices, [images, graph.product([classes, count]), 1])
            boxes = graph.GatherND(boxes, flat, batch_dims=1)
        else:
            boxes = graph.GatherND(boxes, graph.Unsqueeze(indices, [-1]), batch_dims=2)
    rows = graph.product([images, classes])
    boxes, scores = graph.reshaped(boxes, [rows, count, 4]), graph.reshaped(scores, [rows, 1, count])
    triplets = select(boxes, scores)
    row, place = column(graph, triplets, 0), column(graph, triplets, 2)
    score = graph.GatherND(scores, triplets)
    if indices is not None:
        place = picked(graph, graph.reshaped(indices, [rows, count]), row, place)
    return Selection(*split(graph, row, images, classes), place, score)


def split(graph: Graph, row: Tensor, images: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Return image and class of rows, which are the classes of all images."""
    if images.number == 1:
        return graph.Sub(row, row), row
    divisor = graph.Max(classes, 1)
    return graph.Div(row, divisor), graph.Mod(row, divisor)


# ----- selection one by one in a Loop, for rules that NonMaxSuppression does not have

Update = Callable[[Graph, Tensor, Tensor, Tensor], Tensor]
"""Returns new scores, given the scores, the overlaps with the boxes that were selected, and the number of the step."""


def greedy(
    graph: Graph,
    table: Tensor,
    scores: Tensor,
    *,
    most: Tensor,
    least: float | Tensor,
    update: Update,
) -> tuple[Tensor, Tensor]:
    """Select the box with the highest score, update the other scores, and so on; separately for each class and image.

    ``table`` describes the boxes (``upright``); scores are [images, classes, boxes]. At most ``most`` boxes
    of a class are selected, and none whose score is not above ``least``. Return triplets of image, class and box,
    ordered by image, class and selection, and the scores at that time.
    """
    images, classes, count = graph.sizes_of(scores)
    every = graph.node("Split", graph.Transpose(table, perm=[0, 2, 1]), [1] * 5, axis=1, outputs=5)
    lowest = least if isinstance(least, Tensor) else graph.number(least, scores.element_type)
    start = graph.shaped(graph.Where(graph.Greater(scores, lowest), scores, NEVER), scores.shape)
    steps = graph.Min(most, count)
    steps = graph.Mul(steps, graph.Min(images, classes, 1))  # without rows there is no maximum

    def step(body: Graph, number: Tensor, states: Sequence[Tensor]) -> LoopStep:
        (current,) = states
        best = body.ArgMax(current, axis=2)
        highest = body.GatherElements(current, best, axis=2)
        goes_on = body.Greater(body.ReduceMax(highest, keepdims=0), body.Squeeze(lowest))
        chosen = body.node("Split", body.GatherND(table, best, batch_dims=1), [1] * 5, axis=2, outputs=5)
        found = update(body, current, overlap(body, every, chosen), number)
        gone = body.Expand(body.number(NEVER, scores.element_type), body.Shape(best))
        return LoopStep([body.ScatterElements(found, best, gone, axis=2)], [best, highest], goes_on)

    _, places, finals = loop(graph, steps, [start], step)
    places, finals = (graph.Transpose(graph.Squeeze(x, [3]), perm=[1, 2, 0]) for x in (places, finals))
    where = graph.Transpose(graph.NonZero(graph.Greater(finals, lowest)), perm=[1, 0])
    place = graph.GatherND(places, where)
    image, label = column(graph, where, 0), column(graph, where, 1)
    triplets = graph.Concat(*(graph.Unsqueeze(x, [1]) for x in (image, label, place)), axis=1)
    return triplets, graph.GatherND(finals, where)


def upright(graph: Graph, low: Tensor, high: Tensor, margin: float = 0.0) -> Tensor:
    """Return the table of boxes with edges [images, boxes, 2]: the edges and the area, [images, boxes, 5].

    ``margin`` is added to each length. A box without area gets an infinite one, so that its share in anything is 0.
    """
    height, width = graph.node("Split", shifted(graph, graph.Sub(high, low), margin), [1, 1], axis=2, outputs=2)
    area = graph.Mul(height, width)
    area = graph.Where(graph.Greater(area, 0.0), area, graph.number(float("inf"), area.element_type))
    return graph.Concat(low, high, area, axis=2)


def overlap(graph: Graph, some: Sequence[Tensor], others: Sequence[Tensor], margin: float = 0.0) -> Tensor:
    """Return the intersection over union of boxes, given by the columns of two tables, which are broadcast.

    Boxes with a gap between them do not overlap, even if ``margin``, which is added to each length, closes it.
    """
    lengths = []
    for axis in (0, 1):
        length = graph.Sub(graph.Min(some[axis + 2], others[axis + 2]), graph.Max(some[axis], others[axis]))
        if margin:
            length = graph.Where(graph.Less(length, 0.0), NEVER, graph.Add(length, margin))
        lengths.append(graph.Max(length, 0.0))
    common = graph.Mul(*lengths)
    return graph.Div(common, graph.Sub(graph.Add(some[4], others[4]), common))


def removing(graph: Graph, scores: Tensor, condition: Tensor) -> Tensor:
    """Return the scores, -inf where a condition holds."""
    return graph.Where(condition, graph.number(NEVER, scores.element_type), scores)


# ----- the best boxes of each image, for MulticlassNms and MatrixNms


def without_background(graph: Graph, background: int, scores: Tensor, classes: Tensor) -> Tensor:
    """Return scores [images, classes, boxes], -inf for the class that is the background."""
    if background < 0 or (classes.number is not None and background >= classes.number):
        return scores
    label = graph.Equal(graph.Unsqueeze(graph.positions_below(classes), [1]), background)
    return graph.shaped(graph.Where(label, NEVER, scores), scores.shape)


def first_of_images(graph: Graph, found: Selection, chosen: Tensor, count: int, images: Tensor) -> Tensor:
    """Return the first ``count`` boxes of each image (all for -1), ordered by image; ``chosen`` are in some order."""
    if images.number != 1:
        chosen = picked(graph, chosen, order(graph, picked(graph, found.image, chosen)))
    if count < 0:
        return chosen
    if images.number == 1:
        return graph.part(chosen, 0, count)
    rank = ranks(graph, picked(graph, found.image, chosen), images)
    return graph.Compress(chosen, graph.Less(rank, count), axis=0)


def best_of_images(graph: Graph, op: ImageNmsBase, found: Selection, images: Tensor) -> Selection:
    """Return at most ``keep_top_k`` boxes of each image, in the order that the operation asks for.

    The selected boxes are ordered by image, class and, if their scores are equal, by index.
    """
    best = order(graph, found.score, descending=True)
    best = first_of_images(graph, found, best, op.keep_top_k, images)
    found = found.taken(graph, best)
    across = op.sort_result_across_batch or images.number == 1
    if op.sort_result_type == "classid":
        found = found.taken(graph, order(graph, found.label))
        return found if across else found.taken(graph, order(graph, found.image))
    if op.sort_result_type == "score" and images.number != 1 and across:
        return found.taken(graph, order(graph, found.score, descending=True))
    return found


def outputs(
    graph: Graph, op: ImageNmsBase, found: Selection, boxes: Tensor, places: Tensor, images: Tensor
) -> Sequence[Tensor]:
    """Return rows of class, score and coordinates; the indices of the boxes; and their number for each image.

    ``boxes`` and ``places`` are the selected boxes [n, 4] and their indices [n].
    """
    columns = graph.cast(found.label, f32), found.score
    rows = graph.Concat(*(graph.Unsqueeze(c, [1]) for c in columns), graph.cast(boxes, f32), axis=1)
    return rows, graph.Unsqueeze(places, [1]), group_counts(graph, found.image, images)
