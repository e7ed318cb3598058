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
    kept = _kept(graph, best, active, blank, (batch, time), merge=op.ctc_merge_repeated)
    decoded = _compacted(graph, best, kept, (batch, time))
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
    kept = _kept(graph, best, active, blank, (batch, time), merge=op.merge_repeated)
    decoded = _compacted(graph, best, kept, (batch, time))
    counts = graph.reduced("ReduceSum", graph.cast(kept, i64), [1], keep=False)
    return decoded, counts


def _kept(
    graph: Graph, classes: Tensor, active: Tensor, blank: Tensor, sizes: tuple[Tensor, Tensor], *, merge: bool
) -> Tensor:
    """Return the mask of the classes [batch, time] that are kept."""
    kept = graph.And(active, graph.Not(graph.Equal(classes, blank)))
    if not merge:
        return kept
    batch, time = sizes
    start = graph.expanded(graph.number(-1, i64), [batch, 1])
    before = graph.part(graph.Concat(start, classes, axis=1), 0, time, axis=1)
    return graph.And(kept, graph.Not(graph.Equal(classes, before)))


def _compacted(graph: Graph, values: Tensor, kept: Tensor, sizes: tuple[Tensor, Tensor]) -> Tensor:
    """Return the kept elements of each row one after the other, followed by -1; ``sizes`` are rows and columns."""
    rows, columns = sizes
    place = graph.Sub(graph.CumSum(graph.cast(kept, i64), graph.constant(1, i64)), 1)
    place = graph.Where(kept, place, columns)
    blank = graph.expanded(graph.number(-1, i64), [rows, graph.Add(columns, 1)])
    return graph.part(graph.ScatterElements(blank, place, values, axis=1), 0, columns, axis=1)
