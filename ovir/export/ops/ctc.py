"""Greedy decoders of CTC."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import f32, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen

_LIMITS = "NaN may count as any number"


@exports(CTCGreedyDecoder, to="ArgMax, CumSum, ScatterElements", limits=_LIMITS)
def greedy_decoder(graph: Graph, op: CTCGreedyDecoder, data: Tensor, sequence_mask: Tensor) -> Tensor:
    """Export as ArgMax; the place of each class in the output is how many classes are kept before it."""
    data = graph.of_rank(data, 3)
    time, batch, classes = graph.sizes_of(data)
    ended = graph.cast(graph.Equal(graph.cast(sequence_mask, f32), 0.0), i64)
    counts = graph.CumSum(ended, graph.constant(0, i64))
    active = graph.Equal(graph.Transpose(counts, perm=[1, 0]), 0)
    best = graph.ArgMax(graph.Transpose(data, perm=[1, 0, 2]), axis=2, keepdims=0)
    blank = graph.Sub(classes, 1)
    decoded, _ = _decoded(graph, best, active, blank, (batch, time), merge=op.ctc_merge_repeated)
    return graph.reshaped(decoded, [batch, time, 1, 1])


@exports(
    CTCGreedyDecoderSeqLen,
    to="ArgMax, CumSum, ScatterElements",
    limits=f"{_LIMITS}; lengths that are negative or exceed the data are not an error",
)
def greedy_decoder_of_lengths(
    graph: Graph,
    op: CTCGreedyDecoderSeqLen,
    data: Tensor,
    sequence_length: Tensor,
    blank_index: Tensor | None = None,
) -> Sequence[Tensor]:
    """Export as ArgMax; the place of each class in the output is how many classes are kept before it."""
    data = graph.of_rank(data, 3)
    batch, time, classes = graph.sizes_of(data)
    active = graph.Less(graph.positions_below(time), graph.Unsqueeze(graph.cast(sequence_length, i64), [1]))
    best = graph.ArgMax(data, axis=2, keepdims=0)
    blank = graph.Sub(classes, 1) if blank_index is None else graph.as_list(blank_index)
    decoded, kept = _decoded(graph, best, active, blank, (batch, time), merge=op.merge_repeated)
    counts = graph.reduced("ReduceSum", graph.cast(kept, i64), [1], keep=False)
    return decoded, counts


def _decoded(
    graph: Graph, classes: Tensor, active: Tensor, blank: Tensor, sizes: tuple[Tensor, Tensor], *, merge: bool
) -> tuple[Tensor, Tensor]:
    """Return the classes [batch, time] that are kept, one after the other in each row and followed by -1, and the mask
    of those that are kept."""
    batch, time = sizes
    kept = graph.And(active, graph.Not(graph.Equal(classes, blank)))
    if merge:
        start = graph.expanded(graph.number(-1, i64), [batch, 1])
        before = graph.part(graph.Concat(start, classes, axis=1), 0, time, axis=1)
        kept = graph.And(kept, graph.Not(graph.Equal(classes, before)))
    place = graph.Sub(graph.CumSum(graph.cast(kept, i64), graph.constant(1, i64)), 1)
    empty = graph.expanded(graph.number(-1, i64), [batch, graph.Add(time, 1)])
    whole = graph.ScatterElements(empty, graph.Where(kept, place, time), classes, axis=1)
    return graph.part(whole, 0, time, axis=1), kept
