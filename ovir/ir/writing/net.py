"""Writes the layers and edges of a model, and of its bodies, as OpenVINO does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ovir.core.progress import counted
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.rt_info import RtElement, RtInfo
from ovir.ir.port_maps import BODY_OPERATIONS
from ovir.ir.rt_info import OLD_KEYS, RtInfoText
from ovir.ir.weights_mark import WeightsMark
from ovir.ir.writing.attributes import data_items
from ovir.ir.writing.blobs import BlobWriter
from ovir.ir.writing.port_maps import port_map_lines
from ovir.ir.writing.sources import source_of
from ovir.ir.writing.texts import escaped, names_text, precision_text, rt_info_lines
from ovir.ops.infrastructure import Const, Parameter

VERSION = 11
"""The IR version of all files that are written."""


class NetWriter:
    """Writes one model: the texts of its .xml are collected, its constants are appended to the .bin."""

    def __init__(self, blobs: BlobWriter) -> None:
        self.blobs = blobs
        self._path: str | None = None
        self._lines: list[str] = []
        self._types: dict[tuple[int, int], tuple[str, str, TensorType]] = {}
        """Precision and dimensions of tensor types by the id of the type, which is kept, and the number of tabs."""
        self._data: dict[tuple[int, int, int], tuple[str, Any]] = {}
        """Attributes of layers that share operator and attributes, by the ids of both and the number of tabs."""
        self._infos: dict[tuple[RtInfo | RtInfoText, int], str] = {}
        self._ports: dict[tuple[int, int, int], str] = {}
        """Ports that have only a type, by the id of the type, the number of the port and the number of tabs."""
        self._whole: set[int] = set()
        """The ids of arrays of files that have not been truncated."""
        self._kinds: dict[tuple[str, str], str] = {}
        """Types and versions of layers as attributes."""

    def write(self, model: LayerGraph) -> str:
        """Return the text of the .xml, after all constants have been written."""
        self._path = model.path
        self._lines = ['<?xml version="1.0"?>\n', f'<net name="{escaped(model.name)}" version="{VERSION}">\n']
        self._net(model, 1)
        if self.blobs.position:
            self._lines[-1] = _marked(self._lines[-1], WeightsMark(self.blobs.position, self.blobs.crc32))
        self._lines.append("</net>\n")
        return "".join(self._lines)

    def _net(self, model: LayerGraph, depth: int) -> None:
        """Add what is inside of a <net> or a body, with so many tabs before it."""
        tabs = "\t" * depth
        add = self._lines.append
        layers = model.file_order
        add(f"{tabs}<layers>\n")
        for layer in counted("writing", layers):
            self._layer(layer, depth + 1, is_inner=depth > 1)
        add(f"{tabs}</layers>\n")
        edges = "".join(_edge_lines(layers, f"{tabs}\t"))
        add(f"{tabs}<edges>\n{edges}{tabs}</edges>\n" if edges else f"{tabs}<edges />\n")
        add(rt_info_lines(upgraded_rt_info(model.rt_info), depth) or f"{tabs}<rt_info />\n")

    # ----- layers

    def _layer(self, layer: Layer, depth: int, *, is_inner: bool) -> None:
        tabs = "\t" * depth
        add = self._lines.append
        names = layer.inputs[0].own_names if layer.type == "Result" and layer.inputs else ()
        output_names = f' output_names="{names_text(names)}"' if names else ""
        key = layer.type, layer.version
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = f'type="{escaped(layer.type)}" version="{escaped(layer.version)}"'
        add(f'{tabs}<layer id="{layer.id}" name="{escaped(layer.name)}" {kind}{output_names}>\n')
        data, info = self._data_line(layer, depth + 1, is_inner), self._info_lines(layer.rt_info_source, depth + 1)
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

    def _data_line(self, layer: Layer, depth: int, is_inner: bool) -> str:
        """Return the <data> of a layer, empty if it has no attributes; the data of a constant goes to the .bin."""
        op = layer.operator
        if isinstance(op, Const):
            return self._constant_line(layer, op, depth)
        if isinstance(op, Parameter) and is_inner:
            # As in OpenVINO, the shape of a body's Parameter is the one that its loop gives it.
            items = data_items(layer, is_read=self._is_read(layer), changed={"shape": layer.outputs[0].shape})
            return _data_line(items, depth)
        key = id(op), id(layer.attributes), depth
        known = self._data.get(key)
        if known is None:
            items = data_items(layer, is_read=self._is_read(layer))
            known = self._data[key] = (_data_line(items, depth), layer.attributes)
        return known[0]

    def _is_read(self, layer: Layer) -> bool:
        """Return whether the layer comes from the file of the model, not from a program."""
        return layer.line is not None and layer.file == self._path

    def _constant_line(self, layer: Layer, op: Const, depth: int) -> str:
        source = source_of(layer, op, self._whole)
        offset = self.blobs.add(source, op.element_type)
        shape = ", ".join(map(str, op.shape))
        place = f'offset="{offset}" size="{source.size}"'
        more = ""
        if not layer.attributes.keys() <= op.attributes.keys():
            others = [item for item in layer.attributes.items() if item[0] not in op.attributes]
            more = "".join([f' {name}="{escaped(str(text))}"' for name, text in others])
        return "\t" * depth + f'<data element_type="{op.element_type.name}" shape="{shape}" {place}{more} />\n'

    def _info_lines(self, info: Any, depth: int) -> str:
        if info is None:
            return ""
        if not isinstance(info, (RtInfo, RtInfoText)):
            info = info()
        key = info, depth
        if key not in self._infos:
            self._infos[key] = rt_info_lines(info, depth)
        return self._infos[key]

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
            info = self._info_lines(port.rt_info, depth + 1) if port.rt_info.elements else ""
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
            dims = _dim_lines(tensor.shape, depth + 1)
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


def _dim_lines(shape: PartialShape, depth: int) -> str:
    if not shape.rank:
        return ""
    tabs = "\t" * depth
    return "".join([f"{tabs}<dim>{dim.lower if dim.is_static else -1}</dim>\n" for dim in shape.dims])


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
