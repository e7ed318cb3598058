"""The graphs that Model Explorer draws for a model: one for the model itself, and one for each body."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovir.analysis.dynamic_dimensions import is_only_declared
from ovir.analysis.tensor_stats import as_numbers, stats
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import OperatorError, OvirError
from ovir.diagnostics.wording import escaped, number_text, readable, shown
from ovir.graph.layers import Layer, Port
from ovir.graph.rt_info import flat_entries
from ovir.model import Model
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Const
from ovir.system.python_runtime import without_garbage_collection
from ovir.view.groups import Path, group_paths


def diagnostics_by_layer(model: Model, diagnostics: Iterable[Diagnostic]) -> dict[Layer, list[Diagnostic]]:
    """Return the diagnostics of each layer, also of those in bodies; diagnostics of the file as a whole are left out.

    A layer whose id was changed because another layer has it, too, is found by its line.
    """
    layers = list(model.walk())
    by_title = {layer.title: layer for layer in layers}
    by_line = {layer.line: layer for layer in layers if layer.line is not None}
    found: dict[Layer, list[Diagnostic]] = {}
    for item in diagnostics:
        if item.layer is None:
            continue
        layer = by_title.get(item.layer) or by_line.get(item.line or 0)
        if layer is not None:
            found.setdefault(layer, []).append(item)
    return found


MOST = 2**20
"""The number of elements that statistics cover; larger constants would take long to read."""


def describe_constant(constant: Const, limit: int) -> dict[str, str]:
    """Return the first ``limit`` values of a constant, its minimum, maximum and mean, and how many values are not
    finite.

    For a constant of more than ``MOST`` elements, statistics cover the first ones, which their names say.
    """
    if not constant.has_data:
        return {"values": "none: the file with the weights is missing"}
    size = int(np.prod(constant.shape, dtype=np.int64))
    try:
        array = constant.elements(0, min(size, MOST))
    except (OperatorError, OvirError) as error:
        return {"values": f"none: {error}"}
    measured = stats(array)
    covered = "" if size <= MOST else f" of the first {MOST:,} values"
    lines = {"values": _first_values(array, size, limit)}
    numbers = {"minimum": measured.minimum, "maximum": measured.maximum, "mean": measured.mean}
    if size > 1:
        lines |= {name + covered: f"{value:.6g}" for name, value in numbers.items() if value is not None}
    if measured.nonfinite:
        lines[f"NaN and infinities{covered}"] = f"{measured.nonfinite:,}"
    return lines


def _first_values(array: Array, size: int, limit: int) -> str:
    """Return the first values, separated by commas."""
    first = array.reshape(-1)[:limit]
    is_text = first.dtype.kind in "TUSO"
    values = first.tolist() if is_text else as_numbers(first).tolist()
    texts = [readable(repr(item)) if is_text else number_text(item) for item in values]
    more = f", … ({size:,} values)" if size > len(first) else ""
    return ", ".join(texts) + more if size else "none: it is empty"


Node = dict[str, Any]
Lines = dict[str, str]
"""The lines in the panel of a node: names and values."""

_LONGEST_NAME = 32
"""The largest number of characters of a name on a node."""
LONGEST = 1000
"""The largest number of characters of a value."""


class NodeMaker:
    """Makes the nodes of a model.

    ``diagnostics`` has the diagnostics of each layer, ``declared`` the ports whose type inference did not find.
    ``values`` is the number of values that are shown of a constant.
    """

    def __init__(
        self, diagnostics: Mapping[Layer, Sequence[Diagnostic]], declared: Collection[Port], values: int
    ) -> None:
        self._diagnostics = diagnostics
        self._declared = declared
        self._values = values
        self._of_constant: dict[int, Lines] = {}

    def node(self, layer: Layer, path: Sequence[str], ids: Mapping[Layer, str], taken: Collection[str]) -> Node:
        """Return the node of a layer. ``path`` names the groups around it, ``ids`` has the ids of all nodes, and
        ``taken`` the same as a set."""
        return {
            "id": ids[layer],
            "label": self._label(layer),
            "namespace": "/".join(part.replace(";", ",") for part in path),
            "subgraphIds": [body.scope.rstrip("/") for body in layer.bodies.values()],
            "attrs": _listed(self._attributes(layer)),
            "incomingEdges": [
                {
                    "sourceNodeId": ids[port.source.layer],
                    "sourceNodeOutputId": str(port.source.index),
                    "targetNodeInputId": str(port.index),
                }
                for port in layer.inputs
                if port.source is not None and port.source.layer in ids
            ],
            "inputsMetadata": self._inputs(layer),
            "outputsMetadata": [
                {"id": str(port.index), "attrs": _listed(self._output(port, taken))} for port in layer.outputs
            ],
        }

    @staticmethod
    def _label(layer: Layer) -> str:
        """Return the text on a node: the operation, and the last part of the name.

        Inputs and outputs have the name of their tensor. Constants have none, so that the page can hide them all.
        """
        if layer.type == "Const":
            return layer.type
        ports = {"Parameter": layer.outputs, "Result": layer.inputs}.get(layer.type)
        name = ports[0].any_name if ports else layer.name.rstrip("/").rpartition("/")[2]
        if name == layer.type:
            return layer.type
        if not ports and len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME // 2]}…{name[-_LONGEST_NAME // 2 :]}"
        return f"{layer.type} {escaped(name)}"

    def _attributes(self, layer: Layer) -> Lines:
        lines = {"name": layer.name, "layer id": str(layer.id), "operation": f"{layer.type}, {layer.version}"}
        for diagnostic in self._diagnostics.get(layer, ()):
            _add(lines, f"{diagnostic.severity} {diagnostic.code}", diagnostic.message)
            if diagnostic.hint:
                _add(lines, f"hint for {diagnostic.code}", diagnostic.hint)
        if isinstance(op := layer.operator, Const):
            lines |= self._constant(op)
        for name, value in layer.attributes.items():
            _add(lines, name, str(value).lower() if isinstance(value, bool) else str(shown(value)))
        if layer.line is not None:
            lines["source line"] = str(layer.line)
        if layer.is_dead:
            lines["dead"] = "no output of the model depends on this layer"
        for name, value in flat_entries(layer.rt_info, " "):
            _add(lines, f"rt_info {name}", value)
        return lines

    def _constant(self, constant: Const) -> Lines:
        """Return the lines that describe a constant, which is read once for its own node and all of its readers."""
        found = self._of_constant.get(id(constant))
        if found is None:
            found = self._of_constant[id(constant)] = describe_constant(constant, self._values)
        return found

    def _inputs(self, layer: Layer) -> list[dict[str, Any]]:
        """Return for each input its name in the specification, and the values of a constant."""
        names = () if layer.operator is None else input_names(type(layer.operator))
        found = []
        for port in layer.inputs:
            lines = {"__tensor_tag": names[port.index]} if port.index < len(names) else {}
            if port.source is None:
                lines["missing"] = "nothing is connected"
            elif isinstance(op := port.source.layer.operator, Const):
                lines["values"] = self._constant(op)["values"]
            found.append({"id": str(port.index), "attrs": _listed(lines)})
        return found

    def _output(self, port: Port, taken: Collection[str]) -> Lines:
        """Return the lines that describe an output; edges show its ``shape``.

        Data of other tools names tensors: ``tensor_name`` finds them. A name that is the id of a node is left to it.
        """
        lines = {"shape": str(port.type)}
        if port in self._declared or is_only_declared(port.layer):
            lines["only declared"] = "inference did not find this type"
        elif port.declared_shape is not None and port.declared_shape != port.shape:
            lines["declared shape"] = str(port.declared_shape)
        if port.names:
            lines["tensor names"] = ", ".join(sorted(port.names))
        if port.names and port.any_name not in taken:
            lines["tensor_name"] = port.any_name
        for name, value in flat_entries(port.rt_info, " "):
            _add(lines, f"rt_info {name}", value)
        return lines


def _add(lines: Lines, name: str, value: str) -> None:
    """Add a value, under a name of its own."""
    number, free = 1, name
    while free in lines:
        number += 1
        free = f"{name} ({number})"
    lines[free] = value


def _listed(lines: Lines) -> list[dict[str, str]]:
    return [{"key": key, "value": _shortened(value)} for key, value in lines.items()]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


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
    """The lines shown for each group, by its path."""

    def to_dict(self) -> dict[str, Any]:
        """Return the graph for JSON. The empty list means that constants are not hidden."""
        return {**json_fields(self, "id", "nodes", "groupNodeAttributes=groups"), "nodeLabelsToHide": []}


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
