"""The numbers of a model."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.analysis.costs import macs_of
from ovir.analysis.summary import summarize

WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("operation", "shape", "weights", "attributes", "expected"),
    [
        ("MatMul", "2,5,3", zeros(3, 4), {}, 2 * 5 * 4 * 3),
        ("MatMul", "2,3,5", zeros(3, 4), {"transpose_a": "true"}, 2 * 5 * 4 * 3),
        ("MatMul", "3", zeros(3), {}, 3),
        ("Convolution", "2,3,8,8", zeros(4, 3, 3, 3), WINDOW, 2 * 4 * 64 * 27),
        ("GroupConvolution", "2,4,8,8", zeros(2, 3, 2, 3, 3), WINDOW, 2 * 6 * 64 * 18),
        ("ConvolutionBackpropData", "2,3,8,8", zeros(3, 4, 3, 3), WINDOW, 2 * 3 * 64 * 36),
    ],
)
def test_multiply_accumulates(operation: str, shape: str, weights: Any, attributes: Any, expected: int) -> None:
    net = Net()
    net.result(net.op(operation, net.parameter("x", shape), net.const(weights), name="counted", **attributes))
    count = macs_of(net.model().layer("counted"))
    assert count is not None
    assert count.is_static
    assert count.lower == expected


def test_others_are_not_counted() -> None:
    net = Net()
    x = net.parameter("x", "?,3")
    net.result(net.op("MatMul", net.op("ReLU", x, name="relu"), net.const(zeros(3, 4)), name="matmul"))
    model = net.model()
    assert macs_of(model.layer("relu")) is None
    summary = summarize(model)
    assert (summary.macs, summary.macs_unknown, summary.sizes) == (12, [], {"x": "[1,3]"})
    assert summary.operations == {"Parameter": 1, "ReLU": 1, "Const": 1, "MatMul": 1, "Result": 1}


def test_shared_weights_count_once_in_the_file() -> None:
    net = Net()
    net.result(net.const(zeros(4)))
    net.op("Const", element_type="f32", shape="3", offset="4", size="12")
    summary = summarize(net.model())
    assert summary.constants["f32"].elements == 7
    assert summary.constants["f32"].bytes == 28
    assert summary.weights_bytes == 16
    assert summary.file_bytes is None
