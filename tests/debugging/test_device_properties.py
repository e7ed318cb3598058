"""Properties of a device that change numbers: which of them are named, and what a comparison with exact ones tells."""

from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.debugging.device_properties import PROPERTIES, DeviceSetting, settings_that_round

pytestmark = pytest.mark.slow
DEFAULTS = (
    "DYNAMIC_QUANTIZATION_GROUP_SIZE=32 KV_CACHE_PRECISION=u8 LP_TRANSFORMS_MODE=YES CPU_DENORMALS_OPTIMIZATION=NO"
)


def product(x: ovir.Layer, *, compressed: bool = True) -> ovir.Layer:
    """Return the product of an input and weights, which are of 8 bits with a scale if they are compressed."""
    weights: Any = np.arange(12, dtype=np.float32).reshape(4, 3)
    if compressed:
        stored = ops.convert(ops.constant(weights.astype(np.uint8)), "f32")
        weights = ops.multiply(stored, np.full((4, 1), 0.5, np.float32))
    return ops.matmul(x, weights, False, False, name="product")


def product_model(*, compressed: bool = True) -> ovir.Model:
    x = ops.parameter([1, 4], "f32", name="x")
    return ovir.Model([ops.abs(product(x, compressed=compressed))], [x])


@pytest.fixture
def rounding(device: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the device have properties, and change products unless dynamic quantization is off."""
    device.setenv("OVIR_TEST_PROPERTIES", DEFAULTS)
    device.setenv("OVIR_TEST_FAULT", "rounds:MatMul")
    return device


@pytest.mark.parametrize("search", [ovir.compare, ovir.bisect])
def test_rounding_is_told_from_a_fault(search: Any, rounding: pytest.MonkeyPatch) -> None:
    model = product_model()
    found = search(model, explain=True)
    assert not found
    assert [(item.name, item.value, item.exact) for item in found.properties] == [
        ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "32", "0")
    ]
    assert str(found.explanation) == "agrees with DYNAMIC_QUANTIZATION_GROUP_SIZE=0: rounding of the device, no fault"
    told = found.to_dict()
    assert told["explanation"] == {
        "within": True,
        "config": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"},
        "problem": None,
        "excess": None,
    }
    assert told["properties"][0]["effect"].startswith("inputs of products with compressed weights")
    assert search(model, config={"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"})
    rounding.setenv("OVIR_TEST_FAULT", "wrong:MatMul")
    faulty = search(model, explain=True)
    assert not faulty.explanation.within
    assert "beyond tolerance with DYNAMIC_QUANTIZATION_GROUP_SIZE=0, too" in str(faulty.explanation)


@pytest.mark.parametrize("search", [ovir.compare, ovir.bisect])
def test_a_fault_in_a_narrow_type_is_told_from_its_rounding(search: Any, device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "slightly:Abs")
    device.setenv("OVIR_TEST_PRECISION", "bf16")
    x = ops.parameter([1, 4], "f32", name="x")
    model = ovir.Model([ops.abs(ops.multiply(x, np.float32(1.1)))], [x])
    small = search(model, explain=True, rtol=1e-5)
    assert str(small.explanation) == "agrees with INFERENCE_PRECISION_HINT=f32: rounding of the device, no fault"
    assert 0 < small.explanation.excess < 10
    device.setenv("OVIR_TEST_FAULT", "narrow:Abs")
    large = search(model, explain=True, rtol=1e-5)
    assert large.explanation.within
    assert large.explanation.excess > 100
    assert ": a fault" in str(large.explanation)


def test_the_fewest_properties_are_named(rounding: pytest.MonkeyPatch) -> None:
    rounding.setenv("OVIR_TEST_PRECISION", "bf16")
    found = ovir.compare(product_model(), config={"CPU_DENORMALS_OPTIMIZATION": "YES"}, explain=True, rtol=1e-5)
    assert [item.name for item in found.properties] == [
        "INFERENCE_PRECISION_HINT",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE",
        "CPU_DENORMALS_OPTIMIZATION",
    ]
    assert found.explanation.config == {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


def test_workers_explain_as_one_process_does(rounding: pytest.MonkeyPatch) -> None:
    from ovir.analysis.tensor_comparison import Criterion
    from ovir.debugging.comparison_setup import ComparisonOptions
    from ovir.workers.comparing import compare_by_workers

    options = ComparisonOptions("openvino:CPU", Criterion(), samples=2, explain=True)
    found = compare_by_workers(product_model(), options, workers=1)
    assert found.explanation.within


def test_nothing_is_tried_where_nothing_is_asked_or_known(rounding: pytest.MonkeyPatch) -> None:
    assert ovir.compare(product_model()).explanation is None
    plain = ovir.compare(product_model(compressed=False), explain=True)
    assert (plain.within, list(plain.properties), plain.explanation) == (False, [], None)
    rounding.setenv("OVIR_TEST_FAULT", "die:MatMul")
    assert ovir.compare(product_model(), explain=True).explanation is None


def test_a_device_may_refuse_the_exact_values(rounding: pytest.MonkeyPatch) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    low, high = np.float32(-3), np.float32(3)
    rounded = ops.fake_quantize(x, low, high, low, high, 256)
    rounding.setenv("OVIR_TEST_PROPERTIES", "")
    rounding.setenv("OVIR_TEST_FAULT", "wrong:Abs")
    found = ovir.compare(ovir.Model([ops.abs(rounded)], [x]), explain=True)
    assert [(item.name, item.value) for item in found.properties] == [("LP_TRANSFORMS_MODE", None)]
    assert "nothing is explained: openvino:CPU: CPU refuses the properties LP_TRANSFORMS_MODE=NO" in str(
        found.explanation
    )


@pytest.mark.parametrize("row", PROPERTIES, ids=lambda row: row.name)
def test_a_row_names_values_that_change_numbers(row: Any) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    state = ops.read_value(x, "state", "f32", [1, 4])
    vectors = ops.reshape(state, np.int64([1, 4, 1]), False)
    rounded = ops.fake_quantize(state, *np.float32([0, 1, 0, 1]), 4)
    results = [product(x), rounded, ops.scaled_dot_product_attention(vectors, vectors, vectors)]
    model = ovir.Model([*results, ops.assign(state, "state")], [x])

    def named(value: str, device: str) -> bool:
        return row.name in {item.name for item in settings_that_round(model, device, {row.name: value})}

    for device in ("CPU", "GPU.1", "NPU", "HETERO:GPU,CPU"):
        assert named("another", device) == any(kind in device for kind in row.devices)
        assert not any(named(value, device) for value in (row.exact, *row.same))
    assert row.is_shown or named(None, row.devices[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "shown"), [(None, "N is on by default: e"), ("5", "N is 5: e")])
def test_a_setting_in_words(value: str | None, shown: str) -> None:
    assert str(DeviceSetting("N", value, "0", "e")) == shown
