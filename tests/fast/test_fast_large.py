"""Fast forms of arrays that are large enough for several parts and threads; ``kernel_contract`` sees small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.binding import bound_results

from ovir.core import parallel
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops import reduction as red
from ovir.ops.arithmetic import Divide, FloorMod, Mod, Power
from ovir.ops.attention import GroupedAttention, ScaledDotProductAttention
from ovir.ops.base.operator import Operator
from ovir.ops.convolution import Convolution, GroupConvolution, GroupConvolutionBackpropData
from ovir.ops.logic import BitwiseNot, BitwiseOr, LogicalAnd, LogicalNot
from ovir.ops.matmul import Einsum
from ovir.ops.normalization import SoftMax8
from ovir.ops.quantization import FakeQuantize
from ovir.ops.select import Select
from ovir.ops.yolo import RegionYolo

pytestmark = pytest.mark.slow


def sample(*shape: int, scale: float = 3.0, channels_last: bool = False) -> Array:
    """Random numbers, in C order or with the second axis last in memory."""
    data = np.random.default_rng(len(shape)).normal(scale=scale, size=shape).astype(np.float32)
    return np.moveaxis(np.moveaxis(data, 1, -1).copy(), -1, 1) if channels_last else data


def assert_bound_like_run(op: Operator, *inputs: Array, error: float = 1e-6) -> None:
    """Compare the fast form with ``run``, with all inputs but the first constant, relative to the largest output."""
    types = [TensorType(ElementType.from_dtype(a.dtype), PartialShape(a.shape)) for a in inputs]
    inferred = op.infer(*types)
    assert isinstance(inferred, TensorType)
    op.input_types, op.output_types = tuple(t.element_type for t in types), (inferred.element_type,)
    expected = np.asarray(op.run(*inputs))
    with parallel.limit(2):
        results = bound_results(op, inputs, [expected], set(range(1, len(inputs))))
    assert results is not None, "there is no fast form"
    if error and expected.dtype.kind == "f":
        np.testing.assert_allclose(results[0], expected, rtol=0, atol=error * np.nanmax(np.abs(expected)))
    else:
        np.testing.assert_array_equal(results[0], expected)


def test_softmax_of_extremes() -> None:
    data = sample(40, 30)
    data[3], data[4], data[5, :20], data[6] = -300, 300, -np.inf, 88.7
    assert_bound_like_run(SoftMax8(), data)
    data[7, 2], data[8] = np.nan, -np.inf
    assert_bound_like_run(SoftMax8(), data)
    data[9, 4] = np.inf
    assert_bound_like_run(SoftMax8(), data)


def test_softmax_gives_no_subnormal_numbers() -> None:
    data = np.zeros((40, 30), np.float32)
    data[:, 20:] = np.linspace(-110, -74, 10)
    op, expected = SoftMax8(axis=-1), np.exp(data[:, 20:].astype(np.float64)) / 20
    for shift in (0, 70):  # large numbers are reduced first
        results = bound_results(op, (data + np.float32(shift),), [data], set())
        assert results is not None
        small = results[0][:, 20:]
        np.testing.assert_allclose(small, expected, rtol=1e-5, atol=2.0**-119)
        assert ((small == 0) | (small >= np.finfo(np.float32).tiny)).all()


def attention_inputs(*mask: int) -> tuple[Array, ...]:
    """Queries, keys and values of 2 x 6 heads that lie in memory as reshaped and transposed products do, and a mask."""
    q, k, v = (sample(2, rows, 6, 20, scale=2).swapaxes(1, 2) for rows in (300, 290, 290))
    return (q, k, v, sample(*mask, scale=2)) if mask else (q, k, v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("mask", [(), (1, 290), (6, 40, 290), (2, 1, 1, 290), (1, 6, 40, 290)], ids=str)
def test_attention_of_heads_that_share_keys(rows: int, mask: tuple[int, ...], causal: bool) -> None:
    query, whole = sample(2, rows, 6, 20).swapaxes(1, 2), ScaledDotProductAttention(causal=causal)
    key, value = sample(2, 2, 1, 290, 20), sample(1, 2, 1, 290, 18)
    rest = (sample(*mask, scale=2),) if mask else ()
    op = GroupedAttention(whole)
    assert_bound_like_run(op, query, key, value, *rest, error=1e-5)
    repeated = (np.repeat(x[:, :, 0], 3, 1) for x in (key, value))
    np.testing.assert_allclose(op.run(query, key, value, *rest), whole.run(query, *repeated, *rest), 1e-4, 1e-5)


def test_attention_of_extremes() -> None:
    q, k, v, mask = attention_inputs(300, 290)
    mask[3], mask[4], mask[5, :200] = -1e9, 300, -np.inf
    op = ScaledDotProductAttention(causal=False)
    assert_bound_like_run(op, q, k, v, mask, error=1e-5)
    assert_bound_like_run(op, q, k, v, mask > -1e9, error=1e-5)  # row 3 is NaN
    assert_bound_like_run(op, q * 30, k, v, mask > -2, error=1e-5)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(), (1, 36, 1, 1)], ids=str)
@pytest.mark.parametrize("low", [0.0, -2.0])
def test_fake_quantize(low: float, shape: tuple[int, ...], channels_last: bool) -> None:
    data = sample(2, 36, 70, 61, channels_last=channels_last)
    data[0, :, :3] = np.round(data[0, :, :3] * 255 / 6) * 6 / 255 + 3 / 255  # between two levels
    lows, highs = (np.full(shape, value, np.float32) for value in (low, low + 6))
    assert_bound_like_run(FakeQuantize(levels=256), data, lows, highs, lows * 2, highs * 2)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float16])
def test_select(dtype: Any) -> None:
    cond, then, other = sample(2, 60, 80) > 0, sample(60, 80).astype(dtype), sample(1, 60, 1).astype(dtype)
    assert_bound_like_run(Select(), cond, then, other, error=0)
    assert_bound_like_run(Select(), cond, cond.astype(dtype), other, error=0)
    assert_bound_like_run(Select(), cond[0, :, :1], then, other[0], error=0)


def test_functions_of_bits() -> None:
    mask = sample(2, 30, 400) > 0
    numbers = np.random.default_rng(0).integers(-(2**31), 2**31, (5, 70, 90), np.int32)
    assert_bound_like_run(LogicalNot(), mask, error=0)
    assert_bound_like_run(LogicalAnd(), mask, mask[0], error=0)
    assert_bound_like_run(BitwiseNot(), numbers, error=0)
    assert_bound_like_run(BitwiseOr(), numbers, numbers[1], error=0)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (3, 40), (1, 7)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 3])
def test_images_smaller_than_the_filters(
    dilation: int, stride: int, size: tuple[int, int], channels_last: bool
) -> None:
    data = sample(2, 12, *size, channels_last=channels_last)
    for pads in ((2, 2), (4, 3), (7, 6)):
        settings: dict[str, Any] = {"pads_begin": pads, "pads_end": pads[::-1], "dilations": (dilation, dilation)}
        settings["strides"] = (stride, stride)
        if min(n + sum(pads) for n in size) > 4 * dilation:
            assert_bound_like_run(Convolution(**settings), data, sample(9, 12, 5, 5), error=1e-5)
            assert_bound_like_run(GroupConvolution(**settings), data, sample(12, 1, 1, 5, 5), error=1e-5)


@pytest.mark.parametrize(
    ("shape", "kernel", "settings"),
    [
        ((2, 256, 24, 20), (3, 3), {}),
        ((1, 256, 24, 21), (3, 3), {"strides": (2, 2)}),
        ((1, 96, 64, 50), (3, 3), {"strides": (2, 2), "pads_begin": (0, 0)}),
        ((1, 96, 30, 150), (5, 3), {"dilations": (2, 3), "pads_begin": (4, 3), "pads_end": (0, 3)}),
        ((1, 512, 24, 20), (3, 2), {"pads_begin": (5, 3), "pads_end": (4, 0)}),  # whole windows read only zeros
        ((1, 64, 4000), (5,), {"pads_begin": (2,), "pads_end": (3,)}),
        ((1, 160, 4, 6, 48), (3, 3, 3), {"pads_begin": (1, 1, 1), "pads_end": (1, 1, 1)}),
    ],
)
def test_large_images_of_single_channels(shape: tuple[int, ...], kernel: tuple[int, ...], settings: Any) -> None:
    spatial = len(kernel)
    window = {"strides": (1,) * spatial, "dilations": (1,) * spatial, "pads_begin": (1,) * spatial}
    op = GroupConvolution(**window | {"pads_end": (1,) * spatial} | settings)
    data = sample(*shape, channels_last=True)
    data[0, 0, 0, ...] = np.nan  # reaches only the outputs that read it
    filters = sample(shape[1], 1, 1, *kernel)
    with np.errstate(invalid="ignore"):
        assert_bound_like_run(op, data, filters, error=1e-5)


@pytest.mark.parametrize("do_softmax", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_region_yolo(channels_last: bool, do_softmax: bool) -> None:
    op = RegionYolo(axis=1, end_axis=3, coords=4, classes=20, num=5, mask=(0, 1, 2), do_softmax=do_softmax)
    data = sample(2, 125, 31, 33, scale=30, channels_last=channels_last)
    assert_bound_like_run(op, data)
    data[0, 5:25] = -200  # exponentials underflow
    assert_bound_like_run(op, data)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_window_without_nan_has_a_number(number: float) -> None:
    """Windows that are taken together multiply the data of each other by zero."""
    data = sample(1, 1, 4000)
    data[0, 0, 2000] = number
    op = Convolution(strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    with np.errstate(invalid="ignore"):
        assert_bound_like_run(op, data, abs(sample(1, 1, 64)), error=0)


@pytest.mark.parametrize(("groups", "outputs", "channels"), [(32, 4, 4), (6, 1, 2), (12, 2, 1), (9, 8, 8), (10, 8, 8)])
@pytest.mark.parametrize("number", [0.5, np.nan, np.inf])
def test_groups_of_few_channels(groups: int, outputs: int, channels: int, number: float) -> None:
    data = sample(2, groups * channels, 13, 11)
    data[1, 1, 5, 3] = number
    filters = sample(groups, outputs, channels, 3, 3)
    op = GroupConvolution(strides=(1, 2), pads_begin=(1, 0), pads_end=(0, 1), dilations=(1, 1))
    with np.errstate(invalid="ignore"):
        assert_bound_like_run(op, data, filters)


def test_infinite_taps_beside_the_data_are_left_out() -> None:
    filters = sample(3, 2, 2, 1, 3)
    filters[0, 0, 0, 0, 2] = np.inf
    op = GroupConvolutionBackpropData(strides=(1, 1), pads_begin=(0, 1), pads_end=(0, 1), dilations=(2, 1))
    inputs = sample(1, 6, 2, 5), filters
    with np.errstate(invalid="ignore"):
        expected = op.run(*inputs)
        results = bound_results(op, inputs, [expected], {1})
    assert results is None or np.array_equal(results[0], expected, equal_nan=True)


INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.int64]


def integers(dtype: Any, *shape: int) -> Array:
    least = 0 if np.dtype(dtype).kind == "u" else -100
    return np.random.default_rng(len(shape)).integers(least, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operation", [Divide, FloorMod, Mod, Power])
def test_arithmetic_of_many_integers(operation: type[Operator], dtype: Any) -> None:
    data = integers(dtype, 2, 300, 300)
    for other in (
        np.array(7, dtype),
        np.array([[[-3 if np.iinfo(dtype).min else 3]]], dtype),
        integers(dtype, 300, 1) | 1,
    ):
        assert_bound_like_run(operation(), data, abs(other) % 5 if operation is Power else other, error=0)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("equation", ["abcd,abed->abce", "abij,abjk->abik", "abcd,abcd->ab"])
def test_sums_of_products_of_integers(dtype: Any, equation: str) -> None:
    data = integers(dtype, 2, 3, 16, 16)
    assert_bound_like_run(Einsum(equation=equation), data, data, error=0)
    assert_bound_like_run(Einsum(equation=equation), data * np.array(1 << 20).astype(dtype), data, error=0)


@pytest.mark.parametrize("dtype", [*INTEGERS, np.float16, np.float32])
@pytest.mark.parametrize("operation", [red.ReduceProd, red.ReduceL2, red.ReduceMean, red.ReduceL1])
@pytest.mark.parametrize("axes", [[0], [1, 2], [0, 1, 2]])
def test_reductions_of_many_numbers(operation: type[Operator], axes: list[int], dtype: Any) -> None:
    data = integers(dtype, 4, 64, 64)
    if operation is red.ReduceProd:
        data = (data % 2 * 2 + 1 - data % 3 // 2 * 2).astype(dtype)
    is_real = np.dtype(dtype).kind == "f"
    assert_bound_like_run(operation(keep_dims=True), data, np.array(axes), error=1e-3 if is_real else 0)
