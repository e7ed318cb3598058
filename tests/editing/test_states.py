"""States become inputs and outputs, and these become states again; both compute the same in calls in a row."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops


def _read(variable: str, begin: object, shape: Sequence[object] = (), name: str | None = None) -> ovir.Layer:
    if not shape:
        return ops.read_value(begin, variable, name=name)
    return ops.read_value(begin, variable, "f32", ovir.PartialShape(shape), name=name)


def total() -> ovir.Model:
    """The state is a tensor that is an output, too."""
    x = ops.parameter([2], "f32", name="x")
    y = ops.add(x, _read("v", np.zeros(2, np.float32)), name="y", tensor_names={"y"})
    return ovir.Model([y], [x], "total", sinks=[ops.assign(y, "v")])


def exchanged() -> ovir.Model:
    """Each state gets the other one's value, and one begins with other numbers than zeros."""
    x = ops.parameter([2], "f32", name="x")
    first, second = _read("s_10", np.ones(2, np.float32)), _read("s_9", np.zeros(2, np.float32))
    y = ops.add(ops.add(x, first), ops.multiply(second, 2.0), name="y", tensor_names={"y"})
    return ovir.Model([y], [x], "m", sinks=[ops.assign(second, "s_10"), ops.assign(ops.add(first, x), "s_9")])


def shown() -> ovir.Model:
    """The state is an output itself, is read twice, and its Assign passes a value on."""
    x = ops.parameter([2], "f32", name="x")
    first = ops.read_value(np.zeros(2, np.float32), "v", tensor_names={"state"})
    assign = ops.assign(ops.add(first, x), "v")
    second = ops.multiply(ops.read_value(np.zeros(2, np.float32), "v"), 2.0, tensor_names={"twice"})
    return ovir.Model([first, second, ops.relu(assign, tensor_names={"next"})], [x], "shown", sinks=[assign])


def fixed() -> ovir.Model:
    """Nothing assigns the variable."""
    x = ops.parameter([2], "f32", name="x")
    return ovir.Model([ops.add(x, _read("v", np.zeros(2, np.float32)), tensor_names={"y"})], [x], "fixed")


def cache(variable: str = "past_key_values.0.keypresent.0.key") -> ovir.Model:
    """A cache that grows, of which a mask chooses; beams change places."""
    x, mask = ops.parameter([-1, -1, 4], "f32", name="x"), ops.parameter([-1, -1], "i64", name="mask")
    beams = ops.parameter([-1], "i32", name="beam_idx")
    batch = ops.gather(ops.shape_of(x), [0], 0)
    begin = ops.broadcast(np.float32(0), ops.concat([batch, [0], [4]], 0))
    past = ops.gather(_read(variable, begin, (-1, -1, 4)), beams, 0)
    present = ops.concat([past, x], 1)
    chosen = ops.multiply(present, ops.unsqueeze(ops.convert(mask, "f32"), [2]))
    y = ops.reduce_sum(chosen, [1], False, name="y", tensor_names={"y"})
    return ovir.Model([y], [x, mask, beams], "cache", sinks=[ops.assign(present, variable)])


MODELS = {
    total: {"v": "v/next"},
    exchanged: {"s_9": "s_9/next", "s_10": "s_10/next"},
    shown: {"v": "v/next"},
    fixed: {"v": None},
    cache: {"past_key_values.0.key": "present.0.key"},
}


@pytest.mark.parametrize(("make", "pairs"), MODELS.items(), ids=lambda make: getattr(make, "__name__", ""))
def test_both_ways_compute_the_same(make: Callable[[], ovir.Model], pairs: dict[str, str | None]) -> None:
    model = make()
    names = [port.any_name for port in model.outputs]
    edit = model.states_to_inputs()
    assert edit.verdict == "proven: the results agree for 5 calls in a row, with random inputs"
    assert not any(layer.type in ("ReadValue", "Assign") for layer in model.layers)
    assert list(edit.relation["states"].values()) == list(pairs.items())
    known = [port.any_name for port in make().inputs]
    assert [port.any_name for port in model.inputs] == [*known, *pairs]
    presents = [name for name in pairs.values() if name is not None]
    assert [next(iter(set(names + presents) & port.names), None) for port in model.outputs[: len(names)]]
    assert all(name in port.names for name, port in zip(presents, model.outputs[len(names) :], strict=True))
    if not presents:
        return
    if make is not exchanged:  # in which a state begins with other numbers than zeros
        edit = model.inputs_to_states()
        assert edit.verdict.startswith("proven: the results agree for 5 calls")
        assert len(model.inputs) == len(known)
        again = model.states_to_inputs(verify=False)
        assert list(again.relation["states"].values()) == list(pairs.items())


@pytest.mark.parametrize("make", [*MODELS], ids=lambda make: make.__name__)
def test_results_of_calls_by_hand(make: Callable[[], ovir.Model]) -> None:
    """No proof of ovir's, but the values handed on from call to call."""
    model = make()
    request = ovir.compile_model(make()).create_infer_request()
    states = model.states_to_inputs(verify=False).relation["states"]
    values = {variable.name: variable.value for variable in request.query_state()}
    compiled = ovir.compile_model(model)
    rng = np.random.default_rng(3)
    begins = {"s_10": np.ones(2, np.float32)}
    held = {past: begins.get(variable, np.zeros(2, np.float32)) for variable, (past, _) in states.items()}
    if make is cache:
        held = {past: np.zeros((2, 0, 4), np.float32) for past, _ in states.values()}
    for call in range(4):
        feeds = {"x": rng.random(2, np.float32)}
        if make is cache:
            feeds = {"x": rng.random((2, 3, 4), np.float32), "beam_idx": np.array([1, 0], np.int32)}
            feeds["mask"] = rng.integers(0, 2, (2, 3 * call + 3))
        expected, found = request.infer(feeds), compiled({**feeds, **held})
        for number, array in enumerate(expected.values()):
            np.testing.assert_allclose(found[number], array, rtol=1e-6)
        held = {past: held[past] if present is None else found[present] for past, present in states.values()}
    assert values.keys() == states.keys()


def test_the_export_has_the_same_names(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnx_ir")
    for make in MODELS:
        model = make()
        exported = ovir.export_onnx(model, tmp_path / "m.onnx")
        states = model.states_to_inputs(verify=False).relation["states"]
        graph = onnx.load(tmp_path / "m.onnx").graph
        assert [item.name for item in graph.input] == [port.any_name for port in model.inputs]
        assert exported.state_inputs == {variable: past for variable, (past, _) in states.items()}
        assert exported.state_outputs == {v: present for v, (_, present) in states.items() if present is not None}
        assert all(item.name in port.names for item, port in zip(graph.output, model.outputs, strict=True))


@pytest.mark.parametrize(
    ("variable", "past", "present"),
    [
        ("past_key_values.3.valuepresent.3.value", "past_key_values.3.value", "present.3.value"),
        (
            "past_key_values.0.decoder.keypresent.0.decoder.key",
            "past_key_values.0.decoder.key",
            "present.0.decoder.key",
        ),
        (
            "cache_params.past.conv.0cache_params.present.conv.0",
            "cache_params.past.conv.0",
            "cache_params.present.conv.0",
        ),
        ("past.0.key", "past.0.key", "past.0.key/next"),
        ("x", "x_2", "x/next"),  # an input has this name
        ("tom", "tom", "tom/next"),
    ],
)
def test_names_of_variables(variable: str, past: str, present: str) -> None:
    model = cache(variable)
    model.states_to_inputs(verify=False)
    assert (model.inputs[-1].any_name, model.outputs[-1].any_name) == (past, present)


def test_named_pairs_keep_their_names() -> None:
    h, x = ops.parameter([1, 2], "f32", name="h", tensor_names={"h"}), ops.parameter([1, 2], "f32", name="x")
    new = ops.add(h, x, tensor_names={"hn"})
    model = ovir.Model([ops.relu(new, tensor_names={"y"}), new], [h, x], "rnn")
    with pytest.raises(ovir.InputError, match="the inputs are h, x, the outputs y, hn"):
        model.inputs_to_states()
    edit = model.inputs_to_states({"h": "hn"})
    assert edit.verdict.startswith("proven: the results agree for 5 calls")
    assert [layer.operator.variable_id for layer in edit.layers] == ["hhn", "hhn"]  # as OpenVINO joins them
    model.states_to_inputs()
    assert [port.any_name for port in (*model.inputs, *model.outputs)] == ["x", "h", "y", "hn"]


def test_initial_values_are_said() -> None:
    assert exchanged().states_to_inputs().notes == [
        "feed for the first call: zeros [2] to s_9",
        "feed for the first call: what layer 1 'Const_1' (Const, opset1) of the original computes, [2] to s_10",
    ]
    assert cache().states_to_inputs().notes == ["feed for the first call: zeros [?,0,4] to past_key_values.0.key"]


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more input"), (8, " and 3 more inputs")])
def test_five_states_are_named(count: int, more: str) -> None:
    x = ops.parameter([2], "f32", name="x")
    states = [_read(f"v{i}", np.zeros(2, np.float32)) for i in range(count)]
    sinks = [ops.assign(x, f"v{i}") for i in range(count)]
    notes = ovir.Model([ops.concat([x, *states], 0)], [x], "m", sinks=sinks).states_to_inputs(verify=False).notes
    assert notes == [f"feed for the first call: zeros [2] to v0, v1, v2, v3, v4{more}"]


def test_a_wrong_edit_is_refused() -> None:
    """The proof sees the state in the second call, and an output of a state in the first."""
    states = {"v": ("v", "v/next")}
    for change in (lambda m: m.replace("y", ops.subtract(*(p.source for p in m.layer("y").inputs))), _late):
        after = total()
        after.states_to_inputs()
        change(after)
        with pytest.raises(ovir.ModelError, match=r"OVIR812.*before and after the edit differ"):
            ovir.prove_edit(total(), after, states=states)
        with pytest.raises(ovir.ModelError, match=r"OVIR812.*before and after the edit differ"):
            ovir.prove_edit(after, total(), states=states)


def _late(model: ovir.Model) -> None:
    """Return the old value of the state as its next one."""
    model.insert_before(model.outputs[1], ops.subtract(model.outputs[1].source, model.input("x")))


def _in_body() -> ovir.Model:
    inner = ops.parameter([1, 2], "f32", name="inner")
    state = ops.read_value(np.zeros((1, 2), np.float32), "v", name="state")
    body = ovir.Model([ops.add(inner, state)], [inner], "body", sinks=[ops.assign(inner, "v")])
    loop = ops.tensor_iterator()
    x = ops.parameter([3, 2], "f32", name="x")
    loop.set_body(body)
    loop.set_sliced_input(inner, x, 0, 1, 1, -1, 0)
    out = loop.get_iter_value(body.results[0], -1)
    return ovir.Model([out], [x], "loop")


@pytest.mark.parametrize(
    ("model", "edit", "message"),
    [
        (lambda: ovir.Model([ops.relu(x := ops.parameter([2], "f32"))], [x], "m"), "states_to_inputs", "no states"),
        (_in_body, "states_to_inputs", "state'.*variable of a body"),
        (lambda: _two("f32", [2], "i32"), "inputs_to_states", "the input is f32.*the output i32"),
        (lambda: _two("f32", [3], "f32"), "inputs_to_states", "OVIR"),
        (lambda: _two("f32", [2], "f32", both=False), "inputs_to_states", "would have no output"),
    ],
)
def test_refusals_change_nothing(model: Callable[[], ovir.Model], edit: str, message: str) -> None:
    made = model()
    before = [layer.key for layer in made.walk()]
    with pytest.raises(ovir.OvirError, match=message):
        getattr(made, edit)()
    assert [layer.key for layer in made.walk()] == before


@pytest.mark.parametrize("pairs", [{"a": "x", "b": "x"}, {"a": "x", 0: "y"}])
def test_an_input_or_an_output_is_in_one_pair(pairs: dict[str | int, str]) -> None:
    a, b = (ops.parameter([2], "f32", name=name) for name in "ab")
    outputs = [ops.result(ops.relu(port), tensor_names=name) for port, name in ((a, "x"), (b, "y"), (a + b, "z"))]
    kind = "output" if "b" in pairs else "input"
    with pytest.raises(ovir.InputError, match=f"an {kind} is in two pairs: "):
        ovir.Model(outputs, [a, b]).inputs_to_states(pairs)


def _two(kind: str, shape: list[int], other: str, *, both: bool = True) -> ovir.Model:
    past, x = ops.parameter(shape, kind, name="past", tensor_names={"past"}), ops.parameter([2], kind, name="x")
    present = ops.convert(ops.relu(x), other, tensor_names={"present"})
    y = ops.relu(past, tensor_names={"y"})
    return ovir.Model([present, *([y] if both else [])], [past, x], "m")


@pytest.mark.parametrize(("batch", "count"), [((-1, -1), 1), ((1, 1), 0), ((-1, 1), 0)])
def test_a_note_says_what_the_cpu_device_may_not_compile(batch: tuple[int, int], count: int) -> None:
    """The size of the batch is open in both inputs; without another open one, a state begins with one item."""
    past, new = (ops.parameter([n, -1, 4], "f32", name=name) for n, name in zip(batch, ("past", "new"), strict=True))
    joined = ops.concat([past, new], 1)
    model = ovir.Model([joined, ops.relu(joined)], [past, new])
    edit = model.inputs_to_states({"past": model.outputs[0].any_name})
    assert edit.verdict.startswith("proven")
    assert ["CPU device may not compile" in note for note in edit.notes] == [True] * count
    assert str(edit.layers[0].inputs[0].shape) == ("[?,0,4]" if count else "[1,0,4]")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["u1", "u3", "u6", "nf4", "i4", "boolean", "bf16", "f8e4m3"])
@pytest.mark.parametrize("shape", [[], [0], [2], [-1]])
def test_inputs_of_every_type_become_states_that_begin_with_zeros(kind: str, shape: list[int], tmp_path: Path) -> None:
    past, new = (ops.parameter(shape, kind, name=name) for name in ("past", "new"))
    seen, present = ops.unsqueeze(past, 0, name="seen"), ops.select(ops.constant(True), new, past, name="present")
    model = ovir.Model([present, seen], [past, new])
    assert model.inputs_to_states({"past": "present"}).verdict.startswith("proven")
    ovir.save_model(model, tmp_path / "model.xml")
    request = ovir.compile_model(tmp_path / "model.xml").create_infer_request()
    ones = np.ones([2 if size < 0 else size for size in shape], past.element_type.to_dtype())
    zero = 7 if kind == "nf4" else 0  # the code of 0
    first, second = request.infer([ones])[0].copy(), request.infer([ones])[0]
    assert (first.astype(int) == zero).all()
    assert (second.astype(int) == 1).all()
