"""Weights compressed to integers with f16 arithmetic that restores them."""

import numpy as np
import pytest
from builder import Net

CODES = np.arange(250, 256, dtype=np.uint8).reshape(2, 3)
ZERO_POINT = np.uint8([[128], [100]])
SCALE = np.float16([[0.1], [0.3]])


def compressed() -> tuple[Net, tuple[int, int]]:
    """x + (codes - zero_point) * scale, and the handle of the product in f16."""
    net = Net()
    codes = net.op("Convert", net.const(CODES), destination_type="f16", name="codes")
    zero_point = net.op("Convert", net.const(ZERO_POINT), destination_type="f16")
    difference = net.op("Subtract", codes, zero_point)
    product = net.op("Multiply", difference, net.const(SCALE), name="product")
    weights = net.op("Convert", product, destination_type="f32", name="weights")
    net.result(net.op("Add", net.parameter("x", "2,3"), weights, name="sum"))
    return net, product


def restored() -> np.ndarray:
    difference = CODES.astype(np.float32) - ZERO_POINT.astype(np.float32)
    return difference * SCALE.astype(np.float32)


def test_arithmetic_is_in_f32() -> None:
    net, _ = compressed()
    compiled = net.compiled()
    assert [step.layer.name for step in compiled.plan().steps] == ["sum"]
    result = compiled([np.zeros((2, 3), np.float32)])[0]
    np.testing.assert_array_equal(result, restored())
    assert (result != restored().astype(np.float16)).any()  # rounding on the way would show


def test_what_another_layer_reads_is_rounded_as_it_says() -> None:
    net, product = compressed()
    net.result(product)
    results = net.compiled()([np.zeros((2, 3), np.float32)])
    np.testing.assert_array_equal(results[0], restored())
    assert results[1].dtype == np.float16
    np.testing.assert_allclose(results[1].astype(np.float32), restored(), rtol=1e-3)


@pytest.mark.parametrize("name", ["codes", "product", "weights"])
def test_layers_on_the_way_can_be_tapped(name: str) -> None:
    net, _ = compressed()
    results = net.compiled()([np.zeros((2, 3), np.float32)], taps=[name])
    assert results.taps[name][0].shape == (2, 3)
    np.testing.assert_array_equal(results[0], restored())  # to look at a layer changes nothing


def test_a_layer_behind_small_weights_sees_them_in_f32() -> None:
    net, product = compressed()
    weights = net.op("Convert", product, destination_type="f32")
    turned = net.op("Reshape", weights, net.const(np.int64([3, 2])), special_zero="false")
    net.result(net.op("Add", net.parameter("y", "3,2"), turned))
    result = net.compiled()({"x": np.zeros((2, 3), np.float32), "y": np.zeros((3, 2), np.float32)})[1]
    np.testing.assert_array_equal(result, restored().reshape(3, 2))
