"""SoftMax, LogSoftmax, MVN, NormalizeL2, GRN, LRN, BatchNormInference and GroupNormalization."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net

from ovir.ops import normalization as norm
from ovir.ops.base.operator import Operator
from ovir.ops.normalization import LRN

DATA = np.random.default_rng(0).standard_normal((2, 6, 3, 5))


def check(op: Operator, expected: Any, *inputs: Any) -> None:
    """Compare the result in several types."""
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-6), (np.float16, 3e-3), (ml_dtypes.bfloat16, 3e-2)):
        arrays = [np.asarray(x, dtype) if np.asarray(x).dtype.kind == "f" else np.asarray(x) for x in inputs]
        result = op.run(*arrays)
        assert isinstance(result, np.ndarray)
        assert result.dtype == dtype
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 40, 3), (60, 30, 2)])
def test_softmax(shape: tuple[int, ...], axis: int) -> None:
    data = np.random.default_rng(1).standard_normal(shape)
    expected = np.exp(data) / np.exp(data).sum(axis, keepdims=True)
    check(norm.SoftMax8(axis=axis), expected, data)
    check(norm.LogSoftmax(axis=axis), np.log(expected), data)


def test_softmax_of_extremes() -> None:
    softmax, log_softmax = norm.SoftMax8(axis=0).run, norm.LogSoftmax(axis=0).run
    np.testing.assert_allclose(softmax(np.float32([1000, 1000, -np.inf])), [0.5, 0.5, 0])
    assert np.isnan(softmax(np.float32([-np.inf, -np.inf]))).all()
    np.testing.assert_array_equal(softmax(np.array(7, np.float32)), 1)
    np.testing.assert_array_equal(log_softmax(np.array(7, np.float32)), 0)
    assert softmax(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_softmax_of_integers_is_rounded_to_the_nearest() -> None:
    np.testing.assert_array_equal(norm.SoftMax8(axis=0).run(np.array([-3, -1, 0, 2], np.int32)), [0, 0, 0, 1])


@pytest.mark.parametrize("axes", [[1], [-1], [2, 3], [1, 2, 3], [0, 2, 3], [3, 0], [0, 1, 2, 3]])
def test_mvn(axes: list[int]) -> None:
    centered = DATA - DATA.mean(tuple(axes), keepdims=True)
    deviation = centered.std(tuple(axes), keepdims=True)
    check(norm.MVN6(), centered, DATA, axes)
    check(norm.MVN6(normalize_variance=True, eps=0.5), centered / np.sqrt(deviation**2 + 0.5), DATA, axes)
    outside = norm.MVN6(normalize_variance=True, eps=0.5, eps_mode="OUTSIDE_SQRT")
    check(outside, centered / (deviation + 0.5), DATA, axes)
    positive = tuple(axis % 4 for axis in axes)
    check(
        norm.MVN2(normalize_variance=True, eps=0.5, reduction_axes=positive),
        centered / np.sqrt(deviation**2 + 0.5),
        DATA,
    )


def test_mvn_without_axes() -> None:
    check(norm.MVN6(), np.zeros_like(DATA), DATA, np.zeros(0, np.int64))
    check(norm.MVN2(across_channels=True), DATA - DATA.mean((1, 2, 3), keepdims=True), DATA)
    check(norm.MVN2(across_channels=False), DATA - DATA.mean((2, 3), keepdims=True), DATA)


@pytest.mark.parametrize("axes", [1, [1], [1, 2, 3], [0, -1]])
def test_normalize_l2(axes: Any) -> None:
    total = (DATA**2).sum(tuple(np.atleast_1d(axes)), keepdims=True)
    check(norm.NormalizeL2(eps=0.5), DATA / np.sqrt(total + 0.5), DATA, axes)
    check(norm.NormalizeL2(eps=4.0, eps_mode="max"), DATA / np.sqrt(np.maximum(total, 4)), DATA, axes)


def test_normalize_l2_without_axes_is_1() -> None:
    result = norm.NormalizeL2(eps=0.5).run(np.array([-2, 0, 3], np.float32), np.zeros(0, np.int64))
    np.testing.assert_array_equal(result, [1, 0, 1])


def test_grn() -> None:
    check(norm.GRN(bias=0.5), DATA / np.sqrt((DATA**2).sum(1, keepdims=True) + 0.5), DATA)


def test_lrn() -> None:
    squares = np.pad(DATA**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    for size, beta in ((3, 0.75), (4, 0.75), (3, 0.6)):
        expected = DATA / (1 + 0.2 / size * total) ** beta
        check(LRN(alpha=0.2, beta=beta, bias=1.0, size=size), expected, DATA, [1])
    squares = np.pad(DATA**2, ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = np.sum([squares[:, :, i : i + 3, j : j + 5] for i in range(3) for j in range(3)], axis=0)
    check(LRN(alpha=0.2, beta=0.75, bias=2.0, size=3), DATA / (2 + 0.2 / 9 * total) ** 0.75, DATA, [2, 3])
    check(
        LRN(alpha=1.0, beta=0.5, bias=1.0, size=99),
        DATA / np.sqrt(1 + (DATA**2).sum(3, keepdims=True) / 99),
        DATA,
        [3],
    )


def test_batch_norm() -> None:
    gamma, beta, mean, variance = np.random.default_rng(1).uniform(0.5, 2, (4, 6))
    column = (6, 1, 1)
    scale = gamma.reshape(column) / np.sqrt(variance.reshape(column) + 0.1)
    expected = (DATA - mean.reshape(column)) * scale + beta.reshape(column)
    check(norm.BatchNormInference5(epsilon=0.1), expected, DATA, gamma, beta, mean, variance)
    check(norm.BatchNormInference1(epsilon=0.1), expected, gamma, beta, DATA, mean, variance)
    check(norm.BatchNormInference5(epsilon=0.1), expected[:, :, 0, 0], DATA[:, :, 0, 0], gamma, beta, mean, variance)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups: int) -> None:
    scale, bias = np.random.default_rng(1).uniform(0.5, 2, (2, 6))
    parts = DATA.reshape(2, groups, -1)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 0.1)
    expected = parts.reshape(DATA.shape) * scale.reshape(6, 1, 1) + bias.reshape(6, 1, 1)
    check(norm.GroupNormalization(num_groups=groups, epsilon=0.1), expected, DATA, scale, bias)


def test_another_reader_sees_the_data_that_mvn_normalizes() -> None:
    net = Net()
    x = net.parameter("x", "1,2,3")
    doubled = net.op("Add", x, x)
    attributes = {"eps": 1e-6, "normalize_variance": "true", "eps_mode": "inside_sqrt"}
    net.result(net.op("MVN", doubled, net.const([0, 2]), opset=6, **attributes))
    net.result(net.op("Negative", doubled))
    data = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    results = net.compiled()(data)
    np.testing.assert_array_equal(results[1], -2 * np.arange(6, dtype=np.float32).reshape(1, 2, 3))
