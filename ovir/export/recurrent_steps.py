"""Recurrent networks in ONNX as loops over their steps, for what LSTM, GRU and RNN cannot do in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovir.core.element_types import i64
from ovir.export.graph import Graph
from ovir.export.loops import Step, loop
from ovir.export.parts import split_evenly
from ovir.export.sizes import FIRST, LAST, Size, size_of, vector
from ovir.export.tensors import Tensor
from ovir.ops.recurrent import GruBase, LstmBase, RecurrentBase

Function = Callable[[Graph, Tensor], Tensor]
OPERATORS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardsigmoid": "HardSigmoid"}
"""The operators of ONNX for activations."""
SLOPE, OFFSET = 0.2, 0.5
"""alpha and beta of hardsigmoid if they are missing."""


def stepwise(
    graph: Graph,
    op: RecurrentBase,
    x: Tensor,
    states: Sequence[Tensor],
    lengths: Tensor | None,
    weights: Sequence[Tensor | None],
    direction: str,
) -> list[Tensor]:
    """Return the outputs of LSTM, GRU or RNN, computed step by step; see ``recurrent.steps``."""
    reverse = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    found = []
    for number, is_reverse in enumerate(reverse):
        own = [None if t is None else graph.Gather(t, graph.constant(number), axis=0) for t in weights]
        before = [graph.Gather(state, graph.constant(number), axis=0) for state in states]
        found.append(_one_direction(graph, op, x, before, lengths, own, is_reverse))
    outputs, *after = zip(*found, strict=True)
    return [_stacked(graph, outputs, 1), *(_stacked(graph, state, 0) for state in after)]


def functions(op: RecurrentBase) -> list[Function]:
    """Return the activations f, g and h; ``clip`` applies to the first two."""
    found = []
    for index, name in enumerate(op.activations[: op.functions]):
        function = _function(op, index, name.lower())
        found.append(_clipped(function, op.clip) if 0 < op.clip < np.inf and index < 2 else function)
    return found


def given(numbers: Sequence[float], index: int, default: float) -> float:
    """Return a number of a list, or a default where the list is too short."""
    return numbers[index] if index < len(numbers) else default


def _function(op: RecurrentBase, index: int, name: str) -> Function:
    if name != "hardsigmoid":
        operator = OPERATORS[name]
        return lambda graph, x: graph.node(operator, x)[0]
    alpha, beta = given(op.activations_alpha, index, SLOPE), given(op.activations_beta, index, OFFSET)
    return lambda graph, x: graph.Clip(graph.Add(graph.Mul(x, alpha), beta), 0.0, 1.0)


def _clipped(function: Function, limit: float) -> Function:
    return lambda graph, x: function(graph, graph.Clip(x, -limit, limit))


def _stacked(graph: Graph, parts: Sequence[Tensor], axis: int) -> Tensor:
    return graph.Concat(*(graph.Unsqueeze(part, [axis]) for part in parts), axis=axis)


def _one_direction(
    graph: Graph,
    op: RecurrentBase,
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
    time: Size = size_of(graph, x, 0)
    last = graph.Sub(graph.Squeeze(vector(graph, [time])), 1)
    counts = None if lengths is None else graph.Unsqueeze(graph.cast(lengths, i64), [1])

    def step(body: Graph, number: Tensor, before: Sequence[Tensor]) -> Step:
        at = body.Sub(last, number) if is_reverse else number
        after = _cell(body, op, body.Gather(inputs, at, axis=0), before, turned, rest)
        if counts is None:
            return Step(after, [body.Identity(after[0])])
        runs = body.Less(at, counts)
        kept = [body.Where(runs, new, old) for new, old in zip(after, before, strict=True)]
        return Step(kept, [body.Where(runs, after[0], body.number(0, x.element_type))])

    found = loop(graph, time, states, step)
    after, outputs = found[: len(states)], found[len(states)]
    if is_reverse:
        outputs = graph.Slice(outputs, [-1], [FIRST], [0], [-1])
    if counts is not None:
        after = [graph.Where(graph.Greater(counts, 0), state, graph.number(0, x.element_type)) for state in after]
    return [outputs, *after]


def _cell(
    graph: Graph, op: RecurrentBase, x: Tensor, states: Sequence[Tensor], weights: Tensor, rest: Tensor | None
) -> list[Tensor]:
    """Return the states after a step; x [batch, gates * hidden] is the input's part, including biases."""
    if isinstance(op, LstmBase):
        return _lstm_cell(graph, op, x, states, weights)
    (hidden,) = states
    if isinstance(op, GruBase):
        return [_gru_cell(graph, op, x, hidden, weights, rest)]
    (f,) = functions(op)
    return [f(graph, graph.Add(x, graph.MatMul(hidden, weights)))]


def _lstm_cell(graph: Graph, op: RecurrentBase, x: Tensor, states: Sequence[Tensor], weights: Tensor) -> list[Tensor]:
    f, g, h = functions(op)
    hidden, cell = states
    gates = graph.Add(x, graph.MatMul(hidden, weights))
    forget, admit, candidate, emit = split_evenly(graph, gates, 4, axis=1)
    kept = graph.Mul(f(graph, forget), cell)
    after = graph.Add(kept, graph.Mul(f(graph, admit), g(graph, candidate)))
    return [graph.Mul(f(graph, emit), h(graph, after)), after]


def _gru_cell(graph: Graph, op: GruBase, x: Tensor, hidden: Tensor, weights: Tensor, rest: Tensor | None) -> Tensor:
    f, g = functions(op)
    parts = [split_evenly(graph, t, 3, axis=1) for t in (x, weights)]
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
