"""ovir.Watch: the first layers that make NaN, infinities and values out of range."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.bodies import choice, looped
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array


def watched(model: ovir.Model, feeds: Any, conditions: str, **options: Any) -> ovir.Watch:
    watch = ovir.Watch(conditions)
    ovir.compile_model(model, **options)(feeds, listeners=[watch])
    return watch


def chain() -> ovir.Model:
    """log(x), then two layers that pass on what it makes."""
    x = ops.parameter([2, 3], "f32", name="x")
    logarithm = ops.log(x, name="logarithm")
    doubled = ops.multiply(logarithm, ops.constant(np.float32(2)), name="doubled")
    return ovir.Model([ops.softmax(doubled, 1, name="probabilities")], [x], "chain")


def test_the_layer_that_makes_a_value_is_reported_and_not_those_that_pass_it_on() -> None:
    data = np.float32([[1, 2, 3], [4, -5, 6]])
    watch = watched(chain(), [data], "nan")
    assert [(event.layer, event.what) for event in watch.events] == [("logarithm", "nan")]
    event = watch.first
    assert (event.type, event.position, event.count, event.size, event.call) == ("Log", (1, 1), 1, 6, 0)
    assert np.isnan(event.value)
    (source,) = event.inputs
    assert (source.source, source.minimum, source.maximum, source.value) == ("x", -5, 6, -5)
    assert watch.table().texts() == [["logarithm", "Log", "nan", "nan", "[1,1]", "1", str(source)]]
    assert "1 layer made watched values: nan" in watch._repr_html_()


def test_each_condition_has_a_first_layer_of_its_own() -> None:
    watch = watched(chain(), [np.float32([[0, 0, 0], [1, 1, 1]])], "nan,inf")
    assert [(event.layer, event.what, event.count) for event in watch.events] == [
        ("logarithm", "inf", 3),
        ("probabilities", "nan", 3),  # the difference of infinities
    ]
    assert watch.events[1].inputs[0].nonfinite == 3


def test_overflow_and_margins() -> None:
    x = ops.parameter([4], "f32", name="x")
    squared = ops.multiply(x, x, name="squared")
    back = ops.sqrt(squared, name="back")
    model = ovir.Model([back, ops.add(squared, ops.constant(np.float32(1)), name="passed")], [x], "m")
    watch = watched(model, [np.float32([1, 255.9, -256, 300])], "overflow:f16,overflow:bf16")
    assert [(e.layer, e.what, e.value, e.position, e.count) for e in watch.events] == [
        ("squared", "overflow:f16", 65536.0, (2,), 2)
    ]
    assert [margin.layer for margin in watch.margins] == ["squared", "back", "passed"]
    assert watch.margins[0].largest == 90000
    assert watch.margins[0].margins["f16"] == pytest.approx(65504 / 90000)
    assert watch.margins[1].margins["bf16"] > 1e30


@pytest.mark.parametrize(("value", "overflows"), [(65519.9, False), (65520, True), (np.inf, False)])
def test_the_end_of_f16_is_where_rounding_gives_infinity(value: float, overflows: bool) -> None:
    x = ops.parameter([1], "f32", name="x")
    y = ops.parameter([1], "f32", name="y")
    model = ovir.Model([ops.add(x, y, name="sum")], [x, y], "m")
    half = np.float32([value]) / 2
    assert bool(watched(model, [half, half], "overflow:f16").events) == overflows


def test_denormal_values() -> None:
    x = ops.parameter([4], "f32", name="x")
    model = ovir.Model([ops.multiply(x, ops.constant(np.float32(1e-3)), name="small")], [x], "m")
    (event,) = watched(model, [np.float32([1, 0, 1e-2, -1e-3])], "denormal:f16").events
    assert (event.layer, event.count, event.position) == ("small", 2, (2,))
    assert watched(model, [np.float32([1, 0, 1e-2, -1e-3])], "denormal:f32").events == []
    y = ops.parameter([4], "f32", name="y")
    small = ovir.Model([ops.multiply(y, ops.constant(np.float32(0.125)))], [y], "m")
    (event,) = watched(small, [np.float32([1, 2**-11, -(2**-11), 2**-12])], "denormal:f16").events
    assert (event.count, event.position) == (1, (3,))  # 2**-14 is normal


def loop_model() -> ovir.Model:
    return looped(lambda state: ops.multiply(state, np.float32(100), name="grown"))


def attention(factor: float, causal: bool = False) -> ovir.Model:
    """Attention in one layer, whose queries and keys are too large by a factor."""
    x = ops.parameter([2, 4, 8, 16], "f32", name="x")
    large = ops.multiply(x, ops.constant(np.float32(factor)), name="large")
    mixed = ops.scaled_dot_product_attention(large, large, x, causal=causal, name="attention")
    return ovir.Model([mixed], [x], "attention")


@pytest.mark.parametrize("causal", [False, True])
def test_overflow_inside_of_attention(causal: bool) -> None:
    data = np.random.default_rng(0).standard_normal((2, 4, 8, 16)).astype(np.float32)
    model = attention(300, causal)
    (event,) = watched(model, [data], "nan,inf,overflow:f16").events
    assert (event.layer, event.what, event.inside, event.size) == ("attention", "overflow:f16", "scores", 2 * 4 * 8 * 8)
    scores = 300 * data @ (300 * data).swapaxes(-1, -2) / 4
    assert event.value == pytest.approx(scores[event.position], rel=1e-5)
    assert event.count == np.count_nonzero(np.abs(scores) >= 65520)
    assert event.inputs[0].value is None
    watch = watched(attention(3, causal), [data], "overflow:f16")
    assert watch.events == []
    assert watch.margins[-1].largest == pytest.approx(np.abs(scores).max() / 1e4, rel=1e-5)
    (event,) = watched(model, [data], "nan", emulate="f16").events
    assert event.layer == "attention"


def test_layers_in_bodies_are_watched() -> None:
    (event,) = watched(loop_model(), [np.float32([1, 0.1])], "overflow:f16").events
    assert event.layer == "loop/body/grown"
    assert (event.call, event.position, event.value) == (2, (0,), 1e6)
    (event,) = watched(loop_model(), [np.float32([1, 0.1])], "inf", emulate="f16").events
    assert (event.layer, event.call) == ("loop/body/grown", 2)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_other_float_types(dtype: str) -> None:
    x = ops.parameter([2], dtype, name="x")
    model = ovir.Model([ops.log(x, name="log")], [x], "m")
    data = np.array([1, -1], model.inputs[0].element_type.to_dtype())
    (event,) = watched(model, [data], "nan").events
    assert event.position == (1,)


def test_positions_are_right_for_any_layout_and_for_large_tensors() -> None:
    x = ops.parameter([3, 300, 500], "f32", name="x")
    model = ovir.Model([ops.sqrt(ops.transpose(x, [2, 0, 1]), name="root")], [x], "m")
    data: Array = np.ones((3, 300, 500), np.float32)
    data[2, 299, 400] = data[1, 10, 499] = -1
    (event,) = watched(model, [data], "nan").events
    assert (event.position, event.count) == ((400, 2, 299), 2)


def test_a_run_clears_what_the_one_before_has_shown() -> None:
    watch = ovir.Watch("nan")
    compiled = ovir.compile_model(chain())
    compiled([-np.ones((2, 3), np.float32)], listeners=[watch])
    assert watch.first is not None
    compiled([np.ones((2, 3), np.float32)], listeners=[watch])
    assert watch.first is None


def test_nothing_that_depends_on_nan_in_an_input_is_reported() -> None:
    """MaxPool turns NaN into the lowest number, which overflows later; a layer of another input is reported."""
    x = ops.parameter([1, 1, 2, 2], "f32", name="x")
    y = ops.parameter([1], "f32", name="y")
    pooled = ops.max_pool(x, [1, 1], [1, 1], [0, 0], [0, 0], [2, 2], name="pooled")
    overflowing = ops.multiply(pooled.output(0), ops.constant(np.float32(-2)), name="overflowing")
    lost = ops.subtract(overflowing, overflowing, name="lost")
    model = ovir.Model([lost, ops.log(y, name="apart"), ops.shape_of(x)], [x, y], "m")
    image = np.full((1, 1, 2, 2), np.nan, np.float32)
    watch = watched(model, [image, np.float32([-1])], "nan,inf")
    assert watch.inputs == [("x", "nan")]
    assert [event.layer for event in watch.events] == ["apart"]
    watch = watched(model, [np.full_like(image, -3e38), np.float32([1])], "nan,inf")
    assert [event.layer for event in watch.events] == ["overflowing", "lost"]


def test_nan_in_an_input_spoils_the_layers_of_bodies() -> None:
    watch = ovir.Watch("nan,inf")
    compiled = ovir.compile_model(loop_model())
    compiled([np.float32([np.nan, 1e38])], listeners=[watch])
    assert watch.events == []
    compiled([np.float32([0, 1e38])], listeners=[watch])
    assert [event.layer for event in watch.events] == ["loop/body/grown"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam", "watch cannot look for 'nam'.*nan, inf"),
        ("overflow", "overflow needs one of the types f16, bf16"),
        ("overflow:f61", "did you mean 'f16'"),
        ("nan:f16", "nan has no type"),
        ("", "watch cannot look for ''"),
        (7, "expected a text such as"),
    ],
)
def test_other_conditions_are_refused(text: Any, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        ovir.Watch(text)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("condition", ["overflow", "denormal"])
def test_limits_that_the_watched_tensor_cannot_hold(condition: str, dtype: str) -> None:
    x = ops.parameter([3], dtype, name="x")
    compiled = ovir.compile_model(ovir.Model([ops.relu(x)], [x], "m"))
    for other in ("f16", "bf16", "f32"):
        watch = ovir.Watch(f"{condition}:{other}")
        compiled([np.array([1, np.nan, 2]).astype(x.element_type.to_dtype())], listeners=[watch])
        assert watch.events == []


def _root(name: str = "root", value: float = -1.0) -> Any:
    return ops.sqrt(ops.constant(np.float32([value, 4, 9])), name=name)


def _read_twice(x: ovir.Layer) -> list[Any]:
    root = _root()
    return [ops.add(ops.multiply(x, ops.relu(root)), ops.abs(root))]


def _read_in_body(x: ovir.Layer) -> list[Any]:
    is_small = ops.less(ops.reduce_max(x, [0, 1], False), np.float32(9))
    return [choice(is_small, lambda z: ops.add(z, _root()), ops.relu, x).outputs[0]]


@pytest.mark.parametrize(
    "ends",
    [
        lambda x: [ops.add(x, _root())],
        lambda x: [ops.add(x, ops.relu(ops.multiply(_root(), np.float32(2))))],
        lambda x: [ops.select(ops.less(ops.relu(x), np.float32(9)), x, _root())],  # what it makes is lost
        lambda x: [ops.relu(x), _root()],
        _read_twice,
        _read_in_body,
    ],
)
def test_layers_that_are_folded_are_watched(ends: Callable[[ovir.Layer], list[Any]]) -> None:
    """No run shows them, but their results make NaN of what reads them."""
    x = ops.parameter([2, 3], "f32", name="x")
    watch, compiled = ovir.Watch("nan,inf,overflow:f16"), ovir.compile_model(ovir.Model(ends(x), [x]))
    for _ in range(3):
        compiled([np.ones((2, 3), np.float32)], listeners=[watch])
        (event,) = watch.events
        assert (event.layer.rpartition("/")[2], event.type, event.what) == ("root", "Sqrt", "nan")
        assert (event.position, event.count, event.inputs[0].minimum) == ((0,), 1, -1)
        assert not watch.constants


@pytest.mark.parametrize("between", [lambda x: x, ops.relu, lambda x: ops.convert(ops.relu(x), "f16")])
def test_constants_that_hold_nan_are_named(between: Any) -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    constant = between(ops.constant(np.float32([1, np.nan, np.inf]), name="weights"))
    model = ovir.Model([ops.add(x, ops.convert(constant, "f32"))], [x])
    watch = watched(model, [np.ones((2, 3), np.float32)], "nan,inf")
    assert watch.events == []
    (found,) = watch.constants
    assert (found.layer, found.what, found.count) == ("weights", "nan", 1)


def test_infinities_that_folded_layers_make() -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    model = ovir.Model([ops.add(x, ops.log(ops.constant(np.float32([0, 1, 2])), name="mask"))], [x])
    watch = watched(model, [np.ones((2, 3), np.float32)], "nan,inf")
    assert [(event.layer, event.what) for event in watch.events] == [("mask", "inf")]
    assert watched(model, [np.ones((2, 3), np.float32)], "nan").events == []
    kept = ops.select(np.array([False, True, True]), _root(), np.float32(1))
    x = ops.parameter([2, 3], "f32", name="x")
    assert watched(ovir.Model([ops.add(x, kept)], [x]), [np.ones((2, 3), np.float32)], "nan").events == []


def test_values_of_inputs_that_are_broadcast() -> None:
    x = ops.parameter([2, 1, 3], "f32", name="x")
    y = ops.parameter([4, 1], "f32", name="y")
    divided = ops.divide(x, y, name="divided")
    model = ovir.Model([divided], [x, y])
    numbers = np.arange(1, 7, dtype=np.float32).reshape(2, 1, 3)
    (event,) = watched(model, [numbers, np.float32([[1], [2], [0], [3]])], "inf").events
    assert (event.position, event.count) == ((0, 2, 0), 6)
    assert [(given.source, given.type, given.shape, given.value) for given in event.inputs] == [
        ("x", "f32", (2, 1, 3), 1),
        ("y", "f32", (4, 1), 0),
    ]


def test_large_constants_that_nothing_needs_are_not_named() -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.op("Add", x, net.const(np.float32([1e6, 0]), name="dead"))
    net.result(net.op("Add", x, net.const(np.float32([1, 1e5]), name="needed")))
    (found,) = watched(net.model(), [np.ones(2, np.float32)], "overflow:f16").constants
    assert (found.layer, found.value, found.count) == ("needed", 1e5, 1)
