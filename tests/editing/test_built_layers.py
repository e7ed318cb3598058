"""Layers that the functions of an opset make are inserted and take the place of others."""

from __future__ import annotations

import numpy as np
import pytest
from edited import everything, sample

import ovir
from ovir import opset13 as ops
from ovir.graph.model import Model

ONES = [np.ones((2, 3), np.float32)] * 2


def scores(model: Model) -> set[float]:
    return set(ovir.compile_model(model)(ONES)["product"].flat)


def test_a_built_layer_reads_tensors_of_the_model() -> None:
    model = sample()
    add = model.layer("add").outputs[0]
    before = everything(model)
    new = ops.multiply(ops.constant(np.float32(4)), add)
    assert everything(model) == before
    assert model.insert_after("add", new) is new
    assert new.name == f"Multiply_{new.id}"
    assert [reader.layer for reader in add.readers] == [new]
    assert scores(model) == {8}
    assert len({layer.id for layer in model.layers}) == len({layer.name for layer in model.layers}) == len(model.layers)


def test_several_built_layers_come_in_together() -> None:
    model = sample()
    add = model.layer("add").outputs[0]
    model.insert_after(add, ops.abs(ops.negative(add) * 3.0) + add, readers=[model.layer("relu").inputs[0]])
    assert scores(model) == {8}
    assert {reader.layer.type for reader in add.readers} == {"Negative", "Add", "Reshape"}


def test_a_parameter_stands_for_what_is_connected() -> None:
    model = sample()
    model.insert_after("add", ops.negative(ops.parameter([2, 3], "f32")))
    assert scores(model) == {0}
    new = model.replace("product", ops.subtract(ops.parameter([2, 3]), ops.parameter([2, 3])))
    assert (new.name, scores(model)) == ("product", {-1})


def test_a_replacement_with_inputs_of_its_own() -> None:
    model = sample()
    x = model.inputs[0]
    model.replace("relu", ops.add(x, np.float32([[1], [2]]), name="rows"))
    assert model.layer("rows").inputs[0].source is x
    assert scores(model) == {2, 3}
    model.layer("rows")
    assert "add" in [layer.name for layer in model.layers]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: ops.relu(m.inputs[1]), "does not read the tensor that it is inserted after"),
        (
            lambda m: ops.relu(m.layer("add"), name="relu"),
            "the name of the new layer is already used by layer 3 'relu'",
        ),
        (lambda m: ops.relu(sample().inputs[0]), "the new layer reads layer 0 'x' .* of another model or body"),
        (lambda m: ops.relu(ops.relu(ops.parameter([2, 3]))), "depends on a Parameter that is not in the model"),
        (lambda m: ops.add(m.layer("add"), m.layer("product")), "close a cycle"),
        (lambda m: ops.logical_not(ops.convert(m.layer("add"), "boolean")), r"layer 3 'relu' \(ReLU"),
    ],
)
def test_what_is_refused_changes_nothing(make, message: str) -> None:
    model = sample()
    new = make(model)
    before, sources = everything(model), [port.source for port in new.inputs]
    with pytest.raises(ovir.OvirError, match=message):
        model.insert_after("add", new)
    assert everything(model) == before
    assert [port.source for port in new.inputs] == sources
    assert new.owner is None


def test_the_replaced_layer_cannot_be_read() -> None:
    model = sample()
    with pytest.raises(ovir.InputError, match=r"the new layer reads the one that it replaces\n  hint: .* insert_after"):
        model.replace("relu", ops.abs(ops.negative(model.layer("relu"))))


def test_edits_of_a_built_model() -> None:
    x = ops.parameter([1, 4], name="x")
    model = ovir.Model([ops.relu(x, name="y")], [x], "built")
    model.rename({"x": "photo"})
    model.add_outputs("y")
    part = model.extract(outputs="y")
    assert part.layer("photo").type == "Parameter"
