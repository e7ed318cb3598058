"""Fast forms of arrays that are large enough for several parts and threads; ``kernel_contract`` sees small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.binding import bound_results

from ovir.core import parallel
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.base import products
from ovir.ops import activation as act
from ovir.ops import reduction as red
from ovir.ops.activation import Gelu2, PReLU
from ovir.ops.arithmetic import Divide, FloorMod, Mod, Power
from ovir.ops.attention import GroupedAttention, ScaledDotProductAttention
from ovir.ops.base.operator import Operator
from ovir.ops.broadcast import Broadcast3
from ovir.ops.comparison import IsInf
from ovir.ops.convolution import (
    Convolution,
    ConvolutionBackpropData,
    GroupConvolution,
    GroupConvolutionBackpropData,
)
from ovir.ops.interpolate import Interpolate11
from ovir.ops.logic import BitwiseNot, BitwiseOr, LogicalAnd, LogicalNot
from ovir.ops.matmul import Einsum, MatMul
from ovir.ops.normalization import (
    GRN,
    LRN,
    MVN2,
    MVN6,
    BatchNormInference5,
    GroupNormalization,
    LogSoftmax,
    NormalizeL2,
    SoftMax8,
)
from ovir.ops.pooling import AvgPool1, MaxPool1
from ovir.ops.quantization import FakeQuantize
from ovir.ops.reduction import CumSum
from ovir.ops.select import Select
from ovir.ops.unary import Erf
from ovir.ops.yolo import RegionYolo

pytestmark = pytest.mark.slow

Array = np.ndarray[Any, Any]


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


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    "op", [act.Mish(), act.HSwish(), Gelu2(), act.Elu(alpha=3), act.Sigmoid(), Erf()], ids=lambda op: op.type
)
def test_activations(op: Operator, channels_last: bool) -> None:
    # Some fast forms transform the formula.
    assert_bound_like_run(op, sample(2, 30, 90, 61, channels_last=channels_last))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("slope", [0.3, -0.5, 2.0])
def test_prelu(slope: float, channels_last: bool) -> None:
    slopes = np.linspace(slope, slope + 0.5, 40, dtype=np.float32)
    assert_bound_like_run(PReLU(), sample(3, 40, 300, 130, channels_last=channels_last), slopes, error=0)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(4, 50, 49, 49), (2, 30, 2500, 7)])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_softmax(shape: tuple[int, ...], axis: int, channels_last: bool) -> None:
    data = sample(*shape, channels_last=channels_last)
    assert_bound_like_run(SoftMax8(axis=axis), data, error=1e-5)  # run adds up 2500 numbers one after the other
    assert_bound_like_run(LogSoftmax(axis=axis), data, error=1e-5)


def test_softmax_of_extremes() -> None:
    data = sample(40, 30)
    data[3], data[4], data[5, :20], data[6] = -300, 300, -np.inf, 88.7
    assert_bound_like_run(SoftMax8(), data)
    data[7, 2], data[8] = np.nan, -np.inf
    assert_bound_like_run(SoftMax8(), data)
    data[9, 4] = np.inf
    assert_bound_like_run(SoftMax8(), data)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("axes", [[1], [2, 3], [0, 2], [1, 3], [0, 1, 2, 3], [3]], ids=str)
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize(
    "kind", [red.ReduceSum, red.ReduceMean, red.ReduceMax, red.ReduceMin, red.ReduceL1, red.ReduceL2]
)
def test_reductions(kind: Any, keep_dims: bool, axes: list[int], channels_last: bool) -> None:
    data = sample(2, 24, 60, 55, channels_last=channels_last) + 2
    assert_bound_like_run(kind(keep_dims=keep_dims), data, np.array(axes), error=1e-5)
    assert_bound_like_run(kind(keep_dims=keep_dims), data[:, 3:20], np.array(axes), error=1e-5)


def test_reduced_integers_are_exact() -> None:
    data = np.random.default_rng(0).integers(-(2**31), 2**31, (5, 70, 90), np.int32)
    for kind in (red.ReduceSum, red.ReduceMax, red.ReduceProd):
        assert_bound_like_run(kind(), data, np.array([0, 2]), error=0)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("axes", [[1], [3], [2, 3], [1, 2, 3], [1, 3]], ids=str)
def test_normalizations(axes: list[int], channels_last: bool) -> None:
    data = sample(2, 36, 70, 61, channels_last=channels_last) + 1
    for x in (data, data[:, 4:20]):
        assert_bound_like_run(MVN6(eps=1e-3, normalize_variance=True), x, np.array(axes), error=1e-5)
        assert_bound_like_run(NormalizeL2(eps=1e-3, eps_mode="max"), x, np.array(axes), error=1e-5)
        assert_bound_like_run(LRN(alpha=2.0, beta=0.75, size=5), x, np.array(axes), error=1e-5)


@pytest.mark.parametrize("channels_last", [False, True])
def test_normalizations_of_channels(channels_last: bool) -> None:
    data = sample(2, 36, 70, 61, channels_last=channels_last) + 1
    a, b, c = np.linspace(1, 3, 108, dtype=np.float32).reshape(3, 36)
    assert_bound_like_run(GroupNormalization(num_groups=6, epsilon=1e-3), data, a, b, error=1e-5)
    assert_bound_like_run(MVN2(across_channels=False, normalize_variance=True), data, error=1e-5)
    assert_bound_like_run(GRN(), data)
    assert_bound_like_run(BatchNormInference5(epsilon=1e-3), data, a, b, c, a, error=0)


def attention_inputs(*mask: int) -> tuple[Array, ...]:
    """Queries, keys and values of 2 x 6 heads that lie in memory as reshaped and transposed products do, and a mask."""
    q, k, v = (sample(2, rows, 6, 20, scale=2).swapaxes(1, 2) for rows in (300, 290, 290))
    return (q, k, v, sample(*mask, scale=2)) if mask else (q, k, v)


@pytest.mark.parametrize("mask", [(), (300, 290), (2, 1, 1, 290), (6, 300, 1)], ids=str)
def test_attention(mask: tuple[int, ...]) -> None:
    inputs = attention_inputs(*mask)
    assert_bound_like_run(ScaledDotProductAttention(causal=False), *inputs, error=1e-5)
    if mask:
        assert_bound_like_run(ScaledDotProductAttention(causal=False), *inputs[:3], inputs[3] > -2, error=1e-5)


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


def test_causal_attention() -> None:
    q, k, v = attention_inputs()
    op = ScaledDotProductAttention(causal=True)
    assert_bound_like_run(op, q, k, v, error=1e-5)
    assert_bound_like_run(op, q, k[:, :, :100], v[:, :, :100], error=1e-5)
    assert_bound_like_run(op, q[:, 0], k[:, 0], v[:, 0], np.zeros(1, np.float32), np.array(0.3, np.float32), error=1e-5)


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


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums(reverse: bool, exclusive: bool, axis: int) -> None:
    op = CumSum(exclusive=exclusive, reverse=reverse)
    assert_bound_like_run(op, sample(7, 40, 300), np.array(axis))
    assert_bound_like_run(op, np.arange(6000, dtype=np.int32).reshape(5, 20, 60), np.array(axis), error=0)


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


@pytest.fixture
def with_small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let constants be packed whatever BLAS there is."""
    monkeypatch.setattr(products, "has_small_products", lambda: True)


@pytest.mark.usefixtures("with_small_products")
@pytest.mark.parametrize(("rows", "transpose"), [(2, False), (9, True), (53, False), (197, True)])
@pytest.mark.parametrize(("length", "columns"), [(384, 384), (700, 200), (300, 1007), (3100, 130), (9000, 90)])
def test_products_with_constants(length: int, columns: int, rows: int, transpose: bool) -> None:
    a, b = sample(rows, length), sample(columns, length).T if transpose else sample(length, columns)
    b = np.ascontiguousarray(b.T) if transpose else b
    assert_bound_like_run(MatMul(transpose_b=transpose), a, b, error=1e-5)
    assert_bound_like_run(MatMul(transpose_b=transpose), np.stack([a, -a]), b[np.newaxis], error=1e-5)


@pytest.mark.usefixtures("with_small_products")
@pytest.mark.parametrize("lead", [(), (1,), (3, 2)])
@pytest.mark.parametrize(("by_columns", "rows"), [(True, 2), (True, 40), (False, 1), (False, 2), (False, 40)])
@pytest.mark.parametrize("columns", [1, 500, 2100])
def test_products_by_columns(lead: tuple[int, ...], by_columns: bool, rows: int, columns: int) -> None:
    a = sample(*lead, rows, 600)
    if by_columns:
        a = np.moveaxis(np.moveaxis(a, -1, 0).copy(), 0, -1)
    assert_bound_like_run(MatMul(transpose_b=True), a, sample(columns, 600), error=1e-5)
    is_chosen = 1 < a.size // 600 <= 128 and (columns == 2100 or (by_columns and a.size // 600 * columns > 2000))
    assert products.goes_by_columns(a, sample(columns, 600).T) == is_chosen


@pytest.mark.usefixtures("with_small_products")
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("channels", "outputs"), [(1, 1), (12, 1), (5, 8), (3, 16), (40, 100)])
@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        ((3, 3), {"pads_begin": (1, 1), "pads_end": (1, 1)}),
        ((2, 31), {"strides": (1, 2), "pads_end": (1, 0)}),
        ((5, 4), {"strides": (2, 3), "dilations": (1, 2), "pads_begin": (2, 2)}),
        ((1, 1), {}),
        ((1, 1), {"strides": (2, 2)}),
    ],
    ids=str,
)
def test_convolutions(
    kernel: tuple[int, int], settings: dict[str, Any], channels: int, outputs: int, channels_last: bool
) -> None:
    filters = sample(outputs, channels, *kernel)
    for height, width in ((30, 79), (16, 96)):
        data = sample(2, channels, height, width, channels_last=channels_last)
        assert_bound_like_run(Convolution(**settings), data, filters, error=1e-5)
    assert_bound_like_run(Convolution(**settings), data.astype(np.float64), filters.astype(np.float64), error=1e-5)


def test_long_filter_of_one_channel() -> None:
    op = Convolution(strides=(2,))
    for length in (2000, 2001, 261, 256):
        assert_bound_like_run(op, sample(1, 1, length), sample(1, 1, 256), error=1e-5)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolutions(stride: int, kernel: int, channels_last: bool) -> None:
    op = GroupConvolution(strides=(stride, stride), pads_begin=(1, 1), pads_end=(2, 2))
    for channels, width in ((200, 97), (13, 301), (600, 24)):
        data = sample(2, channels, 7, width, channels_last=channels_last)
        assert_bound_like_run(op, data, sample(channels, 1, 1, kernel, kernel), error=1e-5)


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


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        (4, {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1)}),
        (3, {"strides": (2, 1)}),
        (2, {"strides": (2, 2)}),
    ],
)
def test_transposed_convolutions(kernel: int, settings: dict[str, Any], channels_last: bool) -> None:
    data = sample(2, 8, 40, 50, channels_last=channels_last)
    for op, filters in (
        (ConvolutionBackpropData(**settings), sample(8, 12, kernel, kernel)),
        (GroupConvolutionBackpropData(**settings), sample(2, 4, 6, kernel, kernel)),
    ):
        assert_bound_like_run(op, data, filters, error=1e-6)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("kernel", [2, 5, 13])
def test_pooling(kernel: int, channels_last: bool) -> None:
    data = sample(1, 16, 40, 50, channels_last=channels_last)
    half = (kernel // 2,) * 2
    pads: dict[str, Any] = {"kernel": (kernel, kernel), "pads_begin": half, "pads_end": half}
    for strides in ((1, 1), (2, 3)):
        assert_bound_like_run(MaxPool1(strides=strides, **pads), data, error=0)
        assert_bound_like_run(AvgPool1(strides=strides, exclude_pad=True, **pads), data)


@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic"])
def test_interpolate(mode: str) -> None:
    op = Interpolate11(mode=mode, shape_calculation_mode="sizes")
    for sizes in ((80, 20), (37, 61)):
        for channels_last in (False, True):
            data = sample(1, 24, 40, 30, channels_last=channels_last)
            op_inputs = np.array(sizes, np.int64), np.array([2, 3], np.int64)
            assert_bound_like_run(op, data, *op_inputs)


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


@pytest.mark.parametrize(
    ("equation", "first", "second"),
    [
        ("nchw,nchv->nhwv", (2, 8, 8, 12), (2, 8, 8, 10)),
        ("bhqd,bhkd->bhqk", (2, 3, 40, 64), (2, 3, 50, 64)),
        ("...ij,jk->...ik", (3, 1, 4, 5), (5, 6)),
        ("b...i,...bj->j...ib", (4, 1, 3, 5), (2, 1, 4, 6)),
        ("ij,jk->ki", (3, 1), (7, 4)),
        ("i,j->ji", (3,), (4,)),
        ("abc,bca->", (3, 4, 5), (4, 5, 3)),
        ("ab,ab->ba", (3, 4), (3, 4)),
    ],
)
def test_einsum(equation: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    op, inputs = Einsum(equation=equation), (sample(*first), sample(*second))
    # Rounding errors are as large as the terms of a sum allow, which cancel each other.
    terms = np.max(op.run(*map(np.abs, inputs))) / np.max(np.abs(op.run(*inputs)))
    assert_bound_like_run(op, *inputs, error=1e-6 * float(terms))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ii->i", [(300, 300)]),
        ("bii->ib", [(7, 40, 40)]),
        ("iji->ji", [(30, 50, 30)]),
        ("i...i->...i", [(30, 5, 4, 30)]),
        ("iiii->i", [(9, 9, 9, 9)]),
        ("ijk->kij", [(20, 30, 40)]),
        ("ii,i->i", [(60, 60), (60,)]),
        ("iji,kjj->ik", [(30, 20, 30), (9, 20, 20)]),
    ],
)
def test_diagonals(equation: str, shapes: list[tuple[int, ...]], dtype: Any) -> None:
    inputs = [(sample(*shape) * 9).astype(dtype) for shape in shapes]
    assert_bound_like_run(Einsum(equation=equation), *inputs)


@pytest.mark.parametrize("equation", ["ii", "ijk->k", "ijk->ji", "iij->j", "...i->..."])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_one_input(equation: str, dtype: Any) -> None:
    shape = (20, 20) if equation == "ii" else (30, 30, 40)
    assert_bound_like_run(Einsum(equation=equation), sample(*shape).astype(dtype), error=1e-5)


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
@pytest.mark.parametrize("slope", [0.0, 0.3, 2.5, -1.0])
@pytest.mark.parametrize("channels", [1, 7])
def test_prelu_of_integers(dtype: Any, slope: float, channels: int) -> None:
    assert_bound_like_run(PReLU(), integers(dtype, 3, 7, 40, 40), np.full(channels, slope, np.float32), error=0)


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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(4, 3, 5, 6), (3, 5, 6), (2, 3, 5, 6)])
def test_broadcast_to_a_constant_shape(shape: tuple[int, ...], dtype: Any) -> None:
    for data in (integers(np.int16, 3, 1, 6), integers(np.int16, 3, 6, 1).swapaxes(1, 2)):
        assert_bound_like_run(Broadcast3(mode="numpy"), data.astype(dtype), np.array(shape))


def test_hard_sigmoid_of_nan() -> None:
    data = sample(2, 300, 300)
    data[0, 0, :3] = np.nan, np.inf, -np.inf
    assert_bound_like_run(act.HardSigmoid(), data, np.float32(0.2), np.float32(0.5))


@pytest.mark.parametrize("signs", [(True, True), (False, True), (True, False), (False, False)])
def test_infinities_of_signs(signs: tuple[bool, bool]) -> None:
    data = sample(2, 300, 300)
    data[0, 0, :3] = np.nan, np.inf, -np.inf
    assert_bound_like_run(IsInf(detect_negative=signs[0], detect_positive=signs[1]), data)
