"""Renamed layers and tensors, and further outputs."""

import numpy as np
import pytest
from support.edited import everything, run, sample, with_body

import ovir
from ovir import opset13 as ops
from ovir.model import Model


def test_layer_and_tensor_of_a_name_are_renamed() -> None:
    model = sample()
    model.rename({"x": "photo", "add": "sum", "out": "result"})
    assert [(port.layer.name, set(port.names)) for port in model.inputs] == [("photo", {"photo"}), ("y", {"y"})]
    assert model.layer("sum").outputs[0].names == {"sum"}
    assert model.outputs[0].layer.name == "result"
    ones = np.ones((2, 3), np.float32)
    assert set(ovir.compile_model(model)({"photo": ones, "y": ones})[0].flat) == {2}
    model.rename({"photo": "y", "y": "photo", "sum": "sum"})
    assert [(port.layer.name, set(port.names)) for port in model.inputs] == [("y", {"y"}), ("photo", {"photo"})]
    model.layer("sum").outputs[0].names = frozenset({"a tensor", "also"})
    model.rename({"a tensor": "another", "sum": "total"})
    assert model.layer("total").outputs[0].names == {"another", "also"}
    model.layer("dead").name = "relu"
    model.rename({"relu#4": "other"})
    assert [model.layer(number).name for number in (3, 4)] == ["relu", "other"]


def test_names_in_bodies_with_and_without_those_around_them() -> None:
    model = with_body()
    model.rename({"n1/body/n1": "inner"})
    assert model.layer("n1/body/inner").type == "ReLU"
    model.rename({"n1/body/inner": "n1/body/rectified", "n1": "loop"})
    assert model.layer("loop/body/rectified").type == "ReLU"
    model.layer("loop/body/rectified").outputs[0].names = frozenset({"tensor"})
    model.rename({"loop/body/tensor": "loop/body/other"})
    assert model.layer("loop/body/rectified").outputs[0].names == {"other"}


def test_outputs_are_added_behind_the_others() -> None:
    model = sample()
    expected = run(model)
    added = model.add_outputs(["relu", ("split", 0)])
    assert added == model.outputs[2:]
    assert [port.layer.name for port in model.outputs] == ["out", "half", "relu/sink_port_0", "split/sink_port_0"]
    results = ovir.compile_model(model)([np.ones((2, 3), np.float32)] * 2)
    assert set(results["relu"].flat) == {2}
    for array, wanted in zip(run(model)[:2], expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_an_output_is_not_added_twice() -> None:
    model = sample()
    assert model.add_outputs("product") == [model.outputs[0]]
    assert model.add_outputs(model.outputs[1]) == [model.outputs[1]]
    assert model.add_outputs("add") == model.add_outputs(("add", 0)) == [model.outputs[2]]
    assert len(model.outputs) == 3


def test_an_added_output_without_a_name_gets_that_of_its_layer() -> None:
    model = sample()
    model.layer("add").outputs[0].names = frozenset()
    model.layer("split").outputs[0].names = frozenset()
    model.layer("relu").outputs[0].names = frozenset({"add"})
    added = model.add_outputs([model.layer("add"), ("split", 0)])
    assert [set(port.names) for port in added] == [{"add_2"}, {"split"}]
    assert [port.layer.name for port in added] == ["add_2/sink_port_0", "split/sink_port_0"]


def nested() -> tuple[Model, Model]:
    """A model with an If ``out``, whose branch ``then`` has an If ``in``, and that branch."""
    middle = choice("in", branch(1), branch(2))
    return choice("out", middle, choice("in", branch(3), branch(4))), middle


def choice(name: str, then: Model, otherwise: Model) -> Model:
    """A model with inputs ``condition`` and ``x`` that passes them on to one of two models with such inputs."""
    condition, x = ops.parameter([], "boolean", name="condition"), ops.parameter([2], "f32", name="x")
    made = ops.if_op(condition, name=name)
    made.set_then_body(then)
    made.set_else_body(otherwise)
    for source, first, second in zip((condition, x), then.inputs, otherwise.inputs, strict=True):
        made.set_input(source, first, second)
    return ovir.Model([made.set_output(then.outputs[0], otherwise.outputs[0])], [condition, x], name)


def branch(value: float) -> Model:
    condition, x = ops.parameter([], "boolean", name="condition"), ops.parameter([2], "f32", name="x")
    total = ops.add(x, np.float32(value), name="add")
    total.output(0).names = "total"
    return ovir.Model([ops.select(condition, total, total, name="chosen")], [condition, x], "branch")


@pytest.mark.parametrize("around", ["", "out/then/"])
def test_new_names_are_relative_to_the_body_that_is_edited(around: str) -> None:
    model, middle = nested()
    middle.rename({f"{around}in/then/add": f"{around}in/then/sum", "in/then/total": "in/then/all"})
    renamed = model.layer("out/then/in/then/sum")
    assert renamed.name == "sum"
    assert renamed.outputs[0].names == {"all"}
    middle.rename({"in/then/sum": "last", "in/then/all": "rest"})
    assert (renamed.name, renamed.outputs[0].names) == ("last", {"rest"})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("out/then/in/then/add", "out/then/sum"),
        ("out/then/in/then/add", "out/then/in/else/sum"),
        ("out/then/in/then/total", "out/else/total"),
        ("out/then/x", "out/then/in/then/y"),
        ("x", "out/then/y"),
    ],
)
def test_a_name_cannot_move_to_another_body(old: str, new: str) -> None:
    model, _ = nested()
    before = everything(model)
    with pytest.raises(ovir.InputError, match=f"'{old}' cannot be renamed to '{new}': .* in another body"):
        model.rename({old: new})
    assert everything(model) == before
