"""Constants with other data, folded constants, decompressed weights."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net, output, unary_net
from support.edited import run, sample

import ovir
from ovir import opset13 as ops
from ovir.model import Model


def compressed() -> Model:
    """A product with u8 weights, which are decompressed in f16, and an f16 bias."""
    net = Net()
    x = net.parameter("x", "2,3")
    stored = net.const(np.arange(12, dtype=np.uint8).reshape(3, 4), name="stored")
    shifted = net.op("Subtract", _converted(net, stored, "f16"), net.const(np.float16([[5]])), name="shifted")
    scaled = net.op("Multiply", shifted, net.const(np.float16([[0.3]])), name="scaled")
    weights = _converted(net, scaled, "f32", "weights")
    product = net.op("MatMul", x, weights, name="product", transpose_a="false", transpose_b="false")
    bias = _converted(net, net.const(np.float16([0.1]), name="narrow"), "f32", "bias")
    net.result(net.op("Add", product, bias, name="sum"))
    return net.model()


def _converted(net: Net, source: tuple[int, int], element_type: str, name: str | None = None) -> tuple[int, int]:
    return net.op("Convert", source, name=name, destination_type=element_type)


def types(model: Model) -> list[str]:
    return [layer.type for layer in model.layers]


def test_a_constant_gets_other_data_of_another_type_and_shape() -> None:
    model = sample()
    target = model.layer("target")
    assert model.set_constant("target", np.array([1, 6, 1], np.int32)) is target
    assert str(target.outputs[0].type) == "i32[3]"
    assert dict(target.attributes) == {"element_type": target.operator.element_type, "shape": (3,)}
    array = np.array([-1, 6])
    model.set_constant(target, array)
    array[:] = 0  # the constant is a copy
    model.reshape({"x": [4, 3], "y": [4, 3]})
    assert str(model.layer("flat").outputs[0].shape) == "[2,6]"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("narrow", 0.5, "f16[]"),
        ("narrow", [1, 2, 3, 4], "f16[4]"),
        ("weights", [[1.0] * 4] * 3, "f32[3,4]"),
        ("bias", [1.0, 2, 3, 4], "f32[4]"),
        ("bias", np.ones(4, np.float32), "f32[4]"),
        ("narrow", memoryview(np.ones(4, np.float16)), "f16[4]"),
    ],
)
def test_numbers_take_the_element_type_of_the_constant(name: str, value: Any, expected: str) -> None:
    assert str(compressed().set_constant(name, value).outputs[0].type) == expected


@pytest.mark.parametrize(
    ("value", "message", "has_hint"),
    [
        ([[1], [2, 3]], "expected a number, or lists of equal lengths", False),
        ([0.5], "0.5 is not a value of u8", True),
        (256, "256 is not a value of u8", True),
        ([object()], "is neither numbers nor strings", False),
        (None, "None is neither numbers nor strings", False),
        ([1, 2**70], "1180591620717411303424 is not a value of u8, which holds integers from 0 to 255", False),
        ([-1], "-1 is not a value of u8, which holds integers from 0 to 255", True),
        (float("nan"), "nan is not a value of u8", True),
        (1j, "1j is not a value of u8", False),
        (np.array([1j]), "no element type for NumPy's complex128", False),
        (np.complex64(1), "no element type for NumPy's complex64", False),
    ],
)
def test_what_is_no_value_of_a_constant(value: Any, message: str, has_hint: bool) -> None:
    """The hint is at other element types, which some values do not have either."""
    model = compressed()
    with pytest.raises(ovir.InputError, match="the constant cannot be set: .*" + re.escape(message)) as caught:
        model.set_constant("stored", value)
    assert ("hint: an array of NumPy sets another element type" in str(caught.value)) == has_hint
    assert model.layer("stored").operator.data.shape == (3, 4)


@pytest.mark.parametrize(
    "name", ["bf16", "f8e4m3", "f8e5m2", "f4e2m1", "i4", "u4", "u2", "u1", "u3", "u6", "nf4", "u8"]
)
def test_arrays_of_the_dtype_in_memory_keep_the_element_type(name: str, tmp_path: Path) -> None:
    constant = ops.constant([0, 1, 1], name, name="c")
    model = ovir.Model([constant], [], "m")
    dtype = constant.element_type.to_dtype()
    model.set_constant("c", np.array([[1], [0]]).astype(dtype))
    assert str(model.outputs[0].type) == f"{name}[2,1]"
    ovir.save_model(model, tmp_path / "m.xml")
    read = ovir.read_model(tmp_path / "m.xml").layer("c")
    assert (str(read.element_type), read.operator.data.astype(int).tolist()) == (name, [[1], [0]])
    model.set_constant("c", np.float16([1]))
    assert str(model.outputs[0].type) == "f16[1]"


def test_stored_and_decompressed_numbers_can_be_set() -> None:
    model, zeros = compressed(), np.zeros((3, 4))
    before = run(model)[0]
    model.set_constant("stored", np.full((3, 4), 5, np.uint8))
    np.testing.assert_allclose(run(model)[0], np.full((2, 4), 0.1), rtol=1e-3)
    assert "Subtract" in types(model)
    new = model.set_constant("weights", zeros.astype(np.float32))
    assert (new.name, new.type, types(model).count("Const")) == ("weights", "Const", 2)
    assert "Subtract" not in types(model)
    np.testing.assert_allclose(run(model)[0], np.full((2, 4), 0.1), rtol=1e-3)
    assert not np.allclose(before, 0.1)


def test_other_types_than_the_file_declares_are_not_reported() -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("ConvertLike", x, net.const(np.float32(1), name="like"), opset=8, name="same"))
    model = ovir.read_model(net.declared_xml().encode(), bytes(net.blob))
    model.set_constant("like", np.float16(1))
    assert str(model.outputs[0].type) == "f16[2]"
    assert model.diagnostics == []


def test_constants_are_folded_to_the_values_of_runs() -> None:
    net = Net()
    x = net.parameter("x", "2,6")
    sizes = net.op("ShapeOf", x, opset=3, output_type="i64", name="sizes")
    rows = net.op("Gather", sizes, net.const(np.array([0])), net.const(np.array(0)), opset=8, name="rows")
    target = net.op("Concat", rows, net.const(np.array([2, 3])), axis=0, name="target")
    scale = net.op("Exp", net.const(np.float32([0.1, 0.2, 0.3])), name="scale")
    halves = net.op("Split", scale, net.const(np.array(0)), num_splits=3, outputs=3, name="parts")
    data = net.op("Reshape", x, target, special_zero="false", name="data")
    net.result(net.op("Add", net.op("Multiply", data, scale), output(halves, 1), name="sum"), "out")
    model = net.model()
    expected = run(model)[0]
    folded = model.fold_constants()
    assert {layer.name for layer in folded} == {"target", "scale", "parts.1"}
    assert sorted(types(model)) == ["Add", *["Const"] * 3, "Multiply", "Parameter", "Reshape", "Result"]
    assert np.array_equal(run(model)[0], expected)
    assert model.fold_constants() == []
    with pytest.raises(ovir.InputError, match="an array cannot replace this layer, which has 3 outputs"):
        net.model().set_constant("parts", np.float32([1]))


def test_weights_stay_compressed_unless_asked() -> None:
    model = compressed()
    expected = run(model)[0]
    assert model.fold_constants() == []
    other = model.clone()
    assert {layer.name for layer in other.fold_constants(decompress=True)} == {"weights", "bias"}
    assert {layer.name for layer in model.decompress()} == {"weights", "bias"}
    for each in (model, other):
        assert types(each).count("Const") == 2
        assert np.array_equal(run(each)[0], expected)
    assert model.decompress() == []


def test_only_weights_are_decompressed() -> None:
    net = Net()
    x = net.parameter("x", "3")
    weights = _converted(net, net.const(np.float16([1, 2, 3])), "f32", "weights")
    net.result(net.op("Multiply", net.op("Add", x, weights), net.op("Exp", net.const(np.float32(1)), name="e")))
    model = net.model()
    assert [layer.name for layer in model.decompress()] == ["weights"]
    assert "Exp" in types(model)


def test_what_cannot_run_stays_where_it_is() -> None:
    net = Net()
    x = net.parameter("x", "3")
    unknown = net.op("Unheard", net.const(np.float32([1])), name="unknown", opset=1)
    net.result(net.op("Add", x, net.op("Exp", net.const(np.float32([1])), name="e")))
    net.result(unknown)
    model = net.model()
    assert [layer.name for layer in model.fold_constants()] == ["e"]


def test_a_layer_that_only_a_folded_one_reads_is_removed() -> None:
    net = Net()
    x = net.parameter("x", "3")
    net.result(net.op("ShapeOf", net.op("ReLU", x, name="relu"), opset=3, output_type="i64", name="size"))
    model = net.model()
    model.fold_constants()
    assert types(model) == ["Parameter", "Const", "Result"]


@pytest.mark.parametrize("text", ["word", ["several", "words"]])
def test_strings(text: str | list[str]) -> None:
    net = unary_net("ReLU")
    net.result(net.const(np.array([1, 6]), name="text"))
    model = net.model()
    model.set_constant("text", text)
    assert str(model.outputs[1].element_type) == "string"
    assert run(model)[1].tolist() == text
