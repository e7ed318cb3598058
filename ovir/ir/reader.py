"""Reads IR versions 10 and 11: the .xml with lxml, every line known, into a Model.

Nothing in a file is trusted: entities are not expanded, no address is fetched, and every number is
checked before it is used. All findings are collected; ``read_model`` raises those that are errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lxml import etree

from ovir import ops
from ovir.diagnostics import (
    BAD_ATTRIBUTE,
    BAD_EDGE,
    BODY,
    DUPLICATE_ID,
    MISSING_ELEMENT,
    MISSING_INPUT,
    NO_PRECISION,
    NOT_IR,
    OLD_IR,
    UNKNOWN_ATTRIBUTE,
    UNKNOWN_OPERATION,
    WEIGHTS,
    Findings,
    ModelError,
    OperatorError,
    Place,
    ReadError,
    Severity,
    diagnostic,
)
from ovir.inference import infer_into
from ovir.integers import UINT64, parse_integer
from ovir.ir.legacy import apply_legacy_io, apply_pre_process, check_names
from ovir.ir.port_maps import BODY_OPERATIONS, read_body_map
from ovir.ir.source import Source, find_weights, parse_xml
from ovir.ir.weights import Weights
from ovir.model import Edge, Layer, Model, Port
from ovir.ops import opsets
from ovir.ops.attributes import split_names
from ovir.ops.infrastructure import Const
from ovir.types import Dimension, ElementType, PartialShape


def read_model(model: Source, weights: Any = None, *, legacy_io: bool = False) -> Model:
    """Read an IR file, infer every shape and type, and return the Model.

    ``model`` is the path of the .xml, its content (bytes, or a text that begins with ``<``), or an open file.
    ``weights`` is a path, or bytes or any buffer; without it, the .bin beside the .xml. With ``legacy_io`` a file of
    version 10 is read as OpenVINO does: f16 inputs become f32, other types of inputs and outputs f32 or i32.

    Raises ReadError when a file cannot be read as IR, ModelError when the model is wrong; either
    carries all the findings.
    """
    findings = Findings()
    result = load(model, weights, findings, legacy_io=legacy_io)
    findings.raise_errors(ReadError if result is None else ModelError)
    assert result is not None
    return result


def load(model: Source, weights: Any, findings: Findings, *, legacy_io: bool = False) -> Model | None:
    """The same, with all findings added to ``findings``; None when there is no model to speak of."""
    try:
        root, name = parse_xml(model)
        reader = _Reader(name, find_weights(name, weights), findings)
        result = reader.document(root, legacy_io)
    except (ReadError, ModelError) as error:
        for found in error.diagnostics:
            findings.add(found)
        return None
    inferred = set(result.inference_diagnostics)
    result.read_diagnostics = [d for d in findings if d.severity is not Severity.ERROR and d not in inferred]
    return result


# --------------------------------------------------------------------------- the document


@dataclass
class _Lost:
    """What could not be read, and has been told: what only follows from that is not."""

    layers: set[int | None] = field(default_factory=set)
    """Ids of layers; None stands for one whose id is unknown."""
    ports: set[tuple[int, int | None]] = field(default_factory=set)
    """Ports by the ids of layer and port; None stands for one whose id is unknown."""

    def layer(self, number: int) -> bool:
        return number in self.layers or None in self.layers

    def port(self, layer: Layer, number: int) -> bool:
        return (layer.id, number) in self.ports or (layer.id, None) in self.ports


class _Reader:
    """Reads one document; remembers where it is for messages."""

    def __init__(self, file: str | None, weights: Weights, findings: Findings) -> None:
        self.file = file
        self.weights = weights
        self.findings = findings

    def at(self, element: etree._Element) -> Place:
        return Place(self.file, _line(element))

    def document(self, root: etree._Element, legacy_io: bool) -> Model:
        version = self._version(root)
        model = self.network(root, "", version)
        if (pre_process := root.find("pre-process")) is not None:
            model = apply_pre_process(model, pre_process, self.weights, self.findings)
        self._infer(model)
        if version == 10:
            check_names(model, self.findings)
            if legacy_io and not self.findings.errors:
                model = apply_legacy_io(model)
                self._infer(model)
        return model

    def _infer(self, model: Model) -> None:
        found = Findings()
        infer_into(model, found)
        for item in found:
            self.findings.add(item)
        model.inference_diagnostics = [d for d in found if d.severity is not Severity.ERROR]

    def _version(self, root: etree._Element) -> int:
        if etree.QName(root).localname.lower() != "net":
            message = f"the root element is <{_tag(root)}>; that of OpenVINO IR is <net>"
            raise ReadError(diagnostic(NOT_IR, message, self.at(root)))
        text = root.get("version")
        try:
            version = parse_integer(text or "", UINT64)
        except ValueError as error:
            message = "the <net> element has no version" if text is None else f"the version of the <net> element: {error}"
            raise ReadError(diagnostic(NOT_IR, message, self.at(root), hint="ovir reads versions 10 and 11")) from None
        if version in (10, 11):
            return version
        if version < 10:
            message = f"this is IR version {version}; versions 10 and 11 are read, by OpenVINO too since release 2022.1"
            hint = "convert the original model again with a current OpenVINO (`ovc model.onnx`)"
        else:
            message = f"this is IR version {version}; versions 10 and 11 are known"
            hint = "a newer release of ovir may read it"
        raise ReadError(diagnostic(OLD_IR, message, self.at(root), hint=hint))

    def network(self, element: etree._Element, scope: str, version: int) -> Model:
        """A <net> or a body: its layers and edges, joined."""
        layers: dict[int, Layer] = {}
        lost = _Lost()
        if (group := element.find("layers")) is None:
            self.findings.error(MISSING_ELEMENT, f"<{_tag(element)}> has no <layers>", self.at(element))
            group = etree.Element("layers")
        for item in group.iterfind("layer"):
            layer = self.layer(item, scope, version, lost)
            if layer is None:
                continue
            if layer.id in layers:
                other = layers[layer.id]
                message = f"id {layer.id} is also that of layer '{other.name}' on line {other.line}"
                self.findings.error(DUPLICATE_ID, message, layer.place)
                continue
            layers[layer.id] = layer
        edges = list(self.edges(element, layers, lost))
        self._missing_inputs(layers, lost)
        return Model(
            layers.values(),
            edges,
            name=element.get("name", ""),
            version=version,
            path=self.file,
            rt_info=element.find("rt_info"),
        )

    # ----- layers

    def layer(self, element: etree._Element, scope: str, version: int, lost: _Lost) -> Layer | None:
        required = ("id", "name", "type", "version")
        missing = [key for key in required if element.get(key) is None]
        if missing:
            name = element.get("name") or element.get("id") or ""
            message = f"<layer> {name!r} has no attribute '{missing[0]}'"
            self.findings.error(MISSING_ELEMENT, message, self.at(element))
        number = self._unsigned(element, "id") if element.get("id") is not None else None
        if missing or number is None:
            lost.layers.add(number)
            return None
        layer = Layer(
            number,
            element.get("name", ""),
            element.get("type", ""),
            element.get("version", ""),
            line=_line(element),
            file=self.file,
            scope=scope,
            rt_info=element.find("rt_info"),
        )
        layer.inputs = self.ports(element, layer, lost, is_output=False)
        layer.outputs = self.ports(element, layer, lost, is_output=True)
        self.operator(element, layer)
        self._repeated_rt_info(element, layer)
        if layer.type == "Result" and layer.inputs:
            layer.inputs[0].names = frozenset(split_names(element.get("output_names", "")))
        if layer.type in BODY_OPERATIONS:
            self.bodies(element, layer, version)
        return layer

    def ports(self, element: etree._Element, layer: Layer, lost: _Lost, *, is_output: bool) -> list[Port]:
        ports: list[Port] = []
        for group in element.iterfind("output" if is_output else "input"):
            for item in group.iterfind("port"):
                number = self._unsigned(item, "id", layer)
                if number is None:
                    lost.ports.add((layer.id, None))
                    continue
                port = Port(layer, len(ports), number, is_output, line=_line(item))
                port.names = frozenset(split_names(item.get("names", "")))
                port.rt_info = item.find("rt_info")
                self._stated(item, port)
                if is_output and "precision" not in item.attrib:
                    place = Place(self.file, port.line, layer.title, layer.id)
                    message = (
                        f"output port {number} has no attribute 'precision', without which OpenVINO refuses the file"
                    )
                    self.findings.warning(NO_PRECISION, message, place)
                ports.append(port)
        ids = Counter(port.id for port in ports)
        for port in ports:
            if ids[port.id] > 1:
                kind = "output" if is_output else "input"
                message = f"{ids[port.id]} {kind} ports have the id {port.id}"
                self.findings.error(DUPLICATE_ID, message, layer.place)
                break
        return ports

    def _stated(self, element: etree._Element, port: Port) -> None:
        place = Place(self.file, _line(element), port.layer.title, port.layer.id)
        if (text := element.get("precision")) is not None:
            try:
                port.stated_element_type = ElementType.parse(text)
            except ValueError as error:
                self.findings.error(BAD_ATTRIBUTE, f"port {port.id}: precision {error}", place)
        dims: list[Dimension] = []
        for item in element.iterfind("dim"):
            text = (item.text or "").strip()
            try:
                dims.append(Dimension.parse(text))
            except ValueError as error:
                message = f"port {port.id}: <dim>: {error}"
                self.findings.error(BAD_ATTRIBUTE, message, Place(self.file, _line(item), place.layer, place.layer_id))
                return
        port.stated_shape = PartialShape(dims)

    def _repeated_rt_info(self, element: etree._Element, layer: Layer) -> None:
        """An attribute that stands twice in one <rt_info>; OpenVINO refuses such a file."""
        for group in element.iterfind(".//rt_info"):
            seen: set[tuple[str | None, str | None]] = set()
            for item in group.iterfind("attribute"):
                key = (item.get("name"), item.get("version"))
                if key in seen:
                    place = Place(self.file, _line(item), layer.title, layer.id)
                    self.findings.error(DUPLICATE_ID, f"attribute '{key[0]}' stands twice in one <rt_info>", place)
                seen.add(key)

    def operator(self, element: etree._Element, layer: Layer) -> None:
        """Find the operation and parse its attributes by its declaration."""
        data = element.find("data")
        texts = dict(data.attrib) if data is not None else {}
        place = layer.place if data is None else Place(self.file, _line(data), layer.title, layer.id)
        layer.type = opsets.canonical_type(layer.type) or layer.type
        layer.attributes = dict(texts)
        cls = ops.resolve(layer.type, layer.version)
        if cls is None:
            known = opsets.resolve(layer.type, layer.version)
            if known is None:
                why = opsets.why_unresolved(layer.type, layer.version)
                hint = "its stated shapes are used; it can be run once it is registered with `ovir.register`"
                found = diagnostic(UNKNOWN_OPERATION, why, layer.place, hint=hint, severity=Severity.WARNING)
                self.findings.add(found)
            return
        values: dict[str, Any] = {}
        wrong = False
        for name, text in texts.items():
            spec = cls.attributes.get(name)
            if spec is None:
                if name not in _ALWAYS_KNOWN:
                    message = f"{cls.type} of opset{cls.opset} has no attribute '{name}'; it is ignored"
                    self.findings.warning(UNKNOWN_ATTRIBUTE, message, place)
                continue
            try:
                values[spec.field] = layer.attributes[name] = spec.parse(text)
            except ValueError as error:
                self.findings.error(BAD_ATTRIBUTE, f"attribute '{name}': {error}", place)
                wrong = True
        for spec in cls.attributes.values():
            if spec.required and spec.name not in texts:
                message = f"{cls.type} needs the attribute '{spec.name}', and <data> does not give it"
                self.findings.error(MISSING_ELEMENT, message, place)
                wrong = True
        if wrong:
            return
        layer.operator = cls(**values)
        if isinstance(layer.operator, Const):
            self._constant(layer.operator, layer, data)

    def _constant(self, op: Const, layer: Layer, data: etree._Element | None) -> None:
        place = layer.place if data is None else Place(self.file, _line(data), layer.title, layer.id)
        weights, offset, size = self.weights, op.offset, op.size
        if data is not None and "value" in data.attrib:
            weights = Weights.of(op.value.encode())
            offset, size = 0, weights.data.size
        elif data is None or not {"offset", "size"} <= set(data.attrib):
            missing = "offset" if data is None or "offset" not in data.attrib else "size"
            self.findings.error(MISSING_ELEMENT, f"Const needs the attribute '{missing}'", place)
            layer.operator = None
            return
        try:
            weights.check(op.element_type, op.shape, offset, size)
        except OperatorError as error:
            self.findings.error(error.code or WEIGHTS, error.message, layer.place, error.hint)
            layer.operator = None
            return
        op.set_loader(partial(weights.array, op.element_type, op.shape, offset, size))

    # ----- bodies

    def bodies(self, element: etree._Element, layer: Layer, version: int) -> None:
        for key, tags in BODY_OPERATIONS[layer.type].items():
            body = element.find(tags.body)
            if body is None:
                self.findings.error(BODY, f"{layer.type} has no <{tags.body}>", layer.place)
                layer.operator = None
                continue
            model = self.network(body, f"{layer.scope}{layer.name}/{key}/", version)
            layer.bodies[key] = model
            try:
                wiring = read_body_map(element, tags, layer, model, self.file)
            except ModelError as error:
                for found in error.diagnostics:
                    self.findings.add(found)
                layer.operator = None
                continue
            if layer.operator is not None:
                layer.operator.wiring = {**layer.operator.wiring, key: wiring}

    # ----- edges

    def edges(self, element: etree._Element, layers: dict[int, Layer], lost: _Lost) -> Iterator[Edge]:
        for item in element.iterfind("edges/edge"):
            from_layer, from_port = self._unsigned(item, "from-layer"), self._unsigned(item, "from-port")
            to_layer, to_port = self._unsigned(item, "to-layer"), self._unsigned(item, "to-port")
            if from_layer is None or from_port is None or to_layer is None or to_port is None:
                if to_layer is not None:
                    lost.ports.add((to_layer, to_port))
                continue
            edge = Edge(from_layer, from_port, to_layer, to_port, _line(item))
            if self._connect(edge, layers, lost):
                yield edge
            else:
                lost.ports.add((to_layer, to_port))

    def _connect(self, edge: Edge, layers: dict[int, Layer], lost: _Lost) -> bool:
        source, target = layers.get(edge.from_layer), layers.get(edge.to_layer)
        place = Place(self.file, edge.line)
        if target is None:  # nothing can miss the edge
            if not lost.layer(edge.to_layer):
                message = f"the edge leads to layer {edge.to_layer}, which does not exist; it is ignored"
                self.findings.warning(BAD_EDGE, message, place)
            return False
        if source is None:
            if not lost.layer(edge.from_layer):
                message = f"the edge leads from layer {edge.from_layer}, which does not exist"
                self.findings.error(BAD_EDGE, message, place)
            return False
        output = next((p for p in source.outputs if p.id == edge.from_port), None)
        target_port = next((p for p in target.inputs if p.id == edge.to_port), None)
        for kind, number, layer, port in (
            ("output", edge.from_port, source, output),
            ("input", edge.to_port, target, target_port),
        ):
            if port is None and not lost.port(layer, number):
                ids = [p.id for p in (layer.outputs if kind == "output" else layer.inputs)]
                message = f"the edge names {kind} port {number} of {layer.title}, whose {kind} ports are {ids}"
                self.findings.error(BAD_EDGE, message, place)
        if output is None or target_port is None:
            return False
        if target_port.source is not None:
            other = target_port.source.layer
            message = f"a second edge into port {edge.to_port} of {target.title}; the first comes from {other.title}"
            self.findings.error(BAD_EDGE, message, place)
            return False
        target_port.source = output
        return True

    def _missing_inputs(self, layers: dict[int, Layer], lost: _Lost) -> None:
        for layer in layers.values():
            for port in layer.inputs:
                if port.source is None and not lost.port(layer, port.id):
                    place = Place(self.file, port.line, layer.title, layer.id)
                    self.findings.error(MISSING_INPUT, f"no edge leads to input port {port.id}", place)
            if layer.type == "Result" and not layer.inputs:
                self.findings.error(MISSING_INPUT, "the Result has no input port", layer.place)

    def _unsigned(self, element: etree._Element, key: str, layer: Layer | None = None) -> int | None:
        text = element.get(key)
        try:
            if text is None:
                raise ValueError("it is missing")
            return parse_integer(text, UINT64)
        except ValueError as error:
            place = self.at(element) if layer is None else Place(self.file, _line(element), layer.title, layer.id)
            self.findings.error(BAD_ATTRIBUTE, f"attribute '{key}' of <{_tag(element)}>: {error}", place)
            return None


_ALWAYS_KNOWN = {"PrimitivesPriority", "alt_width", "execution_order", "originalLayersNames"}
"""Attributes that any operation may have; they tell how to execute, not what."""


def _tag(element: etree._Element) -> str:
    return str(element.tag)


def _line(element: etree._Element) -> int | None:
    return element.sourceline


__all__ = ["load", "read_model"]
