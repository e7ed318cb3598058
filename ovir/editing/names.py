"""Renames layers and tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ovir.diagnostics.errors import NotFoundError
from ovir.editing.keys import refuse, refuse_unknown, tensor_names
from ovir.editing.transaction import editing, owner_of
from ovir.graph.layers import Layer
from ovir.graph.model import Model


def rename(model: Model, names: Mapping[str, str]) -> None:
    """Rename layers and tensors; see ``Model.rename``."""
    if not isinstance(names, Mapping) or not all(isinstance(text, str) for pair in names.items() for text in pair):
        refuse(f"expected a mapping of old to new names, got {names!r}")
    tensors = tensor_names(model)
    of_layers: dict[Layer, str] = {}
    of_tensors: dict[Model, dict[str, str]] = {}
    for old, new in names.items():
        layer, port = _layer(model, old), tensors.get(old)
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


def _start(model: Model, graph: Model) -> str:
    """Return what the names of a body begin with, seen from ``model``."""
    return graph.scope.removeprefix(model.scope)


def _own_name(model: Model, graph: Model, old: str, new: str) -> str:
    """Return a new name without the names of the layers around it, which it begins with if the old name does.

    Raises InputError if it begins with those around another body.
    """
    given = new.removeprefix(model.scope) if model.scope and old.startswith(model.scope) else new
    starts = [start for other in model.graphs() if given.startswith(start := _start(model, other))]
    if max(starts, key=len) not in ("", _start(model, graph)):
        refuse(f"{old!r} cannot be renamed to {new!r}: this would be the name of a layer or tensor in another body")
    return given.removeprefix(_start(model, graph))


def _layer(model: Model, name: str) -> Layer | None:
    try:
        return model.layer(name)
    except NotFoundError:
        return None


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
