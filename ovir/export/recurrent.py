"""The recurrent operators of ONNX: attributes and weights of LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ovir.core.element_types import f64
from ovir.export.graph import Graph
from ovir.export.recurrent_steps import OFFSET, OPERATORS, SLOPE, given, stepwise
from ovir.export.tensors import Tensor
from ovir.ops.recurrent import GruBase, LstmBase, RecurrentBase

_ORDER = {4: (1, 3, 0, 2)}
"""The gates of OpenVINO in the order of ONNX: LSTM has i, o, f, c there. The others agree."""


def attributes(op: RecurrentBase, hidden: int, direction: str = "forward") -> dict[str, Any]:
    """Return the attributes of the operator."""
    names = [name.lower() for name in op.activations[: op.functions]]
    alphas = [given(op.activations_alpha, i, SLOPE) for i, name in enumerate(names) if name == "hardsigmoid"]
    betas = [given(op.activations_beta, i, OFFSET) for i, name in enumerate(names) if name == "hardsigmoid"]
    directions = 2 if direction == "bidirectional" else 1
    found: dict[str, Any] = {
        "hidden_size": hidden,
        "direction": direction,
        "activations": [OPERATORS[name] for name in names] * directions,
        "activation_alpha": alphas * directions or None,
        "activation_beta": betas * directions or None,
        "clip": op.clip if 0 < op.clip < np.inf else None,
    }
    if isinstance(op, GruBase):
        found["linear_before_reset"] = int(op.linear_before_reset)
    return found


def steps(
    graph: Graph,
    op: RecurrentBase,
    x: Tensor,
    states: Sequence[Tensor],
    lengths: Tensor | None,
    weights: Sequence[Tensor | None],
    direction: str = "forward",
) -> list[Tensor]:
    """Add LSTM, GRU or RNN, and return its outputs.

    x is [time, batch, input], the states [directions, batch, hidden]; the weights W, R and B, which may be missing,
    begin with an axis of directions.
    """
    w, r, b = weights
    assert w is not None
    assert r is not None
    hidden = _hidden_size(graph, op, w, r)
    kind = "LSTM" if isinstance(op, LstmBase) else "GRU" if isinstance(op, GruBase) else "RNN"
    if x.element_type == f64 or (kind == "RNN" and 0 < op.clip < np.inf):  # onnxruntime has no f64, and ignores clip
        return stepwise(graph, op, x, states, lengths, weights, direction)
    if b is not None:
        b = _both_biases(graph, op, b, hidden)
    inputs = x, *(_in_order(graph, op, t, hidden) for t in (w, r)), b, lengths, *states
    return graph.node(kind, *inputs, outputs=1 + len(states), **attributes(op, hidden, direction))


def _hidden_size(graph: Graph, op: RecurrentBase, w: Tensor, r: Tensor) -> int:
    if op.hidden_size:
        return op.hidden_size
    places = (r.shape[2], 1), (w.shape[1], op.gates), (r.shape[1], op.gates), (op.output_shapes[0][-1], 1)
    known = next((dim.length // factor for dim, factor in places if dim.is_static), None)
    graph.require(known is not None, "the size of the hidden state is unknown")
    assert known is not None
    return known


def _in_order(graph: Graph, op: RecurrentBase, weights: Tensor, hidden: int) -> Tensor:
    """Return weights [directions, gates * hidden, ...] with the gates in the order of ONNX."""
    order = _ORDER.get(op.gates)
    if order is None:
        return weights
    if weights.value.const_value is not None and weights.constant is not None:
        parts = np.split(weights.constant, op.gates, axis=1)
        return graph.constant(np.concatenate([parts[gate] for gate in order], axis=1), weights.element_type)
    split = graph.node("Split", weights, [hidden] * op.gates, outputs=op.gates, axis=1)
    return graph.Concat(*(split[gate] for gate in order), axis=1)


def _both_biases(graph: Graph, op: RecurrentBase, bias: Tensor, hidden: int) -> Tensor:
    """Return biases [directions, biases * hidden]: first the biases of the input, then those for the hidden state."""
    directions, own = bias.shape[0].length, bias.element_type

    def zeros(count: int) -> Tensor:
        return graph.constant(np.zeros((directions, count * hidden), own.to_dtype()), own)

    if op.biases == op.gates:
        return graph.Concat(_in_order(graph, op, bias, hidden), zeros(op.gates), axis=1)
    first, last = graph.node("Split", bias, [op.gates * hidden, hidden], outputs=2, axis=1)
    return graph.Concat(first, zeros(op.gates - 1), last, axis=1)
