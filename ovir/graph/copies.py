"""Copies of layers, for copies and pickles of a model.

The ports of a chain of layers refer to each other, thousands of levels deep. Detached layers have their connections
beside them, as positions, so that neither ``pickle`` nor ``copy.deepcopy`` recurses along the chain.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ovir.core.tensor_types import TensorType
from ovir.graph.layers import Layer, Port, join


class Detached(NamedTuple):
    """Layers in no model, and the connections among them that their ports do not have yet."""

    layers: list[Layer]
    edges: list[tuple[int, int, int, int, int | None]]
    """The positions of a layer and its output, of a layer and its input that reads it, and the line of the edge."""

    def joined(self) -> list[Layer]:
        """Connect the layers, and return them."""
        for source, output, target, index, line in self.edges:
            join(self.layers[source].outputs[output], self.layers[target].inputs[index], line)
        return self.layers


def detached(layers: Sequence[Layer]) -> Detached:
    """Return copies of layers that share attributes, operators and bodies with them."""
    return Detached([_copy(layer) for layer in layers], list(_edges(layers)))


def _edges(layers: Sequence[Layer]) -> Iterator[tuple[int, int, int, int, int | None]]:
    position = {layer: i for i, layer in enumerate(layers)}
    for target, layer in enumerate(layers):
        for port in layer.inputs:
            if port.source is not None and (source := position.get(port.source.layer)) is not None:
                yield source, port.source.index, target, port.index, port.edge_line


def _copy(layer: Layer) -> Layer:
    new = Layer(layer.id, layer.name, layer.type, layer.version, layer.attributes, layer.operator, bodies=layer.bodies)
    new.line, new.data_line, new.file, new.scope = layer.line, layer.data_line, layer.file, layer.scope
    new.rt_info_source = layer.rt_info_source
    for ports, target in ((layer.inputs, new.inputs), (layer.outputs, new.outputs)):
        for port in ports:
            place = new, port.index, port.id, port.is_output
            declared = port.declared_shape, port.declared_element_type
            target.append(Port(*place, *declared, port.own_names, port.line, port.rt_info, port.inferred))
    return new


def independent(layers: Sequence[Layer], memo: dict[int, Any]) -> Detached:
    """Return copies of layers, with their bodies, that share only the data of weights with them."""
    found = detached(layers)
    for layer in found.layers:
        layer.attributes = copy.deepcopy(layer.attributes, memo)
        layer.operator = copy.deepcopy(layer.operator, memo)
        layer.bodies = {key: copy.deepcopy(body, memo) for key, body in layer.bodies.items()}
    return found


def copied(layers: Sequence[Layer]) -> dict[Layer, Layer]:
    """Return an independent copy of each layer; the copies are connected as the layers are among themselves."""
    return dict(zip(layers, independent(layers, {}).joined(), strict=True))


def picklable(layers: Sequence[Layer]) -> Detached:
    """Return detached layers without known values, which may refer to large data, and without functions, which cannot
    be pickled."""
    found = detached(layers)
    for layer, origin in zip(found.layers, layers, strict=True):
        layer.rt_info_source = origin.rt_info
        for port in (*layer.inputs, *layer.outputs):
            if port.inferred is not None and port.inferred.value is not None:
                port.inferred = TensorType(port.inferred.element_type, port.inferred.shape)
    return found
