"""Layers with bodies and states whose part in the model is known before a run, replaced by what they stand for.

Each function returns the tensors that take the place of the outputs of a layer, with None for outputs that nothing
reads; or None if the layer must stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ovir.building.creation import new_constant
from ovir.core.tensor_types import TensorType
from ovir.editing.transaction import outermost, owner_of
from ovir.graph.copies import independent, restore
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, separate
from ovir.graph.names import take_name
from ovir.ops.base.bodies import OutputMap
from ovir.ops.control_flow import If, IterationBase, known_truth
from ovir.ops.infrastructure import Const
from ovir.ops.state import AssignBase, ReadValueBase

Tensors = Sequence[Port | None]


def known_branch(layer: Layer) -> Tensors | None:
    """Return the results of the branch of an If whose condition is known."""
    op = layer.operator
    if not isinstance(op, If) or (truth := known_truth(layer.inputs[0].type)) is None:
        return None
    key = "then" if truth else "else"
    if _has_state(layer.bodies[key]):
        return None
    wiring = op.wiring[key]
    results = _inline(layer, key, {})
    return _by_position(layer, {item.external: results[item.result] for item in wiring.outputs})


def known_iteration(layer: Layer) -> Tensors | None:
    """Return the results of the body of a Loop or TensorIterator that runs once; what stands for them if it never
    runs."""
    op, body = layer.operator, layer.bodies.get("body")
    if not isinstance(op, IterationBase) or body is None or _has_state(body):
        return None
    count = op.iterations([port.type for port in layer.inputs], [port.type for port in body.outputs])
    items = [item for item in op.wiring["body"].outputs if item.external >= 0 and layer.outputs[item.external].readers]
    if count == 0:
        return _without_iteration(layer, op, items)
    if count != 1 or any(item.axis is not None and not body.outputs[item.result].shape.rank for item in items):
        return None
    inputs = [item for item in op.wiring["body"].inputs if item.external >= 0]
    if any(i.axis is not None and layer.inputs[i.external].shape[i.axis] != i.part_size for i in inputs):
        return None  # the iteration gets a part of this input
    counters = {item.parameter for item in op.wiring["body"].inputs if item.purpose == "current_iteration"}
    counters -= {item.parameter for item in inputs}
    results = _inline(layer, "body", {index: _zeros(layer, body.inputs[index].type) for index in counters})
    return _by_position(layer, {item.external: results[item.result] for item in items})


def _without_iteration(layer: Layer, op: IterationBase, items: Sequence[OutputMap]) -> Tensors | None:
    """Return the values for the first iteration, and empty tensors for concatenations, if all shapes are known."""
    initial = op.initial([port.source for port in layer.inputs])
    types = {item.external: layer.outputs[item.external].type for item in items}
    if not all(i.result in initial if i.axis is None else _is_known(types[i.external]) for i in items):
        return None
    return _by_position(
        layer,
        {i.external: initial[i.result] if i.axis is None else _zeros(layer, types[i.external]) for i in items},
    )


def initial_state(layer: Layer) -> Tensors | None:
    """Return the initial value of a variable that nothing assigns."""
    op = layer.operator
    if not isinstance(op, ReadValueBase):
        return None
    assigns = [other.operator for other in outermost(owner_of(layer)).walk() if isinstance(other.operator, AssignBase)]
    if any(other.variable_id == op.variable_id for other in assigns):
        return None
    if layer.inputs:
        return [layer.inputs[0].source]
    return [_zeros(layer, layer.outputs[0].type)] if _is_known(layer.outputs[0].type) else None


def _has_state(body: LayerGraph) -> bool:
    return any(isinstance(layer.operator, (ReadValueBase, AssignBase)) for layer in body.walk())


def _by_position(layer: Layer, tensors: Mapping[int, Port | None]) -> Tensors:
    return [tensors.get(index) for index in range(len(layer.outputs))]


def _is_known(tensor: TensorType) -> bool:
    return tensor.shape.is_static and not tensor.element_type.is_dynamic


def _zeros(layer: Layer, tensor: TensorType) -> Port:
    """Return the tensor of a new constant beside a layer: zeros of a known type."""
    graph = owner_of(layer)
    name = take_name(f"{layer.name}/zeros", {other.name for other in graph.layers})
    operator = Const.of(np.zeros(tensor.shape.to_tuple(), tensor.element_type.to_dtype()), tensor.element_type)
    port = graph.add_layer(new_constant(graph.next_id, name, operator)).outputs[0]
    port.inferred = operator.infer()
    return port


def _inline(layer: Layer, key: str, fed: Mapping[int, Port]) -> list[Port]:
    """Copy the layers of a body to the model around it, where they keep their keys; return the tensors of its results.

    ``fed`` has the tensors that stand for parameters which no input of the layer feeds.
    """
    graph, body = owner_of(layer), layer.bodies[key]
    names = {other.name for other in graph.layers}
    tensor_names = {name for other in graph.layers for port in other.outputs for name in port.own_names}
    tensors = {body.inputs[index]: port for index, port in fed.items()}
    for item in layer.operator.wiring[key].inputs if layer.operator is not None else ():
        source = layer.inputs[item.external].source if item.external >= 0 else None
        if source is not None:
            tensors[body.inputs[item.parameter]] = source
    old = [other for other in body.layers if other.type not in ("Parameter", "Result") and not other.is_dead]
    copies = restore(independent(old, {}))
    for port in (port for new in copies for port in new.inputs):
        separate(port)
    for before, new in zip(old, copies, strict=True):
        new.id = graph.next_id
        new.name = take_name(f"{layer.name}/{key}/{before.name}", names)
        for a, b in zip(before.outputs, new.outputs, strict=True):
            b.own_names = frozenset(take_name(name, tensor_names) for name in sorted(a.own_names))
            tensors[a] = b
        graph.add_layer(new, [tensors[port.source] for port in before.inputs if port.source is not None])
    return [tensors[port.source] for port in body.outputs if port.source is not None]
