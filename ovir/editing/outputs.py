"""Further outputs of a model."""

from __future__ import annotations

from ovir.build.making import result
from ovir.editing.keys import find_tensors, refuse
from ovir.editing.transaction import editing
from ovir.graph.keys import TensorKeys
from ovir.graph.layers import Port
from ovir.graph.model import Model
from ovir.graph.names import name_tensors, result_name, take_name


def add_outputs(model: Model, outputs: TensorKeys) -> list[Port]:
    """Make tensors outputs of a model; see ``Model.add_outputs``."""
    ports = find_tensors(model, outputs)
    for port in ports:
        if port.layer.owner is not model or model.holder is not None:
            hint = "to look at a tensor in a body, tap it: compiled(inputs, taps=[...])"
            refuse("a tensor of a body cannot be an output of the model", port.layer, hint)
    own = {port: next((reader for reader in port.readers if reader.layer.type == "Result"), None) for port in ports}
    new = [port for port, reader in own.items() if reader is None]
    with editing(model):
        names = {name for layer in model.layers for port in layer.outputs for name in port.own_names}
        name_tensors(new, names)
        layer_names = {layer.name for layer in model.layers}
        for port in new:
            name = take_name(result_name(port), layer_names)
            own[port] = model.add_layer(result(model.next_id, name), [port]).inputs[0]
    return [reader for reader in own.values() if reader is not None]
