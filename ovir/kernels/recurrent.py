"""Steps of recurrent cells, and sequences of them.

A step is made for one batch and keeps its buffers: ``step(x, hidden, out, *cell)`` fills ``out`` with the hidden state
that follows ``hidden``, and brings the cell state of an LSTM, if there is one, up to date where it stands. ``x`` is the
input's part in the gates, [batch, gates * hidden], biases included. In it and in ``recurrent``, the weights [gates *
hidden, hidden] of the hidden state, the gates follow each other in the order of the specifications.

An activation ``f(x, y)`` fills y from x, and y may be x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array

Activation = Callable[[Array, Array], object]
Step = Callable[..., None]

# --------------------------------------------------------------------------- activations


def relu(x: Array, y: Array) -> None:
    np.clip(x, 0, np.inf, out=y)


def sigmoid(x: Array, y: Array) -> None:
    np.multiply(x, -1, out=y)  # np.negative of NumPy 2.4 goes wrong in place where elements lie 16 bytes apart
    np.exp(y, out=y)
    np.add(y, 1, out=y)
    np.divide(1, y, out=y)


def tanh(x: Array, y: Array) -> None:
    np.tanh(x, out=y)


def hard_sigmoid(alpha: float, beta: float) -> Activation:
    def function(x: Array, y: Array) -> None:
        np.multiply(x, alpha, out=y)
        np.add(y, beta, out=y)
        np.clip(y, 0, 1, out=y)

    return function


def clipped(function: Activation, limit: float) -> Activation:
    """The function of what is brought into [-limit, limit]."""

    def clipped_function(x: Array, y: Array) -> None:
        np.clip(x, -limit, limit, out=y)
        function(y, y)

    return clipped_function


# --------------------------------------------------------------------------- steps


def input_product(x: Array, weights: Array, bias: Array) -> Array:
    """x [..., input] times weights [n, input] transposed, plus bias [n]: one product for all that stands before."""
    product = np.dot(x.reshape(prod(x.shape[:-1]), x.shape[-1]), weights.T)
    return np.add(product, bias, out=product).reshape(*x.shape[:-1], len(weights))


def rnn_step(recurrent: Array, functions: Sequence[Activation], batch: int) -> Step:
    """H = f(x + H R^T)."""
    (f,) = functions
    gate = np.empty((batch, len(recurrent)), recurrent.dtype)
    weights = recurrent.T

    def step(x: Array, hidden: Array, out: Array) -> None:
        np.dot(hidden, weights, out=gate)
        np.add(gate, x, out=gate)
        f(gate, out)

    return step


def gru_step(recurrent: Array, functions: Sequence[Activation], batch: int, bias: Array | None = None) -> Step:
    """z, r = f(x_zr + H R_zr^T), h = g(x_h + (r H) R_h^T), H = (1 - z) h + z H.

    With ``bias`` the reset gate comes after the product: h = g(x_h + r (H R_h^T + bias)).
    """
    f, g = functions
    size = recurrent.shape[1]
    gates = np.empty((batch, 2 * size), recurrent.dtype)
    update, reset = gates[:, :size], gates[:, size:]
    new, kept = np.empty((2, batch, size), recurrent.dtype)
    gate_weights, new_weights = recurrent[: 2 * size].T, recurrent[2 * size :].T

    def step(x: Array, hidden: Array, out: Array) -> None:
        np.dot(hidden, gate_weights, out=gates)
        np.add(gates, x[:, : 2 * size], out=gates)
        f(gates, gates)
        if bias is None:
            np.multiply(reset, hidden, out=kept)
            np.dot(kept, new_weights, out=new)
        else:
            np.dot(hidden, new_weights, out=new)
            np.add(new, bias, out=new)
            np.multiply(new, reset, out=new)
        np.add(new, x[:, 2 * size :], out=new)
        g(new, new)
        np.multiply(update, hidden, out=kept)
        np.subtract(1, update, out=out)
        np.multiply(out, new, out=out)
        np.add(out, kept, out=out)

    return step


def lstm_step(recurrent: Array, functions: Sequence[Activation], batch: int) -> Step:
    """f, i, o = f(x_fio + H R_fio^T), c = g(x_c + H R_c^T), C = f C + i c, H = o h(C); the order is f, i, c, o."""
    f, g, h = functions
    size = recurrent.shape[1]
    gates = np.empty((batch, 4 * size), recurrent.dtype)
    forget, admit, candidate, emit = (gates[:, i * size : (i + 1) * size] for i in range(4))
    new = np.empty((batch, size), recurrent.dtype)
    weights = recurrent.T

    def step(x: Array, hidden: Array, out: Array, cell: Array) -> None:
        np.dot(hidden, weights, out=gates)
        np.add(gates, x, out=gates)
        g(candidate, new)
        # One pass over all gates, one of them in vain, costs less than the calls for two parts.
        f(gates, gates)
        np.multiply(forget, cell, out=cell)
        np.multiply(admit, new, out=new)
        np.add(cell, new, out=cell)
        h(cell, new)
        np.multiply(emit, new, out=out)

    return step


# --------------------------------------------------------------------------- sequences


def scan(
    step: Step,
    inputs: Array,
    initial: Sequence[Array],
    lengths: Array,
    backward: bool,
    outputs: Array,
    finals: Sequence[Array],
) -> None:
    """One direction of a sequence: ``outputs`` [batch, time, hidden] and the ``finals`` of each state [batch, hidden].

    ``inputs`` are [batch, time, gates * hidden]. Row b takes part in its first ``lengths[b]`` steps of time; what comes
    after is zero in its outputs, and so are its finals where it takes part in none, or should in more than there are.
    Rows are independent, so all of them go through every step, and what a row computes outside its own is not used.
    """
    time = inputs.shape[1]
    last = _rows_by_last_step(lengths)
    steps = range(min(max(last, default=-1) + 1, time))
    hidden, *cells = initial[0], *(np.array(cell) for cell in initial[1:])
    for final in finals:
        final[...] = 0
    for t in reversed(steps) if backward else steps:
        rows = last.get(t)
        if backward and rows is not None and t != steps[-1]:  # these begin here
            for state, begin in zip((hidden, *cells), initial, strict=True):
                state[rows] = begin[rows]
        step(inputs[:, t], hidden, outputs[:, t], *cells)
        hidden = outputs[:, t]
        if rows is not None and not backward:  # these end here
            for state, final in zip((hidden, *cells), finals, strict=True):
                final[rows] = state[rows]
    if backward:
        rows = np.flatnonzero(lengths > 0)
        for state, final in zip((hidden, *cells), finals, strict=True):
            final[rows] = state[rows]
    outputs[np.arange(time) >= lengths[:, np.newaxis]] = 0


def _rows_by_last_step(lengths: Array) -> dict[int, Any]:
    """Which rows have their last step at a time."""
    if not lengths.size or (lengths == lengths[0]).all():
        return {int(n) - 1: slice(None) for n in lengths[:1]}
    return {int(n) - 1: np.flatnonzero(lengths == n) for n in np.unique(lengths)}
