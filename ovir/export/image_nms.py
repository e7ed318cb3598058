"""The best boxes of each image, for MulticlassNms and MatrixNms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import f32
from ovir.export.boxes import NEVER, Selection
from ovir.export.graph import Graph
from ovir.export.ranking import group_counts, order, picked, ranks
from ovir.export.sizes import Size, compute, positions_below
from ovir.export.tensors import Tensor
from ovir.ops.base.image_nms import ImageNmsBase


def without_background(graph: Graph, op: ImageNmsBase, scores: Tensor, classes: Size) -> Tensor:
    """Return scores [images, classes, boxes], -inf for the background."""
    if op.background_class < 0 or (isinstance(classes, int) and op.background_class >= classes):
        return scores
    label = graph.Equal(graph.Unsqueeze(positions_below(graph, classes), [1]), op.background_class)
    return graph.shaped(graph.Where(label, NEVER, scores), scores.shape)


def best_of_images(graph: Graph, op: ImageNmsBase, found: Selection, images: Size) -> Selection:
    """Return at most ``keep_top_k`` boxes of each image, in the order that the operation asks for.

    The selected boxes are ordered by image, class and, if their scores are equal, by index.
    """
    count = graph.Shape(found.score)
    if images == 1:
        most = count if op.keep_top_k < 0 else compute(graph, "Min", count, op.keep_top_k)
        best = graph.node("TopK", found.score, most, outputs=2, axis=0)[1]
    else:
        best = order(graph, found.score, descending=True)
        best = picked(graph, best, order(graph, picked(graph, found.image, best)))
        if op.keep_top_k >= 0:
            rank = ranks(graph, picked(graph, found.image, best), images)
            best = graph.Compress(best, graph.Less(rank, op.keep_top_k), axis=0)
    found = found.taken(graph, best)
    across = op.sort_result_across_batch or images == 1
    if op.sort_result_type == "classid":
        found = found.taken(graph, order(graph, found.label))
        return found if across else found.taken(graph, order(graph, found.image))
    if op.sort_result_type == "score" and images != 1 and across:
        return found.taken(graph, order(graph, found.score, descending=True))
    return found


def outputs(
    graph: Graph, op: ImageNmsBase, found: Selection, boxes: Tensor, places: Tensor, images: Size
) -> Sequence[Tensor]:
    """Return rows of class, score and coordinates; the indices of the boxes; and their number for each image.

    ``boxes`` and ``places`` are the selected boxes [n, 4] and their indices [n].
    """
    columns = graph.cast(found.label, f32), found.score
    rows = graph.Concat(*(graph.Unsqueeze(c, [1]) for c in columns), graph.cast(boxes, f32), axis=1)
    indices = graph.cast(graph.Unsqueeze(places, [1]), op.output_type)
    counts = graph.cast(group_counts(graph, found.image, images), op.output_type)
    return graph.cast(rows, boxes.element_type), indices, counts


def just_below(threshold: float) -> float:
    """Return the float32 that a score exceeds if it is at least a threshold."""
    return float(np.nextafter(np.float32(threshold), NEVER))
