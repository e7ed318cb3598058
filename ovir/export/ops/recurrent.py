"""The cells and sequences of recurrent networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ovir.core.element_types import f64, i32, i64
from ovir.core.shapes import UNKNOWN, PartialShape
from ovir.export.exporters import exports
from ovir.export.loops import LoopStep, loop
from ovir.export.onnx_graph import FIRST, LAST, Graph, Tensor
from ovir.ops import recurrent as ops

_LIMITS = "the hidden size must be static"
_NOT_EMPTY = f"{_LIMITS}; the batch must not be empty"


# --------------------------------------------------------------------------- cells


@exports(ops.LSTMCell1, ops.LSTMCell4, to="LSTM; f64: Loop", limits=_NOT_EMPTY)
@exports(ops.GRUCell, to="GRU; f64: Loop", limits=_NOT_EMPTY)
@exports(ops.RNNCell, to="RNN; f64, and with clip: Loop", limits=_LIMITS)
def cell(graph: Graph, op: ops.CellBase, x: Tensor, *inputs: Tensor) -> list[Tensor]:
    """Export as LSTM, GRU or RNN of one time step; P of an LSTM is ignored, as OpenVINO does."""
    count = 2 if isinstance(op, ops.LstmBase) else 1
    before = [graph.Unsqueeze(state, [0]) for state in inputs[:count]]
    w, r, *b = (_placed(graph, weights) for weights in inputs[count : count + 3])
    _, *after = _steps(graph, op, graph.Unsqueeze(x, [0]), before, None, [w, r, b[0] if b else None])
    return [graph.Squeeze(state, [0]) for state in after]


def _placed(graph: Graph, weights: Tensor) -> Tensor:
    """Return weights with an axis for the direction."""
    if weights.value.const_value is not None and weights.constant is not None:
        return graph.constant(weights.constant[None], weights.element_type)
    return graph.shaped(graph.Unsqueeze(weights, [0]), PartialShape([UNKNOWN]) + weights.shape)


# --------------------------------------------------------------------------- sequences


@exports(ops.LSTMSequence, to="LSTM; f64: Loop", limits=_NOT_EMPTY)
@exports(ops.GRUSequence, to="GRU; f64: Loop", limits=_NOT_EMPTY)
@exports(ops.RNNSequence, to="RNN; f64, and with clip: Loop", limits=_LIMITS)
def sequence(graph: Graph, op: ops.SequenceBase, x: Tensor, *inputs: Tensor) -> list[Tensor]:
    """Export as LSTM, GRU or RNN, which have time before the batch."""
    *states, lengths, w, r, b = inputs
    is_even = lengths.constant is not None and all(length == x.shape[1] for length in lengths.constant.tolist())
    counted = None if is_even else graph.cast(lengths, i32)
    by_time = graph.Transpose(x, perm=[1, 0, 2])
    before = [graph.Transpose(state, perm=[1, 0, 2]) for state in states]
    outputs, *after = _steps(graph, op, by_time, before, counted, [w, r, b], op.direction)
    last = [graph.Transpose(state, perm=[1, 0, 2]) for state in after]
    return [graph.Transpose(outputs, perm=[2, 1, 0, 3]), *last]


# --------------------------------------------------------------------------- LSTM, GRU and RNN of ONNX

_OPERATORS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardsigmoid": "HardSigmoid"}
"""The operators of ONNX for activations."""
_SLOPE, _OFFSET = 0.2, 0.5
"""alpha and beta of hardsigmoid if they are missing."""
_REVERSED = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
"""Whether time runs backwards in each direction."""
_ORDER = {4: (1, 3, 0, 2)}
"""The gates of OpenVINO in the order of ONNX: LSTM has i, o, f, c there. The others agree."""


def _attributes(op: ops.RecurrentBase, hidden: int, direction: str = "forward") -> dict[str, Any]:
    """Return the attributes of the operator."""
    names = [name.lower() for name in op.activations[: op.functions]]
    alphas = [_given(op.activations_alpha, i, _SLOPE) for i, name in enumerate(names) if name == "hardsigmoid"]
    betas = [_given(op.activations_beta, i, _OFFSET) for i, name in enumerate(names) if name == "hardsigmoid"]
    directions = len(_REVERSED[direction])
    found: dict[str, Any] = {
        "hidden_size": hidden,
        "direction": direction,
        "activations": [_OPERATORS[name] for name in names] * directions,
        "activation_alpha": alphas * directions or None,
        "activation_beta": betas * directions or None,
        "clip": op.clip if 0 < op.clip < np.inf else None,
    }
    if isinstance(op, ops.GruBase):
        found["linear_before_reset"] = int(op.linear_before_reset)
    return found


def _steps(
    graph: Graph,
    op: ops.RecurrentBase,
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
    kind = "LSTM" if isinstance(op, ops.LstmBase) else "GRU" if isinstance(op, ops.GruBase) else "RNN"
    if x.element_type == f64 or (kind == "RNN" and 0 < op.clip < np.inf):  # onnxruntime has no f64, and ignores clip
        results = []
        for number, is_reverse in enumerate(_REVERSED[direction]):
            own = [None if t is None else graph.Gather(t, graph.constant(number), axis=0) for t in weights]
            before = [graph.Gather(state, graph.constant(number), axis=0) for state in states]
            results.append(_one_direction(graph, op, x, before, lengths, own, is_reverse))
        outputs, *after = zip(*results, strict=True)
        return [_stacked(graph, outputs, 1), *(_stacked(graph, state, 0) for state in after)]
    if b is not None:
        b = _both_biases(graph, op, b, hidden, len(_REVERSED[direction]))
    inputs = x, *(_in_order(graph, op, t, hidden) for t in (w, r)), b, lengths, *states
    return graph.node(kind, *inputs, outputs=1 + len(states), **_attributes(op, hidden, direction))


def _hidden_size(graph: Graph, op: ops.RecurrentBase, w: Tensor, r: Tensor) -> int:
    if op.hidden_size:
        return op.hidden_size
    places = (r.shape[2], 1), (w.shape[1], op.gates), (r.shape[1], op.gates), (op.output_shapes[0][-1], 1)
    known = next((dim.length // factor for dim, factor in places if dim.is_static), None)
    graph.require(known is not None, "the size of the hidden state is unknown")
    assert known is not None
    return known


def _in_order(graph: Graph, op: ops.RecurrentBase, weights: Tensor, hidden: int) -> Tensor:
    """Return weights [directions, gates * hidden, ...] with the gates in the order of ONNX."""
    order = _ORDER.get(op.gates)
    if order is None:
        return weights
    if weights.value.const_value is not None and weights.constant is not None:
        parts = np.split(weights.constant, op.gates, axis=1)
        return graph.constant(np.concatenate([parts[gate] for gate in order], axis=1), weights.element_type)
    split = graph.node("Split", weights, [hidden] * op.gates, outputs=op.gates, axis=1)
    return graph.Concat(*(split[gate] for gate in order), axis=1)


def _both_biases(graph: Graph, op: ops.RecurrentBase, bias: Tensor, hidden: int, directions: int) -> Tensor:
    """Return biases [directions, biases * hidden]: first the biases of the input, then those for the hidden state."""
    own = bias.element_type

    def zeros(count: int) -> Tensor:
        return graph.constant(np.zeros((directions, count * hidden), own.to_dtype()), own)

    if op.biases == op.gates:
        return graph.Concat(_in_order(graph, op, bias, hidden), zeros(op.gates), axis=1)
    first, last = graph.node("Split", bias, [op.gates * hidden, hidden], outputs=2, axis=1)
    return graph.Concat(first, zeros(op.gates - 1), last, axis=1)


# ----- step by step, for what LSTM, GRU and RNN cannot do in onnxruntime

_Function = Callable[[Graph, Tensor], Tensor]


def _functions(op: ops.RecurrentBase) -> list[_Function]:
    """Return the activations f, g and h."""
    return [partial(_activated, op, index) for index in range(op.functions)]


def _given(numbers: Sequence[float], index: int, default: float) -> float:
    """Return a number of a list, or a default where the list is too short."""
    return numbers[index] if index < len(numbers) else default


def _activated(op: ops.RecurrentBase, index: int, graph: Graph, x: Tensor) -> Tensor:
    """Return one of the activations; ``clip`` applies to the first two."""
    if 0 < op.clip < np.inf and index < 2:
        x = graph.Clip(x, -op.clip, op.clip)
    name = op.activations[index].lower()
    if name != "hardsigmoid":
        return graph.node(_OPERATORS[name], x)[0]
    alpha, beta = _given(op.activations_alpha, index, _SLOPE), _given(op.activations_beta, index, _OFFSET)
    return graph.Clip(graph.Add(graph.Mul(x, alpha), beta), 0.0, 1.0)


def _stacked(graph: Graph, parts: Sequence[Tensor], axis: int) -> Tensor:
    return graph.Concat(*(graph.Unsqueeze(part, [axis]) for part in parts), axis=axis)


def _one_direction(
    graph: Graph,
    op: ops.RecurrentBase,
    x: Tensor,
    states: Sequence[Tensor],
    lengths: Tensor | None,
    weights: Sequence[Tensor | None],
    is_reverse: bool,
) -> list[Tensor]:
    """Return all hidden states [time, batch, hidden], and the last states [batch, hidden]."""
    w, r, b = weights
    assert w is not None
    assert r is not None
    inputs = graph.MatMul(x, graph.Transpose(w, perm=[1, 0]))
    rest = None
    if b is not None:
        rows = graph.Shape(w, end=1)
        inputs = graph.Add(inputs, graph.Slice(b, [0], rows, [0]))
        rest = graph.Slice(b, rows, [LAST], [0]) if op.biases > op.gates else None
    turned = graph.Transpose(r, perm=[1, 0])
    time = graph.size_of(x, 0)
    last = graph.Sub(graph.as_scalar(time), 1)
    counts = None if lengths is None else graph.Unsqueeze(graph.cast(lengths, i64), [1])

    def step(body: Graph, number: Tensor, before: Sequence[Tensor]) -> LoopStep:
        at = body.Sub(last, number) if is_reverse else number
        after = _cell(body, op, body.Gather(inputs, at, axis=0), before, turned, rest)
        if counts is None:
            return LoopStep(after, after[:1])
        runs = body.Less(at, counts)
        kept = [body.Where(runs, new, old) for new, old in zip(after, before, strict=True)]
        return LoopStep(kept, [body.Where(runs, after[0], body.number(0, x.element_type))])

    found = loop(graph, time, states, step)
    after, outputs = found[: len(states)], found[len(states)]
    if is_reverse:
        outputs = graph.Slice(outputs, [-1], [FIRST], [0], [-1])
    if counts is not None:
        after = [graph.Where(graph.Greater(counts, 0), state, graph.number(0, x.element_type)) for state in after]
    return [outputs, *after]


def _cell(
    graph: Graph, op: ops.RecurrentBase, x: Tensor, states: Sequence[Tensor], weights: Tensor, rest: Tensor | None
) -> list[Tensor]:
    """Return the states after a step; x [batch, gates * hidden] is the input's part, including biases."""
    if isinstance(op, ops.LstmBase):
        f, g, h = _functions(op)
        hidden, cell = states
        gates = graph.Add(x, graph.MatMul(hidden, weights))
        forget, admit, candidate, emit = graph.split_evenly(gates, 4, axis=1)
        kept = graph.Mul(f(graph, forget), cell)
        after = graph.Add(kept, graph.Mul(f(graph, admit), g(graph, candidate)))
        return [graph.Mul(f(graph, emit), h(graph, after)), after]
    (hidden,) = states
    if isinstance(op, ops.GruBase):
        return [_gru_cell(graph, op, x, hidden, weights, rest)]
    (f,) = _functions(op)
    return [f(graph, graph.Add(x, graph.MatMul(hidden, weights)))]


def _gru_cell(graph: Graph, op: ops.GruBase, x: Tensor, hidden: Tensor, weights: Tensor, rest: Tensor | None) -> Tensor:
    f, g = _functions(op)
    parts = [graph.split_evenly(t, 3, axis=1) for t in (x, weights)]
    (x_update, x_reset, x_new), (w_update, w_reset, w_new) = parts
    update = f(graph, graph.Add(x_update, graph.MatMul(hidden, w_update)))
    reset = f(graph, graph.Add(x_reset, graph.MatMul(hidden, w_reset)))
    if op.linear_before_reset:
        product = graph.MatMul(hidden, w_new)
        inner = graph.Mul(reset, product if rest is None else graph.Add(product, rest))
    else:
        inner = graph.MatMul(graph.Mul(reset, hidden), w_new)
    new = g(graph, graph.Add(x_new, inner))
    one = graph.number(1, x.element_type)
    return graph.Add(graph.Mul(graph.Sub(one, update), new), graph.Mul(update, hidden))
