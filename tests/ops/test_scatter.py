"""Scattering: known answers, reductions, and knowledge of content."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.tensors import reports

from ovir.core.element_types import i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import SIZE, Value
from ovir.ops.scatter import (
    ScatterElementsUpdate3,
    ScatterElementsUpdate12,
    ScatterNDUpdate4,
    ScatterNDUpdate15,
    ScatterUpdate,
)


def array(values: Any, dtype: Any = np.float32) -> Any:
    return np.array(values, dtype)


# ----- ScatterUpdate


@pytest.mark.parametrize(
    ("indices", "axis", "updates", "expected"),
    [
        ([0, 2], 1, [[1, 2], [3, 4]], [[1, 0, 2], [3, 0, 4]]),
        ([[1]], 0, [[[5, 6, 7]]], [[0, 0, 0], [5, 6, 7]]),
        ([2, 2], 1, [[1, 2], [3, 4]], [[0, 0, 2], [0, 0, 4]]),
        ([], 0, np.empty((0, 3)), [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_scatter_update(indices: Any, axis: int, updates: Any, expected: Any) -> None:
    data = np.zeros((2, 3), np.float32)
    arguments = np.array(indices, np.int64), array(updates), np.array([axis])
    assert ScatterUpdate().run(data, *arguments).tolist() == expected
    assert not data.any()


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_last_of_several_updates_counts_in_any_order_of_memory(order: Any) -> None:
    indices = np.ones((3, 17), np.int64, order=order)
    indices[0, 16] = indices[2, 0] = 0
    updates = np.asarray(np.arange(51, dtype=np.float32).reshape(1, 3, 17), order=order)
    assert ScatterUpdate().run(np.zeros((1, 2), np.float32), indices, updates, np.array(1)).tolist() == [[34, 50]]


# ----- ScatterElementsUpdate

DATA, INDICES, UPDATES = [2, 3, 4, 6], [1, 0, 0, -2, -1, 2], [10, 20, 30, 40, 70, 60]


@pytest.mark.parametrize(
    ("reduction", "use_init_val", "expected"),
    [
        ("none", True, [30, 10, 60, 70]),
        ("sum", False, [50, 10, 100, 70]),
        ("prod", True, [1200, 30, 9600, 420]),
        ("min", False, [20, 10, 40, 70]),
        ("max", False, [30, 10, 60, 70]),
        ("mean", False, [25, 10, 50, 70]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.uint16])
def test_reductions(reduction: str, use_init_val: bool, expected: list[float], dtype: Any) -> None:
    op = ScatterElementsUpdate12(reduction=reduction, use_init_val=use_init_val)
    result = op.run(array(DATA, dtype), np.array(INDICES), array(UPDATES, dtype), np.array(0))
    exact = np.array(expected)
    is_integer = np.dtype(dtype).kind in "iu"
    assert result.dtype == dtype
    assert result.tolist() == (np.floor(exact) if is_integer else exact.astype(dtype)).tolist()


def test_a_mean_of_integers_is_rounded_down() -> None:
    op = ScatterElementsUpdate12(reduction="mean")
    assert op.run(array([-5, 7], np.int32), np.array([0, 0]), array([2, -4], np.int32), np.array(0)).tolist() == [-3, 7]


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("sum", [1, 1, 1, 0]),
        ("sub", [0, 1, 1, 0]),
        ("prod", [1, 0, 0, 0]),
        ("min", [1, 0, 0, 0]),
        ("max", [1, 1, 1, 0]),
    ],
)
def test_booleans(reduction: str, expected: list[int]) -> None:
    data, updates = array([1, 0, 1, 0], bool), array([1, 1, 0, 0], bool)
    result = ScatterNDUpdate15(reduction=reduction).run(data, np.arange(4).reshape(4, 1), updates)
    assert result.tolist() == [bool(x) for x in expected]


def test_nan_of_data_stays_and_that_of_updates_is_passed_over() -> None:
    data, updates = array([1, np.nan, 3]), array([np.nan, 2, 5])
    for op in (ScatterNDUpdate15(reduction="max"), ScatterNDUpdate15(reduction="min")):
        result = op.run(data, np.array([[0], [1], [0]]), updates)
        assert result[0] == (5 if op.reduction == "max" else 1)
        assert np.isnan(result[1])


def test_elements_along_another_axis() -> None:
    result = ScatterElementsUpdate3().run(
        np.zeros((3, 4)), np.array([[1, 2], [0, 3]]), array([[11, 12], [13, 14]]), np.array([1])
    )
    assert result.tolist() == [[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("rows", [(3, 2, 4), (2, 2, 2), (3, 1, 4)])
def test_elements_one_by_one(axis: int, rows: tuple[int, ...]) -> None:
    rng = np.random.default_rng(axis + 1)
    data, updates = rng.normal(size=(3, 2, 4)), rng.normal(size=rows)
    indices, expected = rng.integers(0, data.shape[axis], rows), data.copy()
    for place in np.ndindex(rows):
        at = list(place)
        at[axis] = indices[place]
        expected[tuple(at)] += updates[place]
    result = ScatterElementsUpdate12(reduction="sum").run(data, indices, updates, np.array(axis))
    np.testing.assert_allclose(result, expected)


def test_sums_of_narrow_types() -> None:
    """They are computed in a wider type, of real numbers or of integers."""
    for dtype, data, updates, expected in (
        (ml_dtypes.bfloat16, [0.25, 1], [0.5, 1.5], 2.25),
        (np.float16, [0.25, 1], [0.5, 1.5], 2.25),
        (ml_dtypes.int4, [-7, 1], [5, 4], 2),
    ):
        op = ScatterElementsUpdate12(reduction="sum")
        result = op.run(array(data, dtype), np.array([0, 0]), array(updates, dtype), np.array(0))
        assert result.astype(float).tolist() == [expected, 1]


def test_version_3_reports_negative_indices() -> None:
    with reports() as found:
        ScatterElementsUpdate12().run(np.zeros(3), np.array([-1]), np.ones(1), np.array(0))
        assert not found
        result = ScatterElementsUpdate3().run(np.zeros(3), np.array([-1]), np.ones(1), np.array(0))
    assert result.tolist() == [0, 0, 1]
    assert found == ["ScatterElementsUpdate-3 does not allow negative indices; they are counted from the end"]


# ----- ScatterNDUpdate


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("none", [50, 20, 30, 4]),
        ("sum", [61, 22, 33, 4]),
        ("sub", [-59, -18, -27, 4]),
        ("prod", [500, 40, 90, 4]),
        ("min", [1, 2, 3, 4]),
        ("max", [50, 20, 30, 4]),
    ],
)
def test_nd_reductions(reduction: str, expected: list[float]) -> None:
    indices = np.array([[0], [1], [-2], [-4]])
    result = ScatterNDUpdate15(reduction=reduction).run(array([1, 2, 3, 4]), indices, array([10, 20, 30, 50]))
    assert result.tolist() == expected


def test_nd_slices_and_the_empty_tuple() -> None:
    data = np.zeros((2, 2, 2), np.int32)
    rows = array([[1, 2], [3, 4]], np.int32)
    assert ScatterNDUpdate4().run(data, np.array([[0, 1], [1, -2]]), rows).tolist() == [
        [[0, 0], [1, 2]],
        [[3, 4], [0, 0]],
    ]
    whole = np.arange(8, dtype=np.int32).reshape(1, 2, 2, 2)
    assert np.array_equal(ScatterNDUpdate4().run(data, np.empty((1, 0), np.int64), whole), whole[0])
    assert ScatterNDUpdate4().run(array([1, 2]), np.array([1]), array([9])).tolist() == [1, 9]


# ----- inference


@pytest.mark.parametrize(
    ("reduction", "expected"), [("sum", ([6], [np.inf])), ("max", ([5], [np.inf])), ("prod", None)]
)
def test_bounds_of_reductions(reduction: str, expected: Any) -> None:
    op = ScatterNDUpdate15(reduction=reduction)
    op.output_types = (i64,)
    data = TensorType(i64, PartialShape([1]), Value(None, np.array([1.0]), np.array([np.inf]), np.array([SIZE])))
    value = op.infer_value(data, constant_type(np.array([[0]])), constant_type(np.array([5])))
    assert isinstance(value, Value | None)
    assert (None if value is None else (value.lower.tolist(), value.upper.tolist())) == expected
