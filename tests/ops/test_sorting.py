"""TopK, NonZero, Unique, Bucketize and SearchSorted: known answers and order."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.dtypes import StringDType

import ovir
from ovir import opset11
from ovir.core.element_types import i32, i64
from ovir.ops.sorting import Bucketize, NonZero, SearchSorted, TopK3, TopK11, Unique

NAN, INF = np.nan, np.inf


# ----- TopK


@pytest.mark.parametrize(
    ("mode", "sort", "k", "expected"),
    [
        ("max", "value", 4, [0, 4, 5, 1]),
        ("max", "value", 8, [0, 4, 5, 1, 6, 3, 2, 7]),
        ("max", "index", 4, [0, 1, 4, 5]),
        ("min", "value", 4, [2, 7, 3, 1]),
        ("min", "index", 4, [1, 2, 3, 7]),
        ("max", "value", 1, [0]),
        ("min", "none", 1, [2]),
        ("max", "value", 0, []),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int64])
def test_top_k(mode: str, sort: str, k: int, expected: list[int], dtype: Any) -> None:
    data = np.array([5, 3, 1, 2, 5, 5, 3, 1]).astype(dtype)
    values, indices = TopK11(mode=mode, sort=sort).run(data, np.asarray(k))
    assert indices.tolist() == expected
    assert indices.dtype == np.int32
    assert values.dtype == dtype
    assert values.tolist() == data[expected].tolist()


@pytest.mark.parametrize(
    ("mode", "k", "expected"),
    [("max", 1, [3]), ("max", 4, [3, 0, 2, 1]), ("min", 1, [1]), ("min", 5, [1, 4, 2, 0, 3])],
)
def test_nan_is_less_than_any_number(mode: str, k: int, expected: list[int]) -> None:
    data = np.array([5, NAN, -INF, INF, NAN], np.float32)
    assert TopK3(mode=mode, sort="value").run(data, np.asarray(k))[1].tolist() == expected


# ----- NonZero


@pytest.mark.parametrize("values", [1, 2, 5, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_equal_elements_of_long_rows_keep_their_order(mode: str, dtype: Any, values: int) -> None:
    data = np.random.default_rng(values).integers(0, values, (32, 48)).astype(dtype)
    order = np.argsort(-data if mode == "max" else data, axis=-1, kind="stable")
    for count in (1, 7, 24, 25, 48):
        x = opset11.parameter(data.shape, dtype)
        top = opset11.topk(x, count, 1, mode, "value", "i32", stable=True)
        numbers, positions = ovir.compile_model(ovir.Model(top.outputs, [x]))([data]).values()
        assert np.array_equal(positions, order[:, :count]), count
        assert np.array_equal(numbers, np.take_along_axis(data, order[:, :count], -1)), count


def test_non_zero() -> None:
    found = NonZero(output_type=i32).run(np.array([[1, 0], [NAN, -2]], np.float32))
    assert found.tolist() == [[0, 1, 1], [0, 0, 1]]
    assert found.dtype == np.int32
    assert NonZero().run(np.zeros((2, 3))).shape == (2, 0)
    assert NonZero().run(np.asarray(5)).tolist() == [[0]]


# ----- Unique


def test_unique_sorted_or_by_first_occurrence() -> None:
    data = np.array([[3, 1, 3], [2, 1, 3]], np.float32)
    assert [a.tolist() for a in Unique().run(data)] == [[1, 2, 3], [1, 3, 0], [2, 0, 2, 1, 0, 2], [2, 1, 3]]
    unsorted = Unique(sorted=False, index_element_type=i32).run(data)
    assert [a.tolist() for a in unsorted] == [[3, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1, 0], [3, 2, 1]]
    assert [a.dtype for a in unsorted] == [np.float32, np.int32, np.int32, np.int64]


@pytest.mark.parametrize(
    ("is_sorted", "expected"),
    [
        (True, ([[0, 5, 0], [1, 2, 0], [1, 2, 1]], [1, 3, 0], [2, 0, 2, 1], [1, 1, 2])),
        (False, ([[1, 2, 1], [0, 5, 0], [1, 2, 0]], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1])),
    ],
)
def test_unique_slices(is_sorted: bool, expected: Any) -> None:
    data = np.array([[1, 2, 1], [0, 5, 0], [1, 2, 1], [1, 2, 0]], np.int32)
    assert tuple(a.tolist() for a in Unique(sorted=is_sorted).run(data, np.array([-2]))) == expected
    across = Unique(sorted=is_sorted).run(data.T, np.array(1))
    assert np.array_equal(across[0].T, expected[0])


def test_unique_of_nan_scalars_strings_and_nothing() -> None:
    assert Unique().run(np.array([NAN, 1, NAN], np.float32))[3].tolist() == [1, 1, 1]
    assert [a.tolist() for a in Unique().run(np.asarray(4))] == [[4], [0], [0], [1]]
    assert Unique().run(np.array(["b", "a", "b"], StringDType()))[0].tolist() == ["a", "b"]
    assert [a.shape for a in Unique().run(np.empty((0,)))] == [(0,)] * 4
    assert Unique().run(np.array([2, 1, 2]).astype(ml_dtypes.bfloat16))[0].dtype == ml_dtypes.bfloat16


# ----- search


@pytest.mark.parametrize(("right", "expected"), [(True, [[1, 3], [2, 0], [0, 0]]), (False, [[1, 3], [3, 0], [3, 1]])])
def test_bucketize(right: bool, expected: Any) -> None:
    data = np.array([[3, 50], [10, -1], [NAN, 0]], np.float32)
    result = Bucketize(output_type=i32, with_right_bound=right).run(data, np.array([0, 5, 10]))
    assert result.tolist() == expected
    assert result.dtype == np.int32
    assert Bucketize(output_type=i64).run(data, np.empty(0, np.float32)).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("right", [False, True])
def test_bucketize_counts_few_boundaries_and_searches_among_many(right: bool) -> None:
    boundaries = np.linspace(0, 1, 200, dtype=np.float32)
    data = np.array([-1, 0, boundaries[7], 0.5, 1, 2, NAN], np.float32)
    many = Bucketize(output_type=i64, with_right_bound=right).run(data, boundaries)
    few = Bucketize(output_type=i64, with_right_bound=right).run(data, boundaries[:50])
    assert few.tolist() == np.minimum(many, 50).tolist()


@pytest.mark.parametrize(("right", "expected"), [(False, [1, 0, 0, 4]), (True, [3, 0, 0, 4])])
def test_search_sorted(right: bool, expected: list[int]) -> None:
    row = np.array([1, 3, 3, 5], np.float32)
    values = np.array([3, NAN, 0, 9], np.float32)
    op = SearchSorted(right_mode=right)
    assert op.run(row, values).tolist() == expected
    assert op.run(np.stack([row, row - 3]), np.stack([values, values - 3])).tolist() == [expected] * 2
    assert op.run(row, np.asarray(np.float32(9))).tolist() == 4
    near = 1 + np.array([0, 1e-12, 2e-12])  # one number in f32
    assert op.run(near, near).tolist() == [right, 1 + right, 2 + right]
