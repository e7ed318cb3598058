"""RNNSequence, GRUSequence and LSTMSequence: the steps of a cell over a sequence, forward, in reverse, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import as_computed, stored, work_array
from ovir.kernels.recurrent import input_product, scan
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Length, by_input
from ovir.ops.base.recurrent import GruBase, LstmBase, RecurrentBase, RnnBase
from ovir.ops.base.registry import operator

_STATE = "batch, directions, hidden"


class SequenceBase(RecurrentBase):
    """Base of the steps of a cell over a sequence: each row of the batch runs its first sequence_lengths time steps.

    ``direction`` is forward, reverse (starting at the row's last step) or bidirectional, which does both with separate
    weights and states. X is [batch, time, input], the states are [batch, directions, hidden], sequence_lengths [batch];
    W, R and B are as in the cell, with a leading dimension of directions. The outputs are Y [batch, directions, time,
    hidden], the hidden state after each step at the position of its input and zero beyond the row's length, and the
    last states, which are zero for a row without steps.
    """

    domains = by_input(sequence_lengths=Length("x", axis=1))
    direction: str = attribute(default="forward", choices=("forward", "reverse", "bidirectional"), specified=True)

    layouts: ClassVar[dict[str, str]] = {
        "X": "batch, time, input",
        "initial_hidden_state": _STATE,
        "initial_cell_state": _STATE,
        "sequence_lengths": "batch",
        "W": "directions, {gates}hidden, input",
        "R": "directions, {gates}hidden, hidden",
        "B": "directions, {biases}hidden",
    }

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension:
        x = inputs["x"]
        return (inputs["w"].size() + inputs["r"].size()) * x[0] * x[1]

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def infer_outputs(self, sequence_lengths: TensorType, **inputs: TensorType) -> tuple[TensorType, ...]:
        """Return the types of Y and of the last states."""
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

    def run_outputs(
        self,
        x: Array,
        states: Sequence[Array],
        sequence_lengths: Array,
        w: Array,
        r: Array,
        b: Array,
        out: Sequence[Array] | None,
    ) -> tuple[Array, ...]:
        """Return Y and the last states."""
        batch, time, _ = x.shape
        self._check_lengths(sequence_lengths, time)
        w, r, b = self.weights(w, r, b)
        inputs, *states = map(as_computed, (x, *states))
        shape = states[0].shape
        shapes = [(*shape[:2], time, shape[2]), *[shape] * len(states)]
        targets: Sequence[Array | None] = out or [None] * len(shapes)
        results = [work_array(s, x.dtype, target) for s, target in zip(shapes, targets, strict=True)]
        with np.errstate(all="ignore"):
            for d in range(self.directions):
                outputs, *finals = (result[:, d] for result in results)
                scan(
                    self.step(r[d], b[d], batch),
                    input_product(inputs, w[d], b[d, : w.shape[1]]),
                    [state[:, d] for state in states],
                    sequence_lengths,
                    d == 1 or self.direction == "reverse",
                    outputs,
                    finals,
                )
            return tuple(stored(result, x.dtype, target) for result, target in zip(results, targets, strict=True))

    def _check_lengths(self, lengths: Array, time: int) -> None:
        outside = (lengths < 0) | (lengths > time)
        if outside.any():
            message = f"sequence_lengths {lengths[outside][0]} is outside [0, {time}]"
            self.require(self.direction == "forward", message)
            report(f"{message}; the last state is set to 0")


class HiddenSequenceBase(SequenceBase):
    """Base of the sequences of cells whose only state is the hidden one."""

    def infer(
        self,
        x: TensorType,
        initial_hidden_state: TensorType,
        sequence_lengths: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType,
    ) -> tuple[TensorType, ...]:
        return self.infer_outputs(sequence_lengths, X=x, initial_hidden_state=initial_hidden_state, W=w, R=r, B=b)

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
        return self.run_outputs(x, (initial_hidden_state,), sequence_lengths, w, r, b, out)


@operator("RNNSequence", opset=5)
class RNNSequence(HiddenSequenceBase, RnnBase):
    """The steps of RNNCell over a sequence. See SequenceBase and RecurrentBase.

    Source: RNNSequence-5
    """


@operator("GRUSequence", opset=5)
class GRUSequence(HiddenSequenceBase, GruBase):
    """The steps of GRUCell over a sequence. See SequenceBase, GruBase and RecurrentBase.

    Source: GRUSequence-5
    """


@operator("LSTMSequence", opset=5)
class LSTMSequence(SequenceBase, LstmBase):
    """The steps of LSTMCell over a sequence. See SequenceBase, LstmBase and RecurrentBase.

    The last output is the cell state.

    Source: LSTMSequence-5
    """

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
        return self.infer_outputs(sequence_lengths, X=x, **states, W=w, R=r, B=b)

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
        return self.run_outputs(x, (initial_hidden_state, initial_cell_state), sequence_lengths, w, r, b, out)
