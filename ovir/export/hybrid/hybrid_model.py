"""The engine onnxruntime of ``ovir.compile_model``."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from ovir.diagnostics.codes import SLOW_ENGINE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import plural
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer
from ovir.model import Model
from ovir.ops.infrastructure import Const
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.executor_cache import InputShapes, States
from ovir.runtime.plan import Plan
from ovir.runtime.planning import make_plan
from ovir.system.progress import stage

_FEW_PARTS = 4
"""The number of parts above which a warning says so: each part copies its inputs and outputs."""
_SMALL_WEIGHTS = 1 << 19
_SMALL_TENSORS = 1 << 18
"""The elements of the weights, and of the tensors of known size, below which a warning says so. onnxruntime takes 20
microseconds for its call and one or two for each node, which is as much as NumPy takes for its calls."""


class HybridModel(CompiledModel):
    """A model that onnxruntime runs, with NumPy for the layers that are not exported.

    ``parts`` are the parts that onnxruntime runs, ``numpy_layers`` the layers that NumPy runs, with the reason.
    """

    def __init__(self, model: Model, *, threads: int | None = None, quantize_activations: bool = False) -> None:
        self.quantize_activations: bool = quantize_activations
        """Whether products with large matrices of codes round their other input to 8 bits."""
        super().__init__(model, threads=threads)

    @property
    def options(self) -> dict[str, Any]:
        return {"threads": self.threads, "quantize_activations": self.quantize_activations}

    def _make_plan(
        self, model: Model, keep: Collection[str] = (), original: Model | None = None, running: Collection[str] = ()
    ) -> Plan:
        with stage("loading onnx"):
            from ovir.export.hybrid.partition import PartRefused, find_parts, hybrid_model
            from ovir.export.model_exporter import layers_without_export
            from ovir.export.onnx_graph import Graph
            from ovir.export.support import engine_opset

        opset = engine_opset({port.element_type for layer in model.walk() for port in layer.outputs})
        new_graph = partial(Graph, opset, needs_kernels=True, contrib=True, rounds_products=self.quantize_activations)
        shown = [layer for layer in model.layers if layer.key in keep]
        ports = {port for layer in shown for port in layer.outputs}
        self.numpy_layers: dict[Layer, Diagnostic] = layers_without_export(model, new_graph())
        while True:
            self.parts = find_parts(model, self.numpy_layers, ports)
            try:
                plan = make_plan(hybrid_model(model, self.parts, shown, new_graph, self.threads), keep)
                self.diagnostics = self._slow(model)
                return plan
            except PartRefused as refused:
                self.numpy_layers.update(dict.fromkeys(refused.layers, refused.reason))

    def _slow(self, model: Model) -> list[Diagnostic]:
        """Return warnings that NumPy alone may be faster, each with the reason."""
        messages = []
        if len(self.parts) > _FEW_PARTS:
            kinds = sorted({layer.type for layer in self.numpy_layers})
            messages.append(
                f"onnxruntime runs the model in {len(self.parts)} parts, because NumPy runs "
                f"{plural(len(self.numpy_layers), 'layer')} between them ({', '.join(kinds)})"
            )
        weights, tensors = _elements(model)
        if weights < _SMALL_WEIGHTS and tensors < _SMALL_TENSORS:
            messages.append(
                f"the model has only {plural(weights, 'weight')}; unless its inputs are large, calls of onnxruntime "
                "take longer than its arithmetic"
            )
        hint = "the engine 'numpy' may be faster"
        return [diagnose(SLOW_ENGINE, message, Place(self.model.path), hint=hint) for message in messages]

    def plan_for(self, shapes: InputShapes, states: States, keep: Collection[str], *, watched: bool) -> None:
        """Return None: the parts run inputs of all shapes."""


def _elements(model: Model) -> tuple[int, int]:
    """Return the numbers of elements of all weights, and of all other tensors of static shape, bodies included."""
    weights = tensors = 0
    for graph in model.graphs():
        constant = all_constant_layers(graph)
        for layer in graph.layers:
            sizes = (port.shape.size().length for port in layer.outputs if port.shape.is_static)
            if isinstance(layer.operator, Const):
                weights += sum(sizes)
            elif layer not in constant:
                tensors += sum(sizes)
    return weights, tensors
