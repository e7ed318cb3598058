"""LSTMCell, GRUCell and RNNCell."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.export.graph import Graph
from ovir.export.recurrent import steps
from ovir.export.registry import exports
from ovir.export.tensors import Tensor
from ovir.ops.recurrent_cells import CellBase, GRUCell, LSTMCell1, LSTMCell4, RNNCell

_LIMITS = "the hidden size must be static"


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
