"""ovir.precision: which layers must stay in f32."""

import json
import math
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from support.bodies import looped
from support.small_transformers import data, encoder

import ovir
from ovir import opset13 as ops
from ovir.analysis.tensor_comparison import tensor_error
from ovir.core.arrays import Array
from ovir.debugging.f32_layers import equal_form, lost_marks, with_f32_layers
from ovir.debugging.precision import (
    CalibrationRanges,
    Int8,
    Keeper,
    LayerSensitivity,
    Precision,
    PrecisionSearch,
)
from ovir.runtime.emulation import Emulation

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("planted", [0, 2])
@pytest.mark.parametrize("factor", [100, 1000])
def test_an_overflow_of_attention_is_reported_first_and_the_layers_around_it_are_kept(
    planted: int, factor: float
) -> None:
    model = encoder(planted=planted, factor=factor)
    watch = ovir.Watch("nan,inf,overflow:f16")
    ovir.compile_model(model)([data()], listeners=[watch])
    assert (watch.first.layer, watch.first.what) == (f"layer{planted}/scores", "overflow:f16")
    found = ovir.precision(model, "f16", [data()])
    assert found.error_before == math.inf
    assert found.keep == (f"layer{planted}/scores", f"layer{planted}/scaled")
    assert found.within
    assert [layer.layer for layer in found.layers if layer.keep] == list(found.keep)


def test_every_layer_that_is_kept_is_needed() -> None:
    model = encoder(factor=300, undone=False)
    found = ovir.precision(model, "f16", [data()])
    reference = ovir.compile_model(model)([data()])[0]
    assert found.keep
    for key in found.keep:
        others = Emulation("f16", set(found.keep) - {key})
        assert tensor_error(ovir.compile_model(model, emulate=others)([data()])[0], reference) > found.tolerance


def test_attention_in_one_layer_overflows_inside() -> None:
    x = ops.parameter([2, 8, 16], "f32", name="x")
    large = ops.multiply(x, ops.constant(np.float32(300)), name="large")
    mixed = ops.scaled_dot_product_attention(large, large, x, name="attention")
    model = ovir.Model([ops.add(mixed, x, name="sum")], [x], "attention")
    found = ovir.precision(model, "f16", samples=2)
    assert found.keep == ("attention",)


def test_what_is_found_holds_for_a_compiled_model() -> None:
    model = encoder(factor=300)
    found = ovir.precision(model, "f16", [data()])
    reference = ovir.compile_model(model)([data()])[0]
    for emulate, error in (("f16", found.error_before), (Emulation("f16", found.keep), found.error)):
        assert tensor_error(ovir.compile_model(model, emulate=emulate)([data()])[0], reference) == error
    document = found.to_dict()
    assert document["ignored_scope"] == "nncf.IgnoredScope(names=['layer1/scores', 'layer1/scaled'])"
    assert document["within"] is True
    assert json.dumps(document)


@pytest.mark.parametrize("to", ["f16", "bf16", "int8"])
def test_a_sound_model_needs_no_f32(to: str) -> None:
    found = ovir.precision(encoder(1), to, [data()])
    assert found.keep == ()
    assert 0 < found.error == found.error_before < found.tolerance
    assert all(layer.error is not None and layer.error < found.tolerance for layer in found.layers)


def test_sensitivities_are_those_of_single_emulated_layers() -> None:
    model = encoder(1)
    found = ovir.precision(model, "bf16", [data()])
    reference = ovir.compile_model(model)([data()])[0]
    keys = {layer.layer for layer in found.layers}
    for name in ("layer0/value", "layer0/scaled", "layer0/gelu"):
        alone = ovir.compile_model(model, emulate=Emulation("bf16", keys - {name}))([data()])[0]
        (layer,) = [layer for layer in found.layers if layer.layer == name]
        assert layer.error == pytest.approx(tensor_error(alone, reference), rel=1e-6)


def test_a_tight_tolerance_keeps_more_and_is_met() -> None:
    model = encoder(1)
    loose, tight = (ovir.precision(model, "bf16", [data()], tolerance=t) for t in (0.004, 0.002))
    assert 0 < len(loose.keep) < len(tight.keep)
    assert tight.error <= 0.002
    every = ovir.precision(model, "bf16", [data()], tolerance=0)
    assert every.error == 0


def test_one_layer_that_int8_cannot_do() -> None:
    """The range of one tensor is a thousand times that of its values that matter."""
    rng = np.random.default_rng(1)
    weights = [(rng.standard_normal((16, 16)) / 4).astype(np.float32) for _ in range(3)]
    x = ops.parameter([4, 16], "f32", name="x")
    first = ops.matmul(x, ops.constant(weights[0]), False, False, name="first")
    spread = ops.multiply(first, ops.constant(np.float32([1e4] + [1] * 15)))
    weights[1][0] = 0  # the large values do not matter
    second = ops.matmul(spread, ops.constant(weights[1]), False, False, name="second")
    third = ops.matmul(ops.tanh(second), ops.constant(weights[2]), False, False, name="third")
    model = ovir.Model([third], [x], "products")
    found = ovir.precision(model, "int8", samples=3)
    assert found.samples == 3
    assert found.keep == ("second",)
    assert [layer.layer for layer in found.layers] == ["first", "second", "third"]


def test_int8_has_a_range_for_a_tensor_and_a_scale_for_each_channel_of_weights() -> None:
    x = ops.parameter([2], "f32", name="x")
    product = ops.matmul(x, ops.constant(np.ones((2, 3), np.float32)), False, False, name="product")
    ranges, compiled = CalibrationRanges(), ovir.compile_model(ovir.Model([product], [x]))
    for values in ([1, 3], [-1, np.nan]):
        compiled([np.float32(values)], listeners=[ranges])
    assert ranges.found == {("product", 0): (-1, 3), ("product", 1): (0, 1)}
    int8, scale = Int8(ranges.found), 4 / 255
    rounded = int8.input(product, 0, np.linspace(-2, 4, 5001, dtype=np.float32))
    np.testing.assert_allclose(np.unique(rounded), np.arange(-64, 192) * scale, rtol=1e-5, atol=1e-9)
    inside = np.linspace(-1, 2.99, 999, dtype=np.float32)
    assert np.abs(int8.input(product, 0, inside) - inside).max() <= scale / 2 + 1e-6
    for odd in ((0, 0), (-np.inf, 1), (0, np.inf)):
        assert Int8({("product", 0): odd}).input(product, 0, inside) is inside
    weights = np.float32([[0.5, 0, np.inf, 100], [-127, 0, 2.4, -25.4]])
    expected = np.float32([[0, 0, 127, 100], [-127, 0, 2, -32 / 1.27]])  # 0.5 is rounded to even
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(int8.constant(product, 1, weights), expected, rtol=1e-6)
    assert int8.constant(product, 1, weights[:0]).shape == (0, 4)


def test_layers_in_bodies_are_kept_together() -> None:
    model = looped(lambda state: ops.multiply(state, np.float32(100), name="grown"), 1)
    found = ovir.precision(model, "f16", [np.float32([1])])
    assert found.keep == ("loop/body/grown", "out")
    assert found.within


def test_states_start_anew_for_each_run() -> None:
    x = ops.parameter([2], "f32", name="x")
    variable = ovir.opset6.read_value(ops.constant(np.float32([0.1, 0.2])), "v", "f32", [2])
    total = ops.add(variable, x, name="total")
    sink = ovir.opset6.assign(total, "v")
    model = ovir.Model([ops.tanh(total)], [x], "state", sinks=[sink])
    found = ovir.precision(model, "f16", [np.float32([0.3, 0.4])])
    assert found.keep == ()
    assert found.error < 1e-3


def test_inputs_of_several_runs_and_random_ones() -> None:
    model = encoder(1)
    both = ovir.precision(model, "bf16", [{"x": data(1)}, {"x": data(2)}])
    alone = [ovir.precision(model, "bf16", [data(seed)]).error for seed in (1, 2)]
    assert (both.samples, both.error) == (2, max(alone))
    assert ovir.precision(model, "bf16", samples=2).samples == 2


def test_without_time_the_layers_own_errors_decide() -> None:
    found = ovir.precision(encoder(factor=300), "f16", [data()], seconds=0)
    assert found.within
    assert {"layer1/scores", "layer1/scaled"} <= set(found.keep)
    assert any(layer.error is None for layer in found.layers)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"to": "f61"}, "did you mean 'f16'"),
        ({"samples": 0}, "samples must be an integer of at least 1, got 0"),
        ({"to": 8}, "expected f16, bf16, int8, .* got 8"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        ovir.precision(encoder(1), **arguments)


def test_recorded_tensors_beyond_the_limit_lie_in_a_file() -> None:
    keeper = Keeper(most=8)
    fits = np.arange(8, dtype=np.int8)
    assert keeper.keep(fits) is fits
    for beyond in (np.int8([1]), np.arange(60, dtype=np.float32).reshape(6, 10)):
        kept: Array = keeper.keep(beyond)
        assert isinstance(kept, np.memmap)
        np.testing.assert_array_equal(kept, beyond)
    for never_in_file in (np.array(["a"]), np.zeros(0, np.float32)):
        assert keeper.keep(never_in_file) is never_in_file


@pytest.mark.parametrize("count", range(1, 8))
def test_as_few_of_the_most_sensitive_steps_as_suffice(count: int) -> None:
    tried: list[int] = []

    def is_enough(keep: Any) -> bool:
        tried.append(len(keep))
        return len(keep) >= count

    found = PrecisionSearch._first_enough(Mock(_is_enough=is_enough), range(7))
    assert found == list(range(count))
    assert len(tried) == len(set(tried)), "no number is tried twice"


def test_the_table_has_the_layers_to_keep_first_then_the_most_sensitive() -> None:
    rows = [("a", 0.25, 0.5, False), ("b", None, 0.5, False), ("c", 0.5, 0.25, False), ("d", 0.125, 1, True)]
    rows += [("e", 0.25, 0.75, False), ("f", None, 0.75, False)]
    layers = tuple(LayerSensitivity(name, 0, "Add", error, own, keep) for name, error, own, keep in rows)
    found = Precision("f16", 0.01, 1, 1, 0, ("d",), layers)
    assert found.table().rows == [
        ("d", "Add", 0.125, 1, "f32"),
        ("c", "Add", 0.5, 0.25, ""),
        ("e", "Add", 0.25, 0.75, ""),
        ("a", "Add", 0.25, 0.5, ""),
        ("f", "Add", "not measured", 0.75, ""),
        ("b", "Add", "not measured", 0.5, ""),
    ]
    assert "1 of 6 layers must stay in f32: error 0" in found._repr_html_()


# ----- marks


def test_marks_of_layers_that_stay_in_f32() -> None:
    model = encoder(1)
    marked = with_f32_layers(model, ["layer0/scaled", "layer0/probabilities", "layer0/value"])
    for name in ("layer0/scaled", "layer0/probabilities", "layer0/value"):
        info = marked.layer(name).rt_info
        assert info["DisablePrecisionConversion"] == "dynamic:bf16,f16"
        assert "precise" in info
    assert "precise" in marked.layer("layer0/value").inputs[1].source.layer.rt_info
    assert "precise" not in marked.layer("layer0/key").rt_info
    softmax = marked.layer("layer0/probabilities")
    assert (softmax.version, softmax.attributes["axis"]) == ("opset1", 3)
    assert model.layer("layer0/probabilities").version == "opset8"
    assert marked.layer("layer0/probabilities").outputs[0].readers
    expected = ovir.compile_model(model)([data()])[0]
    np.testing.assert_array_equal(ovir.compile_model(marked)([data()])[0], expected)


@pytest.mark.parametrize("function", [ops.subtract, ops.divide])
def test_layers_that_openvino_replaces_are_saved_in_an_equal_form(function: Any) -> None:
    x, y = ops.parameter([4, 1], "f32", name="x"), ops.parameter([1, 3], "f32", name="y")
    model = ovir.Model([ops.abs(function(x, y, name="kept"), name="end")], [x, y])
    marked = with_f32_layers(model, ["kept"])
    assert [layer.type for layer in marked.layers].count(model.layer("kept").type) == 0
    kept = marked.layer("kept")
    changed = kept.inputs[1].source.layer
    (minus,) = [port.source.layer for port in changed.inputs if port.source.layer.type == "Const"]
    assert all("precise" in layer.rt_info for layer in (kept, changed, minus))
    assert minus.operator.data.size == 3  # OpenVINO would undo it for a single number
    feeds = [np.float32([[1], [2], [-3], [0]]), np.float32([[3, -7, 1e-30]])]
    expected = ovir.compile_model(model)(feeds)[0]
    np.testing.assert_allclose(ovir.compile_model(marked)(feeds)[0], expected, rtol=3e-7)
    assert lost_marks(model, ["kept"]) == {}


@pytest.mark.parametrize(
    ("shape", "kind", "broadcast", "minus"),
    [
        ([3, 2], "f32", "numpy", (2,)),
        ([2, 3], "f16", "numpy", (2, 1)),
        ([1, 3, -1], "f32", "numpy", (3, 1)),
        ([2, 2], "f32", "numpy", (2, 1)),
        ([1, 1], "f32", "numpy", None),
        ([-1, 1], "f32", "numpy", None),
        ([2, 3], "i32", "numpy", None),
        ([2, 3], "f32", "none", None),
        ("...", "f32", "numpy", None),
    ],
)
def test_several_of_the_least_size_above_1_are_in_the_equal_form(
    shape: Any, kind: str, broadcast: str, minus: tuple[int, ...] | None
) -> None:
    x, y = (ops.parameter(shape, kind) for _ in range(2))
    layers = equal_form(ops.subtract(x, y, broadcast, name="kept"))
    assert [layer.type for layer in layers] == ([] if minus is None else ["Multiply", "Add"])
    if minus is not None:
        (constant,) = (
            port.source.layer.operator.data for port in layers[0].inputs if port.source.layer.type == "Const"
        )
        assert constant.shape == minus
        assert (constant == -1).all()


@pytest.mark.parametrize(
    ("shape", "axis", "expected"), [([2, 3], -1, 1), ([2, 3], 0, 0), ([2], -1, 0), ("...", 1, None)]
)
def test_the_axis_of_an_equal_softmax_is_not_negative(shape: Any, axis: int, expected: int | None) -> None:
    x = ops.parameter(shape, "f32")
    assert [layer.attributes["axis"] for layer in equal_form(ops.softmax(x, axis))] == (
        [] if expected is None else [expected]
    )
    assert equal_form(ovir.opset1.softmax(x, 0)) == equal_form(ops.abs(x)) == []


def test_marks_that_the_cpu_plugin_ignores() -> None:
    model = encoder(1)
    keys = [f"layer0/{name}" for name in ("query", "scores", "scaled", "probabilities", "add1", "up")]
    lost = lost_marks(model, keys)
    assert list(lost) == ["layer0/scores", "layer0/scaled", "layer0/probabilities"]
    assert set(lost.values()) == {"attention is computed as one layer"}
    x = ops.parameter([-1, -1], "f32", name="x")
    difference = ops.subtract(x, np.float32(1), name="difference")
    model = ovir.Model([ops.log_softmax(ops.softmax(difference, 1, name="fine"), 1, name="log")], [x])
    assert lost_marks(model, ["difference", "fine", "log"]) == {
        "difference": "OpenVINO replaces Subtract by other layers, and for this shape there is no equal form",
        "log": "OpenVINO replaces LogSoftmax by other layers",
    }
    x = ops.parameter("...", "f32", name="x")
    first = ovir.opset1.softmax(x, 0, name="first")
    pooled = ops.max_pool(ovir.opset1.reshape(first, [1, 1, 4], False), [1], [1], [0], [0], [2], name="pooled")
    model = ovir.Model([ops.softmax(x, 1, name="open"), ops.prelu(pooled[0], np.float32([1]), name="prelu")], [x])
    assert lost_marks(model, ["open", "first", "pooled", "prelu"]) == {
        "open": "OpenVINO replaces SoftMax by other layers, and for this shape there is no equal form",
        "pooled": "OpenVINO replaces MaxPool by other layers",
        "prelu": "OpenVINO replaces PReLU by other layers",
    }
    marked = with_f32_layers(model, ["open", "first"])
    assert [(marked.layer(name).version, "precise" in marked.layer(name).rt_info) for name in ("open", "first")] == [
        ("opset8", True),
        ("opset1", True),
    ]
