"""The graphs that Model Explorer draws for a model: one for the model itself, and one for each body."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovir.core.interpreter import without_garbage_collection
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer, Port
from ovir.integrations.model_explorer.faults import diagnostics_by_layer
from ovir.integrations.model_explorer.groups import Path, group_paths
from ovir.integrations.model_explorer.nodes import Node, NodeMaker
from ovir.model import Model
from ovir.ops.infrastructure import Const

MAIN = "model"
"""The id of the graph of the model itself; the graph of a body has the names of the layers around it as its id."""
FIRST_VALUES = 16
"""The number of values that are shown of a constant unless the settings say otherwise."""

_OF_OBJECTS = frozenset(
    (
        *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__", "constructor"),
        *("hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"),
    )
)
"""Names that every object of JavaScript has, so that the page does not find a node of this id."""


@dataclass
class Graph:
    """A graph in the form of Model Explorer's ``graph_builder.Graph``."""

    id: str
    nodes: list[Node] = field(default_factory=list)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    """What is shown of each group, by its path."""

    def to_dict(self) -> dict[str, Any]:
        """Return the graph for JSON. The empty list means that constants are not hidden."""
        return {
            "id": self.id,
            "nodes": self.nodes,
            "groupNodeAttributes": self.groups,
            "nodeLabelsToHide": [],
        }


def graphs_of(
    model: Model,
    diagnostics: Iterable[Diagnostic] = (),
    declared: Collection[Port] = (),
    *,
    values: int = FIRST_VALUES,
) -> list[Graph]:
    """Return the graphs of a model and of all its bodies, the model itself first.

    Nodes show the diagnostics of their layers. ``declared`` has the ports whose type inference did not find, ``values``
    is the number of values that are shown of each constant.
    """
    maker = NodeMaker(diagnostics_by_layer(model, diagnostics), declared, values)
    with without_garbage_collection():
        return [_graph(part, maker) for part in model.graphs()]


def graph_id(model: Model) -> str:
    """Return the id of the graph of a model or a body."""
    return model.scope.rstrip("/") or MAIN


def node_ids(model: Model) -> dict[Layer, str]:
    """Return the ids of the nodes of a model, without those in bodies: the names of the layers, made unique."""
    found: dict[Layer, str] = {}
    for layer in model.layers:
        key = model.own_key(layer)
        found[layer] = f"{key}#{layer.id}" if key in _OF_OBJECTS else key
    return found


def _graph(model: Model, maker: NodeMaker) -> Graph:
    ids, paths = node_ids(model), group_paths(model)
    taken = set(ids.values())
    nodes = [maker.node(layer, paths[layer], ids, taken) for layer in model.layers]
    return Graph(graph_id(model), nodes, _groups(model.layers, nodes, paths))


def _groups(layers: Sequence[Layer], nodes: Sequence[Node], paths: Mapping[Layer, Path]) -> dict[str, dict[str, str]]:
    """Return the number of layers and of parameters in each group."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for layer, node in zip(layers, nodes, strict=True):
        op = layer.operator
        size = int(np.prod(op.shape, dtype=np.int64)) if isinstance(op, Const) else 0
        parts = node["namespace"].split("/")
        for depth in range(len(paths[layer])):
            count = counts["/".join(parts[: depth + 1])]
            count[0] += 1
            count[1] += size
    return {
        group: {"layers": f"{number:,}", "values of constants": f"{size:,}"} for group, (number, size) in counts.items()
    }
