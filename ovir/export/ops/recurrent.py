"""The cells and sequences of recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import i32
from ovir.core.shapes import UNKNOWN, Dimension
from ovir.export.graph import Graph
from ovir.export.recurrent import steps
from ovir.export.registry import exports
from ovir.export.tensors import Tensor
from ovir.ops.recurrent import (
    CellBase,
    GRUCell,
    GRUSequence,
    LSTMCell1,
    LSTMCell4,
    LSTMSequence,
    RNNCell,
    RNNSequence,
    SequenceBase,
)

_LIMITS = "the hidden size must be static"


# --------------------------------------------------------------------------- cells


@exports(LSTMCell1, LSTMCell4, to="LSTM; f64: Loop", limits=_LIMITS)
def lstm_cell(
    graph: Graph,
    op: CellBase,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    p: Tensor | None = None,
) -> list[Tensor]:
    """Export as LSTM of one time step; P is ignored, as OpenVINO does."""
    return _cell(graph, op, x, [h, c], [w, r, b])


@exports(GRUCell, to="GRU; f64: Loop", limits=_LIMITS)
@exports(RNNCell, to="RNN; f64, and with clip: Loop", limits=_LIMITS)
def hidden_cell(
    graph: Graph, op: CellBase, x: Tensor, h: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """Export as GRU or RNN of one time step."""
    return _cell(graph, op, x, [h], [w, r, b])


def _cell(
    graph: Graph, op: CellBase, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor | None]
) -> list[Tensor]:
    one_step = graph.Unsqueeze(x, [0])
    before = [graph.Unsqueeze(state, [0]) for state in states]
    placed = [None if t is None else _placed(graph, t) for t in weights]
    _, *after = steps(graph, op, one_step, before, None, placed)
    return [graph.Squeeze(state, [0]) for state in after]


def _placed(graph: Graph, weights: Tensor) -> Tensor:
    """Return weights with an axis for the direction."""
    if weights.value.const_value is not None and weights.constant is not None:
        return graph.constant(weights.constant[None], weights.element_type)
    dims = [1, *weights.shape] if weights.rank is not None else [1, -1, -1]
    return graph.shaped(graph.Unsqueeze(weights, [0]), dims)


# --------------------------------------------------------------------------- sequences


@exports(LSTMSequence, to="LSTM; f64: Loop", limits=_LIMITS)
def lstm_sequence(
    graph: Graph, op: LSTMSequence, x: Tensor, h: Tensor, c: Tensor, lengths: Tensor, w: Tensor, r: Tensor, b: Tensor
) -> list[Tensor]:
    """Export as LSTM, which has time before the batch."""
    return _sequence(graph, op, x, [h, c], lengths, [w, r, b])


@exports(GRUSequence, to="GRU; f64: Loop", limits=_LIMITS)
@exports(RNNSequence, to="RNN; f64, and with clip: Loop", limits=_LIMITS)
def hidden_sequence(
    graph: Graph, op: SequenceBase, x: Tensor, h: Tensor, lengths: Tensor, w: Tensor, r: Tensor, b: Tensor
) -> list[Tensor]:
    """Export as GRU or RNN, which have time before the batch."""
    return _sequence(graph, op, x, [h], lengths, [w, r, b])


def _sequence(
    graph: Graph, op: SequenceBase, x: Tensor, states: Sequence[Tensor], lengths: Tensor, weights: Sequence[Tensor]
) -> list[Tensor]:
    time: Dimension | None = x.shape[1] if x.rank is not None else None
    is_even = lengths.constant is not None and time is not None and bool((lengths.constant == time).all())
    counted = None if is_even else graph.cast(lengths, i32)
    placed = []
    for weight, rank in zip(weights, (3, 3, 2), strict=True):
        rest = list(weight.shape.slice(1)) if weight.rank is not None else [UNKNOWN] * (rank - 1)
        placed.append(graph.shaped(weight, [op.directions, *rest]))
    by_time = graph.Transpose(x, perm=[1, 0, 2])
    before = [graph.Transpose(state, perm=[1, 0, 2]) for state in states]
    outputs, *after = steps(graph, op, by_time, before, counted, placed, op.direction)
    last = [graph.Transpose(state, perm=[1, 0, 2]) for state in after]
    return [graph.Transpose(outputs, perm=[2, 1, 0, 3]), *last]
