"""Cells and sequences of recurrent networks: their steps as calls of NumPy on arrays that are made once.

All arrays of a step are [batch, ...] for one direction and [2, batch, ...] for both, which run side by side: while one
reads the time t, the other reads the time before the one that it read last. A step is built for one batch size, and
``calls(x, hidden, out, *cells)`` returns what fills ``out`` with the hidden state that follows ``hidden``; ``cells``
are the arrays of the cell state before and after the step.

The packed weights are [input, gates * hidden]. A gate 1 / (1 + e^-x) is left as 1 + e^-x, and what it multiplies is
divided by it. Its weights are negated, which is exact, so that the products give -x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call
from ovir.fast.base.binder_protocol import Binder, is_real
from ovir.fast.base.products import SHARED, bind_product, product_calls, readable
from ovir.fast.registry import fast
from ovir.ops.recurrent import Activation, CellBase, GruBase, LstmBase, LSTMCell1, RecurrentBase, SequenceBase, sigmoid

StepCalls = Callable[..., list[Call]]

_ORDERS = {1: (0,), 3: (0, 1, 2), 4: (0, 1, 3, 2)}
"""The order in which gates are packed, by their number: f applies to all but the last."""


def packed(rows: Array, order: Sequence[int], f: Activation) -> Array:
    """Return weights [..., gates * hidden, n] as [..., n, gates * hidden] with the gates in ``order``.

    Gates with the sigmoid ``f`` are negated: all but the last one.
    """
    *lead, count, length = rows.shape
    gates = rows.reshape(*lead, len(order), count // len(order), length)[..., list(order), :, :]
    if f is sigmoid:
        gates[..., :-1, :, :] *= -1
    return np.ascontiguousarray(gates.reshape(rows.shape).swapaxes(-1, -2))


def rnn_calls(binder: Binder, weights: Array, functions: Sequence[Activation], batch: int) -> StepCalls:
    """Return the calls of H = f(x + H R^T)."""
    (f,) = functions
    gate = _workspace(binder, weights, batch)

    def calls(x: Array, hidden: Array, out: Array) -> list[Call]:
        return [*_product(hidden, weights, gate), (np.add, (gate, x, gate)), _applied(f, gate, out)]

    return calls


def gru_calls(
    binder: Binder, weights: Array, functions: Sequence[Activation], batch: int, bias: Array | None
) -> StepCalls:
    """Return the calls of z, r = f(x_zr + H R_zr^T), h = g(x_h + (r H) R_h^T), H = (1 - z) h + z H.

    With ``bias`` the reset gate is applied after the product: h = g(x_h + r (H R_h^T + bias)).
    """
    f, g = functions
    size = weights.shape[-2]
    gates = _workspace(binder, weights[..., : 2 * size], batch)
    new = _workspace(binder, weights[..., 2 * size :], batch)
    update, reset = gates[..., :size], gates[..., size:]
    gate_weights, new_weights = np.split(weights, [2 * size], axis=-1)
    opened, applying = _opened(f, gates)
    one = np.ones((), gates.dtype)
    if applying is np.divide and g is not np.tanh:
        opened, applying = [*opened, (np.divide, (one, gates, gates))], np.multiply

    def calls(x: Array, hidden: Array, out: Array) -> list[Call]:
        if bias is None:
            candidate = [(applying, (hidden, reset, out)), *_product(out, new_weights, new)]
        else:
            candidate = [*_product(hidden, new_weights, new), (np.add, (new, bias, new)), (applying, (new, reset, new))]
        return [
            *_product(hidden, gate_weights, gates),
            (np.add, (gates, x[..., : 2 * size], gates)),
            *opened,
            *candidate,
            (np.add, (new, x[..., 2 * size :], new)),
            _applied(g, new, new),
            *mixed(hidden, out),
        ]

    def mixed(hidden: Array, out: Array) -> list[Call]:
        if applying is np.divide:  # h is in [-1, 1], so that H - h is finite
            return [
                (np.subtract, (hidden, new, out)),
                (np.divide, (out, update, out)),
                (np.add, (out, new, out)),
            ]
        return [
            (np.multiply, (hidden, update, out)),
            (np.subtract, (one, update, update)),
            (np.multiply, (new, update, new)),
            (np.add, (out, new, out)),
        ]

    return calls


def lstm_calls(binder: Binder, weights: Array, functions: Sequence[Activation], batch: int) -> StepCalls:
    """Return the calls of f, i, o = f(x_fio + H R_fio^T), c = g(x_c + H R_c^T), C = f C + i c, H = o h(C).

    The gates are in the order f, i, o, c.
    """
    f, g, h = functions
    size = weights.shape[-2]
    gates = _workspace(binder, weights, batch)
    forget, admit, emit, candidate = (gates[..., i * size : (i + 1) * size] for i in range(4))
    opened, applying = _opened(f, gates[..., : 3 * size])
    new = binder.scratch(candidate.shape, gates.dtype)
    shared = [*opened, _applied(g, candidate, new), (applying, (new, admit, new))]

    def calls(x: Array, hidden: Array, out: Array, before: Array, cell: Array) -> list[Call]:
        return [
            *_product(hidden, weights, gates),
            (np.add, (gates, x, gates)),
            *shared,
            (applying, (before, forget, cell)),
            (np.add, (cell, new, cell)),
            _applied(h, cell, new),
            (applying, (new, emit, out)),
        ]

    return calls


def at_times(array: Array, times: Sequence[int]) -> Array:
    """Return a view of one time of each direction; the array is [directions, time, batch, ...]."""
    first: Array = array[0, times[0]]
    if len(times) == 1:
        return first
    apart = array.strides[0] + (times[1] - times[0]) * array.strides[1]
    return np.lib.stride_tricks.as_strided(first, (2, *first.shape), (apart, *first.strides))


def _workspace(binder: Binder, weights: Array, batch: int) -> Array:
    return binder.scratch((*weights.shape[:-2], batch, weights.shape[-1]), weights.dtype)


def _product(hidden: Array, weights: Array, out: Array) -> list[Call]:
    if out.ndim == 2 and out.size * len(weights) < 2 * SHARED:
        return [(np.dot, (hidden, weights, out))]  # which has a smaller overhead than matmul
    return product_calls(hidden, weights, out)


def _applied(function: Activation, x: Array, y: Array) -> Call:
    return (np.tanh, (x, y)) if function is np.tanh else (_apply, (function, x, y))


def _apply(function: Activation, x: Array, y: Array) -> None:
    np.copyto(y, function(x))


def _opened(function: Activation, gates: Array) -> tuple[list[Call], Callable[..., Any]]:
    """Return the calls that turn sums into gates, and the function that applies a gate to an array."""
    if function is not sigmoid:
        return [_applied(function, gates, gates)], np.multiply
    one = np.ones((), gates.dtype)
    return [(np.exp, (gates, gates)), (np.add, (gates, one, gates))], np.divide


# --------------------------------------------------------------------------- sequences


def bind_steps(
    op: RecurrentBase,
    binder: Binder,
    x: Array,
    states: Sequence[Array],
    weights: Sequence[Array],
    times: Sequence[Sequence[int]],
    results: Sequence[Array],
) -> Array:
    """Bind the steps of all directions side by side, and return the last hidden states [directions, batch, hidden].

    The arrays have the shapes of sequences, and may not be empty. ``weights`` are the constants W, R and B, of
    which B may be missing, ``times`` the times that each direction reads in turn. ``results`` are Y, which gets the
    hidden states, and the last cell state of an LSTM.
    """
    batch, directions, size = states[0].shape
    width = op.gates * size
    functions, order = op.activation_functions(), _ORDERS[op.gates]
    f = functions[0]
    w, r, b = op.weights(weights[0], weights[1], weights[2] if len(weights) > 2 else None)
    biases = [b[:, np.newaxis, :width].swapaxes(1, 2), b[:, np.newaxis, width:]]
    product = _bind_input_product(
        binder,
        x,
        binder.prepared("W", lambda: np.concatenate(list(packed(w, order, f)), axis=-1)),
        binder.prepared("B", lambda: packed(biases[0], order, f).reshape(-1)),
    )
    inputs = product.reshape(*product.shape[:2], directions, width).transpose(2, 0, 1, 3)
    recurrent_weights = binder.prepared("R", lambda: packed(r, order, f))
    outputs, *cells = results[0].transpose(1, 2, 0, 3), *results[1:]
    hidden, *before = (state.swapaxes(0, 1) for state in states)
    after = [cell.swapaxes(0, 1) for cell in cells]
    rest = biases[1] if biases[1].size else None
    if directions == 1:
        hidden, recurrent_weights = hidden[0], recurrent_weights[0]
        before, after = [c[0] for c in before], [c[0] for c in after]
        rest = rest if rest is None else rest[0]
    hidden = readable(binder, hidden)
    step = binder, recurrent_weights, functions, batch
    if isinstance(op, GruBase):
        calls = gru_calls(*step, rest)
    else:
        calls = (lstm_calls if isinstance(op, LstmBase) else rnn_calls)(*step)
    for now in zip(*times, strict=True):
        out = at_times(outputs, now)
        for function, arguments in calls(at_times(inputs, now), hidden, out, *before, *after):
            binder.call(function, *arguments)
        hidden, before = out, after
    return hidden


def _bind_input_product(binder: Binder, x: Array, weights: Array, bias: Array) -> Array:
    """Bind the product of all inputs [batch, time, input] with packed weights; return it as [time, batch, n]."""
    is_by_time = not x.flags.c_contiguous
    x = x.swapaxes(0, 1) if is_by_time else x
    if not x.flags.c_contiguous:
        copy = binder.scratch(x.shape, x.dtype)
        binder.call(np.copyto, copy, x)
        x = copy
    product = binder.scratch((*x.shape[:2], weights.shape[-1]), x.dtype)
    bind_product(binder, x, weights, product)
    binder.call(np.add, product, bias, product)
    return product if is_by_time else product.swapaxes(0, 1)


# --------------------------------------------------------------------------- the operations


@fast(CellBase, in_f32=True)
def cell(op: CellBase, binder: Binder, *inputs: Array) -> bool:
    count = len(op.output_types)
    x, states, weights = inputs[0], inputs[1 : 1 + count], inputs[1 + count : 4 + count]
    is_constant = all(map(binder.is_constant, range(1 + count, len(inputs))))
    if not is_real(x) or not is_constant or not all(a.size for a in (x, *states)):
        return False
    results = [binder.output(index)[:, np.newaxis] for index in range(count)]
    results[0] = results[0][:, np.newaxis]  # [batch, directions, time, hidden]
    of_sequence = [w[np.newaxis] for w in weights]
    bind_steps(op, binder, x[:, np.newaxis], [s[:, np.newaxis] for s in states], of_sequence, [[0]], results)
    return True


@fast(LSTMCell1, in_f32=True)
def lstm_cell(op: LSTMCell1, binder: Binder, *inputs: Array) -> bool:
    if op.weights_format != "fico" or op.input_forget:
        return False
    if len(inputs) > 6 and (not binder.is_constant(6) or inputs[6].any()):
        return False
    return cell(op, binder, *inputs)


@fast(SequenceBase, in_f32=True)
def sequence(op: SequenceBase, binder: Binder, *inputs: Array) -> bool:
    x, *states, lengths, w, r, b = inputs
    constant = range(len(inputs) - 4, len(inputs))
    if not is_real(x) or not all(map(binder.is_constant, constant)):
        return False
    steps = int(lengths.max(initial=0))
    is_even = 0 < steps <= x.shape[1] and bool((lengths == steps).all())
    if not is_even or not all(a.size for a in (x, *states)):
        return False
    results = [binder.output(index) for index in range(1 + len(states))]
    forward = range(steps)
    times = {"forward": [forward], "reverse": [forward[::-1]], "bidirectional": [forward, forward[::-1]]}
    last = bind_steps(op, binder, x, states, (w, r, b), times[op.direction], (results[0], *results[2:]))
    binder.call(np.copyto, results[1].swapaxes(0, 1), last)
    if steps < x.shape[1]:
        binder.call(np.copyto, results[0][:, :, steps:], np.zeros((), x.dtype))
    return True
