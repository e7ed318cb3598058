"""Fast forms of recurrent operations against their kernels, over kinds, directions, activations and layouts."""

from typing import Any

import numpy as np
import pytest
from support.binding import bound_results
from support.tensors import applied_to

from ovir.ops.recurrent import GRUCell, GRUSequence, LSTMCell1, LSTMCell4, LSTMSequence, RNNCell, RNNSequence

INPUT, HIDDEN = 5, 4
KINDS: dict[str, Any] = {
    "rnn": (RNNCell, RNNSequence, 1),
    "gru": (GRUCell, GRUSequence, 3),
    "lstm": (LSTMCell4, LSTMSequence, 4),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "relu": {"activations": ("relu", "relu", "relu")},
    "hardsigmoid": {"activations": ("hardsigmoid", "sigmoid", "tanh")},
    "clipped": {"clip": 0.3},
    "linear before reset": {"linear_before_reset": True},
}


def weights(random: np.random.Generator, gates: int, biases: int, *lead: int, dtype: Any) -> list[Any]:
    sizes = (gates * HIDDEN, INPUT), (gates * HIDDEN, HIDDEN), (biases * HIDDEN,)
    return [(random.standard_normal((*lead, *size)) / 2).astype(dtype) for size in sizes]


def check(op: Any, inputs: list[Any], changing: int) -> None:
    """Compare both forms; the first inputs, ``changing`` of them, are not constant."""
    op = applied_to(op, *inputs)
    result = op.run(*inputs)
    expected = list(result) if isinstance(result, tuple) else [result]
    got = bound_results(op, tuple(inputs), expected, set(range(changing, len(inputs))))
    assert got is not None
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * max(np.abs(b).max(), 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_cell(kind: str, setting: str, batch: int, dtype: Any) -> None:
    cell, _, gates = KINDS[kind]
    if setting == "linear before reset" and kind != "gru":
        return
    random = np.random.default_rng(0)
    op = cell(hidden_size=HIDDEN, **SETTINGS[setting])
    states = [random.standard_normal((batch, HIDDEN)).astype(dtype) for _ in range(1 + (kind == "lstm"))]
    x = random.standard_normal((batch, INPUT)).astype(dtype)
    check(op, [x, *states, *weights(random, gates, op.biases, dtype=dtype)], 1 + len(states))


@pytest.mark.slow
@pytest.mark.parametrize("length", [6, 4])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_time", [False, True])
def test_sequence(by_time: bool, kind: str, setting: str, direction: str, batch: int, length: int) -> None:
    _, sequence, gates = KINDS[kind]
    if setting == "linear before reset" and kind != "gru":
        return
    random = np.random.default_rng(1)
    op = sequence(hidden_size=HIDDEN, direction=direction, **SETTINGS[setting])
    both = op.directions
    shape = (batch, both, HIDDEN)
    states = [random.standard_normal(shape).astype(np.float32) for _ in range(1 + (kind == "lstm"))]
    x = random.standard_normal((batch, 6, INPUT)).astype(np.float32)
    if by_time:
        x = x.swapaxes(0, 1).copy().swapaxes(0, 1)
    lengths = np.full(batch, length, np.int64)
    check(op, [x, *states, lengths, *weights(random, gates, op.biases, both, dtype=np.float32)], 1 + len(states))


def test_lengths_that_differ_or_change_have_no_fast_form() -> None:
    random = np.random.default_rng(2)
    op = GRUSequence(hidden_size=HIDDEN, direction="forward")
    x, state = np.ones((2, 3, INPUT), np.float32), np.ones((2, 1, HIDDEN), np.float32)
    inputs = (x, state, np.array([1, 3]), *weights(random, 3, 3, 1, dtype=np.float32))
    outputs = [np.empty((2, 1, 3, HIDDEN), np.float32), state]
    assert bound_results(op, inputs, outputs, {2, 3, 4, 5}) is None
    even = (x, state, np.array([3, 3]), *inputs[3:])
    assert bound_results(op, even, outputs, {3, 4, 5}) is None
    assert bound_results(op, even, outputs, {2, 3, 4, 5}) is not None


def test_inputs_that_are_ignored_are_still_reported() -> None:
    random = np.random.default_rng(3)
    x, state = np.ones((1, INPUT), np.float32), np.ones((1, HIDDEN), np.float32)
    inputs = (x, state, state.copy(), *weights(random, 4, 4, dtype=np.float32), np.ones(3 * HIDDEN, np.float32))
    for attributes, constants in (({}, {3, 4, 5, 6}), ({"input_forget": True}, {3, 4, 5})):
        op = LSTMCell1(hidden_size=HIDDEN, **attributes)
        given = inputs if 6 in constants else inputs[:6]
        assert bound_results(op, given, [state, state.copy()], constants) is None
