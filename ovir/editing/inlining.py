"""Layers with bodies and states whose effect is known before a run, replaced by equivalent layers.

Each function returns the tensors that take the place of outputs of a layer that are read, by their positions; or None
if the layer must stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ovir.building.creation import new_constant
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.diagnostic import in_place_of
from ovir.editing.transaction import outermost, owner_of
from ovir.graph.copies import copied
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.names import own_tensor_names, take_name
from ovir.ops.base.bodies import BodyMap, OutputMap
from ovir.ops.control_flow import If, IterationBase, known_truth
from ovir.ops.infrastructure import Const
from ovir.ops.state import AssignBase, ReadValueBase, StateBase

Tensors = Mapping[int, Port | None]


def known_branch(layer: Layer) -> Tensors | None:
    """Return the results of the branch of an If whose condition is known."""
    op = layer.operator
    if not isinstance(op, If) or (truth := known_truth(layer.inputs[0].type)) is None:
        return None
    key = "then" if truth else "else"
    return None if _has_state(layer.bodies[key]) else _inline(layer, op.wiring[key], key, {})


def known_iteration(layer: Layer) -> Tensors | None:
    """Return the results of the body of a Loop or TensorIterator that runs once; their replacements if it
    never runs."""
    op, body = layer.operator, layer.bodies.get("body")
    if not isinstance(op, IterationBase) or body is None or _has_state(body):
        return None
    count = op.iterations([port.type for port in layer.inputs], [port.type for port in body.outputs])
    wiring = op.wiring["body"]
    items = [item for item in wiring.outputs if item.external >= 0 and layer.outputs[item.external].readers]
    if count == 0:
        return _without_iteration(layer, op, items)
    if count != 1 or any(item.axis is not None and not body.outputs[item.result].shape.rank for item in items):
        return None
    fed = [item for item in wiring.inputs if item.external >= 0]
    if any(i.axis is not None and layer.inputs[i.external].shape[i.axis] != i.part_size for i in fed):
        return None  # the iteration gets a part of this input
    counters = {item.parameter for item in wiring.inputs if item.purpose == "current_iteration"}
    counters -= {item.parameter for item in fed}
    return _inline(layer, wiring, "body", {index: _zeros(layer, body.inputs[index].type) for index in counters})


def _without_iteration(layer: Layer, op: IterationBase, items: Sequence[OutputMap]) -> Tensors | None:
    """Return the values for the first iteration, and empty tensors for concatenations, if all shapes are known."""
    initial = op.initial([port.source for port in layer.inputs])
    types = [port.type for port in layer.outputs]
    if not all(i.result in initial if i.axis is None else _is_known(types[i.external]) for i in items):
        return None
    return {i.external: initial[i.result] if i.axis is None else _zeros(layer, types[i.external]) for i in items}


def initial_state(layer: Layer) -> Tensors | None:
    """Return the initial value of a variable that nothing assigns."""
    op = layer.operator
    if not isinstance(op, ReadValueBase):
        return None
    others = (other.operator for other in outermost(owner_of(layer)).walk())
    if any(isinstance(other, AssignBase) and other.variable_id == op.variable_id for other in others):
        return None
    if layer.inputs:
        return {0: layer.inputs[0].source}
    return {0: _zeros(layer, layer.outputs[0].type)} if _is_known(layer.outputs[0].type) else None


def _has_state(body: LayerGraph) -> bool:
    return any(isinstance(layer.operator, StateBase) for layer in body.walk())


def _is_known(tensor: TensorType) -> bool:
    return tensor.shape.is_static and not tensor.element_type.is_dynamic


def _zeros(layer: Layer, tensor: TensorType) -> Port:
    """Return the tensor of a new constant beside a layer: zeros of a known type."""
    graph = owner_of(layer)
    name = take_name(f"{layer.name}/zeros", {other.name for other in graph.layers})
    operator = Const.of(np.zeros(tensor.shape.to_tuple(), tensor.element_type.to_dtype()), tensor.element_type)
    with in_place_of(layer.place):
        port = graph.add_layer(new_constant(graph.next_id, name, operator)).outputs[0]
    port.inferred = operator.infer()
    return port


def _inline(layer: Layer, wiring: BodyMap, key: str, fed: Mapping[int, Port]) -> Tensors:
    """Copy the layers of a body to the model around it, where they keep their keys; return the new outputs.

    ``fed`` has the tensors that stand for parameters which no input of the layer feeds.
    """
    graph, body = owner_of(layer), layer.bodies[key]
    names = {other.name for other in graph.layers}
    tensor_names = own_tensor_names(graph.layers)
    tensors = {body.inputs[index]: port for index, port in fed.items()}
    for item in wiring.inputs:
        if item.external >= 0 and (source := layer.inputs[item.external].source) is not None:
            tensors[body.inputs[item.parameter]] = source
    inside = [other for other in body.layers if other.type not in ("Parameter", "Result") and not other.is_dead]
    for before in inside:
        (new,) = copied([before]).values()
        new.id, new.name = graph.next_id, take_name(f"{layer.name}/{key}/{before.name}", names)
        for old, port in zip(before.outputs, new.outputs, strict=True):
            port.own_names = frozenset(take_name(name, tensor_names) for name in sorted(old.own_names))
            tensors[old] = port
        graph.add_layer(new, [tensors[port.source] for port in before.inputs if port.source is not None])
    results = [port.source and tensors[port.source] for port in body.outputs]
    return {item.external: results[item.result] for item in wiring.outputs if item.external >= 0}
