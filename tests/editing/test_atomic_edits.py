"""An edit that fails raises one clear error and changes nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.edited import everything, layer, operation, run, sample, with_body

import ovir
from ovir.model import Model

Refused = tuple[Callable[[Model], Any], type[ovir.OvirError], str]

REFUSED: dict[str, Refused] = {
    "extract: no such tensor": (
        lambda m: m.extract(outputs=["produkt"]),
        ovir.InputError,
        r"no tensor and no layer is named 'produkt'\n  hint: did you mean 'product'\?",
    ),
    "extract: undefined input": (
        lambda m: m.extract(inputs=["relu"], outputs=["product"]),
        ovir.InputError,
        r"(?s)the part leaves input 'y' undefined: 'product' depends on it, by 1 'y' -> 6 'product'\n"
        r"  hint: add 'y' to the inputs",
    ),
    "extract: given twice": (lambda m: m.extract(outputs=["add", ("add", 0)]), ovir.InputError, "'add' is given twice"),
    "extract: no output": (lambda m: m.extract(outputs=[]), ovir.InputError, "a part needs at least one output"),
    "extract: no such output": (lambda m: m.extract(outputs=("add", 3)), ovir.InputError, "has no output 3: it has 1"),
    "extract: no tensor": (lambda m: m.extract(outputs=[1.5]), ovir.InputError, "expected a tensor, got 1.5"),
    "extract: no list": (lambda m: m.extract(outputs=5), ovir.InputError, "expected tensors, got 5"),
    "extract: other model": (lambda m: m.extract(outputs=sample().inputs), ovir.InputError, "not in this model"),
    "rename: no such name": (
        lambda m: m.rename({"ad": "b"}),
        ovir.InputError,
        r"named 'ad'\n  hint: did you mean 'add'",
    ),
    "rename: layer": (lambda m: m.rename({"add": "relu"}), ovir.InputError, "another layer has this name"),
    "rename: tensor": (lambda m: m.rename({"add": "b", "relu": "b"}), ovir.InputError, "another layer has this name"),
    "rename: empty": (lambda m: m.rename({"add": ""}), ovir.InputError, "the new name of 'add' is empty"),
    "rename: no mapping": (lambda m: m.rename(["add"]), ovir.InputError, "expected a mapping of old to new names"),
    "add_outputs: no such tensor": (lambda m: m.add_outputs("ad"), ovir.InputError, r"did you mean 'add'\?"),
    "set_constant: shape": (
        lambda m: m.set_constant("target", np.array([4, 4])),
        ovir.ModelError,
        r"layer 9 'flat' \(Reshape",
    ),
    "set_constant: type": (
        lambda m: m.set_constant("target", np.array([1.5, 2])),
        ovir.ModelError,
        r"layer 9 'flat' \(Reshape",
    ),
    "set_constant: dtype": (
        lambda m: m.set_constant("target", np.zeros(2, complex)),
        ovir.InputError,
        "the constant cannot be set: OpenVINO has no element type for NumPy's complex128",
    ),
    "set_constant: layer": (lambda m: m.set_constant("relu", 1.0), ovir.InputError, "the layer is not a constant"),
    "set_constant: input": (
        lambda m: m.set_constant("x", 1.0),
        ovir.InputError,
        "is an input of the model\n.*--fix-input",
    ),
    "set_constant: no layer": (lambda m: m.set_constant(True, 1), ovir.InputError, "no layer is named True"),
    "set_constant: no such layer": (lambda m: m.set_constant("targt", 1), ovir.InputError, r"did you mean 'target'\?"),
    "replace: inference": (
        lambda m: m.replace("relu", layer("new", operation("MatMul"), 2)),
        ovir.ModelError,
        "no edge leads to input port 1",
    ),
    "replace: outputs": (
        lambda m: m.replace("split", layer("new", operation("ReLU"), 2)),
        ovir.InputError,
        r"the layer has no output 1, which layer \d+ 'half' .* reads",
    ),
    "replace: own layer": (lambda m: m.replace("relu", m.layer("add")), ovir.InputError, "already belongs to a model"),
    "insert_after: cycle": (
        lambda m: m.insert_after("add", layer("new", operation("Add"), 2), [m.layer("product").outputs[0]]),
        ovir.ModelError,
        r"the edit would close a cycle: 3 'relu' -> 5 'state' -> 6 'product' -> 3 'relu'",
    ),
    "insert_after: inference": (
        lambda m: m.insert_after("add", layer("new", operation("LogicalNot"), 1)),
        ovir.ModelError,
        r"layer 1000 'new' \(LogicalNot",
    ),
    "insert_after: several": (
        lambda m: m.insert_after(m.layer("split"), layer("new", operation("ReLU"), 1)),
        ovir.InputError,
        r"the layer has 2 outputs: give one of them, as \('split', 0\)",
    ),
    "insert_before: inference": (
        lambda m: m.insert_before(m.layer("relu").inputs[0], layer("new", operation("LogicalNot"), 1)),
        ovir.ModelError,
        r"layer 1000 'new' \(LogicalNot",
    ),
    "remove: input": (lambda m: m.remove("x"), ovir.InputError, "cannot be removed: .* reads it, and it has no input"),
    "remove: shape": (lambda m: m.remove("flat"), ovir.ModelError, r"layer 11 'split' \(Split"),
    "remove: state": (lambda m: m.remove("state"), ovir.ModelError, "no ReadValue reads the variable 'v'"),
    "reshape": (lambda m: m.reshape({"x": [4, 3], "y": [4, 3]}), ovir.ModelError, r"layer 9 'flat'"),
    "editing: last edit": (
        lambda m: in_one_block(m, lambda: m.rename({"add": "sum"}), lambda: m.remove("x")),
        ovir.InputError,
        "has no input to read instead",
    ),
    "editing: inference at the end": (
        lambda m: in_one_block(m, lambda: m.disconnect(m.layer("relu").inputs[0]), lambda: m.rename({"add": "sum"})),
        ovir.ModelError,
        "no edge leads to input port 0",
    ),
    "editing: failure caught inside": (
        lambda m: in_one_block(m, lambda: m.rename({"add": "sum"}), lambda: caught(lambda: m.remove("x"))),
        ovir.InputError,
        "has no input to read instead",
    ),
}


def in_one_block(model: Model, *edits: Callable[[], Any]) -> None:
    with model.editing():
        for edit in edits:
            edit()


def caught(edit: Callable[[], Any]) -> None:
    with pytest.raises(ovir.OvirError):
        edit()


OF_BODIES: dict[str, Refused] = {
    "output": (lambda m: m.add_outputs("n1/body/n1"), ovir.InputError, "a tensor of a body cannot be an output"),
    "end": (lambda m: m.remove("n1/body/n2"), ovir.InputError, "cannot be added to a body or removed from it"),
    "border": (
        lambda m: m.extract(inputs=["n0"], outputs=["n1/body/n1"]),
        ovir.InputError,
        "a part cannot cross the border of a body: got tensors of the model itself and 'n1/body'",
    ),
    "inference around it": (
        lambda m: m.insert_after("n1/body/n1", layer("sizes", operation("ShapeOf"), 1)),
        ovir.ModelError,
        "concatenates parts of part_size 1 along axis 0, but the body's result has length 2",
    ),
    "rename": (lambda m: m.rename({"n1/body/n1": "n0"}), ovir.InputError, "another layer has this name"),
    "rename with its path": (lambda m: m.rename({"n1/body/n1": "n1/body/n0"}), ovir.InputError, "to 'n0': another"),
    "unknown": (lambda m: m.set_constant("n1/body/nn", 1), ovir.InputError, "no layer is named 'n1/body/nn'"),
}


@pytest.mark.parametrize(
    ("make", "edit"),
    [*((sample, edit) for edit in REFUSED.values()), *((with_body, edit) for edit in OF_BODIES.values())],
    ids=[*REFUSED, *OF_BODIES],
)
def test_what_fails_changes_nothing(make: Callable[[], Model], edit: Refused) -> None:
    attempt, kind, message = edit
    model = make()
    before, outputs = everything(model), run(model)
    with pytest.raises(kind, match=message) as found:
        attempt(model)
    assert isinstance(found.value, ovir.OvirError)
    assert "more: `ovir check`" not in str(found.value), "one message"
    assert everything(model) == before
    for array, expected in zip(run(model), outputs, strict=True):
        np.testing.assert_array_equal(array, expected)
    name = model.layers[-1].name
    model.rename({name: "last"})
    assert model.layer("last").owner is model


def test_a_new_layer_can_be_used_again_after_a_failure() -> None:
    model = sample()
    new = layer("new", operation("LogicalNot"), 1)
    with pytest.raises(ovir.ModelError):
        model.insert_after("add", new)
    assert new.owner is None
    assert new.inputs[0].source is None
    assert new.outputs[0].readers == ()
    new.operator, new.type = operation("ReLU"), "ReLU"
    assert model.insert_after("add", new) is model.layer("new")


def test_an_interrupt_restores_the_model() -> None:
    model = sample()
    before = everything(model)
    with pytest.raises(KeyboardInterrupt), model.editing():
        interrupted(model)
    assert everything(model) == before


def interrupted(model: Model) -> None:
    model.remove("relu")
    raise KeyboardInterrupt


def test_a_compiled_model_stays_as_it_was() -> None:
    model = with_body()
    compiled = ovir.compile_model(model)
    data = -np.ones((2, 4), np.float32)
    model.remove("n1/body/n1")
    np.testing.assert_array_equal(compiled([data])[0], np.zeros((2, 4)))
    np.testing.assert_array_equal(run(model, [data])[0], data)


def test_parts_in_a_block_infer_only_what_has_changed() -> None:
    model = sample()
    revision = model.revision
    with model.editing():
        model.rename({"add": "sum"})
        model.extract(outputs="relu")
        assert model.revision == revision
        model.set_constant("target", np.array([6, 1]))
        model.set_constant("axis", np.array(0))
        for _ in range(3):
            assert str(model.extract(outputs=["flat"]).outputs[0].shape) == "[6,1]"
        assert model.revision == revision + 1
        small = layer("small", operation("Convert", destination_type="f16"), 1)
        model.insert_after("sum", small, readers=["flat"])
        assert str(model.extract(outputs="small").outputs[0].type) == "f16[2,3]"
        model.remove("small")


def test_edits_in_one_block_infer_once() -> None:
    model = sample()
    revision = model.revision
    with model.editing():
        model.set_constant("target", np.array([2, 6]))  # contradicts the shape of the inputs until they change
        model.reshape({"x": [4, 3], "y": [4, 3]})
        model.set_constant("target", np.array([1, 12]))
        with model.editing():
            model.remove("relu")
    assert model.revision == revision + 1
    assert str(model.layer("flat").outputs[0].shape) == "[1,12]"


# --------------------------------------------------------------------------- random sequences


numbers = st.integers(0, 40)


def pick(items: list[Any], number: int) -> Any:
    return items[number % len(items)]


def edits(model: Model, a: int, b: int, flag: bool) -> list[Callable[[], object]]:
    """Return edits of layers and tensors that two numbers choose; many of them are refused."""
    layers = list(model.walk())
    one, other = pick(layers, a), pick(layers, b)
    new = layer(f"new {model.revision}", operation("ReLU" if flag else "LogicalNot"), 1, number=5000 + model.revision)
    return [
        lambda: model.rename({one.key: other.name if flag else f"name {model.revision}"}),
        lambda: model.add_outputs([one, other]),
        lambda: model.set_constant(one, np.ones([1 + b % 3] * (a % 3), np.int64 if flag else np.float32)),
        lambda: model.replace(one, new),
        lambda: model.insert_after((one, b % 2), new),
        lambda: model.remove(one),
        lambda: model.fold_constants(decompress=flag),
        lambda: model.prune(),
        lambda: model.strip_rt_info(),
        lambda: model.reshape({port: [1 + a % 4, 3] for port in model.inputs}),
        lambda: model.extract([one], [other]),
    ]


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 10), numbers, numbers, st.booleans()), max_size=8), st.booleans())
def test_each_edit_leaves_an_inferred_model_or_changes_nothing(
    sequence: list[tuple[int, int, int, bool]], has_body: bool
) -> None:
    model = with_body() if has_body else sample()
    for kind, a, b, flag in sequence:
        if not model.layers:
            break
        before = everything(model)
        try:
            edits(model, a, b, flag)[kind]()
        except ovir.OvirError:
            assert everything(model) == before
        fresh = model.clone()
        fresh.infer_shapes()
        for edited, inferred in zip(model.walk(), fresh.walk(), strict=True):
            assert edited.key == inferred.key
            assert [str(p.type) for p in edited.outputs] == [str(p.type) for p in inferred.outputs]
    ovir.compile_model(model)
