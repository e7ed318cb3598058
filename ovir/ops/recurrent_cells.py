"""RNNCell, GRUCell and LSTMCell: one step of a recurrent network."""

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
from ovir.kernels.recurrent import input_product
from ovir.ops.base.attributes import attribute
from ovir.ops.base.recurrent import GruBase, LstmBase, RecurrentBase, RnnBase
from ovir.ops.base.registry import operator

_STATE = "batch, hidden"


class CellBase(RecurrentBase):
    """Base of one step of a recurrent network: the states that follow the given states for an input X."""

    layouts: ClassVar[dict[str, str]] = {
        "X": "batch, input",
        "initial_hidden_state": _STATE,
        "initial_cell_state": _STATE,
        "W": "{gates}hidden, input",
        "R": "{gates}hidden, hidden",
        "B": "{biases}hidden",
        "P": "3*hidden",
    }

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension:
        return (inputs["w"].size() + inputs["r"].size()) * inputs["x"][0]

    def infer_outputs(self, **inputs: TensorType | None) -> tuple[TensorType, ...]:
        """Return the types of the next states."""
        self.activation_functions()
        element_type = self.real_type(**inputs)
        sizes = self.agreed({}, **inputs)
        state = TensorType(element_type, PartialShape([sizes.get("batch", UNKNOWN), sizes.get("hidden", UNKNOWN)]))
        return (state, state) if "initial_cell_state" in inputs else (state,)

    def run_outputs(
        self,
        x: Array,
        states: Sequence[Array],
        w: Array,
        r: Array,
        b: Array | None,
        out: Sequence[Array] | None,
    ) -> tuple[Array, ...]:
        """Return the next states."""
        w, r, b = self.weights(w, r, b)
        targets: Sequence[Array | None] = out or [None] * len(states)
        results = [work_array(state.shape, x.dtype, target) for state, target in zip(states, targets, strict=True)]
        for state, result in zip(states[1:], results[1:], strict=True):
            np.copyto(result, state)
        with np.errstate(all="ignore"):
            inputs = input_product(as_computed(x), w, b[: len(w)])
            self.step(r, b, len(x))(inputs, as_computed(states[0]), *results)
            return tuple(stored(result, x.dtype, target) for result, target in zip(results, targets, strict=True))


@operator("RNNCell", opset=1)
class RNNCell(CellBase, RnnBase):
    """One step of a recurrent network: H = f(X W^T + H R^T + B). See RecurrentBase.

    X is [batch, input], the state [batch, hidden], W [hidden, input], R [hidden, hidden], B [hidden].

    Source: RNNCell-3
    """

    def infer(
        self, x: TensorType, initial_hidden_state: TensorType, w: TensorType, r: TensorType, b: TensorType
    ) -> tuple[TensorType, ...]:
        return self.infer_outputs(X=x, initial_hidden_state=initial_hidden_state, W=w, R=r, B=b)

    def run(
        self, x: Array, initial_hidden_state: Array, w: Array, r: Array, b: Array, *, out: Array | None = None
    ) -> Array:
        return self.run_outputs(x, (initial_hidden_state,), w, r, b, None if out is None else (out,))[0]


@operator("GRUCell", opset=3)
class GRUCell(CellBase, GruBase):
    """One step of a network of gated recurrent units. See GruBase and RecurrentBase.

    X is [batch, input], the state [batch, hidden], W [3*hidden, input], R [3*hidden, hidden], B [3*hidden], or
    [4*hidden] with ``linear_before_reset``. The gates are in the order z, r, h, followed by B_r. A missing B counts as
    0; OpenVINO refuses that, although the specification allows it.

    Source: GRUCell-3
    """

    def infer(
        self,
        x: TensorType,
        initial_hidden_state: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        return self.infer_outputs(X=x, initial_hidden_state=initial_hidden_state, W=w, R=r, B=b)

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        return self.run_outputs(x, (initial_hidden_state,), w, r, b, None if out is None else (out,))[0]


@operator("LSTMCell", opset=4)
class LSTMCell4(CellBase, LstmBase):
    """One step of a network of long short-term memory. See LstmBase and RecurrentBase.

    X is [batch, input], both states [batch, hidden], W [4*hidden, input], R [4*hidden, hidden], B [4*hidden]; the gates
    are in the order f, i, c, o. A missing B counts as 0. The specification of this version is the page of LSTMCell-1.

    Source: LSTMCell-1
    """

    def infer(
        self,
        x: TensorType,
        initial_hidden_state: TensorType,
        initial_cell_state: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        return self.infer_outputs(
            X=x, initial_hidden_state=initial_hidden_state, initial_cell_state=initial_cell_state, W=w, R=r, B=b
        )

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        *,
        out: tuple[Array, Array] | None = None,
    ) -> tuple[Array, ...]:
        return self.run_outputs(x, (initial_hidden_state, initial_cell_state), w, r, b, out)


@operator("LSTMCell", opset=1)
class LSTMCell1(LSTMCell4):
    """LSTMCell-4 with a seventh input P, peepholes [3*hidden], and the attributes ``input_forget`` and
    ``weights_format``.

    The specification has none of the three, and OpenVINO's CPU plugin ignores them; so does this operation, with a
    warning where they would make a difference.

    Source: LSTMCell-1
    """

    hidden_size: int = attribute(minimum=1)
    input_forget: bool = attribute(default=False)
    weights_format: str = attribute(default="fico", choices=("fico", "icof", "ifco", "ifoc", "iofc"))

    def infer(
        self,
        x: TensorType,
        initial_hidden_state: TensorType,
        initial_cell_state: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType | None = None,
        p: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        return self.infer_outputs(
            X=x, initial_hidden_state=initial_hidden_state, initial_cell_state=initial_cell_state, W=w, R=r, B=b, P=p
        )

    def run(
        self,
        x: Array,
        initial_hidden_state: Array,
        initial_cell_state: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        p: Array | None = None,
        *,
        out: tuple[Array, Array] | None = None,
    ) -> tuple[Array, ...]:
        ignored = "{} is ignored, as in the specification and the CPU plugin; other devices may use it"
        if self.weights_format != "fico":
            report(ignored.format(f"weights_format {self.weights_format}"))
        if self.input_forget:
            report(ignored.format("input_forget"))
        if p is not None and p.any():
            report(ignored.format("nonzero P"))
        return self.run_outputs(x, (initial_hidden_state, initial_cell_state), w, r, b, out)
