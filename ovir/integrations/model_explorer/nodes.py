"""The node that Model Explorer draws for a layer, as JSON of the form of its ``graph_builder.GraphNode``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ovir.analysis.dynamic_dimensions import is_only_declared
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.wording import escaped, shown
from ovir.graph.layers import Layer, Port
from ovir.graph.rt_info import RtInfo
from ovir.integrations.model_explorer.constants import describe_constant
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Const

Node = dict[str, Any]
Lines = dict[str, str]
"""What the panel of a node shows: names and values."""

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
        """Return the text on a node: the operation, and the names of inputs and outputs."""
        ports = {"Parameter": layer.outputs, "Result": layer.inputs}.get(layer.type)
        return f"{layer.type} {escaped(ports[0].any_name)}" if ports else layer.type

    def _attributes(self, layer: Layer) -> Lines:
        lines = {"name": layer.name, "layer id": str(layer.id), "operation": f"{layer.type}, {layer.version}"}
        for found in self._diagnostics.get(layer, ()):
            _add(lines, f"{found.severity} {found.code}", found.message + (f" ({found.hint})" if found.hint else ""))
        if isinstance(op := layer.operator, Const):
            lines |= self._constant(op)
        for name, value in layer.attributes.items():
            _add(lines, name, _text(value))
        if layer.line is not None:
            lines["source line"] = str(layer.line)
        if layer.is_dead:
            lines["dead"] = "no output of the model depends on this layer"
        for name, value in _entries(layer.rt_info):
            _add(lines, f"rt_info {name}", value)
        return lines

    def _constant(self, constant: Const) -> Lines:
        """Return what is shown of a constant, which is read once for its own node and the nodes of all its readers."""
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
        """Return what is shown of an output; edges show its ``shape``.

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
        for name, value in _entries(port.rt_info):
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


def _text(value: Any) -> str:
    """Return the value of an attribute."""
    return str(value).lower() if isinstance(value, bool) else str(shown(value))


def _entries(info: RtInfo) -> Iterator[tuple[str, str]]:
    """Yield the entries of runtime information; an entry of an entry has the names of both."""
    pending: list[tuple[str, str | RtInfo]] = list(info.items())[::-1]
    while pending:
        name, value = pending.pop()
        if isinstance(value, RtInfo):
            pending += [(f"{name} {key}", inner) for key, inner in list(value.items())[::-1]]
        else:
            yield name, value
