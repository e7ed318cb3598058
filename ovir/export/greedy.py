"""The selection of boxes one by one in a Loop, for rules that NonMaxSuppression does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ovir.export.boxes import NEVER, shifted
from ovir.export.graph import Graph
from ovir.export.loops import Step, loop
from ovir.export.ranking import column
from ovir.export.sizes import Size, compute, sizes_of
from ovir.export.tensors import Tensor

Overlap = Callable[[Graph, Sequence[Tensor], Sequence[Tensor]], Tensor]
"""Compute the overlap of boxes, given by the columns of two tables, which are broadcast."""
Update = Callable[[Graph, Tensor, Tensor, Tensor], Tensor]
"""Return new scores, given the scores, the overlaps with the boxes that were selected, and the number of the step."""


def greedy(
    graph: Graph,
    table: Tensor,
    columns: int,
    scores: Tensor,
    *,
    most: Size,
    least: float | Tensor,
    overlap: Overlap,
    update: Update,
) -> tuple[Tensor, Tensor]:
    """Select the box with the highest score, update the other scores, and so on; separately for each class and image.

    ``table`` describes the boxes, [images, boxes, columns]; scores are [images, classes, boxes]. At most ``most`` boxes
    of a class are selected, and none whose score is not above ``least``. Return triplets of image, class and box,
    ordered by image, class and selection, and the scores at that time.
    """
    images, classes, count = sizes_of(graph, scores)
    every = graph.node("Split", graph.Transpose(table, perm=[0, 2, 1]), [1] * columns, axis=1, outputs=columns)
    lowest = least if isinstance(least, Tensor) else graph.number(least, scores.element_type)
    start = graph.shaped(graph.Where(graph.Greater(scores, lowest), scores, NEVER), scores.shape)
    steps = compute(graph, "Min", most, count)
    steps = compute(graph, "Mul", steps, compute(graph, "Min", images, classes, 1))  # without rows there is no maximum

    def step(body: Graph, number: Tensor, states: Sequence[Tensor]) -> Step:
        (current,) = states
        best = body.ArgMax(current, axis=2, keepdims=1)
        highest = body.GatherElements(current, best, axis=2)
        goes_on = body.Greater(body.ReduceMax(highest, keepdims=0), body.Squeeze(lowest))
        chosen = body.node("Split", body.GatherND(table, best, batch_dims=1), [1] * columns, axis=2, outputs=columns)
        found = update(body, current, overlap(body, every, chosen), number)
        gone = body.Expand(body.number(NEVER, scores.element_type), body.Shape(best))
        return Step([body.ScatterElements(found, best, gone, axis=2)], [best, highest], goes_on)

    _, places, finals = loop(graph, steps, [start], step)
    places, finals = (graph.Transpose(graph.Squeeze(x, [3]), perm=[1, 2, 0]) for x in (places, finals))
    where = graph.Transpose(graph.NonZero(graph.Greater(finals, lowest)), perm=[1, 0])
    place = graph.GatherND(places, where)
    image, label = column(graph, where, 0), column(graph, where, 1)
    triplets = graph.Concat(*(graph.Unsqueeze(x, [1]) for x in (image, label, place)), axis=1)
    return triplets, graph.GatherND(finals, where)


# --------------------------------------------------------------------------- upright boxes


def upright(graph: Graph, low: Tensor, high: Tensor, margin: float = 0.0) -> Tensor:
    """Return the table of upright boxes for ``upright_overlap``: edges [images, boxes, 2] and the area. ``margin``
    is added to each length. A box without area gets an infinite one, so that its share in anything is 0."""
    height, width = graph.node("Split", shifted(graph, graph.Sub(high, low), margin), [1, 1], axis=2, outputs=2)
    area = graph.Mul(height, width)
    area = graph.Where(graph.Greater(area, 0.0), area, graph.number(float("inf"), area.element_type))
    return graph.Concat(low, high, area, axis=2)


def upright_overlap(graph: Graph, some: Sequence[Tensor], others: Sequence[Tensor]) -> Tensor:
    """Compute the intersection over union of upright boxes."""
    lengths = [
        graph.Max(graph.Sub(graph.Min(some[i + 2], others[i + 2]), graph.Max(some[i], others[i])), 0.0) for i in (0, 1)
    ]
    common = graph.Mul(*lengths)
    return graph.Div(common, graph.Sub(graph.Add(some[4], others[4]), common))


def removing(graph: Graph, scores: Tensor, condition: Tensor) -> Tensor:
    """Return the scores, -inf where a condition holds."""
    return graph.Where(condition, graph.number(NEVER, scores.element_type), scores)
