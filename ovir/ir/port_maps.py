"""Reads how If, Loop and TensorIterator are connected with their bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from lxml import etree

from ovir.core.shapes import parse_integer
from ovir.diagnostics import codes
from ovir.diagnostics.codes import Code, Severity
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import Diagnostics, ModelError
from ovir.diagnostics.wording import closest
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.ir.elements import ElementReader, line_of, tag_of
from ovir.ops.base.bodies import BackEdge, BodyMap, InputMap, OutputMap

T = TypeVar("T")


@dataclass(frozen=True)
class BodyTags:
    """The tags of the elements that describe one body."""

    body: str
    port_map: str
    back_edges: str = "back_edges"


_LOOP = {"body": BodyTags("body", "port_map")}
BODY_OPERATIONS: dict[str, dict[str, BodyTags]] = {
    "If": {"then": BodyTags("then_body", "then_port_map"), "else": BodyTags("else_body", "else_port_map")},
    "Loop": _LOOP,
    "TensorIterator": _LOOP,
}

_PURPOSES = {"input": "current_iteration", "output": "execution_condition"}
_REQUIRED = dict.fromkeys(_PURPOSES, ("external_port_id", "internal_layer_id")) | {"edge": ("from-layer", "to-layer")}
"""The attributes that an entry of a port map, or a back edge, must have."""
_SLICES = ("start", "end", "stride", "part_size")
_KNOWN = {tag: (*ends, "axis", *_SLICES, "purpose") if tag in _PURPOSES else ends for tag, ends in _REQUIRED.items()}
_OLD_KEYS = {"internal_port_id", "from-port", "to-port"}
"""Additional attributes of old writers, which have no meaning."""


def read_body_map(
    element: etree._Element, tags: BodyTags, layer: Layer, body: LayerGraph, file: str | None, diagnostics: Diagnostics
) -> BodyMap | None:
    """Return the wiring of one body, with ids resolved to positions; None after reporting errors."""
    reader = _MapReader(layer, body, file, diagnostics)
    for tag in (tags.body, tags.port_map, tags.back_edges):
        reader.report_repeated(element.findall(tag)[1:], layer)
    group = element.find(tags.port_map)
    if group is None:
        diagnostics.report(codes.NO_PORT_MAP, f"{layer.type} has no <{tags.port_map}>", layer.place)
        return None
    reader.report_unknown(group, ("input", "output"))
    inputs = list(reader.each(group.iterfind("input"), reader.input))
    ids = reader.output_ids(group)
    outputs = list(reader.each(group.iterfind("output"), lambda item: reader.output(item, ids)))
    backs: list[BackEdge] = []
    if (edges := element.find(tags.back_edges)) is not None:
        reader.report_unknown(edges, ("edge",))
        backs.extend(edge for edge in reader.each(edges.iterfind("edge"), reader.back_edge) if edge is not None)
    if reader.is_wrong:
        return None  # a missing connection may be a consequence
    wiring = BodyMap(tuple(inputs), tuple(outputs), tuple(backs), len(reader.parameters))
    reader.check_complete(group, wiring)
    return None if reader.is_wrong else wiring


class _MapReader(ElementReader):
    def __init__(self, layer: Layer, body: LayerGraph, file: str | None, diagnostics: Diagnostics) -> None:
        super().__init__(file, diagnostics)
        self.layer = layer
        self.body = body
        self.parameters = {port.layer.id: i for i, port in enumerate(body.inputs)}
        self.results = {port.layer.id: i for i, port in enumerate(body.outputs)}
        self.is_wrong = False
        self._fed: set[int] = set()
        self._sliced: set[int] = set()
        self._with_back_edge: set[int] = set()
        self._external: set[int] = set()
        self._outputs: set[int] = set()
        self._purposes: set[str] = set()

    def each(self, items: Iterator[etree._Element], read: Callable[[etree._Element], T]) -> Iterator[T]:
        """Yield the results of ``read`` for the items; an item for which it raises is reported and left out."""
        for item in items:
            try:
                self.check_names(item)
                yield read(item)
            except ModelError as error:
                self.diagnostics.extend(error.diagnostics)
                self.is_wrong = True

    def fail(self, item: etree._Element, code: Code, message: str, hint: str | None = None) -> NoReturn:
        raise ModelError(diagnose(code, message, self.at(item, self.layer), hint=hint))

    # ----- unknown elements and attributes

    def report_unknown(self, group: etree._Element, known: Sequence[str]) -> None:
        """Report elements that are not part of this group."""
        for item in group:
            if item.tag not in known:
                self.read_as(item, f"part of <{tag_of(group)}>", known, (), self.layer)

    def check_names(self, item: etree._Element) -> None:
        """Report unknown attributes; raise ModelError if required ones are missing."""
        unknown = _unknown_names(item)
        missing = [key for key in _REQUIRED[tag_of(item)] if key not in item.attrib]
        for name, meant in unknown.items():
            if meant in missing or (meant == "axis" and _slices_of(item)):
                continue  # reported with the missing attribute, or with the attributes that have no effect without it
            message = f"<{tag_of(item)}> has no attribute '{name}'; it is ignored"
            hint = f"did you mean '{meant}'?" if meant else None
            severity = self._severity_of_purpose(item) if meant == "purpose" and self.layer.type == "Loop" else None
            self.diagnostics.report(
                codes.UNKNOWN_ATTRIBUTE, message, self.at(item, self.layer), hint, severity=severity
            )
        if missing:
            place, end = self.at(item, self.layer), f"of <{tag_of(item)}> is missing"
            faults = {f"attribute '{key}' {end}": _misspelling(key, unknown) for key in missing}
            raise ModelError(*(diagnose(codes.MISSING_KEY, text, place, hint=hint) for text, hint in faults.items()))

    def _severity_of_purpose(self, item: etree._Element) -> Severity | None:
        """Return the severity of an unknown purpose: an error if the entry has no other effect, else the default."""
        says_nothing_else = item.get("external_port_id", "").strip() == "-1"
        self.is_wrong |= says_nothing_else
        return Severity.ERROR if says_nothing_else else None

    def report_idle(self, item: etree._Element, message: str, hint: str | None = None) -> None:
        """Report a part of the entry that has no effect."""
        self.diagnostics.report(codes.MAP_IDLE, message, self.at(item, self.layer), hint)

    # ----- entries

    def input(self, item: etree._Element) -> InputMap:
        """Return the entry of an ``<input>``."""
        external = self.port(item, [port.id for port in self.layer.inputs])
        internal = self.inner(item, "internal_layer_id", self.parameters, "Parameter")
        if internal in self._fed:
            number = item.get("internal_layer_id")
            self.fail(item, codes.MAP_TWICE, f"parameter {number} of the body is fed a second time")
        self._fed.add(internal)
        purpose = self.purpose(item)
        if external in self._external and (external >= 0 or purpose):
            message = f"a second <input> of external port {item.get('external_port_id')}; OpenVINO keeps only the first"
            hint = "add an input port to the layer for each parameter, and connect them with the same tensor"
            self._report_shared(item, external, message, hint)
        self._external.add(external)
        found = InputMap(external, internal, purpose=purpose, **self.slicing(item), **self._origin(item))
        if found.axis is not None:
            self._sliced.add(internal)
        return found

    def output(self, item: etree._Element, ids: list[int]) -> OutputMap:
        """Return the entry of an ``<output>``; ``ids`` are from ``output_ids``."""
        external = self.port(item, ids)
        internal = self.inner(item, "internal_layer_id", self.results, "Result")
        if external >= 0 and external in self._outputs:
            number = item.get("external_port_id")
            self.fail(item, codes.MAP_TWICE, f"output port {number} of the layer is fed a second time")
        purpose = self.purpose(item)
        if external in self._outputs and purpose:
            message = "a second <output> of external port -1; OpenVINO keeps only the first"
            self._report_shared(item, external, message, "remove the others, which feed no output")
        self._outputs.add(external)
        return OutputMap(external, internal, purpose=purpose, **self.slicing(item), **self._origin(item))

    def _report_shared(self, item: etree._Element, external: int, message: str, hint: str) -> None:
        """Report a second entry for a port. For external port -1 it is an error, because the entry's purpose has no
        effect."""
        is_lost = external < 0
        self.is_wrong |= is_lost
        severity = Severity.ERROR if is_lost else None
        self.diagnostics.report(codes.MAP_SHARED, message, self.at(item, self.layer), hint, severity=severity)

    def back_edge(self, item: etree._Element) -> BackEdge | None:
        """Return the back edge; None after reporting that it has no effect."""
        if self.layer.type == "If":
            self.report_idle(item, "a back edge of an If has no effect: its bodies run once")
            return None
        result = self.inner(item, "from-layer", self.results, "Result", codes.BACK_EDGE)
        parameter = self.inner(item, "to-layer", self.parameters, "Parameter", codes.BACK_EDGE)
        if parameter in self._with_back_edge:
            self.fail(item, codes.MAP_TWICE, f"a second back edge to parameter {item.get('to-layer')} of the body")
        self._with_back_edge.add(parameter)
        if parameter in self._sliced:
            number = item.get("to-layer")
            self.report_idle(
                item, f"the back edge has no effect: parameter {number} gets a slice of an input in each iteration"
            )
            return None
        return BackEdge(result, parameter, **self._origin(item))

    def _origin(self, item: etree._Element) -> dict[str, Any]:
        one, other = _REQUIRED[tag_of(item)]
        return {"line": line_of(item), "ids": (self.integer(item, one), self.integer(item, other))}

    # ----- attributes of entries

    def integer(self, item: etree._Element, key: str) -> int:
        """Return the number that an attribute gives; ModelError if it gives none."""
        try:
            return parse_integer(item.get(key, ""))
        except ValueError as error:
            self.fail(item, codes.BAD_NUMBER, f"attribute '{key}' of <{tag_of(item)}>: {error}")

    def port(self, item: etree._Element, ids: list[int]) -> int:
        """Return the position of the layer's port that ``external_port_id`` names, -1 for no port."""
        number = self.integer(item, "external_port_id")
        if number == -1:
            return -1
        if number not in ids:
            kind = tag_of(item)
            message = f"external_port_id {number} is not an {kind} port of the layer, whose ports are {ids}"
            self.fail(item, codes.MAP_PORT, message, "-1 means no port" if number < 0 else None)
        return ids.index(number)

    def inner(
        self, item: etree._Element, key: str, known: dict[int, int], kind: str, code: Code = codes.MAP_LAYER
    ) -> int:
        """Return the position of the Parameter or Result of the body that an attribute names."""
        number = self.integer(item, key)
        if number not in known:
            self.fail(item, code, f"{key} {number} is not a {kind} of the body, which has {sorted(known)}")
        return known[number]

    def slicing(self, item: etree._Element) -> dict[str, Any]:
        """Return a description of how the entry slices or concatenates its tensor, empty if it does not."""
        slices = _slices_of(item)
        if "axis" not in item.attrib:
            if slices:
                message = f"{_listed(slices)} no effect without 'axis': the whole tensor is used"
                hint = _misspelling("axis", _unknown_names(item)) or "add 'axis', or remove them"
                self.report_idle(item, message, hint)
            return {}
        if self.layer.type == "If":
            self.report_idle(item, f"{_listed(['axis', *slices])} no effect: an If passes whole tensors")
            return {}
        axis = self.integer(item, "axis")
        if axis < 0:
            severity = None if tag_of(item) == "input" else Severity.WARNING
            message = f"axis {axis} of <{tag_of(item)}> is negative: in a port map OpenVINO counts from the front only"
            self.diagnostics.report(codes.AXIS, message, self.at(item, self.layer), severity=severity)
            self.is_wrong |= severity is None
        return {"axis": axis} | {key: self.integer(item, key) for key in slices}

    def purpose(self, item: etree._Element) -> str:
        """Return the special purpose of an entry, empty for none."""
        purpose, known = item.get("purpose", ""), _PURPOSES[tag_of(item)]
        if purpose and self.layer.type != "Loop":
            self.report_idle(item, f"purpose '{purpose}' has no effect: only a Loop uses it")
            return ""
        if purpose not in ("", known):
            message = f"unknown purpose '{purpose}' of <{tag_of(item)}>: expected '{known}'"
            self.diagnostics.report(
                codes.MAP_PURPOSE, message, self.at(item, self.layer), severity=self._severity_of_purpose(item)
            )
            return ""
        if purpose in self._purposes:
            self.fail(item, codes.BODY, f"a second <{tag_of(item)}> has the purpose '{purpose}'")
        self._purposes.update([purpose] if purpose else [])
        return purpose

    # ----- completeness

    def output_ids(self, group: etree._Element) -> list[int]:
        """Return the ids of the layer's outputs, in order, as the port map numbers them.

        The port map may number them from 0, as the specification of If does; OpenVINO uses their order only.
        """
        ids = [port.id for port in self.layer.outputs]
        try:
            used = sorted(self.integer(item, "external_port_id") for item in group.iterfind("output"))
        except ModelError:
            return ids  # reported when the entry is read
        used = [number for number in used if number != -1]
        return used if used == list(range(len(ids))) else ids

    def check_complete(self, group: etree._Element, wiring: BodyMap) -> None:
        """Report outputs of the layer that no result feeds, and used parameters that nothing feeds."""
        given = {item.external for item in wiring.outputs}
        for port in self.layer.outputs:
            if port.index not in given:
                message = f"no <output> of the port map feeds output port {port.id} of the layer"
                self.diagnostics.report(codes.MAP_UNFED, message, self.at(group, self.layer), port=port.id)
                self.is_wrong = True
        fed = {item.parameter for item in wiring.inputs if item.external >= 0 or item.purpose == "current_iteration"}
        for index, parameter in enumerate(self.body.inputs):
            if index not in fed and any(not reader.layer.is_dead for reader in parameter.readers):
                title = f"{parameter.layer.id} '{parameter.layer.name}'"
                message = f"no <input> of the port map feeds parameter {title} of the body"
                self.diagnostics.report(codes.MAP_UNFED, message, self.at(group, self.layer))
                self.is_wrong = True


def _slices_of(item: etree._Element) -> list[str]:
    return [key for key in _SLICES if key in item.attrib]


def _unknown_names(item: etree._Element) -> dict[str, str | None]:
    """Return the unknown attributes, each with the attribute that it may misspell."""
    known = _KNOWN[tag_of(item)]
    unknown = [str(name) for name in item.attrib if name not in known and name not in _OLD_KEYS]
    absent = [name for name in known if name not in item.attrib]
    return {name: closest(name, absent) for name in unknown}


def _misspelling(key: str, unknown: dict[str, str | None]) -> str | None:
    names = [name for name, meant in unknown.items() if meant == key]
    return f"perhaps '{names[0]}' is a misspelling of it" if names else None


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(repr(name) for name in names)} {'has' if len(names) == 1 else 'have'}"
