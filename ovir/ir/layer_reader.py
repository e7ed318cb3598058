"""Attributes of layers that are unknown or misspelled, and operators that layers with equal attributes share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lxml import etree

from ovir import ops
from ovir.core.element_types import ElementType
from ovir.core.shapes import MAX_RANK, Dimension, PartialShape
from ovir.diagnostics import codes
from ovir.diagnostics.codes import Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import Diagnostics, OperatorError
from ovir.diagnostics.wording import closest, did_you_mean
from ovir.graph.layers import Layer, Port, ReadOnlyDict
from ovir.ir.edges import Gaps
from ovir.ir.elements import ElementReader, Ids, RtInfoText, items_of, line_of, read_rt_info, tag_of
from ovir.ir.port_maps import BODY_OPERATIONS
from ovir.ir.weights import WeightBytes
from ovir.ops.base import opsets
from ovir.ops.base.attributes import Attribute, ChoiceError, split_names
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const, Parameter

ALWAYS_KNOWN = {"PrimitivesPriority", "alt_width", "execution_order", "originalLayersNames"}
"""Attributes that any operation may have. They control how it is executed, not what it computes."""


def unknown_attributes(cls: type[Operator], given: Iterable[str]) -> list[str]:
    """Return the attributes that neither the operation nor other tools of OpenVINO use."""
    known = {*cls.attributes, *ALWAYS_KNOWN, *cls.leftovers}
    return [name for name in given if name not in known]


def misspelled_attributes(cls: type[Operator], given: Mapping[str, object]) -> list[tuple[Attribute, str]]:
    """Return attributes that the specification requires, each with the unknown attribute that may be a misspelling
    of it."""
    missing = [spec for spec in cls.attributes.values() if spec.is_lacking(given)]
    if not missing:
        return []
    unknown = unknown_attributes(cls, given)
    found = []
    for spec in missing:
        if (misspelled := closest(spec.name, unknown)) is not None:
            unknown.remove(misspelled)
            found.append((spec, misspelled))
    return found


def is_shared(op: Operator, layer: Layer) -> bool:
    """Return whether layers with equal attributes share this operator.

    A Parameter can get another shape, an operation with bodies has the wiring of its layer, and the instances of a
    user's class may have any state.
    """
    return bool(op.opset) and not isinstance(op, Parameter) and layer.type not in BODY_OPERATIONS


def other_version(name: str, cls: type[Operator]) -> str | None:
    """Return a hint if another version of an operation has an attribute; the layer's version may be wrong."""
    for opset in opsets.OPERATIONS.get(cls.type, ()):
        other = ops.find(cls.type, opset)
        if other is not None and other is not cls and name in other.attributes:
            return f"{cls.type} of opset{opset} has it: perhaps the version of the layer is wrong"
    return None


class LayerReader(ElementReader):
    """Reads the layers of one document; texts that occur in many layers are parsed once."""

    def __init__(self, file: str | None, weights: WeightBytes, diagnostics: Diagnostics) -> None:
        super().__init__(file, diagnostics)
        self.weights = weights
        self.without_data: list[tuple[Layer, Place, int]] = []
        """Constants whose weights are missing, with the number of bytes that they need."""
        self.past_end: list[Diagnostic] = []
        """Diagnostics for constants that lie past the end of the weights."""
        self.of_extensions: list[Layer] = []
        """Layers of operations that an extension has and nobody has registered."""
        self.ids = Ids()
        self._shapes: dict[tuple[str | None, ...], PartialShape] = {}
        self._precisions: dict[str | None, ElementType] = {}
        self._values: dict[tuple[type[Operator], str, str], object] = {}
        self._operators: dict[tuple[object, ...], tuple[str, Operator, dict[str, Any]]] = {}
        """Type, operator and attributes of layers that share one operator, by class, type and attribute texts."""

    def read(self, element: etree._Element, scope: str, gaps: Gaps) -> Layer | None:
        """Read a layer without its bodies; None if not even its id can be read."""
        name, kind, version = element.get("name"), element.get("type"), element.get("version")
        text = element.get("id")
        if name is None or kind is None or version is None or text is None:
            missing = next(key for key in ("id", "name", "type", "version") if element.get(key) is None)
            message = f"<layer> {name or text or ''!r} has no attribute '{missing}'"
            self.diagnostics.report(codes.MISSING_KEY, message, self.at(element))
            known = text is not None
            gaps.layers.add(self.unsigned(element, "id") if known else None)
            return None
        number = self.ids[text]
        if number is None and (number := self.unsigned(element, "id")) is None:
            gaps.layers.add(None)
            return None
        layer = Layer(number, name, kind, version, line=line_of(element), file=self.file, scope=scope)
        if not _LAYER_KEYS.issuperset(element.keys()):
            self._unknown_keys(element, _LAYER_KEYS, layer)
        data = self._parts(element, layer, gaps)
        for ports in (layer.inputs, layer.outputs):
            if len(ports) > 1:
                self._check_ids(ports, layer, gaps)
        if kind == "Parameter" and not layer.outputs:
            if layer.id not in gaps.ports:
                self.diagnostics.report(codes.MISSING_ELEMENT, "the Parameter has no output port", layer.place)
            layer.outputs.append(Port(layer, 0, 0, True))
        self._operator(data, layer)
        if kind == "Result" and layer.inputs and (names := element.get("output_names")):
            layer.inputs[0].names = frozenset(split_names(names))
        return layer

    def _parts(self, element: etree._Element, layer: Layer, gaps: Gaps) -> etree._Element | None:
        """Read the ports and the <rt_info> of a layer, and return its <data>."""
        data, layer.data_line = None, layer.line
        for child in element[:]:  # which is quicker than an iterator
            tag: Any = child.tag
            if tag not in _PARTS:
                tag = self._misspelled_part(child, element, layer)
            if tag == "output":
                self._ports(child, layer, layer.outputs, gaps, is_output=True)
            elif tag == "input":
                self._ports(child, layer, layer.inputs, gaps, is_output=False)
            elif tag == "data":
                if data is None:
                    data = child
                    layer.data_line = line_of(child)
                else:
                    self.report_repeated([child], layer)
            elif tag == "rt_info":
                if layer.rt_info_source is None:
                    layer.rt_info_source = RtInfoText.of(child)
                self._rt_info(child, layer)
        return data

    def _unknown_keys(self, element: etree._Element, known: frozenset[str], layer: Layer) -> None:
        """Report XML attributes that no reader uses, except those with a namespace, which are not part of the
        format."""
        for key in map(str, element.attrib):
            if key not in known and not key.startswith("{"):
                message = f"<{tag_of(element)}> has no attribute '{key}'; it is ignored"
                hint = did_you_mean(key, known)
                self.diagnostics.report(codes.UNKNOWN_ATTRIBUTE, message, self.at(element, layer), hint)

    def _misspelled_part(self, child: etree._Element, element: etree._Element, layer: Layer) -> str | None:
        """Report an unknown element of a layer; return the tag that it misspells, None if there is none."""
        tag = tag_of(child)
        if _BODY_TAGS.fullmatch(tag):
            return None
        missed = [part for part in _PARTS if part != "rt_info" and element.find(part) is None]
        return self.read_as(child, "part of a layer", _PARTS, missed, layer)

    # ----- ports

    def _ports(self, group: etree._Element, layer: Layer, ports: list[Port], gaps: Gaps, *, is_output: bool) -> None:
        """Read the ports of an <input> or <output>."""
        for item in group[:]:
            if item.tag != "port" and self.read_as(item, "a <port>", ("port",), ("port",), layer) is None:
                continue
            number = self.ids[item.get("id")]
            if number is None and (number := self.unsigned(item, "id", layer)) is None:
                gaps.ports.add(layer.id)
                number = _NO_ID  # keeps the positions of the following ports
            port = Port(layer, len(ports), number, is_output, line=line_of(item))
            if not _PORT_KEYS.issuperset(item.keys()):
                self._unknown_keys(item, _PORT_KEYS, layer)
            if names := item.get("names"):
                port.own_names = frozenset(split_names(names))
            precision = item.get("precision")
            port.declared_element_type = self._precisions.get(precision) or self._precision(precision, item, port)
            port.declared_shape = self._shape(item, port)
            ports.append(port)

    def _precision(self, text: str | None, element: etree._Element, port: Port) -> ElementType | None:
        """Return the element type that a port declares."""
        if text is None:
            if port.is_output:
                message = f"output port {port.id} has no attribute 'precision', without which OpenVINO refuses the file"
                self.diagnostics.report(codes.NO_PRECISION, message, self.at(element, port.layer), port=port.id)
            return None
        try:
            element_type = self._precisions[text] = ElementType.parse_precision(text)
        except ValueError as error:
            message = f"port {port.id}: precision {error}"
            self.diagnostics.report(codes.BAD_PRECISION, message, self.at(element, port.layer), port=port.id)
            return None
        return element_type

    def _shape(self, element: etree._Element, port: Port) -> PartialShape | None:
        """Return the shape that a port declares, and read its <rt_info>."""
        texts: list[str | None] = []
        for item in element[:]:
            if item.tag == "dim":
                texts.append(item.text)
            elif item.tag == "rt_info":
                port.rt_info = read_rt_info(item)
                self._rt_info(item, port.layer)
            else:
                message = f"<{tag_of(item)}> is not part of a port; it is ignored"
                self.diagnostics.report(codes.UNKNOWN_ELEMENT, message, self.at(item, port.layer))
        key = tuple(texts)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._dims(element, port)
            if shape is not None and not any(".." in (text or "") for text in key):
                self._shapes[key] = shape
        return shape

    def _dims(self, element: etree._Element, port: Port) -> PartialShape | None:
        dims: list[Dimension] = []
        items = [item for item in element[:] if item.tag == "dim"]
        if len(items) > MAX_RANK:
            message = f"port {port.id}: a shape has at most {MAX_RANK} dimensions, got {len(items)}"
            self.diagnostics.report(codes.BAD_DIM, message, self.at(items[MAX_RANK], port.layer), port=port.id)
            return None
        for item in items:
            text = (item.text or "").strip()
            try:
                if text == "?":
                    raise ValueError("'?' is not a size in a <dim>; OpenVINO refuses the file")
                dims.append(Dimension.parse(text))
            except ValueError as error:
                message = f"port {port.id}: <dim>: {error}"
                hint = "write a number, or -1 for an unknown one"
                self.diagnostics.report(codes.BAD_DIM, message, self.at(item, port.layer), hint, port=port.id)
                return None
            if ".." in text:
                message = f"port {port.id}: <dim>{text}</dim> is an interval; OpenVINO reads it as {dims[-1].lower}"
                hint = "write -1; only the attribute 'shape' of a Parameter can hold intervals"
                self.diagnostics.report(codes.INTERVAL_DIM, message, self.at(item, port.layer), hint, port=port.id)
        return PartialShape(dims)

    def _check_ids(self, ports: list[Port], layer: Layer, gaps: Gaps) -> None:
        if len({port.id for port in ports}) == len(ports):
            return
        gaps.ports.add(layer.id)
        seen: set[int] = set()
        for port in ports:
            if port.id in seen and port.id != _NO_ID:
                kind = "output" if port.is_output else "input"
                message = f"a second {kind} port has the id {port.id}"
                self.diagnostics.report(codes.DUPLICATE_PORT, message, port.place, port=port.id)
            seen.add(port.id)

    def _rt_info(self, group: etree._Element, layer: Layer) -> None:
        """Report attributes that occur twice in an <rt_info>; OpenVINO refuses such files."""
        seen: set[tuple[str | None, str | None]] = set()
        for item in group.iterfind("attribute"):
            key = (item.get("name"), item.get("version"))
            if key in seen:
                message = f"attribute '{key[0]}' occurs twice in one <rt_info>"
                self.diagnostics.report(codes.REPEATED_RT_INFO, message, self.at(item, layer))
            seen.add(key)

    # ----- the operation

    def _operator(self, data: etree._Element | None, layer: Layer) -> None:
        """Set the operation of a layer, with attributes parsed as the operation declares them."""
        items = items_of(data) if data is not None else []
        cls = ops.resolve(layer.type, layer.version)
        key = (cls, layer.type, *items)
        known = self._operators.get(key)
        if known is not None:
            layer.type, layer.operator, layer.attributes = known
            return
        layer.attributes = dict(items)
        reported = self.diagnostics.added
        layer.type = opsets.canonical_type(layer.type) or layer.type
        if cls is None:
            self._unresolved(layer)
            if layer.type not in _SAME_IN_ALL_OPSETS:
                return
            cls = ops.resolve(layer.type, "opset1")
            assert cls is not None
        values = self._parsed(cls, data, layer)
        if values is None:
            return
        layer.operator = cls.from_parsed(values)
        if isinstance(layer.operator, Const):
            self._constant(layer.operator, layer)
        elif self.diagnostics.added == reported and is_shared(layer.operator, layer):
            layer.attributes = ReadOnlyDict(layer.attributes)
            self._operators[key] = layer.type, layer.operator, layer.attributes

    def _parsed(self, cls: type[Operator], data: etree._Element | None, layer: Layer) -> dict[str, object] | None:
        """Parse the attributes of a layer, which are still texts; return those that its operation declares.

        Returns None if an attribute is wrong or missing.
        """
        values: dict[str, object] = {}
        unknown: list[str] = []
        wrong = False
        texts: dict[str, str] = layer.attributes.copy()
        for name, text in texts.items():
            spec = cls.attributes.get(name)
            if spec is None:
                if name not in ALWAYS_KNOWN:
                    unknown.append(name)
                continue
            key = (cls, name, text)
            if key not in self._values:
                try:
                    self._values[key] = spec.parse(text)
                except ValueError as error:
                    code = codes.ATTRIBUTE_CHOICE if isinstance(error, ChoiceError) else codes.BAD_ATTRIBUTE
                    self.diagnostics.report(code, f"attribute '{name}': {error}", layer.data_place)
                    wrong = True
                    continue
            values[spec.field] = layer.attributes[name] = self._values[key]
        missing = [spec.name for spec in cls.required_attributes if spec.name not in texts]
        if cls is Const and "value" not in texts:
            missing += sorted({"offset", "size"} - texts.keys())
        if data is None and missing:
            message = f"{cls.type} has no <data>, but needs {', '.join(missing)}"
            self.diagnostics.report(codes.MISSING_ATTRIBUTE, message, layer.place)
        else:
            for name in missing:
                self._missing_attribute(name, cls, layer, unknown)
        for spec, misspelled in misspelled_attributes(cls, texts) if unknown else ():
            unknown.remove(misspelled)
            given = f"<data> has the unknown attribute '{misspelled}' instead"
            message = f"{cls.type} needs the attribute '{spec.name}'; {given}; {spec.assumed_text} is assumed"
            hint = f"did you mean '{spec.name}'?"
            self.diagnostics.report(codes.UNSPECIFIED, message, layer.data_place, hint, severity=Severity.ERROR)
        for name in unknown:
            self._unknown_attribute(name, cls, layer)
        return None if wrong or missing else values

    def _unresolved(self, layer: Layer) -> None:
        if opsets.resolve(layer.type, layer.version) is not None:
            return  # the operation exists, but ovir does not implement it
        if opsets.is_extension(layer.type, layer.version):
            self.of_extensions.append(layer)
            return
        why, hint = opsets.why_unresolved(layer.type, layer.version)
        code = codes.UNKNOWN_OPSET
        if opsets.is_opset(layer.version):
            code = codes.UNKNOWN_TYPE if opsets.canonical_type(layer.type) is None else codes.NOT_IN_OPSET
        hint = hint or "its declared shapes are used; to run the layer, register its operation with `ovir.register`"
        self.diagnostics.report(code, why, layer.place, hint)

    def _missing_attribute(self, name: str, cls: type[Operator], layer: Layer, unknown: list[str]) -> None:
        """Report a missing attribute together with its misspelling, which is removed from ``unknown``."""
        message = f"{cls.type} needs the attribute '{name}', which is missing in <data>"
        misspelled = closest(name, unknown)
        if misspelled is not None:
            unknown.remove(misspelled)
        hint = f"perhaps '{misspelled}' is a misspelling of it" if misspelled is not None else None
        self.diagnostics.report(codes.MISSING_ATTRIBUTE, message, layer.data_place, hint)

    def _unknown_attribute(self, name: str, cls: type[Operator], layer: Layer) -> None:
        version = f"opset{cls.opset}" if cls.opset else layer.version
        message = f"{cls.type} of {version} has no attribute '{name}'; it is ignored"
        if name in cls.leftovers:
            hint: str | None = "the Model Optimizer wrote it into old files; it has no effect"
        else:
            absent = [known for known in cls.attributes if known not in layer.attributes]  # what is given was not meant
            hint = did_you_mean(name, absent) or other_version(name, cls)
        self.diagnostics.report(codes.UNKNOWN_ATTRIBUTE, message, layer.data_place, hint)

    def _constant(self, op: Const, layer: Layer) -> None:
        weights, offset, size = self.weights, op.offset, op.size
        if "value" in layer.attributes:
            weights = WeightBytes.of(op.value.encode())
            offset, size = 0, weights.data.size
        try:
            op.constant_data = weights.constant(op.element_type, op.shape, offset, size)
        except OperatorError as error:
            place = layer.data_place
            code: Code = error.code or codes.PAST_END
            if code is codes.NO_WEIGHTS:
                self.without_data.append((layer, place, size))
            elif code is codes.PAST_END:
                self.past_end.append(diagnose(code, error.message, place, hint=error.hint))
            else:
                self.diagnostics.report(code, error.message, place, error.hint)
                layer.operator = None  # its type, shape and size contradict each other


_PARTS = ("data", "input", "output", "rt_info")
_LAYER_KEYS = frozenset({"id", "name", "type", "version", "output_names", "precision"})
_NO_ID = -1
"""Stands for the id of a port whose id cannot be read."""

_PORT_KEYS = frozenset({"id", "precision", "names"})

_SAME_IN_ALL_OPSETS = ("Parameter", "Const", "Result")
"""Operations that are the same in all opsets, so that they are known even if the opset is not."""

_BODY_TAGS = re.compile(
    r"(then_|else_)?(body|port_map|back_edges)\d*|(input|output)_descriptions\d*|blobs|weights|biases"
)
"""Other elements of layers: elements that describe bodies, and elements that old writers added."""
