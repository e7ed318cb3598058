"""Steps of recurrent cells, and sequences of steps.

A step is built for one batch size and keeps its buffers. ``step(x, hidden, out, *cell)`` fills ``out`` with the hidden
state that follows ``hidden`` and updates the cell state of an LSTM in place. ``x`` [batch, gates * hidden] is the
input's contribution to the gates, including biases. In ``x`` and in the recurrent weights [gates * hidden, hidden], the
gates come in the order of the specifications.

An activation ``f(x, y)`` fills y from x; y may be x.
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
    np.multiply(x, -1, out=y)  # np.negative of NumPy 2.4 is wrong in place if elements lie 16 bytes apart
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
    """Return the function applied to its argument clipped to [-limit, limit]."""

    def clipped_function(x: Array, y: Array) -> None:
        np.clip(x, -limit, limit, out=y)
        function(y, y)

    return clipped_function


# --------------------------------------------------------------------------- steps


def input_product(x: Array, weights: Array, bias: Array) -> Array:
    """Compute x [..., input] times the transposed weights [n, input] plus bias [n], as one product for all leading
    axes."""
    product = np.dot(x.reshape(prod(x.shape[:-1]), x.shape[-1]), weights.T)
    return np.add(product, bias, out=product).reshape(*x.shape[:-1], len(weights))


def rnn_step(recurrent: Array, functions: Sequence[Activation], batch: int) -> Step:
    """Return a step that computes H = f(x + H R^T)."""
    (f,) = functions
    gate = np.empty((batch, len(recurrent)), recurrent.dtype)
    weights = recurrent.T

    def step(x: Array, hidden: Array, out: Array) -> None:
        np.dot(hidden, weights, out=gate)
        np.add(gate, x, out=gate)
        f(gate, out)

    return step


def gru_step(recurrent: Array, functions: Sequence[Activation], batch: int, bias: Array | None = None) -> Step:
    """Return a step that computes z, r = f(x_zr + H R_zr^T), h = g(x_h + (r H) R_h^T), H = (1 - z) h + z H.

    With ``bias`` the reset gate is applied after the product: h = g(x_h + r (H R_h^T + bias)).
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
    """Return a step that computes f, i, o = f(x_fio + H R_fio^T), c = g(x_c + H R_c^T), C = f C + i c, H = o h(C).

    The gates are in the order f, i, c, o.
    """
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
        # One pass over all gates, although one of them is not needed, costs less than two calls.
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
    """Run one direction of a sequence: ``outputs`` [batch, time, hidden] and the ``finals`` of each state [batch,
    hidden].

    ``inputs`` are [batch, time, gates * hidden]. Row b takes part in its first ``lengths[b]`` time steps. Its outputs
    after that are zero, and so are its finals if its length is 0 or exceeds the number of steps. Rows are independent:
    every step computes all rows, and results outside a row's own steps are not used.
    """
    time = inputs.shape[1]
    last = _rows_by_last_step(lengths)
    steps = range(min(max(last, default=-1) + 1, time))
    hidden, *cells = initial[0], *(np.array(cell) for cell in initial[1:])
    for final in finals:
        final[...] = 0
    for t in reversed(steps) if backward else steps:
        rows = last.get(t)
        if backward and rows is not None and t != steps[-1]:  # rows whose first step this is
            for state, begin in zip((hidden, *cells), initial, strict=True):
                state[rows] = begin[rows]
        step(inputs[:, t], hidden, outputs[:, t], *cells)
        hidden = outputs[:, t]
        if rows is not None and not backward:  # rows whose last step this is
            for state, final in zip((hidden, *cells), finals, strict=True):
                final[rows] = state[rows]
    if backward:
        rows = np.flatnonzero(lengths > 0)
        for state, final in zip((hidden, *cells), finals, strict=True):
            final[rows] = state[rows]
    outputs[np.arange(time) >= lengths[:, np.newaxis]] = 0


def _rows_by_last_step(lengths: Array) -> dict[int, Any]:
    """Return which rows have their last step at a time."""
    if not lengths.size or (lengths == lengths[0]).all():
        return {int(n) - 1: slice(None) for n in lengths[:1]}
    return {int(n) - 1: np.flatnonzero(lengths == n) for n in np.unique(lengths)}
