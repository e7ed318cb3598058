"""Replaces, inserts and removes layers. The names of an output of the model go with that output."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.diagnostics.text import plural
from ovir.editing.keys import find_input, find_layer, find_readers, find_tensor, find_tensors, refuse
from ovir.editing.new_layers import NewLayers
from ovir.editing.transaction import editing, owner_of
from ovir.graph.keys import InputKey, InputKeys, LayerKey, TensorKey, TensorKeys
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model


def replace(model: Model, layer: LayerKey, new: Layer) -> Layer:
    """Replace a layer; see ``Model.replace``."""
    old = find_layer(model, layer)
    graph = owner_of(old)
    added = NewLayers(graph, new, replaced=old)
    if old.type == "Result" and new.type != "Result":
        hint = "to compute something before this output, use insert_after with the tensor that it reads"
        refuse(f"an output of the model cannot be replaced by a layer of type {new.type}", old, hint)
    is_connected = any(port.source is not None for port in new.inputs)
    with editing(model, added.layers):
        sources = added.include([port.source for port in old.inputs])
        graph.replace_layer(old, new, sources if is_connected else None)
        for before, after in zip(old.outputs, new.outputs, strict=False):
            after.own_names = after.own_names or before.own_names
    return new


def insert_after(model: Model, port: TensorKey, layer: Layer, others: TensorKeys, readers: InputKeys | None) -> Layer:
    """Insert a layer behind a tensor; see ``Model.insert_after``."""
    source = find_tensor(model, port)
    moved = source.readers if readers is None else find_readers(model, source, readers)
    return _insert(model, source, layer, find_tensors(model, others, repeated=True), moved)


def insert_before(model: Model, port: InputKey, layer: Layer, others: TensorKeys) -> Layer:
    """Insert a layer before an input; see ``Model.insert_before``."""
    target = find_input(model, port)
    if target.source is None:
        refuse(f"input {target.index} of this layer has no source", target.layer)
    return _insert(model, target.source, layer, find_tensors(model, others, repeated=True), [target])


def _insert(model: Model, source: Port, layer: Layer, others: Sequence[Port], readers: Sequence[Port]) -> Layer:
    graph = owner_of(source.layer)
    new = NewLayers(graph, layer)
    if not (layer.inputs and layer.outputs):
        refuse("the layer needs an input and an output to be inserted", layer)
    if len(others) >= len(layer.inputs):
        refuse(f"the layer has {plural(len(layer.inputs), 'input')}, got {plural(1 + len(others), 'source')}", layer)
    with editing(model, new.layers):
        reads_source = source in new.reads
        sources = new.include([source, *others])
        if source not in sources and not reads_source:
            refuse("the new layer does not read the tensor that it is inserted after", layer)
        if sources[0] is source:
            graph.insert_layer_after(source, layer, sources[1:], readers=readers)
        else:
            graph.add_layer(layer, sources)
            graph.move_readers(source, layer.outputs[0], readers)
        if _feeds_result(layer.outputs[0]):
            _move_names(source, layer.outputs[0])
    return layer


def remove(model: Model, layer: LayerKey) -> None:
    """Remove a layer; see ``Model.remove``."""
    old = find_layer(model, layer)
    graph = owner_of(old)
    if old.type == "Result" and graph.holder is None and len(graph.outputs) == 1:
        refuse("the only output of a model cannot be removed", old, "make another tensor an output before: add_outputs")
    with editing(model):
        source = old.inputs[0].source if old.inputs else None
        outputs = [port for port in old.outputs if _feeds_result(port)]
        graph.remove_layer(old, bypass=True)
        for port in outputs:
            if source is not None:
                _move_names(port, source)


def _feeds_result(port: Port) -> bool:
    return any(reader.layer.type == "Result" for reader in port.readers)


def _move_names(source: Port, target: Port) -> None:
    target.own_names |= source.own_names
    source.own_names = frozenset()
