"""Transformations of boxes, and the choice of the best of overlapping ones by NonMaxSuppression, all in f32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from ovir.export.graph import Graph
from ovir.export.ranking import column, picked, top
from ovir.export.sizes import Size, compute, product, reshaped, vector
from ovir.export.tensors import Tensor

LOWEST = float(np.finfo(np.float32).min)
"""The score threshold with which every finite score is a candidate. Scores of -inf are none."""
NEVER = np.float32(-np.inf)
NOT_FINITE = "boxes and scores that are NaN or infinite may give other results"
"""A limit of the operations that select boxes."""
GAPS = "boxes shorter than a pixel that are less than a pixel apart count as overlapping"
"""A limit where the last pixel belongs to a box: NonMaxSuppression knows lengths only, not gaps."""


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


def moved(
    graph: Graph, edges: tuple[Tensor, Tensor], shift: Tensor, stretch: Tensor, margin: float, most: float
) -> tuple[Tensor, Tensor]:
    """Apply deltas to boxes with lower and upper edges [..., 2] and return the new edges.

    ``margin`` is 1 if the last pixel belongs to a box, else 0. ``most`` is the upper limit of ``stretch``.
    """
    low, high = edges
    extent = shifted(graph, graph.Sub(high, low), margin)
    center = graph.Add(low, graph.Mul(extent, 0.5))
    low, high = decoded(graph, center, extent, shift, graph.Min(stretch, most))
    return low, shifted(graph, high, -margin)


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
    most: Size,
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
        alone = compute(graph, "Min", most, 1)
        most = graph.Where(graph.Less(overlap, 0.0), vector(graph, [alone]), vector(graph, [most]))
        overlap = graph.Clip(overlap, 0.0, 1.0)
    else:
        most = compute(graph, "Min", most, 1) if overlap < 0 else most
        overlap = 0.0 if overlap < 0 else overlap if overlap < 1 else 1.0  # nothing exceeds NaN
    numbers = [
        x if isinstance(x, Tensor) or x is None else graph.constant(np.array([x], np.float32)) for x in (overlap, least)
    ]
    encoding = 1 if centered else None
    return graph.NonMaxSuppression(boxes, scores, vector(graph, [most]), *numbers, center_point_box=encoding)


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

    def kept(self, graph: Graph, condition: Tensor) -> Selection:
        """Return the boxes for which a condition [n] holds."""
        return Selection(*(graph.Compress(getattr(self, f.name), condition, axis=0) for f in fields(self)))


Select = Callable[[Tensor, Tensor], Tensor]
"""What ``selected`` does with boxes and scores."""


def selection(
    graph: Graph,
    boxes: Tensor,
    scores: Tensor,
    sizes: tuple[Size, Size, Size],
    select: Select,
    *,
    shared: bool,
    best: int | None,
) -> Selection:
    """Select boxes of each class, ordered by image, class and selection.

    ``sizes`` are the numbers of images, classes and boxes. boxes are [images, boxes, 4] if the classes share them, else
    [images, classes, boxes, 4]; scores are [images, classes, boxes]. Only the ``best`` scores of each class enter.
    """
    images, classes, count = sizes
    ranked = best is not None and not (isinstance(count, int) and best >= count)
    if shared and not ranked:
        triplets = select(boxes, scores)
        image, label, place = (column(graph, triplets, i) for i in range(3))
        return Selection(image, label, place, graph.GatherND(scores, triplets))
    indices = None
    if ranked:
        assert best is not None
        count = compute(graph, "Min", best, count)
        scores, indices = top(graph, scores, count)
        if shared:
            flat = reshaped(graph, indices, [images, product(graph, [classes, count]), 1])
            boxes = graph.GatherND(boxes, flat, batch_dims=1)
        else:
            boxes = graph.GatherND(boxes, graph.Unsqueeze(indices, [-1]), batch_dims=2)
    rows = product(graph, [images, classes])
    boxes, scores = reshaped(graph, boxes, [rows, count, 4]), reshaped(graph, scores, [rows, 1, count])
    triplets = select(boxes, scores)
    row, place = column(graph, triplets, 0), column(graph, triplets, 2)
    score = graph.GatherND(scores, triplets)
    if indices is not None:
        place = picked(graph, reshaped(graph, indices, [rows, count]), row, place)
    return Selection(*split(graph, row, images, classes), place, score)


def split(graph: Graph, row: Tensor, images: Size, classes: Size) -> tuple[Tensor, Tensor]:
    """Return image and class of rows, which are the classes of all images."""
    if images == 1:
        return graph.Sub(row, row), row
    divisor = vector(graph, [compute(graph, "Max", classes, 1)])
    return graph.Div(row, divisor), graph.Mod(row, divisor)
