"""fix_input, fold_constants and simplify: what is rewritten, and what only looks as if it could be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from support.random_models import models
from support.simplifiable import Build, around, loop, mixed, unassigned, vad

import ovir
from ovir import opset16 as ops


def types(model: ovir.Model) -> list[str]:
    return sorted(layer.type for layer in model.walk() if layer.type not in ("Const", "Parameter", "Result"))


def interface(model: ovir.Model) -> list[tuple[str, str]]:
    return [(port.any_name, str(port.type)) for port in (*model.inputs, *model.outputs)]


NOTHING: dict[str, Build] = {
    "the same type": lambda t: ops.convert(t, "f32"),
    "like the same type": lambda t: ops.convert_like(t, np.float32(0)),
    "exact and back": lambda t: ops.convert(ops.convert(t, "f64"), "f32"),
    "inverse": lambda t: ops.transpose(ops.transpose(t, [1, 2, 0]), [2, 0, 1]),
    "three": lambda t: ops.transpose(ops.transpose(ops.transpose(t, [1, 2, 0]), [1, 2, 0]), [1, 2, 0]),
    "reshaped and back": lambda t: ops.reshape(ops.reshape(t, [-1], False), [2, 3, 4], False),
    "squeezed": lambda t: ops.squeeze(ops.unsqueeze(t, [1]), [1]),
    "no pads": lambda t: ops.pad(t, [0] * 3, [0] * 3, "edge"),
    "the whole": lambda t: ops.slice(t, [0, 0], [9, 4], [1, 1], [0, 2]),
    "the whole, strided": lambda t: ops.strided_slice(t, [0, 0], [2, 9], [1, 1], [0, 1], [0, 1]),
    "one input": lambda t: ops.concat([t], 1),
    "one part": lambda t: ops.split(t, np.array(1), 1).output(0),
    "once": lambda t: ops.tile(t, [1, 1, 1]),
    "same shape": lambda t: ops.broadcast(t, np.array([2, 3, 4])),
    "identity": lambda t: ops.identity(t),
}
SOMETHING: dict[str, Build] = {
    "loses digits": lambda t: ops.convert(ops.convert(t, "f16"), "f32"),
    "loses fractions": lambda t: ops.convert(ops.convert(t, "i32"), "f32"),
    "not inverse": lambda t: ops.transpose(ops.transpose(t, [1, 2, 0]), [1, 2, 0]),
    "moves elements": lambda t: ops.reshape(ops.transpose(ops.reshape(t, [6, 4], False), [1, 0]), [2, 3, 4], False),
    "moves them by a pad": lambda t: ops.pad(t, [1, 0, 0], [-1, 0, 0], "constant"),
    "reverses": lambda t: ops.slice(t, [-1], [-9], [-1], [1]),
    "reverses, strided": lambda t: ops.strided_slice(t, [1], [-9], [-1], [0], [0]),
    "twice": lambda t: ops.concat([t, t], 1),
    "rolls": lambda t: ops.roll(t, [1], [1]),
}


@pytest.mark.parametrize("name", [*NOTHING, *SOMETHING])
def test_layers_that_do_nothing_are_left_out(name: str) -> None:
    model = around((NOTHING | SOMETHING)[name])
    before, present = interface(model), types(model)
    edit = model.simplify()
    assert edit.verdict.startswith("proven" if name in NOTHING else "nothing has changed")
    assert (types(model), interface(model)) == (["ReLU", "ReLU"] if name in NOTHING else present, before)
    assert bool(edit.changes) == (name in NOTHING)


@pytest.mark.parametrize(
    ("build", "shape", "left"),
    [
        (lambda t: ops.reshape(ops.reshape(t, [-1], False), [4, 6], False), (2, 3, 4), 1),
        (lambda t: ops.reshape(ops.unsqueeze(t, [0]), [-1, 12], False), (2, 3, 4), 1),
        (lambda t: ops.reshape(ops.reshape(t, [0, 0, 2, 2], True), [0, 0, -1], True), (-1, -1, 4), 0),
        (lambda t: ops.reshape(ops.reshape(t, [0, 12], True), [0, 2, -1], True), (-1, 3, 4), 1),
        # the zero copies a size that only the first Reshape makes
        (lambda t: ops.reshape(ops.reshape(t, [6, 4], False), [0, 2, 2], True), (2, 3, 4), 2),
        (lambda t: ops.reshape(ops.reshape(t, [-1, 4], False), [0, 2, 2], True), (-1, -1, 4), 2),
        # inference knows the sizes of the first Reshape only
        (lambda t: ops.reshape(ops.reshape(t, [2, 6], False), [-1, 4], False), (-1, 4), 2),
        # the sizes are different ones
        (lambda t: ops.reshape(ops.reshape(t, [-1, 2], False), [-1, 4], False), (-1, -1), 1),
    ],
)
def test_reshapes_of_reshapes(build: Build, shape: tuple[int, ...], left: int) -> None:
    model = around(build, shape)
    before = interface(model)
    assert model.simplify().verdict.startswith("nothing" if left == 2 else "proven")
    assert (len(types(model)) - 2, interface(model)) == (left, before)
    if -1 in shape and left < 2:
        size = [n if n > 0 else 4 for n in shape]
        for sizes in (size, [0 if n < 0 else n for n in shape]):
            x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
            expected = ovir.compile_model(around(build, shape))([x])[0]
            np.testing.assert_array_equal(ovir.compile_model(model)([x])[0], expected)


@pytest.mark.parametrize(
    ("source", "through", "target", "left"),
    [
        *(("u8", "f32", "u8", 0), ("i32", "i64", "i32", 0), ("boolean", "i8", "boolean", 0), ("f16", "f32", "f16", 0)),
        *(("i8", "i32", "i64", 1), ("f16", "f32", "f64", 1), ("u8", "bf16", "f32", 1)),
        *(("i32", "f32", "i32", 2), ("u8", "i8", "u8", 2), ("f32", "bf16", "f32", 2), ("i64", "f64", "i64", 2)),
        *(("i8", "boolean", "i8", 2), ("f16", "bf16", "f16", 2), ("u8", "f32", "i8", 2), ("f32", "i64", "f32", 2)),
    ],
)
def test_conversions(source: str, through: str, target: str, left: int) -> None:
    x = ops.parameter([3], source, name="x")
    moved = ops.convert(ops.convert(ops.concat([x, x], 0), through), target)
    model = ovir.Model([ops.result(ops.concat([moved, moved], 0))], [x], "m")
    model.simplify()
    assert types(model).count("Convert") == left


def test_special_values_pass() -> None:
    model = around(lambda t: ops.transpose(ops.transpose(ops.convert(t, "f32"), [1, 2, 0]), [2, 0, 1]), (1, 1, 4))
    x = np.float32([[[np.nan, np.inf, -0.0, 1e-45]]])
    before = ovir.compile_model(model)([x])[0]
    model.simplify()
    np.testing.assert_array_equal(ovir.compile_model(model)([x])[0].view(np.int32), before.view(np.int32))


@pytest.mark.parametrize(
    ("build", "left"),
    [
        (lambda t: (ops.exp(t), ops.exp(t)), 1),
        (lambda t: (ops.add(t, np.float32(1)), ops.add(t, np.float32([1]).reshape(()))), 1),
        (lambda t: (ops.exp(ops.tanh(t)), ops.exp(ops.tanh(t))), 2),
        (lambda t: (ops.add(t, np.float32(1)), ops.add(t, np.float32(2))), 2),
        (lambda t: (ops.softmax(t, 0), ops.softmax(t, 1)), 2),
        (lambda t: (ops.subtract(t, ops.exp(t)), ops.subtract(ops.exp(t), t)), 3),
        (lambda t: (ops.add(t, np.float32(0)), ops.add(t, np.float32(-0.0))), 2),
        (lambda t: (draw(t), draw(t)), 4),
    ],
)
def test_equal_layers_are_merged(build: Callable[[Any], tuple[Any, Any]], left: int) -> None:
    model = around(lambda t: ops.concat(list(build(t)), 0))
    model.simplify()
    assert len(types(model)) - 3 == left


@pytest.mark.parametrize(("count", "left"), [(1024, 1), (1025, 2)])
def test_only_small_constants_are_compared(count: int, left: int) -> None:
    ones = np.ones(count, np.float32)
    model = around(lambda t: ops.concat([ops.add(t, ones), ops.add(t, ones.copy())], 0), (1, count))
    model.simplify(verify=False)
    assert types(model).count("Add") == left


def draw(t: Any) -> Any:
    """Add random numbers: two of equal layers are not the same."""
    random = ops.random_uniform([2, 3, 4], np.float32(0), np.float32(1), "f32", 0, 0)
    return ops.add(t, random)


def test_random_numbers_are_not_proven() -> None:
    model = around(lambda t: ops.convert(draw(t), "f32"))
    assert "draws random numbers" in model.simplify().verdict
    assert "Convert" not in types(model)


def test_names_of_inputs_and_outputs_remain() -> None:
    x = ops.parameter([2], "f32", name="x", tensor_names={"x"})
    a = ops.convert(x, "f32", name="a", tensor_names={"a"})  # "a" comes before "x"
    early = ops.exp(a, name="early", tensor_names={"b", "z"})
    out = ops.convert(early, "f32", name="out", tensor_names={"out"})
    same = ops.exp(ops.convert(x, "f32"), name="same", tensor_names={"same"})
    passed = ops.convert(x, "f32", name="passed", tensor_names={"passed"})
    model = ovir.Model([ops.result(t) for t in (out, same, passed)], [x], "m")
    before = interface(model)
    model.simplify()
    assert interface(model) == before
    assert types(model) == ["Convert", "Exp", "Exp"]  # two outputs, and an input, stay tensors of their own
    assert {"out", "z"} <= model.outputs[0].names


def test_the_first_layer_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = around(lambda t: ops.sqrt(ops.multiply(t, np.float32(2))))
    monkeypatch.setattr("ovir.ops.unary.Sqrt.why_unchanged", lambda *_: "it is taken for one")
    with pytest.raises(ovir.ModelError, match=r"'last'.*results before and after the edit differ"):
        model.simplify()
    assert "Sqrt" in types(model)
    model.simplify(verify=False)
    assert "Sqrt" not in types(model)


# --------------------------------------------------------------------------- what is known before a run


@pytest.mark.parametrize("rate", [16000, 8000])
def test_an_if_chosen_by_an_input(rate: int) -> None:
    model = vad()
    fixed = model.fix_input("sr", rate)
    assert (fixed.verdict[:6], [layer.name for layer in fixed]) == ("proven", ["sr"])
    assert [port.any_name for port in model.inputs] == ["input"]
    assert "If" in types(model)
    edit = model.fold_constants()
    assert edit.changes["If whose condition is known"] == ["rate"]
    assert "If" not in types(model)
    assert model.layer(f"rate/{'then' if rate == 16000 else 'else'}/frames").type == "Reshape"
    x = np.linspace(-1, 1, 8, dtype=np.float32)[None]
    old, new = (ovir.compile_model(m).create_infer_request() for m in (vad(), model))
    for _ in range(3):
        np.testing.assert_array_equal(new.infer([x])["output"], old.infer({"input": x, "sr": rate})["output"])


@pytest.mark.parametrize("depth", [1, 3])
def test_a_branch_that_passes_an_input_on_to_two_outputs(depth: int) -> None:
    def chosen(data: Any, depth: int) -> list[Any]:
        layer = ops.if_op(ops.constant(np.array(True)), name=f"if{depth}")
        bodies = []
        for function in (lambda p: p, ops.exp):
            p = ops.parameter([2], name="p", tensor_names={"p"})
            ends = chosen(p, depth - 1) if depth > 1 else [function(p)] * 2
            bodies.append(ovir.Model([ops.result(end) for end in ends], [p], "branch"))
        layer.set_then_body(bodies[0])
        layer.set_else_body(bodies[1])
        layer.set_input(data, bodies[0].inputs[0], bodies[1].inputs[0])
        return [layer.set_output(bodies[0].outputs[i], bodies[1].outputs[i]) for i in range(2)]

    x = ops.parameter([2], name="x", tensor_names={"x"})
    model = ovir.Model([ops.result(end, name=f"out{i}") for i, end in enumerate(chosen(x, depth))], [x], "m")
    before = interface(model)
    assert model.simplify().verdict.startswith("proven")
    assert (types(model), interface(model)) == (["Convert", "Convert"], before)


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (lambda: loop(1), 4),
        (lambda: loop(5, again=False), 4),
        (lambda: loop(0), 1),
        (lambda: loop(1, start=False), 1),
        (lambda: loop(None), None),
        (lambda: loop(None, again=False), None),
        (lambda: unassigned(), 1),
        (lambda: unassigned(initial=False), 1),
        (lambda: unassigned(initial=False, shape="?,4"), None),
        (lambda: unassigned(assigned=True), None),
    ],
)
def test_loops_and_states(make: Callable[[], ovir.Model], left: int | None) -> None:
    model, original = make(), make()
    before = [port.any_name for port in (*model.inputs, *model.outputs)]
    edit = model.fold_constants()
    assert [port.any_name for port in (*model.inputs, *model.outputs)] == before
    assert types(model) == types(original) if left is None else len(types(model)) == left
    assert not {"Loop", "ReadValue"} & set(types(model)) or left is None
    assert edit.verdict.startswith("proven" if left is not None else "nothing")
    for port, old in zip(model.outputs, original.outputs, strict=True):
        assert str(port.type) == str(old.type)


def test_a_loop_over_parts_stays() -> None:
    x, part = ops.parameter([2, 3], "f32", name="x"), ops.parameter([1, 3], "f32")
    body = ovir.Model([ops.result(ops.constant(np.array(True))), ops.result(ops.exp(part))], [part], "body")
    layer = ops.loop(np.int64(1), True, name="loop")
    layer.set_function(body)
    layer.set_special_body_ports([-1, 0])
    layer.set_sliced_input(part, x, 0, 1, 1, -1, 0)
    model = ovir.Model([layer.get_iter_value(body.outputs[1].layer, -1)], [x], "m")
    assert model.simplify().changes == {}


@pytest.mark.parametrize(("rows", "end"), [(1, -1), (2, -1), (2, 0)])
def test_an_iterator_over_one_part_becomes_its_body_if_that_is_all(rows: int, end: int) -> None:
    x, part = ops.parameter([rows, 3], "f32", name="x"), ops.parameter([1, 3], "f32")
    body = ovir.Model([ops.exp(part)], [part], "body")
    layer = ops.tensor_iterator(name="iterator")
    layer.set_body(body)
    layer.set_sliced_input(part, x, 0, 1, 1, end, 0)
    model = ovir.Model([layer.get_concatenated_slices(body.results[0], 0, 1, 1, -1, 0)], [x], "m")
    assert model.fold_constants().verdict.startswith("proven" if rows == 1 else "nothing")
    assert types(model) == (["Exp"] if rows == 1 else ["Exp", "TensorIterator"])


def test_dead_layers_and_bodies() -> None:
    model = mixed()
    edit = model.simplify()
    assert types(model) == ["Add", "Concat", "Loop", "Sigmoid", "Tanh"]
    assert {key for keys in edit.changes.values() for key in keys if key.startswith("loop/body/")}
    assert str(model.outputs[0].shape) == "[?,8]"


@pytest.mark.slow
@given(models())
@settings(max_examples=60, deadline=None)
def test_random_models(model: ovir.Model) -> None:
    before = interface(model)
    assert not model.simplify().verdict.startswith("not proven")
    assert interface(model) == before


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("x", [1.0, 2.0], r"input 'x' takes shape \[2,3,4\], got \[2\]"),
        ("y", 1, "the model has no input 'y'"),
        ("x", "text", "input 'x'"),
    ],
)
def test_inputs_that_cannot_be_fixed(key: str, value: Any, message: str) -> None:
    model = around(lambda t: ops.exp(t))
    with pytest.raises(ovir.InputError, match=message):
        model.fix_input(key, value)
    assert len(model.inputs) == 1


@pytest.mark.parametrize("kind", ["u64", "i32", "u4", "boolean", "nf4"])
@pytest.mark.parametrize(
    "value", [-0.0, 1.0, True, np.float64(1), 1.5, float("nan"), -(2**70), 1j, "text", None, [[1], []]]
)
def test_an_input_takes_the_numbers_that_a_constant_of_its_type_takes(kind: str, value: Any) -> None:
    x = ops.parameter([], kind, name="x")
    model = ovir.Model([ops.shape_of(x), ops.unsqueeze(x, 0)], [x])
    try:
        expected = ops.constant(value, kind)
    except ovir.InputError:
        with pytest.raises(ovir.InputError, match="input 'x' cannot be fixed: "):
            model.fix_input("x", value)
    else:
        (constant,) = model.fix_input("x", value).layers
        assert constant.outputs[0].type == expected.outputs[0].type
        assert constant.operator.data == expected.operator.data
