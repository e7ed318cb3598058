"""Small IR files for tests, written as OpenVINO writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

import ovir
from ovir.element_types import ElementType

_PRECISION = {"f16": "FP16", "f32": "FP32", "f64": "FP64", "boolean": "BOOL", "u1": "BIN"}


@dataclass
class Net:
    """Builds a model layer by layer. ``net.op("Add", a, b)`` returns a handle on the first output."""

    version: int = 11
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    blob: bytearray = field(default_factory=bytearray)
    count: int = 0

    def parameter(self, name: str, shape: str, element_type: str = "f32") -> tuple[int, int]:
        return self.op("Parameter", name=name, shape=shape, element_type=element_type)

    def const(self, value: Any, element_type: str | None = None, name: str | None = None) -> tuple[int, int]:
        array = np.asarray(value)
        element_type = element_type or str(ElementType.from_dtype(array.dtype))
        array = array.astype(ElementType.parse(element_type).to_dtype())
        offset, raw = len(self.blob), array.tobytes()
        self.blob += raw
        shape = ",".join(map(str, array.shape))
        return self.op(
            "Const", name=name, element_type=element_type, shape=shape, offset=str(offset), size=str(len(raw))
        )

    def op(
        self,
        kind: str,
        *inputs: tuple[int, int],
        name: str | None = None,
        opset: int = 1,
        outputs: int = 1,
        names: Sequence[str] = (),
        **attributes: Any,
    ) -> tuple[int, int]:
        number = self.count
        self.count += 1
        name = name or f"{kind.lower()}{number}"
        data = " ".join(f'{key}="{value}"' for key, value in attributes.items())
        lines = [f'<layer id="{number}" name="{name}" type="{kind}" version="opset{opset}">']
        if data:
            lines.append(f"<data {data}/>")
        if inputs:
            lines.append(
                "<input>"
                + "".join(f'<port id="{i}" precision="UNSPECIFIED"/>' for i in range(len(inputs)))
                + "</input>"
            )
        if kind != "Result" and outputs:
            tensor_names = [*names, *[""] * outputs][:outputs]
            tensor_names[0] = tensor_names[0] or name
            ports = (
                f'<port id="{len(inputs) + i}" precision="UNSPECIFIED" names="{tensor_names[i]}"/>'
                for i in range(outputs)
            )
            lines.append(f"<output>{''.join(ports)}</output>")
        lines.append("</layer>")
        self.layers.append("\n".join(lines))
        for port, (layer, output) in enumerate(inputs):
            self.edges.append(f'<edge from-layer="{layer}" from-port="{output}" to-layer="{number}" to-port="{port}"/>')
        return number, len(inputs)

    def result(self, source: tuple[int, int], name: str | None = None) -> tuple[int, int]:
        return self.op("Result", source, name=name)

    def xml(self) -> str:
        head = ['<?xml version="1.0"?>', f'<net name="test" version="{self.version}">']
        body = ["<layers>", *self.layers, "</layers>", "<edges>", *self.edges, "</edges>", "<rt_info/>"]
        return "\n".join([*head, *body, "</net>"])

    def stated_xml(self) -> str:
        """The same with one element a line, and every port stating the type and shape that are inferred of it."""
        model = self.model()
        root = etree.fromstring(self.xml().encode())
        for element in root.iter("layer"):
            layer = model.layer(int(element.get("id", "")))
            for port, item in zip((*layer.inputs, *layer.outputs), element.iter("port"), strict=True):
                item.set("precision", _PRECISION.get(str(port.element_type), str(port.element_type).upper()))
                for dim in port.shape:
                    etree.SubElement(item, "dim").text = str(dim.length) if dim.is_static else "-1"
        for item in root.iter():
            item.text = item.text and item.text.strip()
            item.tail = None
        etree.indent(root)
        return '<?xml version="1.0"?>\n' + etree.tostring(root, encoding="unicode") + "\n"

    def model(self) -> ovir.Model:
        return ovir.read_model(self.xml().encode(), bytes(self.blob))

    def compiled(self, **options: Any) -> ovir.CompiledModel:
        return ovir.compile_model(self.model(), **options)

    def write(self, folder: Path, name: str = "model") -> Path:
        (folder / f"{name}.bin").write_bytes(self.blob)
        path = folder / f"{name}.xml"
        path.write_text(self.xml())
        return path


def output(handle: tuple[int, int], index: int) -> tuple[int, int]:
    """Another output of a layer."""
    return handle[0], handle[1] + index
