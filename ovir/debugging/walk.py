"""Run a model in ovir layer by layer: each next layer runs when the caller asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.blas import single_thread
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import Code
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.runtime.bindings import Bindings
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.executor import SeenStep
from ovir.runtime.listeners import Reports
from ovir.runtime.state import Variables

ENDS = ("Parameter", "Result", "Const")
"""Layers that compute nothing."""


class WalkPlan:
    """The plan of a model in which layers are steps that other plans fold. One walk at a time may use it."""

    def __init__(self, model: Model, *, with_constants: bool) -> None:
        """Plan a model: all layers that compute something are steps. Without ``with_constants``, those that depend on
        constants alone are folded.

        Compressed weights stay so, because a walk uses each of them once: a few tensors are in memory, not all.
        """
        folded = set() if with_constants else all_constant_layers(model)
        self.model = model
        self.layers = [
            layer for layer in model.layers if not layer.is_dead and layer.type not in ENDS and layer not in folded
        ]
        """The steps, in order."""
        self.variables = Variables()
        keep = frozenset(layer.key for layer in self.layers)
        self.bindings = Bindings(CompiledModel(model, keep_compressed=True), self.variables, keep, watched=True)


class Walk(Iterator[SeenStep]):
    """One run of a model. Iterating runs the next layer and returns it with its arrays."""

    def __init__(self, plan: WalkPlan, inputs: Sequence[Array]) -> None:
        plan.variables.reset()
        self._executor = plan.bindings.executor_for(inputs)
        self._steps = self._executor.walk(inputs)
        self._reports = Reports(strict=False)
        self.results: list[Array] | None = None
        """The outputs, after the last layer has run."""

    def __next__(self) -> SeenStep:
        def report(code: Code, message: str, effect: str) -> None:
            self._reports.add(code, message, effect, self._executor.innermost)

        try:
            with np.errstate(all="ignore"), single_thread, reporting_to(report):
                return next(self._steps)
        except StopIteration as end:
            if self.results is None:
                self.results = end.value
            raise StopIteration from None

    def finish(self) -> list[Array]:
        """Run the layers that remain, and return the outputs."""
        for _ in self:
            pass
        assert self.results is not None
        return self.results

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return the warnings of kernels about values on which devices may differ."""
        return self._reports.found


def element_type_of(port: Port, array: Array) -> ElementType:
    """Return the element type of a tensor of a run; where inference does not know it, the type of its array."""
    return ElementType.from_dtype(array.dtype) if port.element_type.is_dynamic else port.element_type


def reduction_length(step: SeenStep) -> float:
    """Return the number of products or elements that are summed for each output element, estimated from sizes."""
    outputs = max((array.size for array in step.outputs), default=0)
    if not outputs:
        return 1.0
    shapes = step.input_shapes
    largest = max(map(prod, shapes), default=0)
    products = _products(step.layer, shapes, step.outputs)
    return max(products / outputs, largest / outputs, 1.0)


def _products(layer: Layer, inputs: Sequence[tuple[int, ...]], outputs: Sequence[Array]) -> float:
    """Return the multiply-accumulates of a layer for the sizes of a run; 0 where ovir does not count them."""
    op = layer.operator
    if op is None or len(inputs) != len(layer.inputs):
        return 0.0
    types = [
        TensorType(port.element_type, PartialShape(shape)) for port, shape in zip(layer.inputs, inputs, strict=True)
    ]
    named = {name: tensor.shape for name, tensor in op.named(types).items()}
    count = op.multiply_accumulates(named, PartialShape(outputs[0].shape))
    return float(count.lower) if count is not None and count.is_static else 0.0


class Depths:
    """For each tensor: the longest path of layers to it, and the longest sum of reduction lengths."""

    def __init__(self) -> None:
        self._known: dict[Port, tuple[float, float]] = {}

    def of(self, step: SeenStep) -> tuple[float, float]:
        """Return ``terms`` and ``steps`` for the outputs of a layer, and keep them for the layers after it."""
        sources = [self.of_port(port.source) for port in step.layer.inputs if port.source is not None]
        terms = max((terms for terms, _ in sources), default=0.0)
        steps = max((steps for _, steps in sources), default=0.0)
        if step.layer.operator is None or not step.layer.operator.views:
            terms, steps = terms + reduction_length(step), steps + 1
        self._known.update((port, (terms, steps)) for port in step.layer.outputs)
        return terms, steps

    def of_port(self, port: Port) -> tuple[float, float]:
        """Return ``terms`` and ``steps`` for a tensor; 0 for inputs and constants."""
        return self._known.get(port, (0.0, 0.0))


def local(step: SeenStep) -> tuple[float, float]:
    """Return ``terms`` and ``steps`` for a layer whose inputs have no error."""
    return reduction_length(step), 1.0


class DepthListener:
    """Follows how many layers and sums a tensor has gone through."""

    def __init__(self) -> None:
        self.found = Depths()
        self._all: list[tuple[float, float]] = [(0.0, 0.0)]

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        pass

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        if layer.owner is not None and not layer.scope:
            self._all.append(self.found.of(SeenStep(layer, [np.asarray(a) for a in inputs], list(outputs))))

    def longest(self) -> tuple[float, float]:
        """Return the largest ``terms`` and ``steps`` so far."""
        return max(terms for terms, _ in self._all), max(steps for _, steps in self._all)
