"""Joins two models to one: outputs of the first feed inputs of the second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TypeVar

from ovir.diagnostics.errors import InputError
from ovir.editing.keys import TensorKey, find_tensor, refuse
from ovir.editing.transaction import infer_edited
from ovir.graph.connections import set_scopes
from ovir.graph.copies import copied
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, join, separate
from ovir.graph.names import own_tensor_names, take_name
from ovir.graph.order import walk
from ovir.ir.legacy import upgraded
from ovir.ops.state import StateBase

G = TypeVar("G", bound=LayerGraph)

Connections = Mapping[TensorKey, "str | int | Port | Sequence[str | int | Port]"]


def join_models(first: G, second: LayerGraph, connections: Connections) -> G:
    """Return a model that runs ``first`` and then ``second``; see ``ovir.join``."""
    if not isinstance(connections, Mapping) or not connections:
        raise InputError.usage(f"expected a mapping from tensors to inputs, as {{'out': 'in'}}, got {connections!r}")
    pairs = _pairs(first, second, connections)
    first, second = upgraded(first), upgraded(second)
    ahead, behind = copied(first.file_order), copied(second.file_order)
    _make_distinct(ahead.values(), list(behind.values()))
    fed: dict[Layer, Port] = {}
    for key, inputs in pairs:
        tensor = find_tensor(first, key)
        for index in inputs:
            target = second.inputs[index]
            _require_fit(tensor, target)
            if target.layer in fed:
                refuse(f"input '{target.any_name}' is fed twice", target.layer)
            fed[target.layer] = ahead[tensor.layer].outputs[tensor.index]
    replaced = {behind[layer].outputs[0]: source for layer, source in fed.items()}
    for layer in behind.values():
        for port in layer.inputs:
            if port.source in replaced:
                source = replaced[port.source]
                separate(port)
                join(source, port)
    used = set(fed.values())
    layers = [
        *(new for new in ahead.values() if not (new.type == "Result" and new.inputs[0].source in used)),
        *(new for old, new in behind.items() if old not in fed),
    ]
    for layer in set(ahead.values()) - set(layers):
        separate(layer.inputs[0])
    joined = type(first).of_layers(layers, name=f"{first.name}+{second.name}", rt_info=first.rt_info)
    infer_edited(joined)
    return joined


def _pairs(first: LayerGraph, second: LayerGraph, connections: Connections) -> list[tuple[TensorKey, list[int]]]:
    """Return the connections with the positions of inputs, which do not change where a model is upgraded."""
    found: list[tuple[TensorKey, list[int]]] = []
    for key, given in connections.items():
        targets = [given] if isinstance(given, (str, int, Port)) else given
        tensor = find_tensor(first, key)
        if tensor.layer.owner is not first:
            refuse("a tensor of a body cannot feed another model", tensor.layer)
        found.append(((tensor.layer.name, tensor.index), [second.input_index(target) for target in targets]))
    return found


def _require_fit(tensor: Port, target: Port) -> None:
    """Raise InputError unless a tensor of the first model can be an input of the second one."""
    if tensor.element_type.merged_with(target.element_type) is None:
        hint = f"second.preprocess({target.any_name!r}, element_type='{tensor.element_type}') converts the input"
    elif not tensor.shape.compatible(target.shape):
        hint = "reshape one of the models, or insert a layer that changes the shape"
    else:
        return
    message = f"output '{tensor.any_name}' {tensor.type} cannot feed input '{target.any_name}' {target.type}"
    raise InputError.usage(message, target.layer.place, hint=hint)


def _make_distinct(ahead: Iterable[Layer], behind: Sequence[Layer]) -> None:
    """Give the layers of the second model ids and names that no layer, tensor or variable of the first one has."""
    ahead = list(ahead)
    names = _others({layer.name for layer in ahead}, {layer.name for layer in behind})
    tensors = _others(own_tensor_names(ahead), own_tensor_names(behind))
    variables = _others(_variables(ahead), _variables(behind))
    for number, layer in enumerate(behind, max((layer.id for layer in ahead), default=-1) + 1):
        layer.id = number
        layer.name = names.get(layer.name, layer.name)
        set_scopes(layer)
        for port in (*layer.inputs, *layer.outputs):
            port.own_names = frozenset(tensors.get(name, name) for name in port.own_names)
    for layer in walk(behind):
        op = layer.operator
        if isinstance(op, StateBase) and op.variable_id in variables:
            layer.operator = copy(op)
            layer.operator.variable_id = variables[op.variable_id]
            layer.attributes = {**layer.attributes, "variable_id": layer.operator.variable_id}


def _others(theirs: set[str], own: set[str]) -> dict[str, str]:
    """Return a new name for each of the own names that is also one of theirs."""
    taken = theirs | own
    return {name: take_name(name, taken) for name in sorted(own & theirs)}


def _variables(layers: Iterable[Layer]) -> set[str]:
    operators = (layer.operator for layer in walk(layers))
    return {op.variable_id for op in operators if isinstance(op, StateBase)}
