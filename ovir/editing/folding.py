"""Replaces what is known before any run by constants: all of it, or only the numbers of compressed weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from ovir.build.making import constant
from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.editing.constants import as_constant, put_constant, remove_unread
from ovir.editing.transaction import editing, with_types
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.graph.names import take_name
from ovir.inference.constant_layers import is_function
from ovir.ops.infrastructure import Const
from ovir.runtime.plan import known_tensors


def fold_constants(model: Model, decompress: bool) -> list[Layer]:
    """Replace all known tensors by constants; see ``Model.fold_constants``."""
    return _folded(model, lambda graph: known_tensors(graph, () if decompress else _decompressing(graph)))


def decompress(model: Model) -> list[Layer]:
    """Replace compressed weights by constants; see ``Model.decompress``."""

    def weights(graph: Model) -> dict[Port, Array]:
        layers = _decompressing(graph)
        known = known_tensors(graph) if layers else {}
        return {port: array for port, array in known.items() if port.layer in layers}

    return _folded(model, weights)


def _folded(model: Model, find: Callable[[Model], Mapping[Port, Array]]) -> list[Layer]:
    with_types(model)
    found = [(graph, _ends(find(graph))) for graph in model.graphs()]
    with editing(model):
        return [
            new
            for graph, ends in found
            for layer, values in ends
            if layer.owner is graph  # it may have become unread
            for new in _fold(graph, layer, values)
        ]


def _ends(known: Mapping[Port, Array]) -> list[tuple[Layer, dict[Port, Const]]]:
    """Return the layers whose outputs become constants: those that a layer reads which is not known itself."""
    layers = {port.layer for port in known}
    found: dict[Layer, dict[Port, Const]] = {}
    for port, array in known.items():
        is_read = any(reader.layer not in layers for reader in port.readers)
        if is_read and not isinstance(port.layer.operator, Const):
            operator = as_constant(port, array)
            if operator is not None:
                found.setdefault(port.layer, {})[port] = operator
    return list(found.items())


def _fold(graph: Model, layer: Layer, values: Mapping[Port, Const]) -> Iterator[Layer]:
    if len(layer.outputs) == 1:
        yield put_constant(layer, next(iter(values.values())))
        return
    names = {other.name for other in graph.layers}
    for port, operator in values.items():
        new = constant(graph.next_id, take_name(f"{layer.name}.{port.index}", names), operator)
        new.outputs[0].own_names, port.own_names = port.own_names, frozenset()
        graph.move_readers(port, graph.add_layer(new).outputs[0])
        yield new
    remove_unread(graph, layer.outputs)


def _decompressing(graph: Model) -> Collection[Layer]:
    """Return the layers of a model that compute with compressed weights before any run.

    Weights are compressed if a constant is converted to a wider floating-point type.
    """
    found: set[Layer] = set()
    fixed: set[Layer] = set()
    for layer in graph.layers:
        sources = [port.source.layer for port in layer.inputs if port.source is not None]
        if not is_function(layer) or not fixed.issuperset(sources):
            continue
        fixed.add(layer)
        converts = layer.operator is not None and layer.operator.converts
        if not found.isdisjoint(sources) or (converts and _widens(layer)):
            found.add(layer)
    return found


def _widens(layer: Layer) -> bool:
    before, after = layer.inputs[0].element_type, layer.outputs[0].element_type
    return after.is_real and before.bits < after.bits and before != boolean
