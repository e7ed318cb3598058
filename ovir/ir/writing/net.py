"""The topology of a saved model, written as OpenVINO writes it.

It has nets and their bodies, layers, attributes, port maps and runtime information.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import BAD_ATTRIBUTE, BODY, UNWRITABLE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError, WriteError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.rt_info import DeferredRtInfo, RtElement, RtInfo
from ovir.ir.elements import OLD_KEYS, RtInfoText, write_rt_info
from ovir.ir.port_maps import BODY_OPERATIONS, BodyTags
from ovir.ir.weights import WeightsMark
from ovir.ir.writing.blobs import BlobWriter, source_of
from ovir.ops.base.attributes import Attribute, split_names
from ovir.ops.base.bodies import BodyMap, Entry
from ovir.ops.infrastructure import Const, Parameter
from ovir.system.progress import counted

_SPECIAL = re.compile(r"""[&<>"\x00-\x1f\ud800-\udfff\ufffe\uffff]""")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def escaped(text: str) -> str:
    """Return a text as the value of an XML attribute; WriteError for a character that no XML can hold."""
    return text if _SPECIAL.search(text) is None else _SPECIAL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    found = _ESCAPES.get(match[0])
    if found is None:
        message = f"{match.string!r} has the character U+{ord(match[0]):04X}, which XML cannot hold"
        raise WriteError(diagnose(UNWRITABLE, f"cannot save the model: {message}"))
    return found


def names_text(names: Collection[str]) -> str:
    """Return tensor names as one escaped text: sorted, joined by commas; commas within a name get a backslash."""
    if len(names) == 1 and (name := next(iter(names))) and "," not in name and "\\" not in name:
        return escaped(name)
    ordered = sorted(names)
    text = ",".join(name.replace(",", "\\,") for name in ordered)
    if ("\\" in text or "" in ordered) and split_names(text) != ordered:
        message = f"the tensor names {ordered} cannot be distinguished in a file: one is empty, or ends in a backslash"
        raise WriteError(diagnose(UNWRITABLE, f"cannot save the model: {message}"))
    return escaped(text)


_PRECISIONS = {"dynamic": "UNSPECIFIED", "boolean": "BOOL", "u1": "BIN", "f16": "FP16", "f32": "FP32", "f64": "FP64"}


def precision_text(element_type: ElementType) -> str:
    """Return the ``precision`` by which a port declares an element type."""
    return _PRECISIONS.get(element_type.name) or element_type.name.upper()


# --------------------------------------------------------------------------- runtime information

_FLAT = re.compile(r"""<rt_info>\s*((?:<[A-Za-z_][\w.-]*(?: [A-Za-z_][\w.-]*="[^"<>]*")*/>\s*)+)</rt_info>""")
"""An <rt_info>, as lxml writes it, of elements that have nothing but attributes."""
_TAG = re.compile("<[^>]*>")


def rt_info_lines(info: RtInfo | DeferredRtInfo | None, depth: int) -> str:
    """Return the lines of an ``<rt_info>`` with so many tabs before it; empty if it has no content."""
    if isinstance(info, RtInfoText) and (match := _FLAT.fullmatch(info.text)) is not None:
        tags = [f"{tag[:-2]} />" for tag in _TAG.findall(match[1])]  # nearly all are so, and need not be parsed
        tabs = "\t" * depth
        return "".join((f"{tabs}<rt_info>\n", *(f"{tabs}\t{tag}\n" for tag in tags), f"{tabs}</rt_info>\n"))
    if callable(info):
        info = info()
    if info is None or len(info.elements) < 2:
        return ""
    if any(item.text.strip() or item.tail.strip() or item.tag.startswith("{") for item in info.elements):
        # Texts between elements must keep their place, and prefixes of namespaces their meaning.
        return "\t" * depth + etree.tostring(write_rt_info(info), encoding="unicode").strip() + "\n"
    return "".join(_nested_lines(info.elements, depth))


def _nested_lines(elements: Sequence[RtElement], depth: int) -> Iterable[str]:
    open_tags: list[str] = []
    for number, item in enumerate(elements):
        while len(open_tags) > item.depth:
            yield "\t" * (depth + len(open_tags) - 1) + f"</{open_tags.pop()}>\n"
        attributes = "".join(f' {name}="{escaped(value)}"' for name, value in item.attributes)
        has_inner = number + 1 < len(elements) and elements[number + 1].depth > item.depth
        yield "\t" * (depth + item.depth) + f"<{item.tag}{attributes}" + (">\n" if has_inner else " />\n")
        if has_inner:
            open_tags.append(item.tag)
    while open_tags:
        yield "\t" * (depth + len(open_tags) - 1) + f"</{open_tags.pop()}>\n"


def data_items(layer: Layer, *, is_read: bool, changed: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return the names and texts of a layer's attributes; ``changed`` has values in place of the operator's.

    A layer that was read from the model's file keeps the order of the file and leaves out what the file leaves out,
    since readers may have other defaults. A layer that a program created has all attributes that its operation
    declares.
    """
    op = layer.operator
    declared: Mapping[str, Attribute] = {} if op is None else op.attributes
    names = layer.attributes if is_read else layer.attributes | dict.fromkeys(declared)
    items = []
    for name in names:
        spec = declared.get(name)
        if spec is None:
            items.append((name, _text(layer.attributes[name])))
            continue
        value = (changed or {}).get(name, getattr(op, spec.field))
        if name not in layer.attributes and not _is_worth_writing(op, spec, value):
            continue
        try:
            items.append((name, spec.format(value)))
        except (ValueError, TypeError) as error:
            raise ModelError(diagnose(BAD_ATTRIBUTE, f"attribute '{name}': {error}", layer.data_place)) from None
    return items


def _is_worth_writing(op: Any, spec: Attribute, value: Any) -> bool:
    """Return whether an attribute that nobody has set is written.

    Some defaults say that the attribute is missing: no file could give them, or they are empty. Details of another
    attribute, such as ``auto_broadcast.auto_broadcast_axis``, are written only if they are not the default, or if they
    count and OpenVINO has another default.
    """
    if value is None or value == () or not spec.allows(value):
        return False
    return "." not in spec.name or value != spec.default or spec.is_misread(op)


def _text(value: Any) -> str:
    """Return the text of an attribute that no operation declares: a text of the file, or a value of a program."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return str(value)


def port_map_lines(layer: Layer, key: str, tags: BodyTags, depth: int) -> Iterator[str]:
    """Yield the lines of the port map and the back edges of one body, with so many tabs before them."""
    body: LayerGraph = layer.bodies[key]
    wiring = None if layer.operator is None else layer.operator.wiring.get(key)
    if wiring is None:
        message = f"it is not known how the body '{key}' is connected with the layer"
        raise ModelError(diagnose(BODY, message, layer.place))
    tabs = "\t" * depth
    entries = _entries(wiring, body, len(layer.inputs))
    yield f"{tabs}<{tags.port_map}>\n"
    entries.sort(key=lambda entry: entry[0])  # OpenVINO writes the special ports of a Loop last
    yield from (f"{tabs}\t{text}\n" for _, text in entries)
    yield f"{tabs}</{tags.port_map}>\n"
    if wiring.back_edges:
        yield f"{tabs}<{tags.back_edges}>\n"
        for edge in wiring.back_edges:
            result, parameter = body.outputs[edge.result].layer.id, body.inputs[edge.parameter].layer.id
            yield f'{tabs}\t<edge from-layer="{result}" to-layer="{parameter}" />\n'
        yield f"{tabs}</{tags.back_edges}>\n"


def _entries(wiring: BodyMap, body: LayerGraph, input_count: int) -> list[tuple[bool, str]]:
    """Return the entries of the port map, each with whether it is a special port without an external one."""
    found = []
    for item in wiring.inputs:
        internal = body.inputs[item.parameter].layer.id
        found.append((item.external < 0, _entry("input", item, item.external, internal)))
    for result in wiring.outputs:
        internal = body.outputs[result.result].layer.id
        external = result.external if result.external < 0 else input_count + result.external
        found.append((result.external < 0, _entry("output", result, external, internal)))
    return found


def _entry(tag: str, item: Entry, external: int, internal: int) -> str:
    axis = slicing = ""
    if item.axis is not None:
        axis = f' axis="{item.axis}"'
        slicing = f' start="{item.start}" end="{item.end}" stride="{item.stride}" part_size="{item.part_size}"'
    purpose = f' purpose="{item.purpose}"' if item.purpose else ""
    return f'<{tag}{axis} external_port_id="{external}" internal_layer_id="{internal}"{slicing}{purpose} />'


VERSION = 11
"""The IR version of files that are written, unless an older one is asked for."""


class NetWriter:
    """Writes one model: the texts of its .xml are collected, its constants are appended to the .bin."""

    def __init__(self, blobs: BlobWriter | None, version: int = VERSION) -> None:
        """Without ``blobs``, constants stay where they are in the .bin that they have been read from."""
        self.blobs = blobs
        self._version = version
        self._path: str | None = None
        self._lines: list[str] = []
        self._types: dict[tuple[int, int], tuple[str, str, TensorType]] = {}
        """Precision and dimensions of tensor types by the id of the type, which is kept, and the number of tabs."""
        self._ports: dict[tuple[int, int, int], str] = {}
        """Ports that have only a type, by the id of the type, the number of the port and the number of tabs."""
        self._whole: set[int] = set()
        """The ids of arrays of files that have not been truncated."""

    def write(self, model: LayerGraph) -> str:
        """Return the text of the .xml, after all constants have been written."""
        self._path = model.path
        self._lines = ['<?xml version="1.0"?>\n', f'<net name="{escaped(model.name)}" version="{self._version}">\n']
        self._net(model, 1)
        if self.blobs is not None:
            self.blobs.finish()
        if self.blobs is not None and self.blobs.position:
            self._lines[-1] = _marked(self._lines[-1], WeightsMark(self.blobs.position, self.blobs.crc32))
        self._lines.append("</net>\n")
        return "".join(self._lines)

    def _net(self, model: LayerGraph, depth: int) -> None:
        """Add the content of a <net> or a body, indented by a number of tabs."""
        tabs = "\t" * depth
        add = self._lines.append
        layers = model.file_order
        add(f"{tabs}<layers>\n")
        for layer in counted("writing", layers):
            self._layer(layer, depth + 1)
        add(f"{tabs}</layers>\n")
        edges = "".join(_edge_lines(layers, f"{tabs}\t"))
        add(f"{tabs}<edges>\n{edges}{tabs}</edges>\n" if edges else f"{tabs}<edges />\n")
        add(rt_info_lines(upgraded_rt_info(model.rt_info), depth) or f"{tabs}<rt_info />\n")

    # ----- layers

    def _layer(self, layer: Layer, depth: int) -> None:
        tabs = "\t" * depth
        add = self._lines.append
        names = layer.inputs[0].own_names if layer.type == "Result" and layer.inputs else ()
        output_names = f' output_names="{names_text(names)}"' if names else ""
        kind = f'type="{escaped(layer.type)}" version="{escaped(layer.version)}"'
        add(f'{tabs}<layer id="{layer.id}" name="{escaped(layer.name)}" {kind}{output_names}>\n')
        data, info = self._data_line(layer, depth + 1), rt_info_lines(layer.rt_info_source, depth + 1)
        ports = self._port_lines(layer, depth + 1)
        if layer.bodies:
            self._with_bodies(layer, data, info, ports, depth + 1)
        else:
            add(f"{data}{info}{ports}")
        add(f"{tabs}</layer>\n")

    def _with_bodies(self, layer: Layer, data: str, info: str, ports: str, depth: int) -> None:
        """Add the parts of a layer with bodies, in the order in which OpenVINO writes them."""
        add = self._lines.append
        tags = BODY_OPERATIONS[layer.type]
        tabs = "\t" * depth
        for key in reversed(tags):
            add("".join(port_map_lines(layer, key, tags[key], depth)))
        add(f"{data}{info}{ports}" if layer.type == "If" else f"{ports}{data}{info}")
        for key, names in tags.items():
            add(f"{tabs}<{names.body}>\n")
            self._net(layer.bodies[key], depth + 1)
            add(f"{tabs}</{names.body}>\n")

    def _data_line(self, layer: Layer, depth: int) -> str:
        """Return the <data> of a layer, empty if it has no attributes; the data of a constant goes to the .bin."""
        op = layer.operator
        if isinstance(op, Const):
            return self._constant_line(layer, op, depth)
        # As in OpenVINO, the shape of a body's Parameter is the one that its loop gives it.
        changed = {"shape": layer.outputs[0].shape} if isinstance(op, Parameter) else None
        is_read = layer.data_line is not None and layer.file == self._path  # not made by a program
        return _data_line(data_items(layer, is_read=is_read, changed=changed), depth)

    def _constant_line(self, layer: Layer, op: Const, depth: int) -> str:
        if self.blobs is None:
            offset, size = op.offset, op.size
        else:
            source = source_of(layer, op, self._whole)
            offset, size = self.blobs.add(source, op.element_type), source.size
        shape = ", ".join(map(str, op.shape))
        place = f'offset="{offset}" size="{size}"'
        more = ""
        if not layer.attributes.keys() <= op.attributes.keys():
            others = [item for item in layer.attributes.items() if item[0] not in op.attributes]
            more = "".join([f' {name}="{escaped(str(text))}"' for name, text in others])
        return "\t" * depth + f'<data element_type="{op.element_type.name}" shape="{shape}" {place}{more} />\n'

    # ----- ports

    def _port_lines(self, layer: Layer, depth: int) -> str:
        tabs = "\t" * depth
        parts = []
        if layer.inputs:
            inner = "".join([self._port(port, port.index, depth + 1) for port in layer.inputs])
            parts.append(f"{tabs}<input>\n{inner}{tabs}</input>\n")
        if layer.outputs:
            first = len(layer.inputs)
            inner = "".join([self._port(port, first + port.index, depth + 1) for port in layer.outputs])
            parts.append(f"{tabs}<output>\n{inner}{tabs}</output>\n")
        return "".join(parts)

    def _port(self, port: Port, number: int, depth: int) -> str:
        tensor = port.type
        has_names = port.is_output and bool(port.own_names)
        if has_names or port.rt_info.elements:
            names = f' names="{names_text(port.own_names)}"' if has_names else ""
            info = rt_info_lines(port.rt_info, depth + 1) if port.rt_info.elements else ""
            return self._port_text(tensor, number, depth, names, info)
        key = id(tensor), number, depth
        found = self._ports.get(key)
        if found is None:
            found = self._ports[key] = self._port_text(tensor, number, depth)
        return found

    def _port_text(self, tensor: TensorType, number: int, depth: int, names: str = "", info: str = "") -> str:
        key = id(tensor), depth
        known = self._types.get(key)
        if known is None:
            dims = _dim_lines(tensor.shape, depth + 1, with_bounds=self._version < VERSION)
            known = self._types[key] = precision_text(tensor.element_type), dims, tensor
        precision, dims, _ = known
        tabs = "\t" * depth
        head = f'{tabs}<port id="{number}" precision="{precision}"{names}'
        return f"{head}>\n{dims}{info}{tabs}</port>\n" if dims or info else f"{head} />\n"


def _marked(info: str, mark: WeightsMark) -> str:
    """Return the text of an ``<rt_info>`` with a mark, without a space that would belong to its other content."""
    start, end, rest = info.rpartition("</rt_info>")
    return f"{start}{mark}{end}{rest}" if end else info.replace("<rt_info />", f"<rt_info>{mark}</rt_info>")


def upgraded_rt_info(info: RtInfo) -> RtInfo:
    """Return the runtime information of a model under its present names; files of version 10 have others."""
    if not info.elements or info.elements[0].tag != "meta_data":
        return info

    def renamed(item: RtElement) -> RtElement:
        return item._replace(tag=OLD_KEYS.get(item.tag, item.tag)) if item.depth == 1 else item

    root, *inner = info.elements
    return RtInfo((root._replace(tag="rt_info", attributes=()), *map(renamed, inner)))


def _data_line(items: list[tuple[str, str]], depth: int) -> str:
    if not items:
        return ""
    return "\t" * depth + "<data" + "".join([f' {name}="{escaped(text)}"' for name, text in items]) + " />\n"


def _dim_lines(shape: PartialShape, depth: int, *, with_bounds: bool) -> str:
    """Return the lines of the dimensions; an unknown one is -1, or its upper bound where it has one that is wanted."""
    if not shape.rank:
        return ""
    tabs = "\t" * depth
    uppers = [dim.upper if dim.is_static or with_bounds else None for dim in shape.dims]
    return "".join([f"{tabs}<dim>{-1 if upper is None else upper}</dim>\n" for upper in uppers])


def _edge_lines(layers: list[Layer], tabs: str) -> Iterator[str]:
    """Yield the edges by the ids of the layers where they begin, then in the order of the layers that they lead to."""
    edges = []
    for layer in layers:
        for port in layer.inputs:
            source = port.source
            if source is not None:
                edges.append((source.layer.id, len(source.layer.inputs) + source.index, layer.id, port.index))
    edges.sort(key=lambda edge: edge[0])
    for from_layer, from_port, to_layer, to_port in edges:
        yield (
            f'{tabs}<edge from-layer="{from_layer}" from-port="{from_port}" '
            f'to-layer="{to_layer}" to-port="{to_port}" />\n'
        )
