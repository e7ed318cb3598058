"""The state of a model before an edit, from which it is restored if the edit fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ovir.graph.file_order import FileOrder
from ovir.graph.layers import Layer, Port

if TYPE_CHECKING:
    from ovir.graph.model import Model

_OF_LAYER = ("id", "name", "type", "version", "attributes", "operator", "rt_info_source", "scope", "owner")
_OF_PORT = (
    *("layer", "index", "id", "declared_shape", "declared_element_type", "own_names", "rt_info", "inferred"),
    *("edge_line", "_source"),
)
_KEPT = ("revision", "_dependents")
"""What is not restored: the number of inferences only grows, and dependents have been called."""


class _State(NamedTuple):
    """The fields of a model or layer, and copies of the containers that edits change in place."""

    fields: dict[str, Any]
    layers: list[Layer]
    by_id: dict[int, Layer]


class Snapshot:
    """The fields of a model and its bodies, of their layers and of the ports; data of weights is not copied.

    ``restore`` sets the same objects to the same values, so that layers and ports that a user holds remain those of the
    model. Layers that have been added meanwhile belong to no model then, and are connected with nothing.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._models = [(graph, _state_of(graph)) for graph in model.graphs()]
        layers = [layer for _, state in self._models for layer in state.layers]
        self._layers = [
            (layer, _values(layer, _OF_LAYER), list(layer.inputs), list(layer.outputs), dict(layer.bodies))
            for layer in layers
        ]
        self._ports = [
            (port, _values(port, _OF_PORT), None if port._readers is None else dict(port._readers))
            for layer in layers
            for port in (*layer.inputs, *layer.outputs)
        ]

    def restore(self) -> None:
        """Undo everything that has happened to the model since."""
        added = {layer for graph in self._model.graphs() for layer in graph._file_order}
        for graph, state in self._models:
            added.difference_update(state.layers)
            kept = {name: getattr(graph, name) for name in _KEPT}
            vars(graph).clear()
            vars(graph).update(state.fields, **kept)
            graph._order = FileOrder(state.layers)
            graph._by_id = state.by_id
        for layer, values, inputs, outputs, bodies in self._layers:
            _set(layer, _OF_LAYER, values)
            layer.inputs, layer.outputs, layer.bodies = inputs, outputs, bodies
        for port, values, readers in self._ports:
            _set(port, _OF_PORT, values)
            port._readers = readers
        for layer in added:
            _release(layer)


def _state_of(graph: Model) -> _State:
    layers = list(graph._file_order)
    derived = {"_order", "_by_id", "_ranks", "_first_named"}  # edits keep them up to date in place
    fields = {name: value for name, value in vars(graph).items() if name not in derived}
    fields |= {"_ranks": None, "_first_named": None}
    return _State(fields, layers, dict(graph._by_id))


def _values(item: Layer | Port, names: Sequence[str]) -> list[Any]:
    return [getattr(item, name) for name in names]


def _set(item: Layer | Port, names: Sequence[str], values: Sequence[Any]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(item, name, value)


def _release(layer: Layer) -> None:
    """Make a layer belong to no model."""
    layer.owner = None
    for port in (*layer.inputs, *layer.outputs):
        port._source = port._readers = port.edge_line = None
