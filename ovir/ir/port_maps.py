"""Reads how If, Loop and TensorIterator are wired to their bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from lxml import etree

from ovir.diagnostics import BODY, ModelError, Place, diagnostic
from ovir.integers import parse_integer
from ovir.model import Layer, Model
from ovir.ops.body import BackEdge, BodyMap, InputMap, OutputMap


@dataclass(frozen=True)
class BodyTags:
    """The elements of one body."""

    body: str
    port_map: str
    back_edges: str = "back_edges"


_LOOP = {"body": BodyTags("body", "port_map")}
BODY_OPERATIONS: dict[str, dict[str, BodyTags]] = {
    "If": {"then": BodyTags("then_body", "then_port_map"), "else": BodyTags("else_body", "else_port_map")},
    "Loop": _LOOP,
    "TensorIterator": _LOOP,
}


def read_body_map(element: etree._Element, tags: BodyTags, layer: Layer, body: Model, file: str | None) -> BodyMap:
    """The wiring of one body, ids resolved to positions. ModelError when an id leads nowhere."""
    group = element.find(tags.port_map)
    if group is None:
        raise ModelError(diagnostic(BODY, f"{layer.type} has no <{tags.port_map}>", layer.place))
    inputs: list[InputMap] = []
    outputs: list[OutputMap] = []
    backs: list[BackEdge] = []
    parameters = {port.layer.id: i for i, port in enumerate(body.inputs)}
    results = {port.layer.id: i for i, port in enumerate(body.outputs)}
    read = _MapReader(layer, file)
    seen: set[int] = set()
    for item in group.iterfind("input"):
        external = read.port(item, [port.id for port in layer.inputs])
        internal = read.inner(item, "internal_layer_id", parameters, "Parameter")
        if internal in seen:
            read.fail(item, f"parameter {item.get('internal_layer_id')} of the body is fed a second time")
        seen.add(internal)
        inputs.append(InputMap(external, internal, **read.slicing(item)))
    ids = read.output_ids(group)
    for item in group.iterfind("output"):
        external = read.port(item, ids)
        internal = read.inner(item, "internal_layer_id", results, "Result")
        if external >= 0 and any(output.external == external for output in outputs):
            read.fail(item, f"output port {item.get('external_port_id')} of the layer is fed a second time")
        outputs.append(OutputMap(external, internal, **read.slicing(item)))
    for item in element.iterfind(f"{tags.back_edges}/edge"):
        result = read.inner(item, "from-layer", results, "Result")
        parameter = read.inner(item, "to-layer", parameters, "Parameter")
        backs.append(BackEdge(result, parameter))
    wiring = BodyMap(tuple(inputs), tuple(outputs), tuple(backs), len(parameters))
    read.check_complete(group, wiring, body)
    return wiring


class _MapReader:
    def __init__(self, layer: Layer, file: str | None) -> None:
        self.layer = layer
        self.file = file

    def fail(self, item: etree._Element, message: str) -> NoReturn:
        place = Place(self.file, item.sourceline, self.layer.title, self.layer.id)
        raise ModelError(diagnostic(BODY, message, place))

    def integer(self, item: etree._Element, key: str, default: int | None = None) -> int:
        text = item.get(key)
        if text is None and default is not None:
            return default
        if text is None:
            self.fail(item, f"attribute '{key}' of <{item.tag!s}> is missing")
        try:
            return parse_integer(text)
        except ValueError as error:
            self.fail(item, f"attribute '{key}' of <{item.tag!s}>: {error}")

    def port(self, item: etree._Element, ids: list[int]) -> int:
        """The position of the layer's port that ``external_port_id`` names, -1 for none."""
        number = self.integer(item, "external_port_id")
        if number == -1:
            return -1
        if number not in ids:
            self.fail(
                item, f"external_port_id {number} is not an {item.tag!s} port of the layer, whose ports are {ids}"
            )
        return ids.index(number)

    def output_ids(self, group: etree._Element) -> list[int]:
        """The ids of the layer's outputs, in order, as the port map counts them.

        It may count them from 0, as in the specification of If; OpenVINO goes by their order alone.
        """
        ids = [port.id for port in self.layer.outputs]
        used = sorted(self.integer(item, "external_port_id") for item in group.iterfind("output"))
        used = [number for number in used if number != -1]
        return used if len(used) == len(ids) and not set(used) & set(ids) else ids

    def check_complete(self, group: etree._Element, wiring: BodyMap, body: Model) -> None:
        """Every output of the layer comes from a result, and every parameter that is used from somewhere."""
        given = {item.external for item in wiring.outputs}
        for port in self.layer.outputs:
            if port.index not in given:
                self.fail(group, f"no <output> of the port map feeds output port {port.id} of the layer")
        fed = {item.parameter for item in wiring.inputs if item.external >= 0 or item.purpose == "current_iteration"}
        used = {edge.from_layer for edge in body.edges if not body.layer(edge.to_layer).is_dead}
        for index, parameter in enumerate(body.inputs):
            if index not in fed and parameter.layer.id in used:
                title = f"{parameter.layer.id} '{parameter.layer.name}'"
                self.fail(group, f"no <input> of the port map feeds parameter {title} of the body")

    def inner(self, item: etree._Element, key: str, known: dict[int, int], kind: str) -> int:
        number = self.integer(item, key)
        if number not in known:
            self.fail(item, f"{key} {number} is not a {kind} of the body, which has {sorted(known)}")
        return known[number]

    def slicing(self, item: etree._Element) -> dict[str, Any]:
        defaults = {"start": 0, "end": -1, "stride": 1, "part_size": 1}
        values: dict[str, Any] = {key: self.integer(item, key, default) for key, default in defaults.items()}
        values["axis"] = self.integer(item, "axis") if item.get("axis") is not None else None
        values["purpose"] = item.get("purpose", "")
        return values
