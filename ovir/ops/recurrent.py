"""Recurrent networks: the cells of RNN, GRU and LSTM, and sequences of their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import Outputs, TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import as_computed
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_CELL = "X T[Batch, Input]; initial_hidden_state T[Batch, Hidden]"
_SEQUENCE = "X T[Batch, Time, Input]; initial_hidden_state T[Batch, D, Hidden]"
_LENGTHS = "sequence_lengths integer[Batch]"
_SIZES = "T real; Hidden = hidden_size"
_OPTIONS = "activations= activations_alpha= activations_beta= clip="

Activation = Callable[[Array], Array]
States = Sequence[Array]


class RecurrentBase(Operator):
    """Base of recurrent networks, for one step or many, with attributes, relations between shapes, and activations.

    W and R are the weights of the input X and of the hidden state H, and B is the sum of both biases; the rows of the
    gates of a step follow each other. If ``hidden_size`` is missing, the shapes determine it. ``activations`` names the
    functions f, g and h of the formula: relu, sigmoid, tanh or hardsigmoid. The last one is not specified:
    max(0, min(1, alpha * x + beta)), with alpha and beta from ``activations_alpha`` and ``activations_beta`` (default
    0.2 and 0.5). A positive ``clip`` limits the arguments of f and g to [-clip, clip].
    """

    bounded = False
    multiplied = ("W", "R")

    hidden_size: int = attribute(default=0, minimum=1, specified=True)
    activations: tuple[str, ...] = ()
    activations_alpha: tuple[float, ...] = attribute(default=())
    activations_beta: tuple[float, ...] = attribute(default=())
    clip: float = attribute(default=0.0)

    gates: ClassVar[int]
    functions: ClassVar[int]
    """The number of activation functions."""
    states: ClassVar[int] = 1

    @property
    def biases(self) -> int:
        """Return the number of biases per hidden element."""
        return self.gates

    def step(self, functions: Sequence[Activation], x: Array, states: States, r: Array, b: Array) -> States:
        """Return the states after one time step; x [batch, gates * hidden] is X W^T + B of this step.

        ``functions`` are those that ``activation_functions`` returns.
        """
        raise NotImplementedError

    def infer(self, *inputs: TensorType | None) -> Outputs:
        self.activation_functions()
        return super().infer(*inputs)

    def activation_functions(self) -> list[Activation]:
        """Return f, g and h; ``clip`` applies to the first two."""
        count = len(self.activations)
        message = "activations {} must name {} functions, got {}"
        self.require(count >= self.functions, message, ",".join(self.activations), self.functions, count)
        named = [self._function(i, name.lower()) for i, name in enumerate(self.activations[: self.functions])]
        if not 0 < self.clip < np.inf:
            return named
        return [_clipped(function, self.clip) for function in named[:2]] + named[2:]

    def _function(self, index: int, name: str) -> Activation:
        if name == "hardsigmoid":
            alpha, beta = (
                given[index] if index < len(given) else default
                for given, default in ((self.activations_alpha, 0.2), (self.activations_beta, 0.5))
            )
            return lambda x: np.clip(alpha * x + beta, 0, 1)
        known: dict[str, Activation] = {"relu": relu, "sigmoid": sigmoid, "tanh": np.tanh}
        self.require(name in known, "activation '{}' must be one of relu, sigmoid, tanh, hardsigmoid", name)
        return known[name]

    def weights(self, w: Array, r: Array, b: Array | None = None) -> tuple[Array, Array, Array]:
        """Return W, R and B in the type that is computed in; missing biases are 0."""
        w, r = as_computed(w), as_computed(r)
        no_biases = np.zeros((*w.shape[:-2], self.biases * r.shape[-1]), w.dtype)
        return w, r, no_biases if b is None else as_computed(b)


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _clipped(function: Activation, limit: float) -> Activation:
    """Return the function applied to its argument clipped to [-limit, limit]."""
    return lambda x: function(np.minimum(np.maximum(x, -limit), limit))


def _gates(array: Array, count: int) -> list[Array]:
    """Return views of the columns of each gate; ``np.split`` takes as long as the step of a small cell."""
    size = array.shape[1] // count
    return [array[:, i * size : (i + 1) * size] for i in range(count)]


# --------------------------------------------------------------------------- the kinds


class RnnBase(RecurrentBase):
    """Base of the plain recurrent unit: H = f(X W^T + H R^T + B)."""

    activations: tuple[str, ...] = attribute(default=("tanh",))
    gates = 1
    functions = 1

    def step(self, functions: Sequence[Activation], x: Array, states: States, r: Array, b: Array) -> States:
        (f,) = functions
        return (f(x + states[0] @ r.T),)


class GruBase(RecurrentBase):
    """Base of the gated recurrent unit: H = (1 - z) h + z H, where the gates z and r are each f(X W^T + H R^T + B).

    The candidate h is g(X W^T + (r H) R^T + B), or with ``linear_before_reset`` g(X W^T + r (H R^T + B_r) + B). Each
    uses its own rows of the weights, in the order z, r, h.
    """

    activations: tuple[str, ...] = attribute(default=("sigmoid", "tanh"))
    linear_before_reset: bool = attribute(default=False)
    gates = 3
    functions = 2

    @property
    def biases(self) -> int:
        return 4 if self.linear_before_reset else 3

    def step(self, functions: Sequence[Activation], x: Array, states: States, r: Array, b: Array) -> States:
        f, g = functions
        (hidden,) = states
        x_z, x_r, x_h = _gates(x, 3)
        r_z, r_r, r_h = _gates(r.T, 3)
        update = f(x_z + hidden @ r_z)
        reset = f(x_r + hidden @ r_r)
        if self.linear_before_reset:
            candidate = g(x_h + reset * (hidden @ r_h + b[len(r) :]))
        else:
            candidate = g(x_h + (reset * hidden) @ r_h)
        return ((1 - update) * candidate + update * hidden,)


class LstmBase(RecurrentBase):
    """Base of the unit of long short-term memory: C = f C + i c and H = o h(C), where C is the cell state.

    The gates f, i and o are each f(X W^T + H R^T + B), and c is g of the same sum. Each uses its own rows of the
    weights, in the order f, i, c, o.
    """

    activations: tuple[str, ...] = attribute(default=("sigmoid", "tanh", "tanh"))
    gates = 4
    functions = 3
    states = 2

    def step(self, functions: Sequence[Activation], x: Array, states: States, r: Array, b: Array) -> States:
        f, g, h = functions
        hidden, cell = states
        forget, admit, candidate, emit = _gates(x + hidden @ r.T, 4)
        cell = f(forget) * cell + f(admit) * g(candidate)
        return f(emit) * h(cell), cell


# --------------------------------------------------------------------------- cells


class CellBase(RecurrentBase):
    """Base of one step of a recurrent network, with the states that follow the given states for an input X."""

    copies = 11

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension:
        shapes = self.shapes_of(inputs)
        return (shapes["W"].size() + shapes["R"].size()) * shapes["X"][0]

    def run(self, x: Array, *inputs: Array) -> Array | tuple[Array, ...]:
        """Return the next states; the inputs are X, the states, W, R and, if there are biases, B."""
        w, r, b = self.weights(*inputs[self.states :])
        products = as_computed(x) @ w.T + b[: len(w)]
        states = [as_computed(state) for state in inputs[: self.states]]
        after = self.step(self.activation_functions(), products, states, r, b)
        results = tuple(state.astype(x.dtype, copy=False) for state in after)
        return results if len(results) > 1 else results[0]


@operator("RNNCell", opset=1, not_in=(2,), is_extension=True)
class RNNCell(CellBase, RnnBase):
    """One step of a recurrent network: H = f(X W^T + H R^T + B). See RecurrentBase.

    >>> ops.rnn_cell([[1.0]], [[0.5]], [[1.0]], [[1.0]], [0.0], 1, ["tanh"], [], [])
    [[0.9051482]]

    Source: RNNCell-3
    """

    takes = f"{_CELL}; W T[Hidden, Input]; R T[Hidden, Hidden]; B T[Hidden]; {_SIZES}"
    gives = "hidden T[Batch, Hidden]"
    arguments = "X initial_hidden_state W R B hidden_size activations activations_alpha activations_beta clip="


@operator("GRUCell", opset=3, is_extension=True)
class GRUCell(CellBase, GruBase):
    """One step of a network of gated recurrent units. See GruBase and RecurrentBase.

    The gates are in the order z, r, h, followed by B_r with ``linear_before_reset``. A missing B counts as 0; OpenVINO
    refuses that, although the specification allows it.

    >>> weights = np.full((3, 1), 0.5, np.float32)
    >>> ops.gru_cell([[1.0]], [[0.0]], weights, weights, np.zeros(3, np.float32), 1)
    [[0.17446804]]
    """

    takes = f"{_CELL}; W T[3*Hidden, Input]; R T[3*Hidden, Hidden]; ?B T[biases*Hidden]; {_SIZES}"
    gives = "hidden T[Batch, Hidden]"
    arguments = f"X initial_hidden_state W R B hidden_size {_OPTIONS} linear_before_reset="


@operator("LSTMCell", opset=4)
class LSTMCell4(CellBase, LstmBase):
    """One step of a network of long short-term memory. See LstmBase and RecurrentBase.

    The gates are in the order f, i, c, o. A missing B counts as 0. The specification of this version is the page of
    LSTMCell-1.

    >>> weights = np.full((4, 1), 0.5, np.float32)
    >>> ops.lstm_cell([[1.0]], [[0.0]], [[0.0]], weights, weights, np.zeros(4, np.float32), 1)
    [[0.17426972]]
    [[0.28764915]]

    Source: LSTMCell-1
    """

    takes = (
        f"{_CELL}; initial_cell_state T[Batch, Hidden]; "
        f"W T[4*Hidden, Input]; R T[4*Hidden, Hidden]; ?B T[4*Hidden]; {_SIZES}"
    )
    gives = "hidden T[Batch, Hidden]; cell T[Batch, Hidden]"
    arguments = f"X initial_hidden_state initial_cell_state W R B hidden_size {_OPTIONS}"


@operator("LSTMCell", opset=1)
class LSTMCell1(LSTMCell4):
    """LSTMCell-4 with a seventh input P, peepholes, and the attributes ``input_forget`` and ``weights_format``.

    The specification has none of the three, and OpenVINO's CPU plugin ignores them; so does this operation, with a
    warning where they would make a difference.
    """

    takes = f"{LSTMCell4.takes}; ?P T[3*Hidden]"
    hidden_size: int = attribute(minimum=1)
    input_forget: bool = attribute(default=False)
    weights_format: str = attribute(default="fico", choices=("fico", "icof", "ifco", "ifoc", "iofc"))

    def run(self, x: Array, *inputs: Array) -> Array | tuple[Array, ...]:
        ignored = "{} is ignored, as in the specification and the CPU plugin; other devices may use it"
        if self.weights_format != "fico":
            report(ignored.format(f"weights_format {self.weights_format}"))
        if self.input_forget:
            report(ignored.format("input_forget"))
        if any(p.any() for p in inputs[5:]):
            report(ignored.format("nonzero P"))
        return super().run(x, *inputs[:5])


# --------------------------------------------------------------------------- sequences


class SequenceBase(RecurrentBase):
    """Base of the steps of a cell over a sequence: each row of the batch runs its first sequence_lengths time steps.

    ``direction`` is forward, reverse (starting at the row's last step) or bidirectional, which does both with separate
    weights and states. The outputs are the hidden state after each step, at the position of its input and zero beyond
    the row's length, and the last states, which are zero for a row without steps.
    """

    copies = 6

    domains = by_input(sequence_lengths=Length("X", axis=1))
    direction: str = attribute(default="forward", choices=("forward", "reverse", "bidirectional"), specified=True)

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension:
        shapes = self.shapes_of(inputs)
        lengths = self.named(inputs)["sequence_lengths"].constant
        steps = shapes["X"][0] * shapes["X"][1] if lengths is None else Dimension(max(int(lengths.sum()), 0))
        return (shapes["W"].size() + shapes["R"].size()) * steps

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def run(self, x: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return Y and the last states; the inputs are X, the states, sequence_lengths, W, R and B."""
        *states, sequence_lengths, w, r, b = inputs
        outside = (sequence_lengths < 0) | (sequence_lengths > x.shape[1])
        if outside.any():
            message = f"sequence_lengths {sequence_lengths[outside][0]} is outside [0, {x.shape[1]}]"
            self.require(self.direction == "forward", message)
            report(message, "the last state is set to 0")
        w, r, b = self.weights(w, r, b)
        x_computed, *states = map(as_computed, (x, *states))
        results = []
        for d in range(self.directions):
            products = x_computed @ w[d].T + b[d, : w.shape[1]]
            backward = d == 1 or self.direction == "reverse"
            begin = [state[:, d] for state in states]
            results.append(self._run_direction(products, begin, sequence_lengths, r[d], b[d], backward))
        return tuple(np.stack(arrays, axis=1).astype(x.dtype, copy=False) for arrays in zip(*results, strict=True))

    def _run_direction(
        self, inputs: Array, states: States, lengths: Array, r: Array, b: Array, backward: bool
    ) -> list[Array]:
        """Return the hidden states [batch, time, hidden] and the last states of one direction."""
        batch, time, _ = inputs.shape
        outputs = np.zeros((batch, time, r.shape[1]), inputs.dtype)
        functions = self.activation_functions()
        steps = range(min(int(lengths.max(initial=0)), time))
        for t in reversed(steps) if backward else steps:
            takes_part = (t < lengths)[:, np.newaxis]
            after = self.step(functions, inputs[:, t], states, r, b)
            states = [np.where(takes_part, new, old) for new, old in zip(after, states, strict=True)]
            outputs[:, t] = np.where(takes_part, states[0], 0)
        has_last = ((lengths > 0) & (lengths <= time))[:, np.newaxis]
        return [outputs, *(np.where(has_last, state, 0) for state in states)]


@operator("RNNSequence", opset=5)
class RNNSequence(SequenceBase, RnnBase):
    """The steps of RNNCell over a sequence. See SequenceBase and RecurrentBase.

    >>> ops.rnn_sequence([[[1.0], [2.0]]], [[[0.0]]], [2], [[[1.0]]], [[[1.0]]], [[0.0]], 1, "forward")
    [[[[0.7615942] [0.9920456]]]]
    [[[0.9920456]]]
    """

    takes = (
        f"{_SEQUENCE}; {_LENGTHS}; "
        f"W T[D, Hidden, Input]; R T[D, Hidden, Hidden]; B T[D, Hidden]; {_SIZES}; D = directions"
    )
    gives = "Y T[Batch, D, Time, Hidden]; hidden T[Batch, D, Hidden]"
    arguments = f"X initial_hidden_state sequence_lengths W R B hidden_size direction {_OPTIONS}"


@operator("GRUSequence", opset=5)
class GRUSequence(SequenceBase, GruBase):
    """The steps of GRUCell over a sequence. See SequenceBase, GruBase and RecurrentBase.

    >>> weights = np.full((1, 3, 1), 0.5, np.float32)
    >>> bias = np.zeros((1, 3), np.float32)
    >>> ops.gru_sequence([[[1.0], [2.0]]], [[[0.0]]], [2], weights, weights, bias, 1, "forward")
    [[[[0.17446804] [0.3290781 ]]]]
    [[[0.3290781]]]
    """

    takes = (
        f"{_SEQUENCE}; {_LENGTHS}; "
        f"W T[D, 3*Hidden, Input]; R T[D, 3*Hidden, Hidden]; B T[D, biases*Hidden]; {_SIZES}; D = directions"
    )
    gives = "Y T[Batch, D, Time, Hidden]; hidden T[Batch, D, Hidden]"
    arguments = f"X initial_hidden_state sequence_lengths W R B hidden_size direction {_OPTIONS} linear_before_reset="


@operator("LSTMSequence", opset=5)
class LSTMSequence(SequenceBase, LstmBase):
    """The steps of LSTMCell over a sequence. See SequenceBase, LstmBase and RecurrentBase.

    The last output is the cell state.

    >>> weights = np.full((1, 4, 1), 0.5, np.float32)
    >>> bias = np.zeros((1, 4), np.float32)
    >>> ops.lstm_sequence([[[1.0], [2.0]]], [[[0.0]]], [[[0.0]]], [2], weights, weights, bias, 1, "forward")
    [[[[0.17426972] [0.5008594 ]]]]
    [[[0.5008594]]]
    [[[0.810271]]]
    """

    takes = (
        f"{_SEQUENCE}; initial_cell_state T[Batch, D, Hidden]; {_LENGTHS}; "
        f"W T[D, 4*Hidden, Input]; R T[D, 4*Hidden, Hidden]; B T[D, 4*Hidden]; {_SIZES}; D = directions"
    )
    gives = "Y T[Batch, D, Time, Hidden]; hidden T[Batch, D, Hidden]; cell T[Batch, D, Hidden]"
    arguments = f"X initial_hidden_state initial_cell_state sequence_lengths W R B hidden_size direction {_OPTIONS}"
