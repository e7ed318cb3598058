"""Layers that have been read, as patterns for others of the same form (see ``ovir.ir.texts``)."""

from __future__ import annotations

from copy import copy

from ovir.graph.layers import Layer, Port
from ovir.ir.rt_info import deferred_rt_info
from ovir.ir.texts import LayerText
from ovir.ops.base.attributes import split_names


class Form:
    """What all layers of one form have in common."""

    def __init__(self, layer: Layer) -> None:
        """Of a layer that has just been read, and in which nothing was found."""
        assert layer.line is not None
        assert layer.operator is not None
        self.type = layer.type
        self.version = layer.version
        self.attributes = dict(layer.attributes)
        self.operator = layer.operator
        self.data_line = None if layer.data_line is None else layer.data_line - layer.line
        self.inputs, self.outputs = (
            [
                (p.index, p.id, p.declared_shape, p.declared_element_type, p.names, (p.line or 0) - layer.line)
                for p in ports
            ]
            for ports in (layer.inputs, layer.outputs)
        )

    @classmethod
    def of(cls, layer: Layer, text: LayerText) -> Form | None:
        """The form of a layer that has just been read; None where its text does not say all of it."""
        named = [port.names for port in layer.outputs if port.names]
        if (
            layer.operator is None
            or layer.line != text.line
            or (layer.rt_info_source is None) != (text.rt_info is None)
        ):
            return None
        if named != [_names(names) for names in text.names]:
            return None
        if text.offset is not None and text.offset != layer.attributes["offset"]:
            return None
        ports = (*layer.inputs, *layer.outputs)
        return None if any(port.rt_info is not None or port.line is None for port in ports) else cls(layer)

    def layer(self, text: LayerText, file: str | None, scope: str) -> Layer:
        """The layer that the text stands for; of a constant, without its data."""
        line = text.line
        op = copy(self.operator) if text.offset is not None else self.operator
        attributes = self.attributes.copy()
        if text.offset is not None:
            attributes["offset"] = vars(op)["offset"] = text.offset
        data_line = None if self.data_line is None else line + self.data_line
        inputs: list[Port] = []
        outputs: list[Port] = []
        layer = Layer(
            *(text.id, text.name, self.type, self.version, attributes, op, inputs, outputs, {}),
            *(line, data_line, file, scope, None if text.rt_info is None else deferred_rt_info(text.rt_info)),
        )
        for index, number, shape, element_type, names, below in self.inputs:
            inputs.append(Port(layer, index, number, False, shape, element_type, names, line + below))
        named = iter(text.names)
        for index, number, shape, element_type, names, below in self.outputs:
            names = _names(next(named)) if names else names
            outputs.append(Port(layer, index, number, True, shape, element_type, names, line + below))
        return layer


def _names(text: str) -> frozenset[str]:
    is_one = text and "," not in text and "\\" not in text
    return frozenset((text,) if is_one else split_names(text))
