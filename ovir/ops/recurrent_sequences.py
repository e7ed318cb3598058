"""RNNSequence, GRUSequence and LSTMSequence: a cell's steps over a sequence, forward, in reverse, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ovir.arrays import Array
from ovir.diagnostics import report
from ovir.kernels import half
from ovir.kernels.blocked import compute_dtype
from ovir.kernels.recurrent import input_product, scan
from ovir.ops.attributes import attribute
from ovir.ops.operator import operator
from ovir.ops.recurrent import GRU, LSTM, RNN, Recurrent, rounded, working_arrays
from ovir.types import UNKNOWN, PartialShape
from ovir.values import TensorType

_STATE = "batch, directions, hidden"


class RecurrentSequence(Recurrent):
    """What the three sequences share: for each row of the batch, its first sequence_lengths steps in time.

    ``reverse`` begins with the last of them, ``bidirectional`` has both directions, each with weights and states of its
    own. Outputs are Y, the hidden states after each step, at the place of its input, and zero behind the row's length;
    and the last states, which are zero for a row without a step.
    """

    direction: str = attribute(default="forward", choices=("forward", "reverse", "bidirectional"))

    layouts: ClassVar[dict[str, str]] = {
        "X": "batch, time, input",
        "initial_hidden_state": _STATE,
        "initial_cell_state": _STATE,
        "sequence_lengths": "batch",
        "W": "directions, {gates}hidden, input",
        "R": "directions, {gates}hidden, hidden",
        "B": "directions, {biases}hidden",
    }

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def outputs(self, sequence_lengths: TensorType, **inputs: TensorType) -> tuple[TensorType, ...]:
        """The types of Y and of the last states."""
        self.activation_functions()
        element_type = self.real_type(**inputs)
        self.require_integers("sequence_lengths", sequence_lengths.element_type)
        known = {"directions": (self.directions, f"direction {self.direction}")}
        sizes = self.agreed(known, **inputs, sequence_lengths=sequence_lengths)
        batch, directions, time, hidden = (
            sizes.get(name, UNKNOWN) for name in ("batch", "directions", "time", "hidden")
        )
        state = TensorType(element_type, PartialShape([batch, directions, hidden]))
        count = 2 if "initial_cell_state" in inputs else 1
        return TensorType(element_type, PartialShape([batch, directions, time, hidden])), *[state] * count

    def unrolled(
        self,
        x: Array,
        states: Sequence[Array],
        sequence_lengths: Array,
        w: Array,
        r: Array,
        b: Array,
        out: Sequence[Array] | None,
    ) -> tuple[Array, ...]:
        """Y and the last states."""
        batch, time, _ = x.shape
        self._check_lengths(sequence_lengths, time)
        dtype = compute_dtype(x.dtype)
        w, r, b = self.weights(w, r, b, dtype)
        converted, *states = (half.converted(a, dtype) for a in (x, *states))
        shape = states[0].shape
        shapes = [(*shape[:2], time, shape[2]), *[shape] * len(states)]
        results = working_arrays(out, shapes, dtype)
        with np.errstate(all="ignore"):
            for d in range(self.directions):
                outputs, *finals = (result[:, d] for result in results)
                scan(
                    self.step(r[d], b[d], batch),
                    input_product(converted, w[d], b[d, : w.shape[1]]),
                    [state[:, d] for state in states],
                    sequence_lengths,
                    d == 1 or self.direction == "reverse",
                    outputs,
                    finals,
                )
            return rounded(results, out, x.dtype)

    def _check_lengths(self, lengths: Array, time: int) -> None:
        outside = (lengths < 0) | (lengths > time)
        if outside.any():
            message = f"sequence_lengths {lengths[outside][0]} is outside [0, {time}]"
            self.require(self.direction == "forward", message)
            report(f"{message}: the last state is taken to be zero")


@operator("RNNSequence", opset=5)
class RNNSequence(RecurrentSequence, RNN):
    """H = f(X W^T + H R^T + B) step by step; see ``Recurrent`` and ``RecurrentSequence``. Source: RNNSequence-5"""

    def infer(
        self,
        x: TensorType,
        initial_hidden_state: TensorType,
        sequence_lengths: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType,
    ) -> tuple[TensorType, ...]:
        return self.outputs(sequence_lengths, X=x, initial_hidden_state=initial_hidden_state, W=w, R=r, B=b)

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        sequence_lengths: Array,
        w: Array,
        r: Array,
        b: Array,
        *,
        out: tuple[Array, Array] | None = None,
    ) -> tuple[Array, ...]:
        return self.unrolled(x, (initial_hidden_state,), sequence_lengths, w, r, b, out)


@operator("GRUSequence", opset=5)
class GRUSequence(RecurrentSequence, GRU):
    """The steps of GRUCell, gates in the order z, r, h; see ``Recurrent`` and ``RecurrentSequence``.
    Source: GRUSequence-5"""

    infer = RNNSequence.infer
    run = RNNSequence.run


@operator("LSTMSequence", opset=5)
class LSTMSequence(RecurrentSequence, LSTM):
    """The steps of LSTMCell, gates in the order f, i, c, o; see ``Recurrent`` and ``RecurrentSequence``. The last
    output is the cell state. Source: LSTMSequence-5"""

    def infer(
        self,
        x: TensorType,
        initial_hidden_state: TensorType,
        initial_cell_state: TensorType,
        sequence_lengths: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType,
    ) -> tuple[TensorType, ...]:
        states = {"initial_hidden_state": initial_hidden_state, "initial_cell_state": initial_cell_state}
        return self.outputs(sequence_lengths, X=x, **states, W=w, R=r, B=b)

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        sequence_lengths: Array,
        w: Array,
        r: Array,
        b: Array,
        *,
        out: tuple[Array, Array, Array] | None = None,
    ) -> tuple[Array, ...]:
        return self.unrolled(x, (initial_hidden_state, initial_cell_state), sequence_lengths, w, r, b, out)
