"""States as pairs of inputs and outputs, and back: one call reads ``past`` and returns ``present``.

The names of a pair are those that OpenVINO has joined to the id of the variable, as in
``past_key_values.0.keypresent.0.key``, or else the id itself and the id with ``/next`` after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ovir import opset8 as ops
from ovir.building.creation import create_layer, new_operation, new_parameter, new_result
from ovir.core.element_types import nf4, string
from ovir.diagnostics.diagnostic import in_place_of
from ovir.diagnostics.wording import plural
from ovir.editing.constant_edits import remove_unread
from ovir.editing.keys import refuse
from ovir.editing.layer_edits import NewLayers, feeds_result, remove
from ovir.editing.proof import ProvenEdit, proven
from ovir.editing.transaction import editing
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, sources_of
from ovir.graph.names import own_tensor_names, take_name
from ovir.ops.convert import NF4
from ovir.ops.state import ReadValueBase, StateBase

NEXT = "/next"
"""The end of the name of an output that has the next value of an input."""
_USUAL = (("past_key_values", "present"), ("past_key_values", "present_key_values"), ("past", "present"))
"""Parts of the names of inputs, with their replacements in the names of the outputs."""
_SHOWN = 5


@dataclass(frozen=True)
class StatePorts:
    """The input that was a ReadValue, and the output that was its Assign."""

    past: Port
    present: Port | None
    """The input of the Result; None for a variable that nothing assigns."""
    present_name: str
    begins: str
    """The value before the first call, in words."""


def usual_outputs(past: str) -> list[str]:
    """Return the names that the output for the next value of an input may have."""
    return [*(past.replace(old, new) for old, new in _USUAL if old in past), f"{past}{NEXT}"]


def states_to_inputs(model: LayerGraph, verify: bool) -> ProvenEdit:
    """Make the variables of a model inputs and outputs; see ``Model.states_to_inputs``."""
    for layer in model.walk():
        if layer.owner is not model and isinstance(layer.operator, StateBase):
            refuse("the variable of a body cannot be an input of the model", layer)
    with proven(model, verify) as edit:
        states = expose_states(model)
        if not states:
            refuse("the model has no states", None, "`ovir show` lists its inputs and outputs")
        edit.relation["states"] = {
            variable: (state.past.any_name, state.present and state.present_name) for variable, state in states.items()
        }
        edit.layers = [port.layer for state in states.values() for port in (state.past, state.present) if port]
    by_start: dict[str, list[str]] = {}
    for state in states.values():
        by_start.setdefault(state.begins, []).append(state.past.any_name)
    edit.notes = [f"feed for the first call: {text} to {_named(names)}" for text, names in by_start.items()]
    return edit


def expose_states(model: LayerGraph) -> dict[str, StatePorts]:
    """Replace the variables of a model, without its bodies, by inputs and outputs; return these by the variables."""
    readers: dict[str, list[Layer]] = {}
    assigns: dict[str, list[Layer]] = {}
    for layer in model.layers:
        if isinstance(op := layer.operator, StateBase):
            (readers if isinstance(op, ReadValueBase) else assigns).setdefault(op.variable_id, []).append(layer)
    layers = {layer.name for layer in model.layers}
    tensors = own_tensor_names(model.layers)
    tensors |= {port.any_name for port in model.inputs}
    wanted = {variable: _names(variable, own[0], assigns.get(variable)) for variable, own in readers.items()}
    states = {}
    with editing(model):
        for variable in sorted(readers, key=lambda variable: _in_order(wanted[variable][0])):
            past, begins = wanted[variable][0], _begins(readers[variable][0])
            layers -= {layer.name for layer in readers[variable]}
            tensors -= {name for layer in readers[variable] for name in layer.outputs[0].own_names}
            with in_place_of(readers[variable][0].place):
                new = new_parameter(model.next_id, take_name(past, layers), readers[variable][0].outputs[0].type)
            (port,) = model.add_layer(new).outputs
            for layer in readers[variable]:
                for reader in layer.outputs[0].readers:
                    if reader.layer.type == "Result":  # the names of an output stay with the output
                        reader.own_names |= layer.outputs[0].own_names - {past}
                        tensors |= reader.own_names
                model.move_readers(layer.outputs[0], port)
                fed = sources_of(layer)
                model.remove_layer(layer)
                remove_unread(model, fed)
            port.own_names = frozenset({take_name(past, tensors)})
            states[variable] = StatePorts(port, None, "", begins)
        for variable, state in states.items():
            for layer in assigns.get(variable, ())[-1:]:
                states[variable] = _with_output(model, state, layer, wanted[variable][1], layers, tensors)
    return states


def _with_output(
    model: LayerGraph, state: StatePorts, assign: Layer, name: str, layers: set[str], tensors: set[str]
) -> StatePorts:
    source = assign.inputs[0].source
    assert source is not None
    remove(model, assign)
    with in_place_of(assign.place):
        result = new_result(model.next_id, "")
    is_other = source.layer.type == "Parameter" or feeds_result(source)
    tensors -= {name} & source.own_names if is_other else source.own_names
    present = take_name(name, tensors)
    if not is_other:
        source.own_names = frozenset({present})
    elif source.own_names != {present}:
        source.own_names -= {present}
        result.inputs[0].own_names = frozenset({present})
    result.name = take_name(f"{present}/sink_port_0", layers)
    model.add_layer(result, [source])
    return StatePorts(state.past, result.inputs[0], present, state.begins)


def _names(variable: str, reader: Layer, assigns: Sequence[Layer] | None) -> tuple[str, str]:
    """Return the names of the input and the output for a variable."""
    before = {reader.name, *reader.outputs[0].own_names}
    sources = [layer.inputs[0].source for layer in assigns or ()]
    after = {name for source in sources if source is not None for name in source.own_names}
    for i in range(1, len(variable)):
        past, present = variable[:i], variable[i:]
        if present in usual_outputs(past) or (past in before and present in after):
            return past, present
    return variable, f"{variable}{NEXT}"


def _in_order(name: str) -> list[tuple[bool, int | str]]:
    """Return a key that sorts numbers in names by their size."""
    return [(part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", name)]


def _begins(reader: Layer) -> str:
    """Return the initial value of a variable in words."""
    source = reader.inputs[0].source if reader.inputs else None
    shape = reader.outputs[0].shape if source is None else source.shape
    value = source
    while value is not None and value.layer.type == "Broadcast":
        value = value.layer.inputs[0].source
    known = None if value is None else value.type.constant
    is_empty = shape.rank is not None and any(dim.upper == 0 for dim in shape)
    if source is None or is_empty or (known is not None and known.dtype.kind != "O" and not known.any()):
        return f"zeros {shape}"
    return f"what {source.layer.title} of the original computes, {shape}"


def _named(names: Sequence[str]) -> str:
    more = f" and {plural(len(names) - _SHOWN, 'more input')}" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


# --------------------------------------------------------------------------- inputs to states


def inputs_to_states(model: LayerGraph, pairs: Mapping[str, str] | None, verify: bool) -> ProvenEdit:
    """Make pairs of inputs and outputs the variables of a model; see ``Model.inputs_to_states``."""
    if model.holder is not None:
        refuse("a body has no states of its own: its inputs come from the model around it")
    given = dict(_usual_pairs(model) if pairs is None else pairs)
    if not given:
        message = "no input and output have the names of a usual pair, such as past_key_values.0.key and present.0.key"
        inputs, outputs = (", ".join(port.any_name for port in ports) for ports in (model.inputs, model.outputs))
        refuse(message, None, f"name the pairs, as input=output: the inputs are {inputs}, the outputs {outputs}")
    found = [(model.input(past), model.output(present), past, present) for past, present in given.items()]
    for k, kind in enumerate(("input", "output")):
        if len({ports[k] for ports in found}) < len(found):
            refuse(f"an {kind} is in two pairs: {given}")
    if len(found) == len(model.outputs):
        refuse("the model would have no output: another tensor must remain one", None, "--add-output makes it one")
    with proven(model, verify) as edit:
        edit.relation["states"] = states = {}
        for past, result, name, next_name in found:
            variable = name if next_name == f"{name}{NEXT}" else f"{name}{next_name}"
            states[variable] = name, next_name
            free = [port for port in model.inputs if port not in {pair[0] for pair in found}]
            edit.layers += _make_state(model, variable, past, result, free)
        if len(found) == 1 and any(port.shape.is_dynamic for port in edit.layers[0].inputs):
            edit.notes.append(_NOT_COMPILED)
    return edit


_NOT_COMPILED = (
    "OpenVINO's CPU device may not compile this ('Invalid graph status'): the only state begins with a size that is "
    "computed from an input; give the inputs an exact number of items before"
)


def _usual_pairs(model: LayerGraph) -> Iterator[tuple[str, str]]:
    outputs = {name for port in model.outputs for name in port.names}
    for port in model.inputs:
        for past in sorted(port.names):
            if present := next((name for name in usual_outputs(past) if name in outputs), None):
                yield past, present
                break


def _make_state(model: LayerGraph, variable: str, past: Port, result: Port, others: Sequence[Port]) -> list[Layer]:
    source, tensor = result.source, past.type
    assert source is not None
    if tensor.shape.rank is None or source.element_type != tensor.element_type:
        refuse(
            f"the input is {tensor}, and the output {source.type}: a state has one type and a known rank", past.layer
        )
    attributes = {"variable_id": variable, "variable_type": tensor.element_type, "variable_shape": tensor.shape}
    with in_place_of(past.layer.place):
        begins = [] if tensor.element_type == string else [_zeros(past, others)]
        reader = create_layer("ReadValue", begins, attributes, version="opset6")
    model.add_layer(reader, NewLayers(model, reader).include([]))
    reader.outputs[0].own_names = past.own_names
    model.move_readers(past, reader.outputs[0])
    if source is past:
        source = reader.outputs[0]
    source.own_names |= result.own_names
    model.remove_layer(past.layer)
    model.remove_layer(result.layer)
    with in_place_of(result.layer.place):
        assign = new_operation(model.next_id, f"Assign_{model.next_id}", "Assign", 1, 6, variable_id=variable)
    return [reader, model.add_layer(assign, [source])]


def _zeros(past: Port, others: Sequence[Port]) -> Layer:
    """Return the initial value: as small as the input allows, but with the batch of another input."""
    sizes: list[Layer | np.ndarray] = [np.array([dim.lower]) for dim in past.shape]
    if past.shape.rank and past.shape[0].is_dynamic:
        batch = next((port for port in others if port.shape.rank and port.shape[0].is_dynamic), None)
        sizes[0] = np.array([max(past.shape[0].lower, 1)])
        if batch is not None:
            shape = create_layer("ShapeOf", [batch], version="opset3")
            sizes[0] = create_layer("Gather", [shape, np.array([0]), np.array(0)], version="opset8")
    target = create_layer("Concat", sizes, {"axis": 0}, version="opset1") if sizes else np.zeros(0, np.int64)
    kind = past.element_type
    code = NF4.tolist().index(0) if kind == nf4 else np.zeros((), kind.to_dtype())
    zero = ops.constant(code, kind)
    return create_layer("Broadcast", [zero, target], version="opset3")
