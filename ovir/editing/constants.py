"""Constants with other data."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from numpy.typing import ArrayLike

from ovir.build.making import constant, constant_attributes
from ovir.build.values import as_array_like
from ovir.core.arrays import Array
from ovir.diagnostics.text import plural
from ovir.editing.keys import find_layer, refuse
from ovir.editing.transaction import editing, owner_of
from ovir.graph.keys import LayerKey
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.graph.read_only import ReadOnlyDict
from ovir.inference.constant_layers import constant_layers
from ovir.ops.infrastructure import Const


def set_constant(model: Model, layer: LayerKey, array: ArrayLike) -> Layer:
    """Give a constant other data; see ``Model.set_constant``."""
    found = find_layer(model, layer)
    operator = _constant_of(found, array)
    with editing(model):
        if isinstance(found.operator, Const):
            set_data(found, operator)
            return found
        if len(found.outputs) != 1 or constant_layers(found) is None:
            _refuse_layer(found)
        return put_constant(found, operator)


def _constant_of(layer: Layer, value: ArrayLike) -> Const:
    try:
        return Const.of(*as_array_like(value, layer.outputs[0].element_type if layer.outputs else None))
    except (ValueError, TypeError, OverflowError) as error:
        refuse(f"the constant cannot be set: {error}", layer, "an array of NumPy sets another element type")


def _refuse_layer(layer: Layer) -> NoReturn:
    hint = "name a Const, or a layer with one output that is computed from constants alone"
    if constant_layers(layer) is not None:
        refuse(f"an array cannot replace this layer, which has {plural(len(layer.outputs), 'output')}", layer, hint)
    refuse("the layer is no constant: it depends on inputs or the state of the model", layer, hint)


def set_data(layer: Layer, operator: Const) -> None:
    """Give a Const another operator; what the file declares of the old one is removed."""
    owner_of(layer).needs_inference = True
    layer.operator = operator
    layer.attributes = ReadOnlyDict(constant_attributes(operator))
    for port in (*layer.outputs, *(reader for output in layer.outputs for reader in output.readers)):
        port.declared_shape = port.declared_element_type = None


def put_constant(layer: Layer, operator: Const) -> Layer:
    """Replace a layer with one output by a Const of the same name; remove the layers that only fed it."""
    graph = owner_of(layer)
    sources = [port.source for port in layer.inputs if port.source is not None]
    new = constant(layer.id, layer.name, operator)
    new.outputs[0].own_names = layer.outputs[0].own_names
    new.outputs[0].rt_info = layer.outputs[0].rt_info
    graph.replace_layer(layer, new, [])
    remove_unread(graph, sources)
    return new


def remove_unread(graph: Model, ports: Collection[Port]) -> None:
    """Remove the layers of these ports, and then those before them, if they are pure and nothing reads them."""
    pending = [port.layer for port in ports]
    while pending:
        layer = pending.pop()
        is_needed = layer.operator is None or not layer.operator.pure or any(port.readers for port in layer.outputs)
        if layer.owner is not graph or is_needed:
            continue
        sources = [port.source for port in layer.inputs if port.source is not None]
        graph.remove_layer(layer)
        pending += [port.layer for port in sources]


def as_constant(port: Port, array: Array) -> Const | None:
    """Return the Const for the known value of a tensor; None if the array has another type than inference expects."""
    if port.element_type.is_dynamic or port.element_type.to_dtype() != array.dtype:
        return None
    return Const.of(array, port.element_type, copy=False)
