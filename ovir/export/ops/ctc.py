"""CTC decoders and loss."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import f32, i64
from ovir.export.bodies import Step, loop
from ovir.export.boxes import NEVER
from ovir.export.graph import Graph, Tensor
from ovir.export.parts import real_type, reduced
from ovir.export.ranking import compacted, of_rank, part
from ovir.export.registry import exports
from ovir.export.sizes import Size, compute, expanded, positions_below, reshaped, sizes_of, vector
from ovir.ops.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss

_LIMITS = "NaN may count as any number"

# --------------------------------------------------------------------------- greedy decoders


@exports(CTCGreedyDecoder, to="ArgMax, CumSum, ScatterElements", limits=_LIMITS)
def greedy_decoder(graph: Graph, op: CTCGreedyDecoder, data: Tensor, sequence_mask: Tensor) -> Tensor:
    """Export as ArgMax; the place of each class in the output is how many classes are kept before it."""
    data = of_rank(graph, data, 3)
    time, batch, classes = sizes_of(graph, data)
    ended = graph.cast(graph.Equal(graph.cast(sequence_mask, f32), 0.0), i64)
    counts = graph.CumSum(ended, graph.constant(0, i64))
    active = graph.Equal(graph.Transpose(counts, perm=[1, 0]), 0)
    best = graph.ArgMax(graph.Transpose(data, perm=[1, 0, 2]), axis=2, keepdims=0)
    blank = vector(graph, [compute(graph, "Sub", classes, 1)])
    kept = _kept(graph, best, active, blank, (batch, time), merge=op.ctc_merge_repeated)
    decoded = compacted(graph, best, kept, (batch, time), -1)
    return graph.cast(reshaped(graph, decoded, [batch, time, 1, 1]), data.element_type)


@exports(CTCGreedyDecoderSeqLen, to="ArgMax, CumSum, ScatterElements", limits=_LIMITS)
def greedy_decoder_of_lengths(
    graph: Graph,
    op: CTCGreedyDecoderSeqLen,
    data: Tensor,
    sequence_length: Tensor,
    blank_index: Tensor | None = None,
) -> Sequence[Tensor]:
    """Export as ArgMax; the place of each class in the output is how many classes are kept before it."""
    data = of_rank(graph, data, 3)
    batch, time, classes = sizes_of(graph, data)
    active = _within(graph, time, sequence_length)
    best = graph.ArgMax(data, axis=2, keepdims=0)
    blank = _blank(graph, blank_index, classes)
    kept = _kept(graph, best, active, blank, (batch, time), merge=op.merge_repeated)
    decoded = compacted(graph, best, kept, (batch, time), -1)
    counts = reduced(graph, "ReduceSum", graph.cast(kept, i64), [1], keep=False)
    return graph.cast(decoded, op.classes_index_type), graph.cast(counts, op.sequence_length_type)


def _blank(graph: Graph, blank_index: Tensor | None, classes: Size) -> Tensor:
    """Return the blank class, [1]."""
    if blank_index is None:
        return vector(graph, [compute(graph, "Sub", classes, 1)])
    return graph.Reshape(graph.cast(blank_index, i64), [1])


def _within(graph: Graph, time: Size, lengths: Tensor) -> Tensor:
    """Return which steps of each sequence are within its length, [batch, time]."""
    return graph.Less(positions_below(graph, time), graph.Unsqueeze(graph.cast(lengths, i64), [1]))


def _kept(
    graph: Graph, classes: Tensor, active: Tensor, blank: Tensor, sizes: tuple[Size, Size], *, merge: bool
) -> Tensor:
    """Return which classes [batch, time] are kept."""
    kept = graph.And(active, graph.Not(graph.Equal(classes, blank)))
    return graph.And(kept, _differs(graph, classes, sizes)) if merge else kept


def _before(graph: Graph, classes: Tensor, sizes: tuple[Size, Size]) -> Tensor:
    """Return the class before each class [batch, time]; -1 before the first."""
    batch, time = sizes
    start = expanded(graph, graph.number(-1, i64), [batch, 1])
    return part(graph, graph.Concat(start, classes, axis=1), 0, time, axis=1)


def _differs(graph: Graph, classes: Tensor, sizes: tuple[Size, Size]) -> Tensor:
    return graph.Not(graph.Equal(classes, _before(graph, classes, sizes)))


# --------------------------------------------------------------------------- loss


@exports(CTCLoss, to="Loop over the steps")
def ctc_loss(
    graph: Graph,
    op: CTCLoss,
    logits: Tensor,
    logit_length: Tensor,
    labels: Tensor,
    label_length: Tensor,
    blank_index: Tensor | None = None,
) -> Tensor:
    """Export as a Loop that computes the probability of each state of a path after each step."""
    element_type = logits.element_type
    logits = graph.cast(of_rank(graph, logits, 3), real_type(logits))
    batch, time, classes = sizes_of(graph, logits)
    blank = _blank(graph, blank_index, classes)
    targets, counts = _targets(graph, op, graph.cast(labels, i64), label_length, blank, (batch, time))
    states = _interleaved(graph, expanded(graph, blank, [batch, time]), targets, (batch, time))
    before = _before(graph, targets, (batch, time))
    skips = graph.Not(graph.Equal(before, blank))
    if op.ctc_merge_repeated:
        skips = graph.And(skips, graph.Not(graph.Equal(before, targets)))
    never_skips = expanded(graph, graph.constant(False), [batch, time])
    skips = _interleaved(graph, never_skips, skips, (batch, time))
    stays = graph.constant(True) if op.ctc_merge_repeated else graph.Equal(states, blank)

    width = compute(graph, "Add", compute(graph, "Mul", time, 2), 1)
    index = expanded(graph, graph.Unsqueeze(states, [1]), [batch, time, width])
    scores = graph.GatherElements(graph.LogSoftmax(logits, axis=2), index, axis=2)
    scores = graph.Transpose(scores, perm=[1, 0, 2])
    goes_on = graph.Transpose(_within(graph, time, logit_length), perm=[1, 0])
    logarithms = _logarithms(graph, scores, goes_on, stays, skips, (batch, time, width))
    ends = graph.Unsqueeze(graph.Mul(counts, 2), [1])  # a path ends with the last label or with the blank after it
    last, after = (graph.GatherElements(logarithms, graph.Add(ends, i), axis=1) for i in (1, 2))
    return graph.cast(graph.Neg(graph.Squeeze(_log_of_sum(graph, last, after), [1])), element_type)


def _targets(
    graph: Graph, op: CTCLoss, labels: Tensor, label_length: Tensor, blank: Tensor, sizes: tuple[Size, Size]
) -> tuple[Tensor, Tensor]:
    """Return the labels that paths must decode to, padded with blanks, and the number of labels of each sequence."""
    time = sizes[1]
    kept = _within(graph, time, label_length)
    if op.unique:
        numbers = positions_below(graph, time)
        earlier = graph.Less(graph.Unsqueeze(numbers, [0]), graph.Unsqueeze(numbers, [1]))
        same = graph.Equal(graph.Unsqueeze(labels, [1]), graph.Unsqueeze(labels, [2]))
        again = graph.And(graph.And(same, earlier), graph.Unsqueeze(kept, [1]))
        times = reduced(graph, "ReduceSum", graph.cast(again, i64), [2], keep=False)
        kept = graph.And(kept, graph.Equal(times, 0))
    elif op.preprocess_collapse_repeated:
        kept = graph.And(kept, _differs(graph, labels, sizes))
    counts = reduced(graph, "ReduceSum", graph.cast(kept, i64), [1], keep=False)
    targets = compacted(graph, labels, kept, sizes, -1)
    return graph.Where(graph.Less(targets, 0), blank, targets), counts


def _interleaved(graph: Graph, even: Tensor, odd: Tensor, sizes: tuple[Size, Size]) -> Tensor:
    """Return columns in turn from two matrices, and then the first column of ``even`` again."""
    batch, time = sizes
    both = graph.Concat(graph.Unsqueeze(even, [2]), graph.Unsqueeze(odd, [2]), axis=2)
    flat = reshaped(graph, both, [batch, compute(graph, "Mul", time, 2)])
    return graph.Concat(flat, part(graph, even, 0, 1, axis=1), axis=1)


def _logarithms(
    graph: Graph, scores: Tensor, goes_on: Tensor, stays: Tensor, skips: Tensor, sizes: tuple[Size, Size, Size]
) -> Tensor:
    """Return ln of the probability of each state after the last step: blank, label 0, blank, label 1, ... blank.

    Two columns precede the states: no state at all, and the state before the first step.
    """
    batch, time, width = sizes
    never = graph.number(NEVER, scores.element_type)
    outside = expanded(graph, never, [batch, 1])
    start = expanded(graph, graph.number(0, scores.element_type), [batch, 1])
    first = graph.Concat(outside, start, expanded(graph, never, [batch, width]), axis=1)

    def step(body: Graph, number: Tensor, states: Sequence[Tensor]) -> Step:
        (current,) = states
        whole = compute(body, "Add", width, 2)
        own = part(body, current, 2, whole, axis=1)
        previous = part(body, current, 1, compute(body, "Add", width, 1), axis=1)
        skipped = body.Where(skips, part(body, current, 0, width, axis=1), never)
        reached = _log_of_sum(body, body.Where(stays, own, never), previous, skipped)
        reached = body.Add(reached, body.Gather(scores, number, axis=0))
        reached = body.Concat(outside, outside, reached, axis=1)
        active = body.Unsqueeze(body.Gather(goes_on, number, axis=0), [1])
        return Step([body.Where(active, reached, current)])

    shape = [n if isinstance(n, int) else -1 for n in (batch, compute(graph, "Add", width, 2))]
    return loop(graph, time, [graph.shaped(first, shape)], step)[0]


def _log_of_sum(graph: Graph, *logarithms: Tensor) -> Tensor:
    """Return the logarithm of the sum of numbers, given by their logarithms, which may be -inf."""
    most = graph.Max(*logarithms)
    base = graph.Where(graph.Equal(most, graph.number(NEVER, most.element_type)), 0.0, most)
    total = graph.Sum(*(graph.Exp(graph.Sub(x, base)) for x in logarithms))
    return graph.Add(graph.Log(total), base)
