"""What a file alone shows of the values that its FakeQuantize layers clip."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

CHECKED = [
    (
        ops.sigmoid,
        0,
        0.98,
        ["values above 0.98 become 0.98; layer 1 'before' (Sigmoid, opset1) gives values from 0 to 1"],
    ),
    (ops.tanh, -0.5, 1, ["values below -0.5 become -0.5; layer 1 'before' (Tanh, opset1) gives values from -1 to 1"]),
    (ops.tanh, -0.5, 0.5, ["values below -0.5 become -0.5", "values above 0.5 become 0.5"]),
    (lambda x: ops.clamp(x, 0, 6), 0, 5.5, ["values above 5.5 become 5.5"]),
    (lambda x: ops.clamp(x, 0, 6), 0, 6 / (1 + 1.9 / 255), []),
    (ops.sigmoid, 0, 1, []),
    (ops.sigmoid, 1, 0, []),
    (ops.relu, 0, 5.5, []),
    (ops.floor, 0, 5.5, []),
]


@pytest.mark.parametrize(("before", "low", "high", "expected"), CHECKED)
@pytest.mark.parametrize("moved", [False, True])
def test_a_check_says_what_is_clipped_of_an_output(
    before: Any, low: float, high: float, expected: list[str], moved: bool, tmp_path: Path
) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    layer = before(x)
    layer.name = "before"
    result = ops.fake_quantize(layer, *np.float32([low, high, low, high]), 256)
    if moved:
        result = ops.reshape(ops.concat([result, ops.negative(x)], 1), np.int64([2, 4]), False)
    found = saved_and_checked(ovir.Model([result], [x]), tmp_path)
    assert len(found) == len(expected)
    assert all(text in message for text, message in zip(expected, found, strict=True))


def test_a_check_names_a_channel_that_is_clipped(tmp_path: Path) -> None:
    x = ops.parameter([1, 3, "?"], "f32", name="x")
    ends = np.float32([1, 0.9, 0.8]).reshape(1, 3, 1)
    scores = ops.fake_quantize(ops.sigmoid(x), np.float32(0), ends, np.float32(0), ends, 256)
    (found,) = saved_and_checked(ovir.Model([scores], [x]), tmp_path)
    assert "values above 0.9 become 0.9;" in found


def test_a_check_knows_nothing_of_layers_that_quantize_without_a_range(tmp_path: Path) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    layers = [
        ops.fake_convert(of, np.float32([1])) for of in (ops.sigmoid(x), ops.constant(np.float32([[900, 1, 2, 3]])))
    ]
    assert not saved_and_checked(ovir.Model(layers, [x]), tmp_path)


def test_a_check_says_nothing_of_ranges_that_are_computed(tmp_path: Path) -> None:
    x, end = ops.parameter([1, 4], "f32", name="x"), ops.parameter([], "f32", name="end")
    scores = ops.fake_quantize(ops.sigmoid(x), np.float32(0), end, np.float32(0), np.float32(0.9), 256)
    assert not saved_and_checked(ovir.Model([scores], [x, end]), tmp_path)


def test_a_check_says_nothing_of_values_that_are_computed_with(tmp_path: Path) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    scores = ops.fake_quantize(ops.sigmoid(x), *np.float32([0, 0.98, 0, 0.98]), 256)
    assert not saved_and_checked(ovir.Model([ops.multiply(scores, x)], [x]), tmp_path)


@pytest.mark.parametrize("stored", [np.float32, np.float16])
@pytest.mark.parametrize(("largest", "expected"), [(1 + 1.9 / 8, []), (1 + 2.1 / 8, ["12.5% of values above output"])])
def test_a_check_counts_the_clipped_values_of_constants(
    stored: Any, largest: float, expected: list[str], tmp_path: Path
) -> None:
    x = ops.parameter([1, 8], "f32", name="x")
    weights = ops.convert(ops.constant(stored([[largest, *[1] * 6, -1]])), "f32")
    quantized = ops.fake_quantize(weights, *np.float32([-1, 1, -1, 1]), 17)
    found = saved_and_checked(ovir.Model([ops.multiply(x, quantized)], [x]), tmp_path)
    assert [text in message for text, message in zip(expected, found, strict=True)] == [True] * len(expected)


def test_codes_of_a_type_of_4_bits_are_no_values(tmp_path: Path) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    weights = ops.convert(ops.constant(np.uint8([[0, 15, 8, 7]]), "nf4"), "f32")
    ends = np.float32([-0.5, 0.5, -0.5, 0.5])
    (found,) = saved_and_checked(ovir.Model([ops.multiply(x, ops.fake_quantize(weights, *ends, 17))], [x]), tmp_path)
    assert "25.0% of values below output bound -0.5" in found


def saved_and_checked(model: ovir.Model, folder: Path) -> list[str]:
    ovir.save_model(model, folder / "model.xml")
    found = ovir.check(folder / "model.xml")
    assert "OVIR999" not in {d.code for d in found}, "the rule itself fails"
    return [d.message for d in found if d.code == "OVIR712"]
