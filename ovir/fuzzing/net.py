"""Builds models as the text of an .xml, layer by layer, legal or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovir.core.element_types import ElementType
from ovir.model import Model, read_model

End = tuple[int, int]
"""An output, by the number of its layer and that of its port."""


@dataclass
class Net:
    """Builds a model layer by layer. ``net.op("Add", a, b)`` returns a handle on the first output."""

    version: int = 11
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    blob: bytearray = field(default_factory=bytearray)
    count: int = 0
    sources: list[End] = field(default_factory=list)
    """The outputs that layers read."""

    def parameter(self, name: str, shape: str, element_type: str = "f32") -> End:
        return self.op("Parameter", name=name, shape=shape, element_type=element_type)

    def const(self, value: Any, element_type: str | None = None, name: str | None = None) -> End:
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
        *inputs: End,
        name: str | None = None,
        opset: int = 1,
        outputs: int = 1,
        names: Sequence[str] = (),
        inner: str = "",
        **attributes: Any,
    ) -> End:
        """Add a layer; ``inner`` is the text of its bodies and port maps."""
        number = self.count
        self.count += 1
        name = name or f"{kind.lower()}{number}"
        data = " ".join(f'{key}="{value}"' for key, value in attributes.items())
        lines = [f'<layer id="{number}" name="{name}" type="{kind}" version="opset{opset}">']
        if data:
            lines.append(f"<data {data}/>")
        if inputs:
            ports = (f'<port id="{i}" precision="UNSPECIFIED"/>' for i in range(len(inputs)))
            lines.append(f"<input>{''.join(ports)}</input>")
        if kind != "Result" and outputs:
            tensor_names = [*names, *[""] * outputs][:outputs]
            tensor_names[0] = tensor_names[0] or name
            ports = (
                f'<port id="{len(inputs) + i}" precision="UNSPECIFIED" names="{tensor_names[i]}"/>'
                for i in range(outputs)
            )
            lines.append(f"<output>{''.join(ports)}</output>")
        lines.append(f"{inner}</layer>")
        self.layers.append("\n".join(lines))
        self.sources += inputs
        for port, (layer, output) in enumerate(inputs):
            self.edges.append(f'<edge from-layer="{layer}" from-port="{output}" to-layer="{number}" to-port="{port}"/>')
        return number, len(inputs)

    def result(self, source: End, name: str | None = None) -> End:
        return self.op("Result", source, name=name)

    def graph(self) -> str:
        """Return the layers and edges, as bodies have them."""
        return "\n".join(["<layers>", *self.layers, "</layers>", "<edges>", *self.edges, "</edges>"])

    def xml(self) -> str:
        head = ['<?xml version="1.0"?>', f'<net name="test" version="{self.version}">']
        return "\n".join([*head, self.graph(), "<rt_info/>", "</net>"])

    def model(self) -> Model:
        return read_model(self.xml().encode(), bytes(self.blob))


def output(handle: End, index: int) -> End:
    """Return another output of a layer."""
    return handle[0], handle[1] + index
