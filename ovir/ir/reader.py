"""Reads IR versions 10 and 11: the .xml with lxml, every line known, into a Model.

Nothing in a file is trusted: entities are not expanded, no address is fetched, and every number is
checked before it is used. All findings are collected; ``read_model`` raises those that are errors.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from lxml import etree

from ovir import ops
from ovir.diagnostics import (
    BAD_ATTRIBUTE,
    BODY,
    DUPLICATE_ID,
    MISSING_ELEMENT,
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
from ovir.element_types import ElementType
from ovir.inference import infer_into
from ovir.integers import UINT64, parse_integer
from ovir.ir.edges import Lost, read_edges
from ovir.ir.elements import line_of, tag_of, unsigned
from ovir.ir.legacy import apply_legacy_io, apply_pre_process, check_names
from ovir.ir.port_maps import BODY_OPERATIONS, read_body_map
from ovir.ir.source import Source, find_weights, parse_xml
from ovir.ir.weights import Weights
from ovir.model import Layer, Model, Port
from ovir.ops import opsets
from ovir.ops.attributes import split_names
from ovir.ops.infrastructure import Const
from ovir.types import Dimension, PartialShape


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


class _Reader:
    """Reads one document; remembers where it is for messages."""

    def __init__(self, file: str | None, weights: Weights, findings: Findings) -> None:
        self.file = file
        self.weights = weights
        self.findings = findings

    def at(self, element: etree._Element) -> Place:
        return Place(self.file, line_of(element))

    def document(self, root: etree._Element, legacy_io: bool) -> Model:
        version = self._version(root)
        model = self.network(root, "", version, Lost())
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
            message = f"the root element is <{tag_of(root)}>; that of OpenVINO IR is <net>"
            raise ReadError(diagnostic(NOT_IR, message, self.at(root)))
        text = root.get("version")
        try:
            version = parse_integer(text or "", UINT64)
        except ValueError as error:
            message = f"the version of the <net> element: {error}"
            if text is None:
                message = "the <net> element has no version"
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

    def network(self, element: etree._Element, scope: str, version: int, lost: Lost) -> Model:
        """A <net> or a body: its layers and edges, joined. What could not be read is added to ``lost``."""
        layers: dict[int, Layer] = {}
        if (group := element.find("layers")) is None:
            self.findings.error(MISSING_ELEMENT, f"<{tag_of(element)}> has no <layers>", self.at(element))
            group = etree.Element("layers")
            lost.layers.add(None)
        for item in group.iterfind("layer"):
            layer = self.layer(item, scope, version, lost)
            if layer is None:
                continue
            if layer.id in layers:
                other = layers[layer.id]
                message = f"id {layer.id} is also that of layer '{other.name}' on line {other.line}"
                self.findings.error(DUPLICATE_ID, message, layer.place)
                lost.layers.add(None)  # it may be that another id was meant
                continue
            layers[layer.id] = layer
        edges = read_edges(element, layers, lost, self.file, self.findings)
        return Model(
            layers.values(),
            edges,
            name=element.get("name", ""),
            version=version,
            path=self.file,
            rt_info=element.find("rt_info"),
        )

    # ----- layers

    def layer(self, element: etree._Element, scope: str, version: int, lost: Lost) -> Layer | None:
        required = ("id", "name", "type", "version")
        missing = [key for key in required if element.get(key) is None]
        if missing:
            name = element.get("name") or element.get("id") or ""
            message = f"<layer> {name!r} has no attribute '{missing[0]}'"
            self.findings.error(MISSING_ELEMENT, message, self.at(element))
        number = unsigned(element, "id", self.at(element), self.findings) if "id" in element.attrib else None
        if missing or number is None:
            lost.layers.add(number)
            return None
        layer = Layer(
            number,
            element.get("name", ""),
            element.get("type", ""),
            element.get("version", ""),
            line=line_of(element),
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

    def ports(self, element: etree._Element, layer: Layer, lost: Lost, *, is_output: bool) -> list[Port]:
        ports: list[Port] = []
        for group in element.iterfind("output" if is_output else "input"):
            for item in group.iterfind("port"):
                place = Place(self.file, line_of(item), layer.title, layer.id)
                number = unsigned(item, "id", place, self.findings)
                if number is None:
                    lost.ports.add(layer.id)
                    continue
                port = Port(layer, len(ports), number, is_output, line=line_of(item))
                port.names = frozenset(split_names(item.get("names", "")))
                port.rt_info = item.find("rt_info")
                self._stated(item, port)
                if is_output and "precision" not in item.attrib:
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
        place = Place(self.file, line_of(element), port.layer.title, port.layer.id)
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
                self.findings.error(
                    BAD_ATTRIBUTE, message, Place(self.file, line_of(item), place.layer, place.layer_id)
                )
                return
        port.stated_shape = PartialShape(dims)

    def _repeated_rt_info(self, element: etree._Element, layer: Layer) -> None:
        """An attribute that stands twice in one <rt_info>; OpenVINO refuses such a file."""
        for group in element.iterfind(".//rt_info"):
            seen: set[tuple[str | None, str | None]] = set()
            for item in group.iterfind("attribute"):
                key = (item.get("name"), item.get("version"))
                if key in seen:
                    place = Place(self.file, line_of(item), layer.title, layer.id)
                    self.findings.error(DUPLICATE_ID, f"attribute '{key[0]}' stands twice in one <rt_info>", place)
                seen.add(key)

    def operator(self, element: etree._Element, layer: Layer) -> None:
        """Find the operation and parse its attributes by its declaration."""
        data = element.find("data")
        texts = dict(data.attrib) if data is not None else {}
        place = layer.place if data is None else Place(self.file, line_of(data), layer.title, layer.id)
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
        place = layer.place if data is None else Place(self.file, line_of(data), layer.title, layer.id)
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
        op.set_loader(
            partial(weights.array, op.element_type, op.shape, offset, size),
            partial(weights.slices, op.element_type, op.shape, offset),
        )

    # ----- bodies

    def bodies(self, element: etree._Element, layer: Layer, version: int) -> None:
        for key, tags in BODY_OPERATIONS[layer.type].items():
            body = element.find(tags.body)
            if body is None:
                self.findings.error(BODY, f"{layer.type} has no <{tags.body}>", layer.place)
                layer.operator = None
                continue
            lost = Lost()
            model = self.network(body, f"{layer.scope}{layer.name}/{key}/", version, lost)
            layer.bodies[key] = model
            if lost.layers:  # the port map may name them
                layer.operator = None
                continue
            try:
                wiring = read_body_map(element, tags, layer, model, self.file)
            except ModelError as error:
                for found in error.diagnostics:
                    self.findings.add(found)
                layer.operator = None
                continue
            if layer.operator is not None:
                layer.operator.wiring = {**layer.operator.wiring, key: wiring}


_ALWAYS_KNOWN = {"PrimitivesPriority", "alt_width", "execution_order", "originalLayersNames"}
"""Attributes that any operation may have; they tell how to execute, not what."""


__all__ = ["load", "read_model"]
