"""Find the layers that sizes are computed from, which lose their meaning if they are rounded."""

from __future__ import annotations

from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer


def exact_layers(model: LayerGraph) -> set[Layer]:
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
        if source is None or source.layer in found:
            continue
        op, inputs = source.layer.operator, source.layer.inputs
        read = inputs if op is None else op.with_elements_read(inputs)
        if read or not inputs:
            found.add(source.layer)
            pending.extend(read)
    return found
