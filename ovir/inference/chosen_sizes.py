"""Infers a model once more, for chosen sizes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping

from ovir.diagnostics.errors import Diagnostics
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.inference.engines import Engine, set_outputs
from ovir.ops.base.operator import Operator


def infer_at(model: LayerGraph, chosen: Mapping[Layer, Operator]) -> None:
    """Give inputs and variables other operators, and the ports of an inferred model the types that they have then.

    A layer that cannot be inferred for these sizes keeps its type.
    """
    model.revision += 1
    for layer, operator in chosen.items():
        layer.operator = operator
    _ChosenSizes(Diagnostics()).infer(model)


class _ChosenSizes(Engine):
    """Infers each layer, and keeps the first inferred types of its outputs."""

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Set the types of the outputs of a layer."""
        outputs, _ = self.attempt(layer, [port.type for port in layer.inputs])
        if outputs is None:
            return
        if not is_body:  # the sizes of a body may differ each time
            before = [port.type.shape for port in layer.outputs]
            merged = [new.shape.merged_with(old) for new, old in zip(outputs, before, strict=False)]
            known = zip(outputs, merged, strict=False)
            outputs = tuple([new if shape is None else new.refined(new.element_type, shape) for new, shape in known])
        set_outputs(layer, outputs)
