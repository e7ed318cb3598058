"""Replaces, inserts and removes layers. The names of an output of the model go with that output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovir.editing.keys import find_layer, find_tensor
from ovir.editing.transaction import editing, owner_of
from ovir.graph.edits import EditableGraph
from ovir.graph.keys import LayerKey, TensorKey
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model


def replace(model: Model, layer: LayerKey, node: Layer) -> Layer:
    """Replace a layer; see ``Model.replace``."""
    old = find_layer(model, layer)
    with editing(model):
        owner_of(old).replace_layer(old, node)
        for before, after in zip(old.outputs, node.outputs, strict=False):
            after.own_names = after.own_names or before.own_names
    return node


def insert_after(
    model: Model, port: TensorKey, layer: Layer, others: Sequence[Port], readers: Iterable[Port] | None
) -> Layer:
    """Insert a layer behind a tensor; see ``Model.insert_after``."""
    source = find_tensor(model, port)
    with editing(model):
        EditableGraph.insert_after(owner_of(source.layer), source, layer, others, readers=readers)
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
