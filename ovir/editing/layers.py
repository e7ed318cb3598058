"""Replaces, inserts and removes layers. The names of an output of the model go with that output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovir.diagnostics.text import plural
from ovir.editing.keys import find_layer, find_tensor, refuse
from ovir.editing.new_layers import NewLayers
from ovir.editing.transaction import editing, owner_of
from ovir.graph.edits import EditableGraph
from ovir.graph.keys import LayerKey, TensorKey
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model


def replace(model: Model, layer: LayerKey, new: Layer) -> Layer:
    """Replace a layer; see ``Model.replace``."""
    old = find_layer(model, layer)
    graph = owner_of(old)
    layers = NewLayers(graph, new, replaced=old)
    is_connected = any(port.source is not None for port in new.inputs)
    with layers.kept(), editing(model):
        sources = layers.include([port.source for port in old.inputs])
        graph.replace_layer(old, new, sources if is_connected else None)
        for before, after in zip(old.outputs, new.outputs, strict=False):
            after.own_names = after.own_names or before.own_names
    return new


def insert_after(
    model: Model, port: TensorKey, layer: Layer, others: Sequence[Port], readers: Iterable[Port] | None
) -> Layer:
    """Insert a layer behind a tensor; see ``Model.insert_after``."""
    source = find_tensor(model, port)
    graph = owner_of(source.layer)
    new = NewLayers(graph, layer)
    if not (layer.inputs and layer.outputs):
        refuse("the layer needs an input and an output to be inserted", layer)
    if len(others) >= len(layer.inputs):
        refuse(f"the layer has {plural(len(layer.inputs), 'input')}, got {plural(1 + len(others), 'source')}", layer)
    moved = source.readers if readers is None else tuple(readers)
    with new.kept(), editing(model):
        reads_source = source in new.reads
        sources = new.include([source, *others])
        if source not in sources and not reads_source:
            refuse("the new layer does not read the tensor that it is inserted after", layer)
        if sources[0] is source:
            EditableGraph.insert_after(graph, source, layer, sources[1:], readers=moved)
        else:
            graph.add_layer(layer, sources)
            graph.move_readers(source, layer.outputs[0], moved)
        if _feeds_result(layer.outputs[0]):
            _move_names(source, layer.outputs[0])
    return layer


def remove(model: Model, layer: LayerKey) -> None:
    """Remove a layer; see ``Model.remove``."""
    old = find_layer(model, layer)
    with editing(model):
        source = old.inputs[0].source if old.inputs else None
        outputs = [port for port in old.outputs if _feeds_result(port)]
        owner_of(old).remove_layer(old, bypass=True)
        for port in outputs:
            if source is not None:
                _move_names(port, source)


def _feeds_result(port: Port) -> bool:
    return any(reader.layer.type == "Result" for reader in port.readers)


def _move_names(source: Port, target: Port) -> None:
    target.own_names |= source.own_names
    source.own_names = frozenset()
