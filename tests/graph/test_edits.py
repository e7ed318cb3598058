"""Edits of a model: what is derived from connections stays right, and an edit that fails changes nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import edited
from support.builder import Net
from support.derived import chain, derived_of
from support.edited import everything, sample, with_body

import ovir
from ovir import opset13 as ops
from ovir.graph.copies import detached
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.activation import ReLU
from ovir.ops.arithmetic import Add


def new_layer(model: Model, kind: str = "ReLU", inputs: int = 1, number: int | None = None) -> Layer:
    operator = Add() if kind == "Add" else ReLU()
    layer = edited.layer(f"new {kind} {model.next_id}", operator, inputs, model.next_id if number is None else number)
    layer.type = kind
    return layer


def require_consistent(model: Model) -> None:
    anew = Model.of_layers(detached(model._file_order).joined(), name=model.name)
    assert derived_of(model) == derived_of(anew)
    ranks = model._ranked()._ranks
    for layer in model.layers:
        assert layer.owner is model
        assert model.layer(layer.id) is layer
        assert model.graph.nodes[layer.id]["layer"] is layer
        for port in layer.inputs:
            assert port.source is None or port in port.source.readers
            assert port.source is None or ranks[port.source.layer] < ranks[layer]
        for port in layer.outputs:
            assert len(set(port.readers)) == len(port.readers)
            assert all(reader.source is port for reader in port.readers)


# --------------------------------------------------------------------------- random edits


def pick(items: list[Any], number: int) -> Any:
    return items[number % len(items)]


def edit(model: Model, kind: int, a: int, b: int, flag: bool) -> None:
    outputs = [port for layer in model._file_order for port in layer.outputs]
    inputs = [port for layer in model._file_order for port in layer.inputs]
    layer = pick(model._file_order, a)
    edits: list[Callable[[], object]] = [
        lambda: model.connect(pick(outputs, a), pick(inputs, b)),
        lambda: model.disconnect(pick(inputs, a)),
        lambda: model.move_readers(pick(outputs, a), pick(outputs, b)),
        lambda: model.add_layer(new_layer(model, "Add", 2), [pick(outputs, a), pick(outputs, b)]),
        lambda: model.insert_after(pick(outputs, a), new_layer(model)),
        lambda: model.insert_after(pick(outputs, a), new_layer(model, "Add", 2), [pick(outputs, b)]),
        lambda: model.insert_before(pick(inputs, a), new_layer(model)),
        lambda: model.remove_layer(layer, bypass=flag),
        lambda: model.replace_layer(layer, new_layer(model, number=layer.id if flag else None)),
        lambda: model.replace_layer(layer, new_layer(model, "Add", 2), [pick(outputs, a), pick(outputs, b)]),
        lambda: model.rename_layers({layer.name: pick(model._file_order, b).name if flag else f"name {b}"}),
        lambda: model.rename_tensors({layer.name: pick(model._file_order, b).name if flag else f"tensor {b}"}),
    ]
    pick(edits, kind)()


numbers = st.integers(0, 40)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 11), numbers, numbers, st.booleans()), max_size=12), st.booleans())
def test_random_edits(edits: list[tuple[int, int, int, bool]], look_between: bool) -> None:
    model = sample()
    for kind, a, b, flag in edits:
        before = everything(model)
        try:
            edit(model, kind, a, b, flag)
        except ovir.OvirError:
            assert everything(model) == before
        if look_between:  # so that there is something cached that an edit must renew
            require_consistent(model)
    require_consistent(model)


# --------------------------------------------------------------------------- single ones


def test_a_layer_is_inserted_and_the_model_infers_and_runs() -> None:
    model = sample()
    relu = model.layer("relu")
    clip = model.insert_after(relu.outputs[0], new_layer(model, "Add", 2), [model.layer("y").outputs[0]])
    model.infer_shapes()
    assert [reader.layer.name for reader in relu.outputs[0].readers] == [clip.name]
    assert model.layer("state").inputs[0].source is clip.outputs[0]
    names = [layer.name for layer in model.layers]
    assert names.index("relu") < names.index(clip.name) < names.index("state")
    ones = np.ones((2, 3), np.float32)
    assert ovir.compile_model(model)([ones, ones])[0].tolist() == [[3.0] * 3] * 2  # relu(1 + 1) + 1


def test_an_edge_keeps_its_line() -> None:
    model = sample()
    lines = [edge.line for edge in model.edges]
    assert all(lines)
    assert model.graph[0][2][0]["line"] == model.layer("add").inputs[0].edge_line == lines[0]
    relu = model.layer("relu")
    model.replace_layer(relu, new_layer(model, number=relu.id))
    assert [edge.line for edge in model.edges] == lines


def test_the_graph_is_derived_and_frozen() -> None:
    model = sample()
    with pytest.raises(Exception, match=r"[Ff]rozen"):
        model.graph.remove_node(0)


def test_cycles_are_refused_by_name() -> None:
    model = sample()
    with pytest.raises(ovir.ModelError, match=r"close a cycle: 3 'relu' -> 5 'state' -> 6 'product' -> 3 'relu'"):
        model.connect(model.layer("product").outputs[0], model.layer("relu").inputs[0])
    with pytest.raises(ovir.ModelError, match=r"close a cycle: 3 'relu' -> 3 'relu'"):
        model.connect(model.layer("relu").outputs[0], model.layer("relu").inputs[0])


def test_a_cycle_by_way_of_a_state_is_refused() -> None:
    model = sample()
    assign = model.layer("assign")
    assign.outputs.append(Port(assign, 0, 1, True))
    with pytest.raises(ovir.ModelError, match=r"5 'state' -> 7 'assign' -> 5 'state'"):
        model.connect(assign.outputs[0], model.layer("state").inputs[0])
    other = new_layer(model, "ReadValue")
    other.attributes["variable_id"] = "v"
    with pytest.raises(ovir.ModelError, match=r"7 'assign' -> 14 'new ReadValue 14' -> 7 'assign'"):
        model.add_layer(other, [assign.outputs[0]])
    require_consistent(model)


REFUSED: dict[str, tuple[Callable[[Model], object], str]] = {
    "wrong kind": (
        lambda m: m.connect(m.layer("add").inputs[0], m.layer("relu").inputs[0]),
        "layer 2 'add' .*: expected an output port, got input 0 of this layer",
    ),
    "other model": (
        lambda m: m.connect(sample().layer("x").outputs[0], m.layer("relu").inputs[0]),
        "output 0 of this layer is not in the model",
    ),
    "id": (lambda m: m.add_layer(new_layer(m, number=3)), "id 3 is already used by layer 3 'relu'"),
    "too many sources": (lambda m: m.add_layer(new_layer(m), list(m.inputs)), "the layer has 1 input, got 2 sources"),
    "read": (lambda m: m.remove_layer(m.layer("add")), r"cannot be removed: layer 3 'relu' .* reads it"),
    "no bypass": (lambda m: m.remove_layer(m.layer("x"), bypass=True), "has no input to read instead"),
    "in a model": (lambda m: m.add_layer(m.layer("x")), "already belongs to a model"),
    "no reader": (
        lambda m: m.insert_after(m.layer("x").outputs[0], new_layer(m), readers=[m.layer("relu").inputs[0]]),
        "layer 3 'relu' .*: input 0 of this layer does not read layer 0 'x'",
    ),
    "own output": (
        lambda m: m.replace_layer(m.layer("relu"), new_layer(m), [m.layer("relu").outputs[0]]),
        "cannot read the one that it replaces",
    ),
    "layer name": (lambda m: m.rename_layers({"add": "relu"}), "another layer has this name"),
    "no such name": (lambda m: m.rename_layers({"ad": "b"}), "no layer is named 'ad'"),
    "empty": (lambda m: m.rename_tensors({"add": ""}), "the new name of tensor 'add' is empty"),
    "tensor name": (lambda m: m.rename_tensors({"add": "b", "relu": "b"}), "another tensor has this name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_changes_nothing(case: str) -> None:
    attempt, message = REFUSED[case]
    model = sample()
    before = everything(model)
    with pytest.raises(ovir.InputError, match=message) as caught:
        attempt(model)
    assert str(caught.value).count(caught.value.diagnostic.layer or "no layer") <= 1
    assert everything(model) == before
    require_consistent(model)


def test_a_body_keeps_its_parameters_and_results() -> None:
    body = with_body().layer("n1").bodies["body"]
    with pytest.raises(ovir.InputError, match="the port map would no longer match"):
        body.remove_layer(body.layer("n2"))
    added = body.insert_after(body.layer("n1").outputs[0], new_layer(body))
    assert added.scope == "n1/body/"
    require_consistent(body)


@pytest.mark.slow
def test_long_chains() -> None:
    model = chain(3000)
    first, last = model.layers[1], model.layers[-2]
    with pytest.raises(ovir.ModelError, match=r"close a cycle: .*\(\d+ more\)"):
        model.connect(last.outputs[0], first.inputs[0])
    with model.editing():
        for layer in model.layers[1:1000]:
            model.insert_after(layer.outputs[0], new_layer(model))
    model.move_readers(first.outputs[0], model.inputs[0])
    assert len([layer for layer in model.layers if layer.is_dead]) == 1
    require_consistent(model)


def test_layers_of_one_name_are_found_in_their_order() -> None:
    model = sample()
    twins = [edited.layer("twin", ReLU(), 1, model.next_id + 10 * index) for index in range(3)]
    for twin in twins:
        model.add_layer(twin, [model.inputs[0]])
        assert model.next_id == twin.id + 1
    for twin in (twins[2], *twins[:2]):
        assert model.named("twin") is next(layer for layer in model.layers if layer.name == "twin")
        model.remove_layer(twin)
    assert model.named("twin") is None


def test_an_inserted_layer_may_have_inputs_to_connect_later() -> None:
    model = sample()
    relu, source = model.layer("relu"), model.inputs[0]
    added = model.insert_layer_after(relu.outputs[0], new_layer(model, "Add", 2))
    assert [port.source for port in added.inputs] == [relu.outputs[0], None]
    model.connect(source, added.inputs[1])
    require_consistent(model)
    model.disconnect(added.inputs[0])
    with pytest.raises(ovir.InputError, match="cannot be bypassed: its first input has no source"):
        model.remove_layer(added, bypass=True)
    split = model.layer("split")
    model.add_layer(new_layer(model), [split.outputs[0]])
    with pytest.raises(ovir.InputError, match="cannot be bypassed: 2 of its outputs have readers"):
        model.remove_layer(split, bypass=True)


def test_the_order_of_a_state_is_an_edge_of_cycles() -> None:
    x, y = (ops.parameter([2], "f32", name=name) for name in "xy")
    read = ops.read_value(ops.relu(x, name="relu"), "v", "f32", [2])
    model = ovir.Model([ops.relu(read)], [ops.assign(y, "v", name="assign")], [x, y])
    with pytest.raises(ovir.ModelError, match="close a cycle"):
        model.connect(model.layer("assign").outputs[0], model.layer("relu").inputs[0])


@pytest.mark.parametrize("is_first", [False, True])
def test_a_state_is_read_before_it_is_assigned(is_first: bool) -> None:
    net = Net()
    x = net.parameter("x", "2")
    state = {"opset": 6, "variable_id": "v"}
    if is_first:
        net.op("Assign", x, name="assign", **state)
    net.result(net.op("ReadValue", x, name="read", variable_type="f32", variable_shape="2", **state))
    if not is_first:
        net.op("Assign", x, name="assign", **state)
    names = [layer.name for layer in net.model().layers]
    assert names.index("read") < names.index("assign")


# --------------------------------------------------------------------------- incomplete models


XML = "examples/xml/digits.xml"


@pytest.mark.parametrize("layer", ["conv2", "relu2", "conv1/add_bias", "result"])
def test_inputs_without_a_source_are_errors(layer: str) -> None:
    model = ovir.read_model(XML)
    model.disconnect(model.layer(layer).inputs[0])
    with pytest.raises(ovir.ModelError, match=r"OVIR210.*no edge leads to input port"):
        ovir.compile_model(model)
    with pytest.raises(ovir.ModelError, match=r"OVIR210.*no edge leads to input port"):
        model.infer_shapes()


def test_a_layer_without_its_operator_is_an_error() -> None:
    model = ovir.read_model(XML)
    layer = ovir.Layer(model.next_id, "tanh", "Tanh", "opset1")
    layer.inputs = [ovir.Port(layer, 0, 0, False)]
    layer.outputs = [ovir.Port(layer, 0, 1, True)]
    with pytest.raises(ovir.ModelError, match=r"the layer has no operator, but Tanh of opset1 is a known operation"):
        model.insert_after(model.layer("relu1").outputs[0], layer)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda m: m.connect(m.layer("relu1"), m.layer("conv2")), "expected an output port, got <layer"),
        (lambda m: m.remove_layer("relu2"), "expected a layer, got 'relu2'"),
        (lambda m: m.rename_tensors(["photo"]), "expected a mapping of old to new tensor names"),
        (lambda m: m.rename_tensors({"image": 5}), "expected a mapping of old to new tensor names"),
        (lambda m: m.add_layer(ovir.Layer(m.next_id, "five", None, "opset1")), "must be texts"),
    ],
)
def test_arguments_of_wrong_types(edit: Callable[[Model], Any], text: str) -> None:
    model = ovir.read_model(XML)
    with pytest.raises(ovir.InputError, match=text):
        edit(model)
