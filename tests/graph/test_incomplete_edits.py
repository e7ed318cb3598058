"""Tests of models that an edit has left incomplete, and of wrong arguments of edits."""

from collections.abc import Callable
from typing import Any

import pytest

import ovir
from ovir.model import Model

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
        (lambda m: m.add_layer(ovir.Layer(m.next_id, 5, None, "opset1")), "must be texts"),
    ],
)
def test_arguments_of_wrong_types(edit: Callable[[Model], Any], text: str) -> None:
    model = ovir.read_model(XML)
    with pytest.raises(ovir.InputError, match=text):
        edit(model)


def test_shapes_and_releases_of_other_types() -> None:
    assert str(ovir.PartialShape("12")) == "[12]"
    assert str(ovir.PartialShape("[1,?]")) == "[1,?]"
    assert ovir.check(XML, runtime=2022.3) == []  # type: ignore[arg-type]
