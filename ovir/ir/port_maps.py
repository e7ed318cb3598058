"""Reads how If, Loop and TensorIterator are wired to their bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from lxml import etree

from ovir.codes import (
    BACK_EDGE,
    BAD_NUMBER,
    MAP_LAYER,
    MAP_PORT,
    MAP_PURPOSE,
    MAP_SHARED,
    MAP_TWICE,
    MAP_UNFED,
    MISSING_KEY,
    NO_PORT_MAP,
    Code,
    Severity,
)
from ovir.diagnostics import Findings, ModelError, Place, diagnostic
from ovir.integers import parse_integer
from ovir.ir.elements import line_of, tag_of
from ovir.model import Layer, Model
from ovir.ops.body import BackEdge, BodyMap, InputMap, OutputMap

T = TypeVar("T")


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

_PURPOSES = {"input": ("", "current_iteration"), "output": ("", "execution_condition")}


def read_body_map(
    element: etree._Element, tags: BodyTags, layer: Layer, body: Model, file: str | None, findings: Findings
) -> BodyMap | None:
    """The wiring of one body, ids resolved to positions; None, and findings, where something leads nowhere."""
    group = element.find(tags.port_map)
    if group is None:
        findings.report(NO_PORT_MAP, f"{layer.type} has no <{tags.port_map}>", layer.place)
        return None
    reader = _MapReader(layer, body, file, findings)
    inputs = list(reader.each(group.iterfind("input"), reader.input))
    ids = reader.output_ids(group)
    outputs = list(reader.each(group.iterfind("output"), lambda item: reader.output(item, ids)))
    backs = list(reader.each(element.iterfind(f"{tags.back_edges}/edge"), reader.back_edge))
    if reader.is_wrong:
        return None  # what is left unfed may follow from it
    wiring = BodyMap(tuple(inputs), tuple(outputs), tuple(backs), len(reader.parameters))
    reader.check_complete(group, wiring)
    return None if reader.is_wrong else wiring


class _MapReader:
    def __init__(self, layer: Layer, body: Model, file: str | None, findings: Findings) -> None:
        self.layer = layer
        self.body = body
        self.file = file
        self.findings = findings
        self.parameters = {port.layer.id: i for i, port in enumerate(body.inputs)}
        self.results = {port.layer.id: i for i, port in enumerate(body.outputs)}
        self.is_wrong = False
        self._fed: set[int] = set()
        self._turned: set[int] = set()
        self._external: set[int] = set()
        self._outputs: set[int] = set()

    def each(self, items: Iterator[etree._Element], read: Callable[[etree._Element], T]) -> Iterator[T]:
        """What ``read`` makes of the items; those that it refuses are told and left out."""
        for item in items:
            try:
                yield read(item)
            except ModelError as error:
                self.findings.extend(error.diagnostics)
                self.is_wrong = True

    def fail(self, item: etree._Element, code: Code, message: str) -> NoReturn:
        raise ModelError(diagnostic(code, message, self._at(item)))

    def _at(self, item: etree._Element) -> Place:
        return Place(self.file, line_of(item), self.layer.title, self.layer.id)

    # ----- entries

    def input(self, item: etree._Element) -> InputMap:
        external = self.port(item, [port.id for port in self.layer.inputs])
        internal = self.inner(item, "internal_layer_id", self.parameters, "Parameter")
        if internal in self._fed:
            number = item.get("internal_layer_id")
            self.fail(item, MAP_TWICE, f"parameter {number} of the body is fed a second time")
        self._fed.add(internal)
        if external >= 0 and external in self._external:
            message = (
                f"a second <input> of external port {item.get('external_port_id')}; OpenVINO keeps the first alone"
            )
            hint = "give the layer an input port of its own for each parameter, fed by the same tensor"
            self.findings.report(MAP_SHARED, message, self._at(item), hint)
        self._external.add(external)
        return InputMap(external, internal, **self.slicing(item))

    def output(self, item: etree._Element, ids: list[int]) -> OutputMap:
        external = self.port(item, ids)
        internal = self.inner(item, "internal_layer_id", self.results, "Result")
        if external >= 0 and external in self._outputs:
            number = item.get("external_port_id")
            self.fail(item, MAP_TWICE, f"output port {number} of the layer is fed a second time")
        self._outputs.add(external)
        return OutputMap(external, internal, **self.slicing(item))

    def back_edge(self, item: etree._Element) -> BackEdge:
        result = self.inner(item, "from-layer", self.results, "Result", BACK_EDGE)
        parameter = self.inner(item, "to-layer", self.parameters, "Parameter", BACK_EDGE)
        if parameter in self._turned:
            self.fail(item, MAP_TWICE, f"a second back edge to parameter {item.get('to-layer')} of the body")
        self._turned.add(parameter)
        return BackEdge(result, parameter)

    # ----- their attributes

    def integer(self, item: etree._Element, key: str, default: int | None = None) -> int:
        text = item.get(key)
        if text is None and default is not None:
            return default
        if text is None:
            self.fail(item, MISSING_KEY, f"attribute '{key}' of <{tag_of(item)}> is missing")
        try:
            return parse_integer(text)
        except ValueError as error:
            self.fail(item, BAD_NUMBER, f"attribute '{key}' of <{tag_of(item)}>: {error}")

    def port(self, item: etree._Element, ids: list[int]) -> int:
        """The position of the layer's port that ``external_port_id`` names, -1 for none."""
        number = self.integer(item, "external_port_id")
        if number == -1:
            return -1
        if number not in ids:
            kind = tag_of(item)
            message = f"external_port_id {number} is not an {kind} port of the layer, whose ports are {ids}"
            self.fail(item, MAP_PORT, message)
        return ids.index(number)

    def inner(self, item: etree._Element, key: str, known: dict[int, int], kind: str, code: Code = MAP_LAYER) -> int:
        number = self.integer(item, key)
        if number not in known:
            self.fail(item, code, f"{key} {number} is not a {kind} of the body, which has {sorted(known)}")
        return known[number]

    def slicing(self, item: etree._Element) -> dict[str, Any]:
        defaults = {"start": 0, "end": -1, "stride": 1, "part_size": 1}
        values: dict[str, Any] = {key: self.integer(item, key, default) for key, default in defaults.items()}
        values["axis"] = self.integer(item, "axis") if item.get("axis") is not None else None
        values["purpose"] = purpose = item.get("purpose", "")
        known = _PURPOSES[tag_of(item)]
        if purpose not in known:
            message = f"purpose '{purpose}' of <{tag_of(item)}> is not known, only '{known[1]}' is"
            says_nothing_else = item.get("external_port_id", "").strip() == "-1"
            self.is_wrong |= says_nothing_else
            severity = Severity.ERROR if says_nothing_else else None
            self.findings.report(MAP_PURPOSE, message, self._at(item), severity=severity)
        return values

    # ----- the whole

    def output_ids(self, group: etree._Element) -> list[int]:
        """The ids of the layer's outputs, in order, as the port map counts them.

        It may count them from 0, as in the specification of If; OpenVINO goes by their order alone.
        """
        ids = [port.id for port in self.layer.outputs]
        try:
            used = sorted(self.integer(item, "external_port_id") for item in group.iterfind("output"))
        except ModelError:
            return ids  # it is told with its entry
        used = [number for number in used if number != -1]
        return used if used == list(range(len(ids))) else ids

    def check_complete(self, group: etree._Element, wiring: BodyMap) -> None:
        """Every output of the layer comes from a result, and every parameter that is used from somewhere."""
        given = {item.external for item in wiring.outputs}
        for port in self.layer.outputs:
            if port.index not in given:
                message = f"no <output> of the port map feeds output port {port.id} of the layer"
                self.findings.report(MAP_UNFED, message, self._at(group), port=port.id)
                self.is_wrong = True
        fed = {item.parameter for item in wiring.inputs if item.external >= 0 or item.purpose == "current_iteration"}
        used = {edge.from_layer for edge in self.body.edges if not self.body.layer(edge.to_layer).is_dead}
        for index, parameter in enumerate(self.body.inputs):
            if index not in fed and parameter.layer.id in used:
                title = f"{parameter.layer.id} '{parameter.layer.name}'"
                message = f"no <input> of the port map feeds parameter {title} of the body"
                self.findings.report(MAP_UNFED, message, self._at(group))
                self.is_wrong = True
