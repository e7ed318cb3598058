"""Layers that are computed from constants alone, and the codes that a layer decompresses."""

import numpy as np
import pytest
from support.builder import Net

from ovir.graph.constant_layers import constant_layers, converted_codes, is_function


@pytest.mark.parametrize("zero_points", [None, "constant", "input", "missing"])
@pytest.mark.parametrize("is_constant", [True, False])
def test_codes_that_a_product_reads(zero_points: str | None, is_constant: bool) -> None:
    net = Net()
    x, y = net.parameter("x", "?,3"), net.parameter("y", "3,2", "u8")
    codes = net.const(np.ones((3, 2), np.uint8), name="codes") if is_constant else y
    weights = net.op("Convert", codes, destination_type="f32", name="converted")
    if zero_points is not None:
        zero = net.parameter("zero", "1") if zero_points == "input" else net.const(np.float32(3))
        weights = net.op("Subtract", weights, zero, name="shifted")
    net.result(net.op("MatMul", x, weights, name="product"))
    model = net.model()
    if zero_points == "missing":
        model.disconnect(model.layer("shifted").inputs[1])
    data, port = model.layer("product").inputs
    is_known = is_constant and zero_points in (None, "constant")
    assert converted_codes(port) is (model.layer("codes") if is_known else None)
    assert converted_codes(data) is converted_codes(model.layer("converted").inputs[0]) is None
    assert port.source is not None
    found = constant_layers(port.source.layer)
    assert is_known == (found is not None)
    assert found is None or constant_layers(found[0], len(found)) == found
    assert found is None or constant_layers(found[0], len(found) - 1) is None
    assert is_function(port.source.layer) == (zero_points != "missing")
