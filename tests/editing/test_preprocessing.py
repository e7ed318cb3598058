"""``Model.preprocess`` and ``ovir.join``: the models that they make, and what they refuse."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.edited import everything

import ovir
from ovir import opset13 as ops

PIXELS = np.random.default_rng(0).integers(0, 256, (1, 6, 8, 3)).astype(np.uint8)


def detector(element_type: str = "f32") -> ovir.Model:
    x = ops.parameter([1, 3, 6, 8], element_type, name="image")
    return ovir.Model([ops.relu(x, name="features")], [x], "detector")


def test_an_image_is_prepared_in_the_order_of_the_arguments() -> None:
    model = detector()
    port = model.preprocess("image", element_type="u8", layout="NHWC", reverse_channels=True, mean=[1, 2, 3], scale=4)
    assert (port, str(port.type), port.any_name) == (model.inputs[0], "u8[1,6,8,3]", "image")
    expected = (PIXELS.astype(np.float32).transpose(0, 3, 1, 2)[:, ::-1] - np.float32([[[[1]], [[2]], [[3]]]])) / 4
    results = ovir.compile_model(model)({"image": PIXELS})
    np.testing.assert_array_equal(results[0], np.maximum(expected, 0))


def test_images_of_any_size_are_resized() -> None:
    model = detector()
    model.preprocess(resize="nearest")
    assert str(model.inputs[0].shape) == "[1,3,?,?]"
    image = np.arange(3 * 3 * 4, dtype=np.float32).reshape(1, 3, 3, 4)
    np.testing.assert_array_equal(ovir.compile_model(model)([image])[0], image.repeat(2, 2).repeat(2, 3))
    model = detector()
    model.preprocess(resize="bicubic_pillow")
    image = np.float32([[[[0, 0, 128, 0]] * 3] * 3])
    found = ovir.compile_model(model)([image])[0][..., 3:5]
    np.testing.assert_allclose(found, [[[[29, 111]] * 6] * 3], rtol=1e-6)  # the cubic function of Pillow
    fixed = detector()
    fixed.preprocess(resize="linear", size=(12, "1..16"))
    assert str(fixed.inputs[0].shape) == "[1,3,12,1..16]"


def test_the_layout_is_recorded_and_used_the_next_time(tmp_path: Path) -> None:
    model = detector()
    model.preprocess(layout="NHWC")
    assert model.inputs[0].rt_info.to_dict() == {"layout": {"layout": "[N,H,W,C]"}}
    ovir.save_model(model, tmp_path / "model.xml")
    assert 'layout="[N,H,W,C]"' in (tmp_path / "model.xml").read_text(encoding="utf-8")
    again = ovir.read_model(tmp_path / "model.xml")
    again.preprocess(mean=[1.0, 2.0, 3.0])
    results = ovir.compile_model(again)([PIXELS.astype(np.float32)])[0]
    expected = np.maximum(PIXELS.astype(np.float32) - np.float32([1, 2, 3]), 0).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(results, expected)


def test_two_inputs_and_two_calls(tmp_path: Path) -> None:
    a, b = ops.parameter([2, 3], "f32", name="a"), ops.parameter([2, 3], "f32", name="b")
    model = ovir.Model([a + b], [a, b])
    model.preprocess("b", scale=2.0)
    model.preprocess("b", mean=1.0)
    found = ovir.compile_model(model)({"a": np.zeros((2, 3), "f4"), "b": np.full((2, 3), 9, "f4")})[0]
    assert found.tolist() == [[4.0] * 3] * 2


@pytest.mark.parametrize(("target", "given"), [("f16", "u8"), ("f8e5m2", "i4")])
def test_a_model_is_normalized_in_its_type_if_that_has_all_values(target: str, given: str) -> None:
    """f8e5m2 has the integers up to 8."""
    model = detector(target)
    model.preprocess(element_type=given, mean=[1, 2, 3])
    assert {str(port.element_type) for layer in model.layers for port in layer.outputs} == {given, target}


@pytest.mark.parametrize(
    ("given", "target", "arguments", "value", "expected"),
    [
        ("u16", "f16", {"scale": 65535}, 65535, 1),
        ("u16", "f16", {"mean": 32768}, 32769, 1),  # f16 has 32768 and 32800, but no number between them
        ("u16", "bf16", {"mean": 65535}, 65534, -1),
        ("u16", "f16", {"resize": "nearest", "scale": 65535}, 65535, 1),
        ("i16", "f16", {"mean": -32768, "scale": 65535}, 32767, 1),
        ("i32", "f16", {"scale": 255}, 255, 1),
        ("u32", "f16", {"scale": 1e6}, 10**6, 1),
        ("f32", "f16", {"scale": 1e5}, 1e5, 1),
        ("f16", "bf16", {"mean": 1024}, 1025, 1),
    ],
)
def test_values_that_the_type_of_the_model_lacks_are_normalized_in_f32(
    tmp_path: Path, given: str, target: str, arguments: dict[str, Any], value: float, expected: float
) -> None:
    x = ops.parameter([1, 3, 2, 2], target, name="image")
    model = ovir.Model([ops.abs(x) if expected < 0 else ops.relu(x)], [x])
    model.preprocess(element_type=given, **arguments)
    ovir.save_model(model, tmp_path / "model.xml")
    again = ovir.read_model(tmp_path / "model.xml")
    pixels = np.full((1, 3, 2, 2), value, again.inputs[0].element_type.to_dtype())
    found = ovir.compile_model(again)([pixels])[0]
    assert str(again.outputs[0].element_type) == target
    np.testing.assert_array_equal(found.astype(np.float32), np.full((1, 3, 2, 2), abs(expected), np.float32))


def test_an_image_of_integers_is_resized_in_their_type() -> None:
    model = detector("i16")
    model.preprocess(element_type="u16", resize="nearest", size=[3, 4])
    assert str(model.layer("image/resize").outputs[0].element_type) == "i16"


def test_bytes_become_codes_of_nf4() -> None:
    x = ops.parameter([1, 3], "nf4", name="image")
    model = ovir.Model([ops.unsqueeze(x, 0)], [x])
    model.preprocess(element_type="u8")
    assert ovir.compile_model(model)([np.uint8([[0, 1, 255]])])[0].tolist() == [[[7, 15, 15]]]


def test_small_numbers_of_a_wide_type_are_divisors() -> None:
    model = detector("f32")
    model.preprocess(scale=1e-8, mean=1e-9)
    x = np.full((1, 3, 6, 8), 2e-8, np.float32)
    np.testing.assert_allclose(ovir.compile_model(model)([x])[0], (x - np.float32(1e-9)) / np.float32(1e-8))


IMAGE = "f32", [1, 3, 6, 8]
OPEN = "f32", [1, 3, -1, -1]
BYTES = "f16", [1, 3, 6, 8], "u8"
REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    # numbers that the type of the model lacks
    (BYTES, {"mean": 1e5}, "mean: 100000.0 is not a value of f16, which holds numbers from -65504 to 65504"),
    (BYTES, {"mean": [1, -1e5, 2]}, "mean: -100000.0 is not a value of f16"),
    (BYTES, {"scale": 65535}, "scale: 65535.0 is not a value of f16"),
    (BYTES, {"scale": 1e-8}, "scale: 1e-08 is too small a divisor for f16, whose normal numbers begin at 6.1e-05"),
    (BYTES, {"scale": [1, -1e-6, 1]}, "scale: -1e-06 is too small a divisor for f16"),
    (BYTES, {"scale": 1e-4}, "255 becomes a number that is too large: 2.54958e+06 is not a value of f16"),
    (BYTES, {"mean": [0, 6e4, 0], "scale": [1, -0.5, 1]}, "0 becomes a number that is too large: 120000 is not"),
    (IMAGE, {"mean": 1e39}, "mean: 1e+39 is not a value of f32"),
    (IMAGE, {"scale": 1e-46}, "scale: 1e-46 is too small a divisor for f32"),
    (("bf16", [1, 3]), {"scale": 1e300}, "scale: 1e+300 is not a value of bf16"),
    # images whose values become infinite
    ((*BYTES[:2], "u16"), {"scale": 0.001}, "65535 becomes a number that is too large: 6.5535e+07 is not a value of"),
    ((*BYTES[:2], "u16"), {"mean": 0}, "65535 becomes a number that is too large: 65535 is not a value of f16"),
    ((*BYTES[:2], "i16"), {"scale": 0.25}, "-32768 becomes a number that is too large: -131072 is not a value of f16"),
    ((*BYTES[:2], "i32"), {"mean": 1}, "65535 becomes a number that is too large: 65534 is not a value of f16"),
    (BYTES, {"mean": -65504, "scale": 100}, "255 becomes a number that is too large: 65759 is not a value of f16"),
    ((*BYTES[:2], "u16"), {}, "u16 has numbers that are too large: 65535 is not a value of f16"),
    ((*BYTES[:2], "u16"), {"resize": "linear"}, "u16 has numbers that are too large: 65535 is not a value of f16"),
    # types without numbers
    (("nf4", [1, 3]), {"mean": 1}, "the model takes nf4 here, so that nothing can be normalized"),
    (("i32", [1, 3]), {"mean": 1}, "the model takes i32 here, so that nothing can be normalized"),
    (("f32", [1, 3], "string"), {}, "the model takes f32 here, to which string cannot be converted"),
    (("string", [1, 3], "u8"), {}, "the model takes string here, to which u8 cannot be converted"),
    # arguments
    (IMAGE, {"layout": "NHW"}, "layout 'NHW' does not fit the shape [1,3,6,8]"),
    (IMAGE, {"layout": "nhwc"}, "layout must be distinct capital letters such as NHWC, got 'nhwc'"),
    (IMAGE, {"layout": "NHWX"}, "the layouts 'NHWX' and 'NCHW' have different letters"),
    (IMAGE, {"mean": [1, 2]}, "mean has 2 numbers for 3 channels"),
    (IMAGE, {"mean": "x"}, "mean must be numbers, got 'x'"),
    (IMAGE, {"mean": float("nan")}, "mean must be one finite number, or one for each channel, got nan"),
    (IMAGE, {"scale": [1, 0, 1]}, "scale must not contain zeros"),
    (IMAGE, {"resize": "bilinear"}, "unknown resize 'bilinear': expected linear, nearest, cubic"),
    (IMAGE, {"size": (2, 3)}, "a size is given, but no resize"),
    (IMAGE, {"resize": "linear", "size": (2,)}, "size must be a height and a width, got (2,)"),
    (IMAGE, {"element_type": "float"}, "'float' is not an element type"),
    (IMAGE, {"key": "picture"}, "the model has no input 'picture'; its inputs are 0: 'image'"),
    (OPEN, {"resize": "linear"}, "axis 2 of [1,3,?,?] has no fixed size\n  hint: reshape the model first"),
    (
        ("f32", [3, 8]),
        {"mean": [1, 2, 3]},
        "not known, because its shape is [3,8]\n  hint: give the layout of the model, such as NC",
    ),
]


@pytest.mark.parametrize(("taken", "arguments", "message"), REFUSED)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    taken: tuple[Any, ...], arguments: dict[str, Any], message: str
) -> None:
    """The model takes a type and a shape; it may be fed another type."""
    x = ops.parameter(taken[1], taken[0], name="image")
    model = ovir.Model([ops.unsqueeze(x, 0)], [x])
    before = everything(model)
    with pytest.raises(ovir.InputError, match=re.escape(message)):
        model.preprocess(**dict(zip(("element_type",), taken[2:], strict=False)), **arguments)
    assert everything(model) == before


# --------------------------------------------------------------------------- joining


def classifier(name: str = "image") -> ovir.Model:
    x, bias = ops.parameter([1, 3, 6, 8], "f32", name=name), ops.parameter([1], "f32", name="bias")
    return ovir.Model([ops.softmax(x + bias, 1, name="features")], [x, bias], "classifier")


def named(model: ovir.Model) -> ovir.Model:
    """Return the model, whose tensors have the names of their layers."""
    for layer in model.layers:
        for port in layer.outputs:
            port.names = {layer.name}
    return model


def test_a_model_feeds_another_and_colliding_names_get_a_number(tmp_path: Path) -> None:
    first, second = named(detector()), named(classifier())
    joined = ovir.join(first, second, {"features": "image"})
    assert [port.any_name for port in joined.inputs] == ["image", "bias"]
    assert [port.any_name for port in joined.outputs] == ["features_2"]
    names = [layer.name for layer in joined.layers]
    assert len(set(names)) == len(names)
    x, bias = np.ones((1, 3, 6, 8), "f4"), np.zeros(1, "f4")
    expected = ovir.compile_model(second)([ovir.compile_model(first)([x])[0], bias])[0]
    np.testing.assert_array_equal(ovir.compile_model(joined)({"image": x, "bias": bias})[0], expected)
    assert (len(first.layers), len(second.layers)) == (3, 5)
    ovir.save_model(joined, tmp_path / "joined.xml")
    assert ovir.check(tmp_path / "joined.xml") == []


def test_other_outputs_remain_and_one_tensor_may_feed_several_inputs() -> None:
    x = ops.parameter([1, 3, 6, 8], "f32", name="x")
    first = named(ovir.Model([ops.relu(x, name="one"), ops.abs(x, name="two")], [x]))
    a, b = ops.parameter([1, 3, 6, 8], "f32", name="a"), ops.parameter([1, 3, 6, 8], "f32", name="b")
    second = named(ovir.Model([ops.add(a, b, name="sum")], [a, b]))
    joined = ovir.join(first, second, {"one": ["a", "b"]})
    assert [port.any_name for port in joined.inputs] == ["x"]
    assert [port.any_name for port in joined.outputs] == ["two", "sum"]
    results = ovir.compile_model(joined)([np.full((1, 3, 6, 8), 3, "f4")])
    assert (results["two"].max(), results["sum"].max()) == (3, 6)


def counter() -> ovir.Model:
    """Return a model that adds up its inputs in a variable."""
    x = ops.parameter([1], "f32", name="x")
    state = ops.read_value(ops.constant([0.0], "f32"), "total", name="state")
    total = ops.add(x, state, name="total")
    return named(ovir.Model([total], [ops.assign(total, "total")], [x], "counter"))


def inside(model: ovir.Model) -> ovir.Model:
    """Return a model whose If has a model of one input, which it always runs, as a body."""
    x = ops.parameter([1], "f32", name="x")
    branch = ops.if_op(ops.constant(np.array(True)), name="total")
    other = ops.parameter([1], "f32", name="x")
    branch.set_then_body(model)
    branch.set_else_body(ovir.Model([ops.negative(other)], [other]))
    branch.set_input(x, model.inputs[0], other)
    result = branch.set_output(model.outputs[0], branch.bodies["else"].outputs[0])
    return named(ovir.Model([result], [x]))


def chain() -> ovir.Model:
    """Return a model of which all layers and tensors have names that those of others have as well."""
    x = ops.parameter([1], "f32", name="x")
    y = ops.multiply(ops.add(x, np.float32([1]), name="total_2"), np.float32([3]), name="total")
    y.outputs[0].names = {"total", "total_2", "x_2"}
    return ovir.Model([y], [x])


COLLIDING = {
    "variables": (counter, counter),
    "variables of bodies": (lambda: inside(counter()), lambda: inside(counter())),
    "a variable of a body and one outside": (counter, lambda: inside(counter())),
    "a variable outside and one of a body": (lambda: inside(counter()), counter),
    "names that a number was added to": (chain, chain),
    "names and variables": (chain, counter),
    "bodies": (lambda: inside(chain()), lambda: inside(chain())),
}


@pytest.mark.parametrize("kind", COLLIDING)
def test_a_joined_model_computes_what_both_compute_in_turn(kind: str, tmp_path: Path) -> None:
    first, second = (make() for make in COLLIDING[kind])
    joined = ovir.join(first, second, {first.outputs[0].source: 0})
    ovir.save_model(joined, tmp_path / "joined.xml")
    one, other = (ovir.compile_model(model).create_infer_request() for model in (first, second))
    expected = [other.infer([one.infer([[value]])[0]])[0].item() for value in (1.0, 2.0, 4.0)]
    for model in (joined, ovir.read_model(tmp_path / "joined.xml")):
        request = ovir.compile_model(model).create_infer_request()
        assert [request.infer([[value]])[0].item() for value in (1.0, 2.0, 4.0)] == expected
        for names in (
            [layer.name for layer in model.layers],
            [name for layer in model.layers for port in layer.outputs for name in port.own_names],
        ):
            assert len(set(names)) == len(names)
    for layer in joined.walk():
        if layer.type in ("ReadValue", "Assign"):
            assert layer.attributes["variable_id"] == layer.operator.variable_id
    states = [state.name for request in (one, other) for state in request.query_state()]
    names = [state.name for state in ovir.compile_model(joined).create_infer_request().query_state()]
    assert names == (["total", "total_2"] if len(states) == 2 else states)


@pytest.mark.parametrize(
    ("second", "connections", "message"),
    [
        (classifier("x"), {"features": "y"}, "the model has no input 'y'; its inputs are 0: 'x', 1: 'bias'"),
        (classifier("x"), {"feature": "x"}, "feature"),
        (classifier("x"), {"features": ["x", "x"]}, "input 'x' is fed twice"),
        (classifier("x"), {"features": "bias"}, "output 'features' f32[1,3,6,8] cannot feed input 'bias' f32[1]"),
        (detector("f16"), {"features": "image"}, "preprocess('image', element_type='f32') converts the input"),
        (classifier("x"), {}, "expected a mapping from tensors to inputs"),
    ],
)
def test_models_that_do_not_fit_are_refused(second: ovir.Model, connections: Any, message: str) -> None:
    with pytest.raises(ovir.InputError) as caught:
        ovir.join(detector(), second, connections)
    assert message in str(caught.value)
