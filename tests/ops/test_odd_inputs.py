"""Inputs that broke kernels when the fuzzer fed them: scalars, empty tensors, strings and unused attributes."""

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.diagnostics.errors import OperatorError
from ovir.ops.attention import ScaledDotProductAttention
from ovir.ops.comparison import GreaterEqual
from ovir.ops.generate import OneHot16
from ovir.ops.movement import Pad12
from ovir.ops.multiclass_nms import MulticlassNms9
from ovir.ops.normalization import LRN, MVN6, NormalizeL2
from ovir.ops.pooling import MaxPool1
from ovir.ops.rearrange import ReverseSequence


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.dtypes.StringDType()])
def test_padding_of_a_scalar(dtype: np.dtype) -> None:
    data, nothing = np.asarray(7).astype(dtype), np.int64([])
    result = Pad12().run(data, nothing, nothing)
    assert result.shape == ()
    assert result.item() == data.item()


@pytest.mark.parametrize("features", [0, 1, 4])
@pytest.mark.parametrize("mask", [(), (2, 0)])
def test_attention_without_keys(features: int, mask: tuple[int, ...]) -> None:
    query, key, value = (np.ones((3, size, features), np.float32) for size in (2, 0, 0))
    result = ScaledDotProductAttention(causal=False).run(query, key, value, np.ones(mask, np.float32))
    assert result.shape == (3, 2, features)
    assert np.isnan(result).all()


def test_the_axis_of_a_mode_that_has_none() -> None:
    op = GreaterEqual(auto_broadcast="none", axis=4)
    data = np.ones((3, 7, 1, 1), np.int16)
    assert op.run(data, data).all()


@pytest.mark.parametrize(
    "op", [NormalizeL2(eps=1e-9, eps_mode="add"), MVN6(eps=1, normalize_variance=True, eps_mode="inside_sqrt"), LRN()]
)
@pytest.mark.parametrize("axes", [[], [0], [-1]])
def test_normalization_of_a_scalar(op: NormalizeL2 | MVN6 | LRN, axes: list[int]) -> None:
    scalar, row = op.run(np.array(3, np.float32), np.int64(axes)), op.run(np.float32([3]), np.int64(axes))
    assert scalar.shape == ()
    assert scalar == row[0]


def test_long_strings_of_one_hot() -> None:
    on, off = (np.asarray(letter * 20).astype(np.dtypes.StringDType()) for letter in "xy")
    result = OneHot16(axis=1).run(np.zeros((1, 7), np.int32), np.array(1, np.int32), on, off)
    assert result.tolist() == [[["x" * 20] * 7]]


@pytest.mark.parametrize("dtype", [ml_dtypes.uint4, ml_dtypes.int4, np.uint8])
def test_small_indices_of_one_hot(dtype: np.dtype) -> None:
    numbers = (np.array(n, np.int32) for n in (2, 1, 0))
    assert OneHot16(axis=-1).run(np.array([1, 0, 3], dtype), *numbers).tolist() == [[0, 1], [1, 0], [0, 0]]


def test_equal_axes_of_reverse_sequence() -> None:
    net = Net()
    inputs = net.parameter("x", "1,2,3"), net.parameter("lengths", "1", "i32")
    net.result(net.op("ReverseSequence", *inputs, batch_axis=0, seq_axis=-3))
    with pytest.raises(ovir.ModelError, match="batch_axis 0 and seq_axis 0 must differ"):
        net.model()
    with pytest.raises((OperatorError, ValueError)):
        ReverseSequence(batch_axis=1, seq_axis=1).run(np.ones((2, 2)), np.int32([1, 1]))


def test_a_transpose_without_an_order_is_reported_once() -> None:
    net = Net()
    net.result(net.op("Transpose", net.parameter("x", "5,7")))
    errors = [d.message for d in ovir.check(net.xml().encode()) if d.severity is ovir.Severity.ERROR]
    assert errors == ["takes 2 inputs (data, order), got 1"]


def test_arrays_that_numpy_refuses_are_out_of_memory() -> None:
    net = Net()
    pads = [net.const(np.int64([2**61, 0])) for _ in range(2)]
    net.result(net.op("Pad", net.parameter("x", "2,3"), *pads, pad_mode="edge"))
    with pytest.raises(ovir.RunError, match="out of memory"):
        net.compiled()([np.ones((2, 3), np.float32)])


@pytest.mark.parametrize("count", [2**61, 2**62, 2**62 + 1])
@pytest.mark.parametrize("name", ["Tile", "Broadcast"])
def test_repeating_beyond_any_memory_is_out_of_memory(name: str, count: int) -> None:
    net = Net()
    net.result(net.op(name, net.parameter("x", "?,?"), net.parameter("counts", "?", "i64")))
    rows = 4 if name == "Tile" else 1  # four times 2**62 + 1 wraps around to 4, for which NumPy allocates too little
    with pytest.raises(ovir.RunError, match="out of memory"):
        net.compiled()([np.ones((rows, rows), np.float32), np.int64([4, count])])


@pytest.mark.parametrize("numbers", [[2**62, 2**62, 2**62, 2**62 + 4], [2**63 - 1], [-1, 5]])
def test_numbers_of_boxes_beyond_the_boxes(numbers: list[int]) -> None:
    boxes, scores = np.ones((1, 4, 4), np.float32), np.ones((1, 4), np.float32)
    with pytest.raises(OperatorError, match=rf"counts {sum(max(n, 0) for n in numbers)} boxes, but there are 4"):
        MulticlassNms9().run(boxes, scores, np.array(numbers))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.float8_e5m2, np.int8])
def test_max_pool_of_small_types(dtype: np.dtype) -> None:
    op = MaxPool1(kernel=(2,), strides=(1,), pads_begin=(1,), pads_end=(0,))
    result = op.run(np.array([[[1, 3, 0]]], dtype))
    assert result.dtype == dtype
    assert result.astype(int).tolist() == [[[1, 3, 3]]]
