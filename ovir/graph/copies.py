"""Copies of layers, and layers as flat data for copies and pickles of a model.

The ports of a chain of layers refer to each other, thousands of levels deep. Flat data stores a connection as a
position instead, so that neither ``pickle`` nor ``copy.deepcopy`` recurses along the chain.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port, join
from ovir.graph.rt_info import RtInfo


class FlatPort(NamedTuple):
    """A port without its layer and connections."""

    id: int
    declared_shape: PartialShape | None
    declared_element_type: ElementType | None
    names: frozenset[str]
    line: int | None
    rt_info: RtInfo
    inferred: TensorType | None


class FlatEdge(NamedTuple):
    """The source of an input port."""

    layer: int
    """The position of the source's layer."""
    output: int
    line: int | None


class FlatLayer(NamedTuple):
    """A layer with its ports; ``sources`` has one entry per input, None for one without a source among the layers."""

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, Any]
    operator: Any
    bodies: dict[str, Any]
    place: tuple[int | None, int | None, str | None, str]
    rt_info: Any
    inputs: list[FlatPort]
    outputs: list[FlatPort]
    sources: list[FlatEdge | None]


def flatten(layers: Sequence[Layer]) -> list[FlatLayer]:
    """Return the layers as flat data, which refers to their attributes, operators and bodies without copying them."""
    position = {layer: i for i, layer in enumerate(layers)}

    def edge(port: Port) -> FlatEdge | None:
        source = port.source
        if source is None or source.layer not in position:
            return None
        return FlatEdge(position[source.layer], source.index, port.edge_line)

    return [
        FlatLayer(
            *(layer.id, layer.name, layer.type, layer.version, layer.attributes, layer.operator, layer.bodies),
            place=(layer.line, layer.data_line, layer.file, layer.scope),
            rt_info=layer.rt_info_source,
            inputs=[_flat_port(port) for port in layer.inputs],
            outputs=[_flat_port(port) for port in layer.outputs],
            sources=[edge(port) for port in layer.inputs],
        )
        for layer in layers
    ]


def _flat_port(port: Port) -> FlatPort:
    declared = port.declared_shape, port.declared_element_type
    return FlatPort(port.id, *declared, port.own_names, port.line, port.rt_info, port.inferred)


def restore(flat: Sequence[FlatLayer]) -> list[Layer]:
    """Return layers made from flat data, with their ports joined."""
    layers = [_layer(item) for item in flat]
    for layer, item in zip(layers, flat, strict=True):
        for port, edge in zip(layer.inputs, item.sources, strict=True):
            if edge is not None:
                join(layers[edge.layer].outputs[edge.output], port, edge.line)
    return layers


def _layer(item: FlatLayer) -> Layer:
    layer = Layer(item.id, item.name, item.type, item.version, item.attributes, item.operator, bodies=item.bodies)
    layer.line, layer.data_line, layer.file, layer.scope = item.place
    layer.rt_info_source = item.rt_info
    for is_output, ports, target in ((False, item.inputs, layer.inputs), (True, item.outputs, layer.outputs)):
        for index, port in enumerate(ports):
            number, shape, element_type, names, line, info, inferred = port
            target.append(Port(layer, index, number, is_output, shape, element_type, names, line, info, inferred))
    return layer


def independent(layers: Sequence[Layer], memo: dict[int, Any]) -> list[FlatLayer]:
    """Return copies of layers, with their bodies, that share only the data of weights with them."""
    return [
        layer._replace(
            attributes=copy.deepcopy(layer.attributes, memo),
            operator=copy.deepcopy(layer.operator, memo),
            bodies={key: copy.deepcopy(body, memo) for key, body in layer.bodies.items()},
        )
        for layer in flatten(layers)
    ]


def copied(layers: Sequence[Layer]) -> dict[Layer, Layer]:
    """Return an independent copy of each layer; the copies are connected as the layers are among themselves."""
    return dict(zip(layers, restore(independent(layers, {})), strict=True))


def picklable(layers: Sequence[Layer]) -> list[FlatLayer]:
    """Return layers as flat data without known values and without functions, which cannot be pickled."""
    return [
        layer._replace(
            rt_info=origin.rt_info,
            inputs=[_without_value(port) for port in layer.inputs],
            outputs=[_without_value(port) for port in layer.outputs],
        )
        for layer, origin in zip(flatten(layers), layers, strict=True)
    ]


def _without_value(port: FlatPort) -> FlatPort:
    """Return the port without its known value, which may refer to large data."""
    if port.inferred is None or port.inferred.value is None:
        return port
    return port._replace(inferred=TensorType(port.inferred.element_type, port.inferred.shape))
