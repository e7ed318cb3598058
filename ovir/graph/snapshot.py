"""The state of a model before an edit, from which it is restored if the edit fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.order import FileOrder

_OF_LAYER = (
    *("id", "name", "type", "version", "attributes", "operator", "rt_info_source", "scope", "owner"),
    *("inputs", "outputs", "bodies"),
)
_OF_PORT = (
    *("layer", "index", "id", "declared_shape", "declared_element_type", "own_names", "rt_info", "inferred"),
    *("edge_line", "_source", "_readers"),
)
_KEPT = ("revision", "_dependents")
"""The fields that are not restored: the number of inferences only grows, and dependents have been called."""


class _ModelState(NamedTuple):
    """The fields of a model, and copies of the containers that edits change in place."""

    fields: dict[str, Any]
    layers: list[Layer]
    by_id: dict[int, Layer]


class Snapshot:
    """The fields of a model and its bodies, of their layers and of the ports; data of weights is not copied.

    ``restore`` sets the same objects to the same values, so that layers and ports that a user holds remain part of the
    model. Operators are such objects: an attribute that has been set in an operator itself remains as it is. New layers
    are restored too if ``add`` has been called for them; others that have been added belong to no model then, and are
    connected with nothing.
    """

    def __init__(self, model: LayerGraph) -> None:
        self._model = model
        self._models: list[tuple[LayerGraph, _ModelState]] = []
        self._layers: dict[Layer, list[Any]] = {}
        self._ports: list[tuple[Port, list[Any]]] = []
        self._add_models(model)

    def add(self, layers: Iterable[Layer]) -> None:
        """Keep the present state of layers that are about to become part of the model, and of their bodies."""
        for layer in layers:
            if layer not in self._layers:
                self._add_layer(layer)
                for body in layer.bodies.values():
                    self._add_models(body)

    def _add_models(self, model: LayerGraph) -> None:
        for graph in model.graphs():
            layers = list(graph._file_order)
            derived = {"_order", "_by_id", "_ranks", "_first_named"}  # edits keep them up to date in place
            fields = {name: value for name, value in vars(graph).items() if name not in derived}
            fields |= {"_ranks": None, "_first_named": None}
            state = _ModelState(fields, layers, dict(graph._by_id))
            self._models.append((graph, state))
            for layer in state.layers:
                self._add_layer(layer)

    def _add_layer(self, layer: Layer) -> None:
        self._layers[layer] = _kept(_of_layer(layer))
        self._ports += [(port, _kept(_of_port(port))) for port in (*layer.inputs, *layer.outputs)]

    def restore(self) -> None:
        """Undo later changes of the model and of the layers of ``add``, except inside operators."""
        added = {layer for graph in self._model.graphs() for layer in graph._file_order}
        added.difference_update(self._layers)
        for graph, state in self._models:
            kept = {name: getattr(graph, name) for name in _KEPT}
            vars(graph).clear()
            vars(graph).update(state.fields, **kept)
            graph._order = FileOrder(state.layers)
            graph._by_id = state.by_id
        for layer, values in self._layers.items():
            _set(layer, _OF_LAYER, values)
        for port, values in self._ports:
            _set(port, _OF_PORT, values)
        for layer in added:
            _release(layer)


_of_layer, _of_port = attrgetter(*_OF_LAYER), attrgetter(*_OF_PORT)


def _kept(values: Iterable[Any]) -> list[Any]:
    """Return the values of fields, with copies of the containers that edits change in place."""
    return [value.copy() if type(value) in (list, dict) else value for value in values]


def _set(item: Layer | Port, names: Sequence[str], values: Sequence[Any]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(item, name, value)


def _release(layer: Layer) -> None:
    """Make a layer belong to no model, with attributes that can be set."""
    layer.owner = None
    layer.scope = ""
    layer.attributes = dict(layer.attributes)
    for port in (*layer.inputs, *layer.outputs):
        port._source = port._readers = port.edge_line = None
