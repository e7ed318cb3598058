"""``ovir.compare`` with a device (a stand-in for OpenVINO, which is ovir with faults), a second model and recordings."""

import inspect
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bodies import choice, conditional, looped
from support.comparing import X, small_net
from support.small_transformers import data, encoder

import ovir
from ovir import opset13 as ops
from ovir import opset15
from ovir.analysis.tensor_comparison import Criterion, default_tolerance
from ovir.core.arrays import Array
from ovir.core.element_types import ELEMENT_TYPES, ElementType, f4e2m1, f32, nf4, string
from ovir.debugging.candidates import Candidate
from ovir.debugging.comparison import Agreement
from ovir.debugging.comparison_session import Findings, finish
from ovir.debugging.sides import Partners
from ovir.debugging.tensor_sides import _ports_by_name, rounded_by_one
from ovir.inference.layer_weights import weights_of
from ovir.io.tensor_files import load_npz, save_npz

pytestmark = pytest.mark.slow

# --------------------------------------------------------------------------- devices


@pytest.mark.parametrize("mode", [None, "isolated", "cumulative"])
def test_a_device_that_computes_the_same(mode: str | None, device: pytest.MonkeyPatch) -> None:
    found = ovir.compare(small_net(), inputs={"x": X}, mode=mode)
    assert found
    assert found.first is found.largest is None
    assert found.against == "OpenVINO 1.2.3 on CPU"
    assert found.mode == (mode or "outputs")
    assert [item.name for item in found.outputs] == ["soft", "rows"]
    assert all(item.tensor.worst.max_abs == 0 for item in found.outputs)
    assert sorted(layer.name for layer in found.layers) == (["product", "rows", "soft", "tanh"] if mode else [])
    assert found.outputs[0].tensor.agreement == Agreement(1.0, 1.0)


def test_a_wrong_kernel_is_found_in_isolation_if_the_outputs_differ(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:MatMul")
    found = ovir.compare(small_net(), inputs=[X])
    assert not found
    assert found.mode == "isolated"
    assert found.first is found.largest
    assert (found.first.name, found.first.type) == ("product", "MatMul")
    assert found.first.tensor.worst.max_abs == pytest.approx(1)
    assert [layer.name for layer in found.layers if not layer.within] == ["product"]
    assert [item.within for item in found.outputs] == [False, True]


def test_errors_add_up_in_cumulative_mode(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:MatMul")
    found = ovir.compare(small_net(), inputs=[X], mode="cumulative")
    assert [layer.name for layer in found.layers if not layer.within] == ["product", "tanh", "soft"]
    assert found.first.name == "product"
    assert found.first.contribution > 0


@pytest.mark.parametrize("mode", [None, "isolated", "cumulative"])
def test_the_layer_that_kills_the_device_is_found(mode: str | None, device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "die:Tanh")
    found = ovir.compare(small_net(), inputs=[X], mode=mode)
    assert found.failed
    assert not found
    assert found.first.name == "tanh"
    assert "the process ended with signal SIGKILL" in str(found.first.tensor.worst.problem)
    assert math.isinf(found.first.contribution)
    assert [d.code for d in found.diagnostics] == ["OVIR805"]
    within = [layer.name for layer in found.layers if layer.within]
    if mode == "cumulative":
        assert within == ["product"]
        assert {item.reason for item in found.not_compared} == {"the device fails before, at 'tanh'"}
    else:
        assert sorted(within) == ["product", "rows", "soft"]


def test_a_layer_that_the_device_refuses(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "refuse:Tanh")
    found = ovir.compare(small_net(), inputs=[X])
    assert found.first.name == "tanh"
    assert found.first.tensor.worst.problem == "OpenVINO 1.2.3 on CPU: cannot compile the model: Tanh is not supported"


def test_states_bodies_and_odd_types_in_all_modes(device: pytest.MonkeyPatch) -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    state = ops.read_value(ops.constant(np.ones((2, 3), np.float32)), "v", "f32", [2, 3], name="state")
    total = ops.add(state, x, name="total")
    flag = ops.parameter([], "boolean", name="flag")
    split = ops.split(choice(flag, ops.relu, ops.negative, total, name="branch").outputs[0], 1, 3, name="split")
    small = ops.convert(split[0], "u4", name="small")
    half = ops.convert(ops.convert(split[2], "bf16", name="bf16"), "f8e4m3", name="f8")
    model = ovir.Model([ops.convert(small, "i64", name="wide"), half, split[1]], [ops.assign(total, "v")], [x, flag])
    inputs = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "flag": np.array(True)}
    for mode in ("isolated", "cumulative"):
        found = ovir.compare(model, inputs=inputs, mode=mode)
        assert found, found.to_dict()
        names = {layer.name for layer in found.layers}
        assert {"total", "branch", "split", "small", "bf16", "f8", "wide"} <= names
        reasons = {item.type: item.reason for item in found.not_compared}
        assert "state" in names
        if mode == "isolated":
            assert reasons == {"Assign": "it only sets a state"}
        else:
            assert set(reasons) <= {"Assign"}


def test_another_initial_value_of_a_state_is_named() -> None:
    def net(initial: float) -> ovir.Model:
        x = ops.parameter([2], "f32", name="x")
        state = ops.read_value(np.float32([initial, 1]), "v", "f32", [2], name="state")
        total = ops.add(state, x, name="total")
        return ovir.Model([ops.relu(total, name="out")], [ops.assign(total, "v")], [x])

    found = ovir.compare(net(0.5), net(1.5), inputs=[np.float32([1, 2])], mode="isolated")
    assert [layer.name for layer in found.layers if not layer.within] == ["state"]


def test_strings_are_compared(device: pytest.MonkeyPatch) -> None:
    texts = ops.parameter([2], "string", name="texts")
    begins, ends, chars = opset15.string_tensor_unpack(texts, name="unpack")
    model = ovir.Model([opset15.string_tensor_pack(begins, ends, chars, name="pack")], [texts])
    found = ovir.compare(model, inputs=[np.array(["a", "bcd"])], mode="isolated")
    assert found
    assert {layer.name for layer in found.layers} == {"unpack", "pack"}


def test_the_tolerance_follows_from_the_precision_of_the_device(device: pytest.MonkeyPatch) -> None:
    changed = small_net(scale=1.002)
    options = {"inputs": [X], "device": "openvino:CPU"}
    exact = ovir.compare(small_net(), changed, **options)  # type: ignore[arg-type]
    coarse = ovir.compare(small_net(), changed, config={"INFERENCE_PRECISION_HINT": "bf16"}, **options)  # type: ignore[arg-type]
    assert (exact.precision, bool(exact)) == ("f32", False)
    assert (coarse.precision, bool(coarse)) == ("bf16", True)
    assert coarse.to_dict()["precision"] == "bf16"
    assert coarse.outputs[1].tensor.tolerance.rtol == 0  # i64, which no precision changes


@pytest.mark.parametrize("second", [False, True])
def test_layers_say_how_the_device_has_executed_them(second: bool, device: pytest.MonkeyPatch) -> None:
    model, options = small_net(), {"inputs": [X], "mode": "isolated"}
    renamed = small_net()
    renamed.rename({"tanh": "other"})
    assert ovir.compare(model, **options).layers[0].execution is None  # type: ignore[arg-type]
    device.setenv("OVIR_TEST_FAULT", "executes:")
    others = {"against": renamed, "device": "openvino:CPU"} if second else {}
    layers = ovir.compare(model, **options, **others).to_dict()["layers"]  # type: ignore[arg-type]
    found = {layer["name"]: (layer["executed"]["name"], layer["executed"]["precision"]) for layer in layers}
    names = {name: "other" if second and name == "tanh" else name for name in ("product", "tanh", "soft", "rows")}
    assert found == {name: (own, "f16") for name, own in names.items()}


def test_an_unknown_property_is_an_error_and_no_difference(device: pytest.MonkeyPatch) -> None:
    with pytest.raises(ovir.InputError) as caught:
        ovir.compare(small_net(), inputs=[X], config={"FOO": "bar"})
    assert str(caught.value) == (
        "error[OVIR904] openvino:CPU: CPU refuses the properties FOO=bar: Unsupported property FOO"
    )
    with pytest.raises(ovir.InputError, match=r"did you mean INFERENCE_PRECISION_HINT\?"):
        ovir.compare(small_net(), inputs=[X], config={"INFERENCE_PRECISON_HINT": "f32"})
    with pytest.raises(ovir.InputError) as mistaken:
        ovir.compare(small_net(), "openvio:CPU", inputs=[X])
    assert mistaken.value.diagnostic.hint == "did you mean openvino:CPU?"


# --------------------------------------------------------------------------- second models


def test_a_changed_layer_of_a_second_model_is_the_first_that_differs() -> None:
    changed = small_net()
    weights = changed.layer("weights").operator.data.copy()  # type: ignore[union-attr]
    weights[1, 2] += 0.1
    changed.set_constant("weights", weights)
    found = ovir.compare(small_net(), changed, inputs=[X])
    assert found.first.name == "product"
    assert sorted(layer.name for layer in found.layers) == ["product", "rows", "soft", "tanh"]
    alone = ovir.compare(small_net(), changed, inputs=[X], mode="isolated")
    assert [layer.name for layer in alone.layers if not layer.within] == ["product"]


def test_the_noise_of_the_inputs_is_subtracted() -> None:
    """Make the product wrong by a factor of 1.5, which the sum passes on and the square increases."""

    def net(factor: float) -> ovir.Model:
        x = ops.parameter([4], "f32", name="x")
        product = ops.multiply(x, np.float32(factor), name="product")
        twice = ops.add(product, product, name="twice")
        return ovir.Model([ops.multiply(twice, twice, name="square"), ops.multiply(x, x, name="other")], [x])

    found = ovir.compare(net(1), net(1.5), inputs=[X[0]])
    contributions = {layer.name: layer.contribution for layer in found.layers}
    assert contributions == pytest.approx({"product": 0.5, "twice": 0, "square": 0.75, "other": 0})
    assert [layer.name for layer in found.ranked()] == ["product", "square", "twice", "other"]


def test_tables_of_a_comparison() -> None:
    """They have the columns that say something, and so has a notebook."""
    found = ovir.compare(small_net(), small_net(scale=2), inputs=[X])
    layers = found.layers_table(found.ranked())
    heads = [column.name for column in layers.columns if column.only != "texts"]
    assert heads[:7] == ["", "order", "layer", "operation", "tensor", "noise", "max abs"]
    rows = layers.without(["texts"]).rows
    assert sorted((row[1], row[2]) for row in rows) == [(1, "product"), (2, "tanh"), (3, "soft"), (4, "rows")]
    assert {row[2]: row[0] for row in rows if "first" in row[0]} == {"product": found.mark(found.layers[0])}
    outputs = found.outputs_table(found.outputs).texts()
    assert [row[:3] for row in outputs] == [["beyond", "soft", "f32[2,6]"], ["within", "rows", "i64[2]"]]
    html = found._repr_html_()
    assert f"small against {found.against}: beyond tolerance, first at MatMul" in html
    assert html.count("<table>") == 2
    device = replace(found, layers=[], sets=2)
    assert device._repr_html_().count("<table>") == 1
    assert "top-1" in {column.name for column in found.outputs_table(found.outputs).columns}
    assert "top-1" not in {column.name for column in layers.columns}
    assert "mean SQNR" in {column.name for column in device.outputs_table(found.outputs).columns}


def test_a_changed_attribute_and_layers_of_other_names() -> None:
    changed = small_net(axis=0)
    changed.rename({"tanh": "other", "soft": "smooth"})
    found = ovir.compare(small_net(), changed, inputs=[X])
    assert (found.first.name, found.first.other) == ("soft", "smooth")
    assert found.to_dict()["first"]["other"] == "smooth"


def test_a_second_model_on_a_device(device: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ovir.save_model(small_net(scale=1.01), tmp_path / "other.xml")
    found = ovir.compare(small_net(), tmp_path / "other.xml", inputs=[X], device="openvino:CPU")
    assert found.against.endswith("other.xml on OpenVINO 1.2.3 on CPU")
    assert found.first.name == "product"
    assert [layer.name for layer in found.layers if not layer.within] == ["product"]


def test_layers_that_only_one_model_has(device: pytest.MonkeyPatch) -> None:
    changed = small_net()
    changed.insert_after("tanh", ops.relu(changed.layer("tanh").output(), name="new"))
    changed.remove("soft")
    found = ovir.compare(small_net(), changed, inputs=[X])
    assert {item.name: item.reason for item in found.not_compared} == {"soft": "the other model has no such layer"}
    assert [layer.name for layer in found.layers] == ["product", "tanh", "rows"]


def test_layers_that_only_one_model_has_before_a_layer() -> None:
    def model(*, has_square: bool, has_absolute: bool) -> ovir.Model:
        x = ops.parameter([4], "f32", name="x")
        y: ovir.Layer = ops.multiply(x, x, name="square") if has_square else x
        y = ops.absolute(y, name="absolute") if has_absolute else y
        return ovir.Model([ops.exp(ops.sin(y, name="sine"), name="exp")], [x])

    plain, squared = model(has_square=False, has_absolute=False), model(has_square=True, has_absolute=False)
    found = ovir.compare(plain, squared, inputs={"x": np.linspace(1.5, 3, 4, dtype=np.float32)})
    assert found.first.lone_before == ("Multiply 'square', which only the other model has",)
    assert found.first.to_dict()["lone_before"] == list(found.first.lone_before)
    later = next(layer for layer in found.layers if layer.name == "exp")
    assert later.lone_before == ()
    assert "lone_before" not in later.to_dict()
    found = ovir.compare(squared, model(has_square=False, has_absolute=True))
    assert found.first.lone_before == (
        "Multiply 'square', which only the first model has",
        "Abs 'absolute', which only the other model has",
    )


def test_half_precision_has_its_own_tolerance() -> None:
    assert ovir.compare(small_net(), small_net(element_type="f16"), inputs=[X])
    assert not ovir.compare(small_net(), small_net(element_type="f16"), inputs=[X], rtol=1e-6)


def _converted(kind: str, where: str) -> ovir.Model:
    """Return a model in f32 that rounds to another type in one place."""
    x = ops.parameter([4, 4], "f32", name="x")
    y: ovir.Layer | ovir.Port = x
    weights: ovir.Layer = ops.constant(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))
    if where == "weights":
        weights = ops.convert(ops.convert(weights, kind), "f32")
    elif where == "input":
        y = ops.convert(ops.convert(y, kind), "f32")
    else:
        is_small = ops.less(ops.reduce_max(x, [0, 1], False), np.float32(9))
        y = choice(is_small, lambda z: ops.convert(ops.convert(z, kind), "f32"), ops.relu, x).outputs[0]
    return ovir.Model([ops.relu(ops.matmul(y, weights, False, False), name="end")], [x])


@pytest.mark.parametrize(
    ("kind", "where", "rounded_to"),
    [
        ("f16", "input", "f16"),
        ("bf16", "input", "bf16"),
        ("f32", "input", None),
        ("f64", "input", None),
        ("f16", "body", "f16"),
        ("bf16", "body", "bf16"),
        ("f16", "weights", None),
        ("bf16", "weights", None),
    ],
)
def test_rounding_on_the_way_has_its_tolerance(kind: str, where: str, rounded_to: str | None) -> None:
    """A device that computes in f32 does not round to f16; weights are the same on both sides."""
    model = _converted(kind, where)
    without = _converted("f32", where)
    inputs = {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)}
    tensors = dict(zip(["end"], ovir.compile_model(without)(inputs).values(), strict=True))
    (end,) = [layer for layer in ovir.compare(model, tensors, inputs=inputs).layers if layer.name == "end"]
    assert end.tensor.tolerance.rounded_to == rounded_to
    assert end.to_dict().get("rounded_to") == rounded_to
    assert end.within == (where != "weights")
    (exact,) = [layer for layer in ovir.compare(model, tensors, inputs=inputs, rtol=1e-6).layers if layer.name == "end"]
    assert exact.tensor.tolerance.rounded_to is None


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_constants_that_one_side_has_rounded_have_their_tolerance(kind: str, tmp_path: Path) -> None:
    """Converters store f32 in 16 bits; a filter that was changed by 1 % is found in spite of that."""
    model = encoder(2)
    ovir.save_model(model, tmp_path / "rounded.xml", compress_to_fp16=kind == "f16", compress_to_bf16=kind == "bf16")
    rounded = ovir.read_model(tmp_path / "rounded.xml")
    for first, second in ((model, rounded), (rounded, model)):
        found = ovir.compare(first, second, inputs=[data()])
        assert found.within, found.first
        assert {layer.tensor.tolerance.weights_in for layer in found.layers[-3:]} == {kind}
        assert {layer.tensor.to_dict().get("weights_in") for layer in found.layers} == {None, kind}
        assert not ovir.compare(first, second, inputs=[data()], rtol=1e-6).within
    products = [weights.layer.key for weights in weights_of(model)]
    assert len(products) == 12
    for key in products if kind == "f16" else products[:1]:
        changed = model.clone()
        constant = changed.layer(key).inputs[1].source.layer
        array = constant.operator.data.copy()
        array[:, 0] *= 1.01 if kind == "f16" else 1.1
        changed.set_constant(constant.key, array)
        found = ovir.compare(rounded, changed, inputs=[data()])
        assert found.first.name == key


@pytest.mark.parametrize(
    ("mode", "depths"), [("isolated", [(4096, 1), (1, 1)]), ("cumulative", [(4096, 1), (4097, 2)])]
)
def test_the_tolerance_follows_from_the_sums_and_layers_before(mode: Any, depths: list[tuple[int, int]]) -> None:
    x = ops.parameter([100, 4096], "f32", name="x")
    product = ops.matmul(x, np.ones((4096, 100), np.float32), False, False, name="product")
    model = ovir.Model([ops.relu(product, name="relu")], [x])
    found = ovir.compare(model, model.clone(), inputs=[np.ones((100, 4096), np.float32)], mode=mode)
    assert [layer.tensor.tolerance for layer in found.layers] == [default_tolerance(f32, *depth) for depth in depths]


def test_models_with_other_inputs_are_refused() -> None:
    y, z = (ops.parameter([2], "i64", name=name, tensor_names=name) for name in "yz")
    other = ovir.Model([ops.add(y, z)], [y, z])
    with pytest.raises(ovir.InputError, match=r"the models have different inputs: 'x' / 'y', 'z'$"):
        ovir.compare(small_net(), other, inputs=[X])


# --------------------------------------------------------------------------- recorded tensors


def recorded() -> dict[str, np.ndarray]:
    taps = ovir.compile_model(small_net())([X], taps=["product", "tanh", "soft", "rows"]).taps
    return {name: arrays[0] for name, arrays in taps.items()}


def test_recorded_tensors_by_names_of_tensors_and_layers() -> None:
    tensors = recorded()
    assert ovir.compare(small_net(), tensors, inputs=[X])
    tensors["tanh"][1, 3] = np.nan
    found = ovir.compare(small_net(), tensors, inputs=[X])
    assert found.first.name == "tanh"
    assert found.first.tensor.worst.nan == (0, 1)
    assert found.first.tensor.worst.position == (1, 3)
    assert found.against == "recorded tensors"


def test_the_names_of_a_recorded_tensor() -> None:
    """Tensor names come before names of layers; a Result, an output by number and a tap name a tensor as well."""
    x = ops.parameter([2, 4], "f32", name="x", tensor_names="b")
    a, b = (ops.split(x, 1, 2, name=name) for name in "ab")
    a.outputs[1].own_names = frozenset({"second", "other"})
    model = ovir.Model([ops.result(a[1], name="end"), ops.result(b[0], name="last")], [x])
    names = _ports_by_name(model)
    expected = {
        x.outputs[0]: ["b", "x", "x:0"],
        a.outputs[0]: ["a", "a:0"],
        a.outputs[1]: ["second", "other", "a:1", "end"],
        b.outputs[0]: ["b:0", "last"],
        b.outputs[1]: ["b:1"],
    }
    for port, known in expected.items():
        found = {name for name, other in names.items() if other is port and not name.startswith("tap:")}
        assert found == set(known)
        assert all(names[f"tap:{name}"] is port for name in known)


@pytest.mark.parametrize("kind", ["Multiply", "Loop"])
def test_constants_that_one_side_has_rounded_count_in_bodies_as_well(kind: str) -> None:
    def model(*, is_rounded: bool) -> ovir.Model:
        numbers = np.float32([1.0001, -3])

        def step(x: Any) -> Any:
            narrow = ops.convert(ops.constant(numbers.astype(np.float16)), "f32")
            return ops.multiply(x, narrow if is_rounded else ops.constant(numbers))

        x = ops.parameter([2], "f32", name="x")
        return looped(step) if kind == "Loop" else ovir.Model([step(x)], [x])

    exact, rounded = (model(is_rounded=value) for value in (False, True))
    for first, second in ((exact, rounded), (rounded, exact)):
        found = rounded_by_one(Partners(first, second))
        assert {layer.type: str(found[layer]) for layer in found} == {kind: "f16"}
    assert rounded_by_one(Partners(rounded, rounded.clone())) == {}


def test_a_layer_with_bodies_says_so() -> None:
    model = looped(lambda x: ops.abs(x))
    found = ovir.compare(model, model.clone(), inputs=[np.float32([1, 2])])
    assert {layer.name: layer.to_dict().get("has_bodies") for layer in found.layers} == {"loop": True, "out": None}


@pytest.mark.parametrize(
    ("reasons", "end"),
    [
        ({"a": "it draws", "b": "it draws"}, "can be: it draws"),
        ({"a": "it draws", "b": "it waits"}, "can be"),
        ({}, "can be"),
    ],
)
def test_a_reason_that_all_layers_share_is_named(reasons: dict[str, str], end: str) -> None:
    with pytest.raises(ovir.InputError) as caught:
        finish(Findings(skipped=reasons), small_net(), Criterion(), 1, None, lambda mode: None)
    assert caught.value.diagnostic.message == f"nothing was compared: no layer and no output {end}"


def test_recorded_inputs_are_used() -> None:
    tensors = recorded()
    assert ovir.compare(small_net(), {**tensors, "x": X})
    with pytest.raises(ovir.InputError, match="input 'x' has other values than in the recording"):
        ovir.compare(small_net(), {**tensors, "x": X}, inputs=[X + 1])


@pytest.mark.parametrize(
    ("size", "wrong", "later", "first"),
    [
        (999, 1, True, "end"),
        (999, 2, True, "levels"),
        (2000, 2, True, "end"),
        (2000, 3, True, "levels"),
        (2000, 2, False, "levels"),
        (2000, 0, True, "end"),
    ],
)
def test_a_few_elements_on_another_level_count_last(size: int, wrong: int, later: bool, first: str) -> None:
    """A FakeQuantize may round a number near a tie to another level; what it adds is no fault."""
    x = ops.parameter([size], "f32", name="x")
    levels = ops.fake_quantize(x, *map(np.float32, (0, 255, 0, 255)), 256, name="levels")
    model = ovir.Model([ops.exp(ops.multiply(levels, np.float32(0.01)), name="end")], [x])
    value = np.linspace(0, 255, size, dtype=np.float32)
    taps = ovir.compile_model(model)([value], taps=["levels", "end"]).taps
    tensors = {"x": value, **{name: arrays[0].copy() for name, arrays in taps.items()}}
    tensors["levels"][:wrong] += 1
    tensors["end"][0] += 0.5 * later
    found = ovir.compare(model, tensors)
    assert found.first.name == first
    assert found.largest.rounds == (not later)
    assert found.ranked()[0] is found.first
    assert found.mark(found.first) == ("first, largest" if found.largest is found.first else "first")


def test_keys_that_name_nothing() -> None:
    tensors = recorded()
    many = ovir.compare(small_net(), {**tensors, **{f"k{i}": X for i in range(7)}}, inputs=[X])
    assert many.diagnostics[0].message.endswith("'k0', 'k1', 'k2', 'k3', 'k4' and 2 more")
    found = ovir.compare(small_net(), {**tensors, "tanhh": X}, inputs=[X])
    assert found
    (warning,) = found.diagnostics
    assert str(warning) == (
        "recorded tensors: warning[OVIR902] 1 key of 5 name no tensor and no layer: 'tanhh'\n  hint: did you mean 'tanh'?"
    )
    with pytest.raises(ovir.InputError) as caught:
        ovir.compare(small_net(), {"tanhh": X, "b": X}, inputs=[X])
    assert str(caught.value) == (
        "recorded tensors: error[OVIR902] nothing was compared: no key names a tensor or layer of the model; the keys are 'tanhh', 'b'\n"
        "  hint: did you mean 'tanh'?"
    )


def test_nan_on_one_side_leaves_out_what_would_look_good() -> None:
    tensors = {**recorded(), "x": X}
    tensors["soft"][0, 0] = np.nan
    found = ovir.compare(small_net(), tensors, metric="cosine=0.5")
    assert found.outputs[0].tensor.worst.cosine is None
    assert found.outputs[0].tensor.agreement is None
    assert not found


@pytest.mark.parametrize(
    ("tensor", "problem"),
    [
        (np.zeros((2, 5), np.float32), "has shape [2,5], but [2,6] was expected"),
        (np.zeros((2, 6), np.int32), "was recorded as i32, but f32 was expected"),
    ],
)
def test_recorded_tensors_of_another_type(tensor: Array, problem: str) -> None:
    found = ovir.compare(small_net(), {"x": X, "tanh": tensor})
    assert (found.within, found.first.tensor.worst.problem) == (False, problem)


_NUMBERS = {True: [np.nan, -0.0, 1.0, 0.0], False: [0, 1, 1, 0]}


@pytest.mark.parametrize("shape", [(), (1,), (0, 2), (4,)])
@pytest.mark.parametrize("kind", [kind for kind in ELEMENT_TYPES if not kind.is_dynamic], ids=str)
def test_a_model_agrees_with_its_own_recording(kind: ElementType, shape: tuple[int, ...], tmp_path: Path) -> None:
    x = ops.parameter(list(shape), kind, name="x", tensor_names="x")
    parts = [ops.unsqueeze(x, [0], name="row"), ops.constant(np.zeros((1, *shape)).astype(kind.to_dtype()), kind)]
    model = ovir.Model([ops.concat(parts, 0, name="rows"), ops.squeeze(parts[0], [0], name="same")], [x])
    has_nan = kind.is_real and kind not in (nf4, f4e2m1)
    numbers = np.resize(np.array(_NUMBERS[has_nan]), shape) if kind != string else np.resize(["a", ""], shape)
    value = numbers.astype(kind.to_dtype())
    taps = ovir.compile_model(model)([value], taps=["row", "rows", "same"]).taps
    save_npz(tmp_path / "r.npz", {"x": value, **{name: arrays[0] for name, arrays in taps.items()}})
    tensors = load_npz(tmp_path / "r.npz")
    for inputs in (None, [value]):
        found = ovir.compare(model, tensors, inputs=inputs, mode="cumulative")
        assert found, str(found)
        assert {item.tensor.worst.is_equal for item in (*found.outputs, *found.layers)} == {True}
        assert ovir.bisect(model, tensors, inputs=inputs).first is None


def test_recorded_layers_in_bodies_are_listed_without_a_warning() -> None:
    model = conditional()
    inner = next(layer for layer in model.walk() if layer.name == "inner")
    inner.outputs[0].own_names = frozenset({"named"})
    ones = np.ones(2, np.float32)
    found = ovir.compare(model, {"x": ones, "chosen": np.array(True), "if": ones, "if/then/named": ones})
    assert found
    assert found.diagnostics == []
    assert [(item.name, item.reason) for item in found.not_compared] == [(inner.key, "it is in a body")]


def test_a_folder_of_inputs_names_the_file_at_fault(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X)
    np.savez(tmp_path / "b.npz", x=X[:, :3])
    with pytest.raises(ovir.InputError, match=r"b\.npz: .*takes shape"):
        ovir.compare(small_net(), small_net(), inputs=tmp_path)


# --------------------------------------------------------------------------- inputs, tolerances, arguments


def test_several_sets_of_inputs_give_worst_and_mean(tmp_path: Path) -> None:
    for number in range(3):
        np.savez(tmp_path / f"{number}.npz", x=X * number)
    changed = small_net(scale=1.001)
    found = ovir.compare(small_net(), changed, inputs=tmp_path)
    product = found.layers[0].tensor
    assert (found.sets, product.sets, product.worst_set, product.worst_input) == (3, 3, 2, "2.npz")
    assert found.to_dict()["layers"][0]["worst_input"] == "2.npz"
    assert product.worst.max_abs == pytest.approx(product.means["max_abs"] * 2)
    assert ovir.compare(small_net(), changed, inputs=[{"x": X}, {"x": X * 2}]).sets == 2
    assert ovir.compare(small_net(), changed, samples=4, seed=3).sets == 4


def test_integers_must_be_equal_unless_atol_is_given() -> None:
    def net(offset: int) -> ovir.Model:
        x = ops.parameter([3], "i32", name="x")
        return ovir.Model([ops.add(x, offset, name="sum")], [x])

    inputs = [np.int32([1, 2, 3])]
    assert not ovir.compare(net(1), net(2), inputs=inputs, rtol=10)
    assert ovir.compare(net(1), net(2), inputs=inputs, atol=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": -1}, "rtol must be a number that is not negative, got -1"),
        (
            {"metric": "cos=1"},
            "metric must be NAME=LIMIT with one of max_abs, max_rel, mean_abs, rmse, cosine, sqnr_db",
        ),
        ({"metric": "cosine=1", "atol": 1.0}, "metric takes the place of tolerances"),
        ({"against": small_net(), "inputs": []}, "inputs is empty: expected arrays, or None for random ones"),
        ({"metric": "cosine=2"}, "metric cosine is never above 1 or below -1, got 'cosine=2'"),
        ({"metric": "rmse=-1"}, "metric rmse is never negative, got 'rmse=-1'"),
        ({"timeout": -1}, "timeout must be a number of seconds above 0, got -1"),
        ({"against": "openvino:"}, "cannot compare with 'openvino:': expected openvino:DEVICE"),
        ({"against": "onnx:"}, "cannot compare with 'onnx:': expected openvino:DEVICE, onnx:FILE"),
        ({"mode": "both"}, "mode must be 'isolated' or 'cumulative', got 'both'"),
        (
            {"against": "tensorrt"},
            "cannot compare with 'tensorrt': expected openvino:DEVICE, onnx:FILE, an .npz, an .xml",
        ),
        (
            {"against": {"tanh": X}, "mode": "isolated"},
            "layers run alone only on a device or in a second model: the other side is neither",
        ),
        ({"device": "openvino:CPU"}, "device= says where a second model runs, but against= names none"),
        (
            {"against": small_net(), "config": {"A": "B"}},
            r"(config|timeout) needs openvino:DEVICE or onnx:FILE",
        ),
        (
            {"against": small_net(), "samples": 2, "inputs": [X]},
            "samples draws random inputs, but inputs are given",
        ),
        ({"against": small_net(), "samples": 0}, "samples must be an integer of at least 1, got 0"),
        ({"against": small_net(), "inputs": [X[:, :3]]}, r"input 'x' takes shape \[\?,4\], got \[2,3\]"),
        ({"against": {"x": X}}, "nothing was compared: the recording has only inputs"),
        ({"against": {"foo": X}}, "no key names a tensor or layer of the model; the keys are 'foo'"),
        (
            {"against": {"x": X, "foo": X}},
            "no key but inputs names a tensor or layer of the model; the others are 'foo'",
        ),
        ({"against": {}}, "nothing was compared: the recording is empty"),
        ({"against": {"soft": X}}, "the recording has no input 'x'"),
        ({"against": {"soft": X}, "samples": 2}, "samples draws random inputs, which a recording was not made with"),
        ({"against": {"soft": X}, "repeat": 2}, "repeat repeats runs, but a recording is of one run"),
        ({"repeat": 1}, "repeat must be an integer of at least 2, got 1"),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit(options: dict[str, object], message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        ovir.compare(small_net(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "function", [ovir.compare, ovir.bisect, ovir.precision, ovir.reduce, ovir.prove_edit, Candidate]
)
def test_inputs_are_drawn_with_the_seed_0_by_default(function: Any) -> None:
    """Draw the same inputs in all of them, so that one reproduces what another finds."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    assert defaults["seed"] == 0
    assert defaults.get("explain", False) is False
