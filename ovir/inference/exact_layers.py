"""Find the layers that sizes are computed from, which lose their meaning if they are rounded."""

from __future__ import annotations

from ovir.graph.layers import Layer
from ovir.graph.model import Model


def exact_layers(model: Model) -> set[Layer]:
    """Return the layers of a model, without its bodies, from which sizes and positions are computed.

    The search goes from inputs that give sizes, such as the pattern of a Reshape, towards the inputs of the model. It
    ends where a size is read from a shape.
    """
    pending = [
        layer.inputs[index]
        for layer in model.layers
        if layer.operator is not None
        for index in layer.operator.exact_inputs
        if index < len(layer.inputs)
    ]
    found: set[Layer] = set()
    while pending:
        source = pending.pop().source
        if source is None or source.layer in found or getattr(source.layer.operator, "value_from_shapes", False):
            continue
        found.add(source.layer)
        pending.extend(source.layer.inputs)
    return found
