"""Base classes of the cells and sequences of RNN, GRU and LSTM."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels import recurrent
from ovir.kernels.precision import as_computed
from ovir.kernels.recurrent import Activation, Step
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator


class RecurrentBase(Operator):
    """Base of recurrent networks, for one step or many: attributes, relations between shapes, and activations.

    W and R are the weights of the input X and of the hidden state H, and B is the sum of both biases; the rows of the
    gates of a step follow each other. If ``hidden_size`` is missing, the shapes determine it. ``activations`` names the
    functions f, g and h of the formula: relu, sigmoid, tanh, or hardsigmoid, which the specifications lack and which is
    max(0, min(1, alpha * x + beta)) with alpha and beta from ``activations_alpha`` and ``activations_beta`` (default
    0.2 and 0.5). A positive ``clip`` limits the arguments of f and g to [-clip, clip].
    """

    bounded = False
    multiplied = ("w", "r")

    hidden_size: int = attribute(default=0, minimum=1, specified=True)
    activations: tuple[str, ...] = ()
    activations_alpha: tuple[float, ...] = attribute(default=())
    activations_beta: tuple[float, ...] = attribute(default=())
    clip: float = attribute(default=0.0)

    layouts: ClassVar[dict[str, str]]
    """The sizes that make up the shape of each input."""
    gates: ClassVar[int]
    functions: ClassVar[int]
    """The number of activation functions."""
    order: ClassVar[tuple[int, ...]]
    """The gates in the order of a bound step; f applies to all but the last."""

    @property
    def biases(self) -> int:
        """Return the number of biases per hidden element."""
        return self.gates

    def step(self, r: Array, b: Array, batch: int) -> Step:
        """Return the function that computes one time step, for given recurrent weights and all biases."""
        raise NotImplementedError

    def agreed(self, known: dict[str, tuple[int, str]], **inputs: TensorType | None) -> dict[str, Dimension]:
        """Return the sizes that make up the inputs' shapes; raise if the shapes contradict each other.

        ``known`` holds sizes that an attribute determines, each with the attribute's text.
        """
        sizes = {name: (Dimension(size, size), origin) for name, (size, origin) in known.items()}
        if self.hidden_size:
            sizes["hidden"] = Dimension(self.hidden_size, self.hidden_size), "hidden_size"
        for name, tensor in inputs.items():
            if tensor is not None:
                self._take_sizes(sizes, name, tensor.shape)
        return {name: size for name, (size, _) in sizes.items()}

    def _take_sizes(self, known: dict[str, tuple[Dimension, str]], name: str, shape: PartialShape) -> None:
        gates, biases = (f"{n}*" if n > 1 else "" for n in (self.gates, self.biases))
        layout = self.layouts[name].format(gates=gates, biases=biases)
        parts = layout.split(", ")
        fits = shape.rank in (None, len(parts))
        self.require(fits, "{} must be [{}], got shape {}", name, layout, shape)
        for axis, text in enumerate(parts):
            factor, _, size = text.rpartition("*")
            before, origin = known.get(size, (UNKNOWN, name))
            part = shape[axis].exact_div(int(factor or 1))
            if part is None:
                message = "{} must be [{}], got shape {}: {} is not a multiple of {}"
                self.fail(message, name, layout, shape, shape[axis], factor)
            merged = before.merged_with(part)
            if merged is None:
                message = "{} must be [{}], got shape {}: {} is {} here, but {} according to {}"
                self.fail(message, name, layout, shape, size, part, before, origin)
            known[size] = merged, origin if before != UNKNOWN else name

    def real_type(self, **inputs: TensorType | None) -> ElementType:
        """Return the one floating-point type of the inputs."""
        types = {name: tensor.element_type for name, tensor in inputs.items() if tensor is not None}
        merged = self.merge_types(*types.values(), names=list(types))
        self.require_real("X", merged)
        return merged

    def activation_functions(self) -> list[Activation]:
        """Return f, g and h; ``clip`` applies to the first two."""
        count = len(self.activations)
        message = "activations {} must name {} functions, got {}"
        self.require(count >= self.functions, message, ",".join(self.activations), self.functions, count)
        named = [self._function(i, name.lower()) for i, name in enumerate(self.activations[: self.functions])]
        if not 0 < self.clip < np.inf:
            return named
        return [recurrent.clipped(function, self.clip) for function in named[:2]] + named[2:]

    def _function(self, index: int, name: str) -> Activation:
        if name == "hardsigmoid":
            alpha, beta = (
                given[index] if index < len(given) else default
                for given, default in ((self.activations_alpha, 0.2), (self.activations_beta, 0.5))
            )
            return recurrent.hard_sigmoid(alpha, beta)
        known = {"relu": recurrent.relu, "sigmoid": recurrent.sigmoid, "tanh": recurrent.tanh}
        self.require(name in known, "activation '{}' must be one of relu, sigmoid, tanh, hardsigmoid", name)
        return known[name]

    # ----- kernel

    def weights(self, w: Array, r: Array, b: Array | None) -> tuple[Array, Array, Array]:
        """Return W, R and B in the type that is computed in; missing biases are 0."""
        w, r = as_computed(w), as_computed(r)
        rows = self.biases * r.shape[-1]
        b = np.zeros((*w.shape[:-2], rows), w.dtype) if b is None else as_computed(b)
        fits = w.shape[-2] == self.gates * r.shape[-1] and b.shape[-1] == rows
        self.require(fits, "W of shape {} and B of shape {} do not match R of shape {}", w.shape, b.shape, r.shape)
        return w, r, b


# --------------------------------------------------------------------------- the kinds


class RnnBase(RecurrentBase):
    """Base of the plain recurrent unit: H = f(X W^T + H R^T + B)."""

    activations: tuple[str, ...] = attribute(default=("tanh",))
    gates = 1
    functions = 1
    order = (0,)

    def step(self, r: Array, b: Array, batch: int) -> Step:
        return recurrent.rnn_step(r, self.activation_functions(), batch)


class GruBase(RecurrentBase):
    """Base of the gated recurrent unit: H = (1 - z) h + z H, where the gates z and r are each f(X W^T + H R^T + B).

    The candidate h is g(X W^T + (r H) R^T + B), or with ``linear_before_reset`` g(X W^T + r (H R^T + B_r) + B). Each
    uses its own rows of the weights, in the order z, r, h.
    """

    activations: tuple[str, ...] = attribute(default=("sigmoid", "tanh"))
    linear_before_reset: bool = attribute(default=False)
    gates = 3
    functions = 2
    order = (0, 1, 2)

    @property
    def biases(self) -> int:
        return 4 if self.linear_before_reset else 3

    def step(self, r: Array, b: Array, batch: int) -> Step:
        bias = b[3 * r.shape[1] :] if self.linear_before_reset else None
        return recurrent.gru_step(r, self.activation_functions(), batch, bias)


class LstmBase(RecurrentBase):
    """Base of the unit of long short-term memory: C = f C + i c and H = o h(C), where C is the cell state.

    The gates f, i and o are each f(X W^T + H R^T + B), and c is g of the same sum. Each uses its own rows of the
    weights, in the order f, i, c, o.
    """

    activations: tuple[str, ...] = attribute(default=("sigmoid", "tanh", "tanh"))
    gates = 4
    functions = 3
    order = (0, 1, 3, 2)

    def step(self, r: Array, b: Array, batch: int) -> Step:
        return recurrent.lstm_step(r, self.activation_functions(), batch)
