"""NMSRotated."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import f32, f64
from ovir.export.boxes import NOT_FINITE, greedy, removing
from ovir.export.graph import Graph, Tensor
from ovir.export.ops.nms import by_score, class_limit, number, outputs
from ovir.export.parts import reduced
from ovir.export.ranking import of_rank
from ovir.export.registry import exports
from ovir.export.sizes import size_of
from ovir.ops.nms_rotated import NMSRotated

Pair = tuple[Tensor, Tensor]
_SLACK = 1e-9
"""One of two boxes is made larger by this share, so that no edge lies on an edge of the other box."""
_TINY = 1e-290
"""The length across a box of an edge along it, so that divisions are safe."""


@exports(NMSRotated, to="Loop over the selected boxes", limits=NOT_FINITE)
def nms_rotated(
    graph: Graph,
    op: NMSRotated,
    boxes: Tensor,
    scores: Tensor,
    max_boxes: Tensor,
    iou_threshold: Tensor,
    score_threshold: Tensor,
) -> Sequence[Tensor]:
    """Export as a Loop that selects the best box of each class and removes those that overlap it."""

    def update(body: Graph, current: Tensor, overlaps: Tensor, step: Tensor) -> Tensor:
        return removing(body, current, body.Greater(overlaps, limit))

    boxes, scores = graph.cast(boxes, f32), graph.cast(of_rank(graph, scores, 3), f32)
    most = class_limit(graph, max_boxes, size_of(graph, scores, 2))
    overlap, least = number(graph, iou_threshold), number(graph, score_threshold)
    limit = graph.cast(overlap, f64) if isinstance(overlap, Tensor) else graph.number(overlap, f64)
    table = _table(graph, op, boxes)
    triplets, final = greedy(graph, table, 7, scores, most=most, least=least, overlap=_overlap, update=update)
    return outputs(graph, op, *by_score(graph, op, triplets, final))


def _table(graph: Graph, op: NMSRotated, boxes: Tensor) -> Tensor:
    """Return x and y of the center, half of the width and of the height, cosine and sine of the angle, and the area of
    boxes, [images, boxes, 7], f64."""
    x, y, width, height, angle = graph.node("Split", graph.cast(boxes, f64), [1] * 5, axis=2, outputs=5)
    half_width, half_height = (graph.Mul(graph.Abs(side), 0.5) for side in (width, height))
    sine = graph.Sin(angle) if op.clockwise else graph.Neg(graph.Sin(angle))
    return graph.Concat(x, y, half_width, half_height, graph.Cos(angle), sine, graph.Mul(width, height), axis=2)


def _overlap(graph: Graph, some: Sequence[Tensor], others: Sequence[Tensor]) -> Tensor:
    """Compute the intersection over union of rotated boxes; a box without area overlaps nothing.

    The area within a closed curve is half of the integral of the cross product of a point and its change. The
    intersection is bounded by the parts of the edges of each box that lie within the other.
    """
    a, b = some, others
    wider = graph.Mul(b[2], 1 + _SLACK), graph.Mul(b[3], 1 + _SLACK)
    cosine = graph.Add(graph.Mul(a[4], b[4]), graph.Mul(a[5], b[5]))  # of the angle from b to a
    sine = graph.Sub(graph.Mul(a[5], b[4]), graph.Mul(a[4], b[5]))
    x, y = graph.Sub(a[0], b[0]), graph.Sub(a[1], b[1])
    share, crossed = _edges_within(graph, _turned(graph, x, y, b), (a[2], a[3]), (cosine, sine), wider)
    total = reduced(graph, "ReduceSum", graph.Mul(share, crossed), [0], keep=False)
    center = _turned(graph, graph.Neg(x), graph.Neg(y), a)
    share, _ = _edges_within(graph, center, wider, (cosine, graph.Neg(sine)), (a[2], a[3]))
    # Seen from its center, all edges of b have the same cross product.
    whole = graph.Mul(reduced(graph, "ReduceSum", share, [0], keep=False), graph.Mul(*wider))
    common = graph.Mul(graph.Add(total, whole), 0.5)
    overlap = graph.Div(common, graph.Sub(graph.Add(a[6], b[6]), common))
    proper = graph.And(graph.Greater(a[6], 0.0), graph.Greater(b[6], 0.0))
    return graph.Where(proper, overlap, 0.0)


def _turned(graph: Graph, x: Tensor, y: Tensor, frame: Sequence[Tensor]) -> Pair:
    """Return vectors as seen from boxes."""
    along = graph.Add(graph.Mul(x, frame[4]), graph.Mul(y, frame[5]))
    return along, graph.Sub(graph.Mul(y, frame[4]), graph.Mul(x, frame[5]))


def _edges_within(graph: Graph, center: Pair, box: Pair, turn: Pair, reach: Pair) -> Pair:
    """Return which share of half an edge lies within an upright box of half the size ``reach`` around the origin, and
    the cross product of the middle of the edge and half of the edge, both [4, ...].

    The edges belong to a box of half the size ``box`` with a center, turned by an angle, given by cosine and sine.
    """
    cosine, sine = turn
    width = graph.Mul(box[0], cosine), graph.Mul(box[0], sine)
    height = graph.Neg(graph.Mul(box[1], sine)), graph.Mul(box[1], cosine)
    alongs, middles, starts, stops = [], [], [], []
    for axis in (0, 1):
        along = _stacked(graph, width[axis], height[axis])
        along = graph.Where(graph.Equal(along, 0.0), _TINY, along)
        aside = _stacked(graph, graph.Neg(height[axis]), width[axis])  # from the center to the middle of an edge
        along = graph.Concat(along, graph.Neg(along), axis=0)
        middle = graph.Concat(graph.Add(center[axis], aside), graph.Sub(center[axis], aside), axis=0)
        ends = (
            graph.Div(graph.Neg(graph.Add(reach[axis], middle)), along),
            graph.Div(graph.Sub(reach[axis], middle), along),
        )
        alongs.append(along)
        middles.append(middle)
        starts.append(graph.Min(*ends))
        stops.append(graph.Max(*ends))
    one = graph.number(1, f64)
    share = graph.Sub(graph.Min(*stops, one), graph.Max(*starts, graph.Neg(one)))
    crossed = graph.Sub(graph.Mul(middles[0], alongs[1]), graph.Mul(middles[1], alongs[0]))
    return graph.Max(share, 0.0), crossed


def _stacked(graph: Graph, first: Tensor, second: Tensor) -> Tensor:
    return graph.Concat(graph.Unsqueeze(first, [0]), graph.Unsqueeze(second, [0]), axis=0)
