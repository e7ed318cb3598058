"""Transposed convolutions: known answers, that they are the transpose of a convolution, inference, and error texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensors import tensor

from ovir.core.element_types import i64
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.ops.convolution import Convolution, GroupConvolution
from ovir.ops.convolution_backprop import ConvolutionBackpropData, GroupConvolutionBackpropData


@pytest.mark.parametrize(
    ("attributes", "sizes", "expected"),
    [
        ({}, None, [1, 12, 123, 230, 300]),
        ({"strides": (2,)}, None, [1, 10, 102, 20, 203, 30, 300]),
        ({"strides": (4,)}, None, [1, 10, 100, 0, 2, 20, 200, 0, 3, 30, 300]),
        ({"dilations": (2,)}, None, [1, 2, 13, 20, 130, 200, 300]),
        ({"strides": (2,), "pads_begin": (1,), "pads_end": (2,)}, None, [10, 102, 20, 203]),
        ({"strides": (2,), "output_padding": (1,)}, None, [1, 10, 102, 20, 203, 30, 300, 0]),
        ({"strides": (2,), "pads_begin": (1,), "auto_pad": "same_upper"}, None, [1, 10, 102, 20, 203, 30, 300]),
        ({"strides": (2,), "auto_pad": "same_upper"}, 6, [10, 102, 20, 203, 30, 300]),
        ({"strides": (2,), "auto_pad": "same_lower"}, 6, [1, 10, 102, 20, 203, 30]),
        ({"strides": (2,), "auto_pad": "same_lower"}, 5, [10, 102, 20, 203, 30]),
        ({"strides": (2,), "pads_begin": (1,)}, 5, [10, 102, 20, 203, 30]),
        ({"strides": (2,), "pads_begin": (1,), "auto_pad": "valid"}, 8, [1, 10, 102, 20, 203, 30, 300, 0]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_known_answers(attributes: dict[str, Any], sizes: int | None, expected: list[int], dtype: Any) -> None:
    op = ConvolutionBackpropData(**attributes)
    data, filters = np.array([[[1, 2, 3]]], dtype), np.array([[[1, 10, 100]]], dtype)
    shape = None if sizes is None else np.array([sizes], np.int64)
    inputs = (data, filters) if shape is None else (data, filters, shape)
    result = op.run(*inputs)
    assert isinstance(result, np.ndarray)
    assert result.dtype == dtype
    assert result.ravel().tolist() == expected
    inferred = op.infer(tensor("1,1,3"), tensor("1,1,3"), None if shape is None else constant_type(shape))
    assert result.shape == inferred.shape.to_tuple()


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("stride", "dilation", "pad"), [(1, 1, 1), (2, 1, 0), (3, 2, 1), (2, 3, 2)])
def test_is_the_transpose_of_a_convolution(groups: int, axes: int, stride: int, dilation: int, pad: int) -> None:
    rng = np.random.default_rng(0)
    attributes: dict[str, Any] = {"strides": (stride,) * axes, "dilations": (dilation,) * axes}
    attributes |= {"pads_begin": (pad,) * axes, "pads_end": (pad,) * axes}
    filters = rng.integers(-4, 5, (groups, 2, 4, *(3,) * axes)).astype(np.float64)
    image = rng.integers(-4, 5, (2, groups * 4, *(7,) * axes)).astype(np.float64)
    forward = GroupConvolution(**attributes).run(image, filters)
    assert isinstance(forward, np.ndarray)
    data = rng.integers(-4, 5, forward.shape).astype(np.float64)
    backward = GroupConvolutionBackpropData(**attributes).run(data, filters, np.full(axes, 7))
    assert np.vdot(forward, data) == np.vdot(image, backward)
    if groups == 1:
        np.testing.assert_array_equal(Convolution(**attributes).run(image, filters[0]), forward)
        again = ConvolutionBackpropData(**attributes).run(data, filters[0], np.full(axes, 7))
        np.testing.assert_array_equal(again, backward)


@pytest.mark.parametrize(
    ("attributes", "data", "filters", "sizes", "expected"),
    [
        ({}, "1,2,?,4..7", "2,3,3,3", None, "[1,3,3..,6..9]"),
        ({"strides": (2,), "pads_begin": (1,), "pads_end": (1,)}, "1,2,8..16", "2,3,3", None, "[1,3,15..31]"),
        ({}, "...", "2,3,3", None, "[?,3,3..]"),
        ({}, "1,2,5", "...", None, "[1,?,5..]"),
        ({}, "...", "...", None, "[...]"),
        ({}, "1,2,5,5", "2,3,3,3", tensor("2", i64), "[1,3,?,?]"),
        ({}, "1,2,5,5", "2,3,3,3", tensor("...", i64), "[1,3,?,?]"),
        ({}, "...", "...", tensor("2", i64), "[?,?,?,?]"),
        ({}, "1,?,?,?", "2,3,3,3", constant_type(np.array([8, 9])), "[1,3,8,9]"),
    ],
)
def test_infer(attributes: dict[str, Any], data: str, filters: str, sizes: TensorType | None, expected: str) -> None:
    op = ConvolutionBackpropData(**attributes)
    assert str(op.infer(tensor(data), tensor(filters), sizes).shape) == expected


def test_infer_groups() -> None:
    op = GroupConvolutionBackpropData()
    assert str(op.infer(tensor("1,6,5"), tensor("?,2,4,3")).shape) == "[1,12,7]"
    with pytest.raises(OperatorError, match=r"has 6 channels, but filters .* need 2 groups of 2"):
        op.infer(tensor("1,6,5"), tensor("2,2,4,3"))


@pytest.mark.parametrize(
    ("attributes", "inputs", "message"),
    [
        (
            {},
            ("1,3,5", "2,3,3"),
            "data of shape [1,3,5] and filters of shape [2,3,3] must have the same number of channels",
        ),
        ({"output_padding": (1, 1)}, ("1,2,5", "2,3,3"), "output_padding [1,1] must have 1 items"),
        ({"pads_begin": (9,)}, ("1,2,5", "2,3,3"), "pads 9 and 0 are too large for data 5"),
    ],
)
def test_inference_errors(attributes: dict[str, Any], inputs: tuple[str, str], message: str) -> None:
    with pytest.raises(OperatorError) as error:
        ConvolutionBackpropData(**attributes).infer(*map(tensor, inputs))
    assert message in error.value.message


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (tensor("2", i64), "output_shape must have 1 items, one for each spatial axis, got 2"),
        (tensor("1"), "output_shape must be of an integer type, got f32"),
        (constant_type(np.array([-1])), "output_shape [-1] has a negative size"),
    ],
)
def test_output_shape_errors(sizes: TensorType, message: str) -> None:
    with pytest.raises(OperatorError) as error:
        ConvolutionBackpropData().infer(tensor("1,2,5"), tensor("2,3,3"), sizes)
    assert message in error.value.message
