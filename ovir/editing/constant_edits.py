"""Constants: with other data, or in place of values known before any run, such as compressed weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ovir.building.creation import new_constant, type_attributes
from ovir.building.values import as_array, is_plain
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean, string
from ovir.diagnostics.diagnostic import in_place_of
from ovir.diagnostics.wording import plural
from ovir.editing.keys import LayerKey, find_layer, refuse
from ovir.editing.proof import ProvenEdit, proven
from ovir.editing.transaction import editing, owner_of, with_types
from ovir.graph.constant_layers import constant_layers, is_function
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, ReadOnlyDict, layers_before, sources_of
from ovir.graph.names import take_name
from ovir.ops.infrastructure import Const
from ovir.runtime.inputs import fitted
from ovir.runtime.planning import known_tensors

_UNFIT = ValueError, TypeError, OverflowError
"""What the conversion of an argument raises for values that the element type lacks."""


def set_constant(model: LayerGraph, layer: LayerKey, array: ArrayLike) -> Layer:
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
        return Const.of(*_array_like(value, layer.outputs[0].element_type if layer.outputs else None))
    except _UNFIT as error:
        hint = "an array of NumPy sets another element type" if is_plain(value) and _has_type(value) else None
        refuse(f"the constant cannot be set: {error}", layer, hint)


def _array_like(value: Any, like: ElementType | None) -> tuple[Array, ElementType]:
    """Return an array that takes the place of one of element type ``like``, and its element type.

    Numbers, lists and arrays of the dtype that stands for ``like`` in memory take this type; strings and other arrays
    keep their own. ValueError as for ``as_array``.
    """
    if like is None or like.is_dynamic or like == string or _has_string(value):
        return as_array(value)
    if is_plain(value) or isinstance(value, float):
        return as_array(value, like)
    array = np.asarray(value)
    return as_array(array, like if array.dtype == like.to_dtype() else None)


def _has_string(value: Any) -> bool:
    return any(map(_has_string, value)) if isinstance(value, (list, tuple)) else isinstance(value, (str, bytes))


def _has_type(value: ArrayLike) -> bool:
    """Return whether there is an element type for the values."""
    try:
        as_array(value)
    except _UNFIT:
        return False
    return True


def fix_input(model: LayerGraph, key: str | int | Port, value: ArrayLike, verify: bool) -> ProvenEdit:
    """Make a constant of an input; see ``Model.fix_input``."""
    port = model.input(key)
    if model.holder is not None:
        refuse("an input of a body cannot be fixed: the layer around it feeds it", port.layer)
    name, kind = port.any_name, port.element_type
    if not kind.is_dynamic and kind != string and (is_plain(value) or isinstance(value, float)):
        try:
            value = as_array(value, kind)[0]
        except _UNFIT as error:
            refuse(f"input '{name}' cannot be fixed: {error}", port.layer)
    array = fitted(f"input '{name}'", value, port.type, port.layer)
    with proven(model, verify) as edit:
        edit.relation["given"] = {name: array}
        edit.layers = [put_constant(port.layer, Const.of(array, None if kind.is_dynamic else kind))]
    return edit


def _refuse_layer(layer: Layer) -> NoReturn:
    if layer.type == "Parameter" and layer.scope == "":
        refuse("the layer is an input of the model", layer, "fix_input (--fix-input NAME=VALUE) makes a constant of it")
    hint = "name a Const, or a layer with one output that is computed from constants alone"
    if constant_layers(layer) is not None:
        refuse(f"an array cannot replace this layer, which has {plural(len(layer.outputs), 'output')}", layer, hint)
    refuse("the layer is not a constant: it depends on inputs or the state of the model", layer, hint)


def set_data(layer: Layer, operator: Const) -> None:
    """Give a Const another operator, and remove the declarations of the file for the old one."""
    owner_of(layer).needs_inference = True
    layer.operator = operator
    layer.attributes = ReadOnlyDict(type_attributes(operator))
    for port in (*layer.outputs, *(reader for output in layer.outputs for reader in output.readers)):
        port.declared_shape = port.declared_element_type = None


def put_constant(layer: Layer, operator: Const) -> Layer:
    """Replace a layer with one output by a Const of the same name; remove the layers that only fed it."""
    graph = owner_of(layer)
    sources = sources_of(layer)
    with in_place_of(layer.place):
        new = new_constant(layer.id, layer.name, operator)
    new.outputs[0].own_names = layer.outputs[0].own_names
    new.outputs[0].rt_info = layer.outputs[0].rt_info
    graph.replace_layer(layer, new, [])
    remove_unread(graph, sources)
    return new


def remove_unread(graph: LayerGraph, ports: Collection[Port]) -> None:
    """Remove the layers of these ports, and then those before them, if they are pure and nothing reads them."""
    pending = [port.layer for port in ports]
    while pending:
        layer = pending.pop()
        is_needed = layer.operator is None or not layer.operator.pure or any(port.readers for port in layer.outputs)
        if layer.owner is not graph or is_needed:
            continue
        sources = sources_of(layer)
        graph.remove_layer(layer)
        pending += [port.layer for port in sources]


def as_constant(port: Port, array: Array) -> Const | None:
    """Return the Const for the known value of a tensor; None if the array has another type than inference expects."""
    if port.element_type.is_dynamic or port.element_type.to_dtype() != array.dtype:
        return None
    return Const.of(array, port.element_type, copy=False)


# --------------------------------------------------------------------------- folding


def fold_constants(model: LayerGraph, decompress: bool) -> list[Layer]:
    """Replace all known tensors by constants; see ``Model.fold_constants``."""
    return _folded(model, lambda graph: known_tensors(graph, () if decompress else _decompressing(graph)))


def decompress(model: LayerGraph) -> list[Layer]:
    """Replace compressed weights by constants; see ``Model.decompress``."""

    def weights(graph: LayerGraph) -> dict[Port, Array]:
        layers = _decompressing(graph)
        known = known_tensors(graph) if layers else {}
        return {port: array for port, array in known.items() if port.layer in layers}

    return _folded(model, weights)


def _folded(model: LayerGraph, find: Callable[[LayerGraph], Mapping[Port, Array]]) -> list[Layer]:
    with_types(model)
    ends_of_graphs = [(graph, _ends(find(graph))) for graph in model.graphs()]
    with editing(model):
        return [
            new
            for graph, ends in ends_of_graphs
            for layer, values in ends
            if layer.owner is graph  # it may have become unread
            for new in _fold(graph, layer, values)
        ]


def _ends(known: Mapping[Port, Array]) -> list[tuple[Layer, dict[Port, Const]]]:
    """Return the layers whose outputs become constants: known layers with a reader that is not known."""
    layers = {port.layer for port in known}
    constants: dict[Layer, dict[Port, Const]] = {}
    for port, array in known.items():
        is_read = any(reader.layer not in layers for reader in port.readers)
        if is_read and not isinstance(port.layer.operator, Const):
            operator = as_constant(port, array)
            if operator is not None:
                constants.setdefault(port.layer, {})[port] = operator
    return list(constants.items())


def _fold(graph: LayerGraph, layer: Layer, values: Mapping[Port, Const]) -> Iterator[Layer]:
    if len(layer.outputs) == 1:
        yield put_constant(layer, next(iter(values.values())))
        return
    names = {other.name for other in graph.layers}
    for port, operator in values.items():
        with in_place_of(layer.place):
            new = new_constant(graph.next_id, take_name(f"{layer.name}.{port.index}", names), operator)
        new.outputs[0].own_names, port.own_names = port.own_names, frozenset()
        graph.move_readers(port, graph.add_layer(new).outputs[0])
        yield new
    remove_unread(graph, layer.outputs)


def _decompressing(graph: LayerGraph) -> Collection[Layer]:
    """Return the layers of a model that compute with compressed weights before any run.

    Weights are compressed if a constant is converted to a wider floating-point type.
    """
    found: set[Layer] = set()
    fixed: set[Layer] = set()
    for layer in graph.layers:
        sources = layers_before(layer)
        if not is_function(layer) or not fixed.issuperset(sources):
            continue
        fixed.add(layer)
        widens = False
        if layer.operator is not None and layer.operator.converts:
            before, after = layer.inputs[0].element_type, layer.outputs[0].element_type
            widens = after.is_real and before.bits < after.bits and before != boolean
        if widens or not found.isdisjoint(sources):
            found.add(layer)
    return found
