"""Edits of a whole model: names of layers and tensors, further outputs, dead layers, runtime information."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from ovir.building.creation import new_result
from ovir.diagnostics.diagnostic import in_place_of
from ovir.editing.keys import TensorKeys, find_tensors, layer_named, refuse, refuse_unknown
from ovir.editing.layer_edits import remove
from ovir.editing.transaction import editing, owner_of
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.names import name_tensors, own_tensor_names, result_name, take_name, tensor_names
from ovir.graph.rt_info import NO_RT_INFO
from ovir.ops.state import AssignBase, ReadValueBase

# --------------------------------------------------------------------------- names


def rename(model: LayerGraph, names: Mapping[str, str]) -> None:
    """Rename layers and tensors; see ``Model.rename``."""
    if not isinstance(names, Mapping) or not all(isinstance(text, str) for pair in names.items() for text in pair):
        refuse(f"expected a mapping of old to new names, got {names!r}")
    tensors = tensor_names(model)
    of_layers: dict[Layer, str] = {}
    of_tensors: dict[LayerGraph, dict[str, str]] = {}
    for old, new in names.items():
        layer, port = layer_named(model, old), tensors.get(old)
        if layer is None and port is None:
            refuse_unknown(model, old)
        if not new:
            refuse(f"the new name of {old!r} is empty")
        if layer is not None:
            _add(of_layers, layer, _own_name(model, owner_of(layer), old, new))
        if port is not None:
            graph = owner_of(port.layer)
            present = old.removeprefix(_start(model, graph))
            of_tensors.setdefault(graph, {})[present] = _own_name(model, graph, old, new)
    _check_collisions(of_layers)
    with editing(model):
        for graph, changes in of_tensors.items():
            graph.rename_tensors(changes)
        for graph in {owner_of(layer): None for layer in of_layers}:
            changed = {layer: name for layer, name in of_layers.items() if layer.owner is graph}
            graph.set_layer_names(changed, [layer for layer in graph.layers if layer.bodies])


def _start(model: LayerGraph, graph: LayerGraph) -> str:
    """Return the prefix of the names of a body, seen from ``model``."""
    return graph.scope.removeprefix(model.scope)


def _own_name(model: LayerGraph, graph: LayerGraph, old: str, new: str) -> str:
    """Return a new name without the names of the layers around it, which it begins with if the old name does.

    Raises InputError if it begins with those around another body.
    """
    given = new.removeprefix(model.scope) if model.scope and old.startswith(model.scope) else new
    starts = [start for other in model.graphs() if given.startswith(start := _start(model, other))]
    if max(starts, key=len) not in ("", _start(model, graph)):
        refuse(f"{old!r} cannot be renamed to {new!r}: this would be the name of a layer or tensor in another body")
    return given.removeprefix(_start(model, graph))


def _add(found: dict[Layer, str], layer: Layer, new: str) -> None:
    if found.setdefault(layer, new) != new:
        refuse(f"the layer is given two new names, {found[layer]!r} and {new!r}", layer)


def _check_collisions(names: Mapping[Layer, str]) -> None:
    """Raise InputError if two layers of one model would have the same name."""
    for graph in {owner_of(layer): None for layer in names}:
        counts = Counter(names.get(layer, layer.name) for layer in graph.layers)
        for layer, new in names.items():
            if layer.owner is graph and counts[new] > 1 and new != layer.name:
                refuse(f"layer {layer.name!r} cannot be renamed to {new!r}: another layer has this name", layer)


# --------------------------------------------------------------------------- outputs


def add_outputs(model: LayerGraph, outputs: TensorKeys) -> list[Port]:
    """Make tensors outputs of a model; see ``Model.add_outputs``."""
    ports = find_tensors(model, outputs)
    for port in ports:
        if port.layer.owner is not model or model.holder is not None:
            hint = "to look at a tensor in a body, tap it: compiled(inputs, taps=[...])"
            refuse("a tensor of a body cannot be an output of the model", port.layer, hint)
    own = {port: next((reader for reader in port.readers if reader.layer.type == "Result"), None) for port in ports}
    new = [port for port, reader in own.items() if reader is None]
    with editing(model):
        names = own_tensor_names(model.layers)
        name_tensors(new, names)
        layer_names = {layer.name for layer in model.layers}
        for port in new:
            name = take_name(result_name(port), layer_names)
            with in_place_of(port.layer.place):
                result = new_result(model.next_id, name)
            own[port] = model.add_layer(result, [port]).inputs[0]
    return [reader for reader in own.values() if reader is not None]


# --------------------------------------------------------------------------- what no output needs


def remove_output(model: LayerGraph, key: str | int | Port) -> list[Layer]:
    """Remove an output with what only it needs; see ``Model.remove_output``."""
    result = model.output(key).layer
    before = {layer for graph in model.graphs() for layer in graph.dead_layers}
    with editing(model):
        remove(model, result)
        return prune(model, kept=before)


def prune(model: LayerGraph, kept: Collection[Layer] = ()) -> list[Layer]:
    """Remove dead layers other than those in ``kept``; see ``Model.prune``."""
    removed: list[Layer] = []
    with editing(model):
        for graph in model.graphs():
            dead = graph.dead_layers - _read_variables(graph) - {*kept}
            for layer in reversed(graph.layers):
                if layer in dead and not any(port.readers for port in layer.outputs):
                    removed.append(layer)
                    graph.remove_layer(layer)
    return removed


def _read_variables(graph: LayerGraph) -> set[Layer]:
    """Return the ReadValues of variables that an Assign sets; an Assign without ReadValue is an error."""
    assigned = {op.variable_id for layer in graph.layers if isinstance(op := layer.operator, AssignBase)}
    return {
        layer
        for layer in graph.layers
        if isinstance(op := layer.operator, ReadValueBase) and op.variable_id in assigned
    }


def strip_rt_info(model: LayerGraph) -> None:
    """Remove all runtime information; see ``Model.strip_rt_info``."""
    with editing(model):
        for graph in model.graphs():
            graph.rt_info = NO_RT_INFO
            for layer in graph.layers:
                layer.rt_info_source = None
                for port in (*layer.inputs, *layer.outputs):
                    port.rt_info = NO_RT_INFO
