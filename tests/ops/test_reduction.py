"""Reductions and CumSum: known values, integers, empty data, and bounds."""

from typing import Any

import numpy as np
import pytest
from support.tensors import const, inferred_value, ran

from ovir.core.element_types import i32, i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_bounds, from_dimensions
from ovir.ops import reduction as red
from ovir.ops.base.operator import Operator
from ovir.ops.reduction import CumSum

INF, NAN = np.inf, np.nan
FLOAT_MIN = float(np.finfo(np.float32).min)


def reduced(op: Operator, data: Any, axes: Any, dtype: Any = np.float32) -> Any:
    return ran(op, np.asarray(data, dtype), np.array(axes, np.int64))


@pytest.mark.parametrize(
    ("name", "values", "empty", "no_axes"),
    [
        ("ReduceSum", [-2, 5], 0, [[1, -3], [2, 3]]),
        ("ReduceMean", [-1, 2.5], 0, [[1, -3], [2, 3]]),
        ("ReduceProd", [-3, 6], 1, [[1, -3], [2, 3]]),
        ("ReduceMax", [1, 3], FLOAT_MIN, [[1, -3], [2, 3]]),
        ("ReduceMin", [-3, 2], INF, [[1, -3], [2, 3]]),
        ("ReduceL1", [4, 5], 0, [[1, 3], [2, 3]]),
        ("ReduceL2", [10**0.5, 13**0.5], 0, [[1, 3], [2, 3]]),
    ],
)
def test_known_values(name: str, values: list[float], empty: float, no_axes: Any) -> None:
    kind = getattr(red, name)
    data = [[1, -3], [2, 3]]
    np.testing.assert_allclose(reduced(kind(), data, [1]), values, rtol=1e-6)
    np.testing.assert_allclose(reduced(kind(keep_dims=True), data, -1), np.reshape(values, (2, 1)), rtol=1e-6)
    np.testing.assert_allclose(reduced(kind(), data, [1, -1], np.float16), np.array(values, np.float16))
    np.testing.assert_array_equal(reduced(kind(), data, []), no_axes)
    array = np.array(data, np.float32)
    assert not np.may_share_memory(kind().run(array, np.empty(0, np.int64)), array)
    np.testing.assert_array_equal(reduced(kind(), np.ones((2, 0)), [1]), [empty, empty])
    assert reduced(kind(), np.ones((0, 3)), [1]).shape == (0,)


def test_sums_along_any_axis_are_exact_enough() -> None:
    data = np.full((300_000, 4), 0.1, np.float32)
    np.testing.assert_allclose(red.ReduceSum().run(data, np.array([0])), 300_000 * np.float32(0.1), rtol=1e-5)
    np.testing.assert_allclose(red.ReduceMean().run(data.T, np.array([1])), np.float32(0.1), rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "data", "dtype", "result"),
    [
        (red.ReduceSum(), [2**31 - 1, 2**31 - 1, 3], np.int32, 1),
        (red.ReduceMean(), [-7, 2, 0], np.int32, -1),
        (red.ReduceSum(), [200, 100, 3], np.uint8, 255),
        (red.ReduceSum(), [-100, -100], np.int8, -128),
        (red.ReduceProd(), [2**20, 2**20, 3], np.int64, 3 * 2**40),
        (red.ReduceL1(), [-7, 2], np.int32, 9),
        (red.ReduceL2(), [6, 9, -4, -1, 7], np.int32, 13),
        (red.ReduceMax(), [-5, -2], np.int64, -2),
        (red.ReduceMin(), [], np.int64, 2**63 - 1),
    ],
)
def test_integers(op: Operator, data: list[int], dtype: Any, result: int) -> None:
    assert reduced(op, data, [0], dtype) == result


def test_narrow_floats_are_summed_wide() -> None:
    assert reduced(red.ReduceMean(), [60000, 60000, 1, 1], [0], np.float16) == 30000
    assert reduced(red.ReduceSum(), [2048] + [1] * 5, [0], np.float16) == 2052
    assert reduced(red.ReduceSum(), [60000, 60000], [0], np.float16) == INF


def test_the_largest_of_nothing_is_the_lowest_of_its_own_type() -> None:
    for dtype, lowest in (np.float16, -65504.0), (np.float32, np.finfo(np.float32).min), (np.int8, -128):
        result = reduced(red.ReduceMax(), np.ones((2, 0)), [1], dtype)
        np.testing.assert_array_equal(result, np.full(2, lowest, dtype))


def test_nan_is_an_extreme_only_where_there_is_nothing_else() -> None:
    data = [[NAN, 1, 2], [-INF, NAN, -INF], [NAN, NAN, NAN]]
    np.testing.assert_array_equal(reduced(red.ReduceMax(), data, [1]), [2, -INF, NAN])
    np.testing.assert_array_equal(reduced(red.ReduceMin(), data, [1]), [1, -INF, NAN])
    np.testing.assert_array_equal(reduced(red.ReduceSum(), data, [1]), [NAN, NAN, NAN])


def test_logical() -> None:
    data = [[True, False], [True, True]]
    np.testing.assert_array_equal(reduced(red.ReduceLogicalAnd(), data, [1], np.bool_), [False, True])
    np.testing.assert_array_equal(reduced(red.ReduceLogicalOr(keep_dims=True), data, [0, 1], np.bool_), [[True]])
    np.testing.assert_array_equal(reduced(red.ReduceLogicalAnd(), np.ones((2, 0)), [1], np.bool_), [True, True])
    np.testing.assert_array_equal(reduced(red.ReduceLogicalOr(), np.ones((2, 0)), [1], np.bool_), [False, False])


# ----- known content


def bounds(op: Operator, dims: list[Dimension], axes: list[int]) -> str:
    value = inferred_value(op, TensorType(i64, PartialShape([len(dims)]), from_dimensions(i64, dims)), const(axes))
    return "unknown" if value is None else str(value.dimensions()[0])


@pytest.mark.parametrize(
    ("op", "dims", "result"),
    [
        (red.ReduceProd(), ["0", "?"], "0"),
        (red.ReduceSum(), ["3", "2..5"], "5..8"),
        (red.ReduceMax(), ["3", "2..5"], "3..5"),
        (red.ReduceMin(), ["3", "2.."], "2..3"),
        (red.ReduceMean(), ["3", "2..5"], "2..4"),
    ],
)
def test_bounds(op: Operator, dims: list[str], result: str) -> None:
    assert bounds(op, [Dimension.parse(d) for d in dims], [0]) == result


# ----- CumSum


def test_cumsum_wraps_and_sums_narrow_floats_wide() -> None:
    np.testing.assert_array_equal(CumSum().run(np.array([200, 100], np.uint8), np.array(0)), [200, 44])
    np.testing.assert_array_equal(CumSum().run(np.array([2048, 1, 1], np.float16), np.array(0)), [2048, 2048, 2050])


@pytest.mark.parametrize("length", [255, 256, 511, 1021])
def test_long_products_have_every_factor(length: int) -> None:
    data = np.ones((2, length), np.float32)
    data[0, 0], data[0, -1], data[1, length // 2], data[1, length // 3] = 3, 5, 7, 2
    assert reduced(red.ReduceProd(), data, [1]).tolist() == [15, 14]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums_of_long_rows(axis: int, exclusive: bool, reverse: bool) -> None:
    data = np.arange(3 * 700, dtype=np.float32).reshape(3, 700) % 7
    turned = np.flip(data, axis) if reverse else data
    expected = np.cumsum(turned, axis) - (turned if exclusive else 0)
    op = CumSum(exclusive=exclusive, reverse=reverse)
    np.testing.assert_array_equal(op.run(data, np.array(axis)), np.flip(expected, axis) if reverse else expected)
    assert op.run(np.float32(5), np.array([0])) == (0 if exclusive else 5)


@pytest.mark.parametrize("op", [red.ReduceMean(), red.ReduceSum()])
@pytest.mark.parametrize(
    ("low", "high", "is_known"),
    [
        (-(2**30), 2**30 - 1, True),
        (-(2**30) - 1, 0, False),
        (0, 2**30, False),
        (2**30, 2**30, False),
        (0, 7, True),
    ],
)
def test_bounds_where_the_sum_of_two_may_wrap_around(op: Operator, low: int, high: int, is_known: bool) -> None:
    value = from_bounds(i32, np.full(2, float(low)), np.full(2, float(high)))
    found = inferred_value(op, TensorType(i32, PartialShape([2]), value), const([0]))
    ends = None if found is None else (found.lower.tolist(), found.upper.tolist())
    count = 2 if isinstance(op, red.ReduceSum) else 1
    assert ends == ((low * count, high * count) if is_known else None)
