"""Layers that the functions of an opset make are inserted and take the place of others."""

from collections.abc import Callable

import numpy as np
import pytest
from support.edited import everything, layer, operation, sample, with_body

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import Layer
from ovir.model import Model

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
    model = sample()
    model.insert_after("add", ops.subtract(ops.parameter([2, 3]), ops.parameter([2, 3])), [model.inputs[0]])
    assert scores(model) == {1}


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
        (lambda m: ops.relu(m.layer("add"), name="relu"), "name of .* new layer is already used by layer 3 'relu'"),
        (lambda m: ops.relu(sample().inputs[0]), "the new layer reads layer 0 'x' .* of another model or body"),
        (lambda m: ops.relu(ops.relu(ops.parameter([2, 3]))), "depends on a Parameter that is not in the model"),
        (lambda m: ops.add(m.layer("add"), m.layer("product")), "close a cycle"),
        (lambda m: ops.add(ops.parameter([2, 3]), m.layer("add")), "Parameter .*\n  hint: a .* Parameter stands"),
        (lambda m: ops.add(m.layer("add"), ops.parameter([2, 3])), "a Parameter that is not in the model"),
        (lambda m: ops.add(ops.parameter([2, 3]), ops.abs(m.layer("add"))), "a Parameter that is not in the model"),
        (lambda m: ops.add(ops.parameter([2, 3]), ops.parameter([2, 3])), "a Parameter that is not in the model"),
        (lambda m: ops.parameter([2, 3]), "a Parameter cannot be added to the model"),
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


def test_outputs_and_inputs_are_not_replaced_by_other_layers() -> None:
    model = sample()
    before = everything(model)
    with pytest.raises(ovir.InputError, match=r"an .* of the model cannot be replaced .* ReLU\n  hint: .*insert_after"):
        model.replace("out", ops.relu(model.layer("product")))
    with pytest.raises(ovir.InputError, match=r"an input of the model cannot be replaced .*\n  hint: reshape"):
        model.replace("x", ops.parameter([2, 3], name="x2"))
    assert everything(model) == before
    model.replace("out", ops.result(ops.negative(model.layer("product"))))
    assert len(model.outputs) == 2


def state(layer: Layer) -> object:
    """Return all of a layer that an edit can change, with the layers that it reads."""
    sources = [port.source for port in layer.inputs]
    return (
        *(layer.id, layer.name, layer.scope, layer.owner, type(layer.attributes), dict(layer.attributes)),
        [(port.own_names, str(port.type), port.readers) for port in layer.outputs],
        sources,
        [state(source.layer) for source in sources if source is not None and source.layer.owner is None],
    )


def undone(model: Model, *edits: Callable[[], object]) -> None:
    """Make edits in a block that raises."""

    def attempt() -> None:
        with model.editing():
            for edit in edits:
                edit()
            raise KeyError

    with pytest.raises(KeyError):
        attempt()


def test_a_layer_that_could_not_enter_a_body_is_as_before() -> None:
    model = with_body()
    for new in (ops.shape_of(model.layer("n1/body/n1")), layer("sizes", operation("ShapeOf"), 1)):
        before = state(new)
        with pytest.raises(ovir.ModelError):
            model.insert_after("n1/body/n1", new)
        assert state(new) == before
        new.attributes["mine"] = "settable"
    free = layer("free", operation("ShapeOf"), 1)
    before = state(free)
    undone(model, lambda: model.layer("n1").bodies["body"].add_layer(free))
    assert state(free) == before


def test_an_undone_block_restores_its_new_layers() -> None:
    model = sample()
    one, two = ops.relu(model.layer("product")), ops.abs(model.layer("add"), name="two")
    before = everything(model), state(one), state(two)
    undone(
        model,
        lambda: model.insert_after("product", one),
        lambda: model.replace("relu", two),
        lambda: model.remove("two"),
    )
    assert (everything(model), state(one), state(two)) == before
    model.insert_after("product", one)
    assert scores(model) == {2}


def test_inputs_are_given_by_keys() -> None:
    model = sample()
    model.insert_before("relu", ops.negative(model.layer("add")), [])
    model.insert_before(("product", 1), layer("sum", operation("Add"), 2), "x")
    model.insert_after("add", ops.abs(model.layer("add")), readers=["flat"])
    assert model.layer("relu").inputs[0].source.layer.type == "Negative"
    assert [port.source.any_name for port in model.layer("sum").inputs] == ["y", "x"]
    assert [port.layer.type for port in model.layer("add").outputs[0].readers] == ["Negative", "Abs"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m, new: m.insert_after("add", new, readers=5), "expected readers, got 5"),
        (lambda m, new: m.insert_after("add", new, readers=[5]), "expected an input, got 5"),
        (lambda m, new: m.insert_after("add", new, readers="product"), "the layer does not read layer 2 'add'"),
        (lambda m, new: m.insert_after("add", new, readers=("product", 1)), "input 1 of this layer does not read"),
        (lambda m, new: m.insert_after("add", new, readers=["ad"]), "no layer is named 'ad'"),
        (lambda m, new: m.insert_after("add", new, readers=m.layer("add").outputs), "expected an input port, got"),
        (lambda m, new: m.insert_after("add", new, readers=sample().layer("relu").inputs), "is not in this model"),
        (lambda m, new: m.insert_after("add", new, 5), "expected tensors, got 5"),
        (lambda m, new: m.insert_after("add", new, ["y"]), "the layer has 1 input, got 2 sources"),
        (lambda m, new: m.insert_before("product", new), r".* has 2 inputs, not one\n  hint: .* \('product', 0\)"),
        (lambda m, new: m.insert_before("x", new), "the layer has 0 inputs, not one"),
        (lambda m, new: m.insert_before(("product", 2), new), "has no input 2: it has 2 inputs, counted from 0"),
        (lambda m, new: m.insert_before(m.layer("add").outputs[0], new), "expected an input port, got output 0"),
        (lambda m, new: m.insert_before(None, new), "expected an input, got None"),
        (lambda m, new: m.insert_before("relu", None), "expected a layer, got None"),
        (lambda m, new: m.insert_before("relu", m.layer("add")), "already belongs to a model"),
    ],
)
def test_refused_inputs_change_nothing(edit, message: str) -> None:
    model = sample()
    new = layer("new", operation("ReLU"), 1)
    before = everything(model), state(new)
    with pytest.raises(ovir.InputError, match=message):
        edit(model, new)
    assert (everything(model), state(new)) == before
