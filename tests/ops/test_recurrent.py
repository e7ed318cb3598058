"""Recurrent cells and sequences against the formulas, written out for one row and one step at a time."""

from typing import Any

import numpy as np
import pytest

from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.ops.base.operator import Operator
from ovir.ops.recurrent import GRUCell, GRUSequence, LSTMCell1, LSTMCell4, LSTMSequence, RNNCell, RNNSequence

random = np.random.default_rng(0)
KINDS = {"rnn": (RNNCell, RNNSequence, 1), "gru": (GRUCell, GRUSequence, 3), "lstm": (LSTMCell4, LSTMSequence, 4)}


def normal(*shape: int) -> Any:
    return random.standard_normal(shape).astype(np.float32)


FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "hardsigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
}


def formula(op: Any, x: Any, states: Any, w: Any, r: Any, b: Any) -> list[Any]:
    """The states that follow, of vectors and in float64."""
    x, w, r, b = (np.asarray(a, np.float64) for a in (x, w, r, b))
    functions = [FUNCTIONS[name.lower()] for name in op.activations]
    size, clip = r.shape[1], op.clip if op.clip > 0 else np.inf
    before = states[0].astype(np.float64)
    parts = [w[i : i + size] @ x + b[i : i + size] for i in range(0, len(w), size)]
    recurrent = [r[i : i + size] @ before for i in range(0, len(r), size)]

    def gate(f: int, value: Any) -> Any:
        return functions[f](np.clip(value, -clip, clip))

    if len(parts) == 1:
        return [gate(0, parts[0] + recurrent[0])]
    if len(parts) == 3:
        z, reset = (gate(0, parts[i] + recurrent[i]) for i in range(2))
        inner = r[2 * size :] @ (reset * before)
        if op.linear_before_reset:
            inner = reset * (recurrent[2] + b[3 * size :])
        return [(1 - z) * gate(1, parts[2] + inner) + z * before]
    f, i, c, o = (gate(k == 2, parts[k] + recurrent[k]) for k in range(4))
    cell = f * states[1] + i * c
    return [o * functions[2](cell), cell]


def cell_inputs(kind: str, batch: int, inputs: int, size: int, biases: int | None = None) -> list[Any]:
    gates = KINDS[kind][2]
    states = [normal(batch, size) for _ in range(1 + (kind == "lstm"))]
    weights = [normal(gates * size, inputs), normal(gates * size, size), normal((biases or gates) * size)]
    return [normal(batch, inputs), *states, *weights]


def sequence_inputs(
    kind: str, lengths: list[int], time: int, inputs: int, size: int, directions: int, biases: int = 0
) -> list[Any]:
    gates, batch = KINDS[kind][2], len(lengths)
    states = [normal(batch, directions, size) for _ in range(1 + (kind == "lstm"))]
    rows = [normal(directions, gates * size, n) for n in (inputs, size)]
    return [
        normal(batch, time, inputs),
        *states,
        np.array(lengths),
        *rows,
        normal(directions, (biases or gates) * size),
    ]


def sequence_formula(op: Any, inputs: list[Any]) -> list[Any]:
    x, *states, lengths, w, r, b = inputs
    batch, directions, size = states[0].shape
    y = np.zeros((batch, directions, x.shape[1], size))
    finals = [np.zeros((batch, directions, size)) for _ in states]
    for row in range(batch):
        for d in range(directions):
            steps = range(lengths[row])
            current = [state[row, d] for state in states]
            for t in reversed(steps) if d or op.direction == "reverse" else steps:
                current = formula(op, x[row, t], current, w[d], r[d], b[d])
                y[row, d, t] = current[0]
                for final, value in zip(finals, current, strict=True):
                    final[row, d] = value
    return [y, *finals]


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def assert_all_close(results: Any, expected: list[Any], tolerance: float = 1e-5) -> None:
    for result, wanted in zip(as_list(results), expected, strict=True):
        np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)


# --------------------------------------------------------------------------- values

ATTRIBUTES = [
    ("rnn", {}),
    ("rnn", {"activations": ("relu",), "clip": 0.5}),
    ("rnn", {"activations": ("HardSigmoid", "relu")}),
    ("gru", {}),
    ("gru", {"activations": ("sigmoid", "relu"), "clip": 0.3}),
    ("gru", {"linear_before_reset": True}),
    ("gru", {"linear_before_reset": True, "activations": ("Tanh", "sigmoid"), "clip": 0.4}),
    ("lstm", {}),
    ("lstm", {"activations": ("tanh", "sigmoid", "relu"), "clip": 0.2}),
    ("lstm", {"clip": -1.0}),
    ("lstm", {"clip": float("inf")}),
]


@pytest.mark.parametrize(("kind", "attributes"), ATTRIBUTES)
@pytest.mark.parametrize(("batch", "inputs", "size"), [(1, 3, 4), (5, 1, 1), (3, 0, 2), (0, 3, 4)])
def test_cells(kind: str, attributes: dict[str, Any], batch: int, inputs: int, size: int) -> None:
    op = KINDS[kind][0](hidden_size=size, **attributes)
    arrays = cell_inputs(kind, batch, inputs, size, 4 if attributes.get("linear_before_reset") else None)
    x, *states, w, r, b = arrays
    rows = [formula(op, x[row], [state[row] for state in states], w, r, b) for row in range(batch)]
    expected = [np.array([row[i] for row in rows]).reshape(batch, size) for i in range(len(states))]
    assert_all_close(op.run(*arrays), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "attributes"), ATTRIBUTES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("lengths", "time", "size"),
    [
        ([1, 2], 3, 1),
        ([2, 2], 2, 1),
        ([0], 3, 2),
        ([0, 0], 0, 2),
    ],
)
def test_sequences(
    kind: str, attributes: dict[str, Any], direction: str, lengths: list[int], time: int, size: int
) -> None:
    op = KINDS[kind][1](hidden_size=size, direction=direction, **attributes)
    directions = 2 if direction == "bidirectional" else 1
    inputs = sequence_inputs(
        kind, lengths, time, 3, size, directions, 4 if attributes.get("linear_before_reset") else 0
    )
    inputs[-4] = inputs[-4].astype(np.int32)
    expected = sequence_formula(op, inputs)
    assert_all_close(op.run(*inputs), expected)


def test_biases_left_out_are_zero() -> None:
    for op, kind, biases in (
        (GRUCell(linear_before_reset=True), "gru", 4),
        (LSTMCell4(), "lstm", 4),
        (LSTMCell1(hidden_size=2), "lstm", 4),
    ):
        *inputs, b = cell_inputs(kind, 3, 4, 2, biases)
        assert_all_close(op.run(*inputs), as_list(op.run(*inputs, 0 * b)), 0)


def test_parameters_of_activations() -> None:
    op = RNNCell(activations=("hardsigmoid",), activations_alpha=(1.0,), activations_beta=(0.25,))
    zero = np.zeros((1, 1))
    for value, result in ((0.5, 0.75), (-1.0, 0.0), (9.0, 1.0)):
        assert op.run(np.full((1, 1), value), zero, zero + 1, zero, np.zeros(1)) == result


def reports(op: Operator, *inputs: Any) -> list[str]:
    found: list[str] = []
    with reporting_to(lambda code, message, effect: found.append("; ".join(filter(None, [message, effect])))):
        op.run(*inputs)
    return found


def test_lstm_cell_1_ignores_what_the_specification_does_not_have() -> None:
    inputs = cell_inputs("lstm", 2, 3, 4)
    expected = as_list(LSTMCell4().run(*inputs))
    op = LSTMCell1(hidden_size=4, weights_format="ifco", input_forget=True)
    assert_all_close(op.run(*inputs, normal(12)), expected, 0)
    end = "is ignored, as in the specification and the CPU plugin; other devices may use it"
    assert reports(op, *inputs, normal(12)) == [
        f"{what} {end}" for what in ("weights_format ifco", "input_forget", "nonzero P")
    ]
    assert reports(LSTMCell1(hidden_size=4), *inputs, np.zeros(12, np.float32)) == []


@pytest.mark.parametrize("length", [5, -1])
def test_lengths_outside(length: int) -> None:
    inputs = sequence_inputs("gru", [2, length], 3, 2, 4, 1)
    y, last = GRUSequence().run(*inputs)
    inside = [*inputs[:2], np.array([2, 3 if length > 0 else 0]), *inputs[3:]]
    np.testing.assert_array_equal(y, GRUSequence().run(*inside)[0])
    assert last[0].any()
    assert not last[1].any()
    message = f"sequence_lengths {length} is outside [0, 3]"
    assert reports(GRUSequence(), *inputs) == [f"{message}; the last state is set to 0"]
    with pytest.raises(OperatorError) as error:
        GRUSequence(direction="reverse").run(*inputs)
    assert error.value.message == message
