"""Reads how If, Loop and TensorIterator are wired to their bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lxml import etree

from ovir.diagnostics import BODY, ModelError, Place, diagnostic
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
    inputs, outputs, backs = [], [], []
    parameters = {port.layer.id: i for i, port in enumerate(body.inputs)}
    results = {port.layer.id: i for i, port in enumerate(body.outputs)}
    read = _MapReader(layer, file)
    seen: dict[int, int] = {}
    for item in group.iterfind("input"):
        external = read.port(item, layer.inputs)
        internal = read.inner(item, "internal_layer_id", parameters, "Parameter")
        if internal in seen:
            read.fail(item, f"parameter {item.get('internal_layer_id')} of the body is fed a second time")
        seen[internal] = external
        inputs.append(InputMap(external, internal, **read.slicing(item)))
    for item in group.iterfind("output"):
        external = read.port(item, layer.outputs)
        internal = read.inner(item, "internal_layer_id", results, "Result")
        outputs.append(OutputMap(external, internal, **read.slicing(item)))
    for item in element.iterfind(f"{tags.back_edges}/edge"):
        result = read.inner(item, "from-layer", results, "Result")
        parameter = read.inner(item, "to-layer", parameters, "Parameter")
        backs.append(BackEdge(result, parameter))
    return BodyMap(tuple(inputs), tuple(outputs), tuple(backs))


class _MapReader:
    def __init__(self, layer: Layer, file: str | None) -> None:
        self.layer = layer
        self.file = file

    def fail(self, item: etree._Element, message: str) -> None:
        place = Place(self.file, item.sourceline, self.layer.title, self.layer.id)
        raise ModelError(diagnostic(BODY, message, place))

    def integer(self, item: etree._Element, key: str, default: int | None = None) -> int:
        text = item.get(key)
        try:
            return int(text) if text is not None else default if default is not None else int("")
        except ValueError:
            found = "is missing" if text is None else f"is '{text}', not an integer"
            self.fail(item, f"attribute '{key}' of <{item.tag}> {found}")
            raise

    def port(self, item: etree._Element, ports: list[Any]) -> int:
        """The position of the layer's port that ``external_port_id`` names, -1 for none."""
        number = self.integer(item, "external_port_id")
        if number == -1:
            return -1
        for port in ports:
            if port.id == number:
                return int(port.index)
        ids = [port.id for port in ports]
        self.fail(item, f"external_port_id {number} is not an {item.tag} port of the layer, whose ports are {ids}")
        raise AssertionError

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
