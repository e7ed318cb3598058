"""Layers computed from constants alone, and layers from which sizes are computed, which must not be rounded."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port


def is_function(layer: Layer) -> bool:
    """Return whether a layer is a Const, or has all its inputs and gives the same outputs for the same inputs.

    A layer with bodies is not taken for one, because its bodies may have a state.
    """
    op = layer.operator
    if op is None or not op.pure or layer.bodies:
        return False
    return layer.type == "Const" or (bool(layer.inputs) and all(port.source is not None for port in layer.inputs))


def constant_layers(layer: Layer, most: int | None = None) -> list[Layer] | None:
    """Return the layers that compute ``layer`` from constants alone, itself first; None if it has other sources.

    With ``most``, more layers than that give None, too.
    """
    layers = {layer: None}
    pending = [layer]
    while pending:
        current = pending.pop()
        if not is_function(current):
            return None
        for port in current.inputs:
            if port.source is not None and port.source.layer not in layers:
                layers[port.source.layer] = None
                pending.append(port.source.layer)
        if most is not None and len(layers) > most:
            return None
    return list(layers)


def all_constant_layers(model: LayerGraph) -> set[Layer]:
    """Return the layers of a model that are computed from constants alone, the constants included; Results are not."""
    found: set[Layer] = set()
    for layer in model.layers:
        if not is_function(layer) or layer.type == "Result":
            continue
        if all(port.source is not None and port.source.layer in found for port in layer.inputs):
            found.add(layer)
    return found


def converted_codes(port: Port) -> Layer | None:
    """Return the Const whose numbers an input reads in another type, perhaps with constant zero points subtracted; None
    for any other input."""
    layer = None if port.source is None else port.source.layer
    if layer is not None and layer.operator is not None and layer.operator.offsets and len(layer.inputs) == 2:
        numbers, zero_points = (read.source for read in layer.inputs)
        is_fixed = zero_points is not None and constant_layers(zero_points.layer) is not None
        layer = numbers.layer if numbers is not None and is_fixed else None
    if layer is None or layer.operator is None or not layer.operator.converts or not layer.inputs:
        return None
    codes = layer.inputs[0].source
    return codes.layer if codes is not None and codes.layer.type == "Const" else None


def deciding_constants(model: LayerGraph) -> set[Layer]:
    """Return the constants of real numbers, in a model and its bodies, that decide about other values: those that
    reach, unchanged or through layers computed from constants alone, a layer whose results jump where an input changes
    a little.

    Such layers round real numbers, or compute integers or booleans from them.
    """
    fixed = {layer for part in model.graphs() for layer in all_constant_layers(part)}
    pending = [
        port
        for layer in model.walk()
        if (op := layer.operator) is not None and _jumps(layer)
        for port in op.with_elements_read(layer.inputs)
    ]
    layers: set[Layer] = set()
    while pending:
        source = pending.pop().source
        if source is None or source.layer in layers or not source.element_type.is_real:
            continue
        layer = source.layer
        layers.add(layer)
        pending += [port for index, port in enumerate(layer.inputs) if layer in fixed or _passes(layer, index)]
        pending += _through_bodies(source)
    return {layer for layer in layers if layer.type == "Const"}


def _through_bodies(port: Port) -> Iterator[Port]:
    """Yield what a tensor is outside of its body, if it is a parameter of one, or inside, if a layer has bodies."""
    layer = port.layer
    for key, body in layer.bodies.items():
        wiring = layer.operator.wiring.get(key) if layer.operator is not None else None
        for output in wiring.outputs if wiring is not None else ():
            if output.external == port.index:
                yield body.outputs[output.result]
    holder = layer.owner.holder if layer.type == "Parameter" and isinstance(layer.owner, LayerGraph) else None
    if holder is None or holder.operator is None:
        return
    for key, body in holder.bodies.items():
        wiring = holder.operator.wiring.get(key) if body is layer.owner else None
        for entry in wiring.inputs if wiring is not None else ():
            if entry.external >= 0 and body.inputs[entry.parameter] is port:
                yield holder.inputs[entry.external]


def _jumps(layer: Layer) -> bool:
    """Return whether results of a layer jump where a real number that it reads changes a little."""
    op = layer.operator
    if op is None or layer.bodies:
        return False
    return op.steps or any(not port.element_type.is_real for port in layer.outputs)


def _passes(layer: Layer, index: int) -> bool:
    """Return whether a layer only moves the elements of an input, perhaps into another type."""
    op = layer.operator
    if op is None:
        return False
    passed = (*op.moves_elements, *op.forwards_values)
    return index in passed or -1 in passed  # -1 stands for all


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
