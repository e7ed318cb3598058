"""SparseFillEmptyRows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensors import const

from ovir.core.element_types import ElementType, f16, f32, i32, i64, string
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_dimensions
from ovir.diagnostics.errors import OperatorError
from ovir.ops.sparse import SparseFillEmptyRows

Array = np.ndarray[Any, Any]


def tensor(shape: str, element_type: ElementType = i64) -> TensorType:
    return TensorType(element_type, PartialShape.parse(shape))


def filled(values: Any, dense_shape: Any, indices: Any, default: Any, dtype: Any = np.float32) -> tuple[Any, ...]:
    places = np.array(indices, np.int32).reshape(-1, 2)
    arrays = np.array(values, dtype), np.array(dense_shape, np.int32), places, np.array(default, dtype)
    found = SparseFillEmptyRows().run(*arrays)
    assert [array.dtype for array in found] == [np.int32, arrays[0].dtype, np.bool_]
    return tuple(array.tolist() for array in found)


def test_empty_rows_are_filled() -> None:
    indices, values, empty = filled([1, 2, 3, 4], [5, 6], [[0, 1], [0, 3], [2, 0], [3, 1]], 42)
    assert indices == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert values == [1, 2, 42, 3, 4, 42]
    assert empty == [False, True, False, False, True]


def test_entries_are_put_in_order_and_equal_places_keep_theirs() -> None:
    indices, values, empty = filled([1, 2, 3, 4], [3, 9], [[2, 8], [0, 5], [2, 8], [2, 1]], 0)
    assert indices == [[0, 5], [1, 0], [2, 1], [2, 8], [2, 8]]
    assert values == [2, 0, 4, 1, 3]
    assert empty == [False, True, False]


@pytest.mark.parametrize(
    ("dense_shape", "indices", "values"), [([2, 0], [[0, 0], [1, 0]], [7, 7]), ([0, 5], [], []), ([0, 0], [], [])]
)
def test_no_entries(dense_shape: list[int], indices: list[Any], values: list[Any]) -> None:
    assert filled([], dense_shape, [], 7)[:2] == (indices, values)


def test_strings() -> None:
    values = filled(["a", "bc"], [3, 1], [[0, 0], [2, 0]], "none", string.to_dtype())[1]
    assert values == ["a", "none", "bc"]


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0, 1], [5, 0]], r"indices\[1\] has the row 5, which is outside \[0, 4\]"),
        ([[-1, 1], [2, 0]], r"indices\[0\] has the row -1, which is outside"),
        ([[0, 1], [2, 6]], r"indices\[1\] has the column 6, which is outside \[0, 5\]"),
    ],
)
def test_an_entry_outside(indices: list[list[int]], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        filled([1, 2], [5, 6], indices, 0)
    with pytest.raises(OperatorError, match=message):
        SparseFillEmptyRows().infer(tensor("2", f32), const([5, 6]), const(indices), tensor("[]", f32))


@pytest.mark.parametrize(
    ("values", "dense_shape", "indices", "expected"),
    [
        ("?", const([4, 6]), const([[0, 1], [2, 0]]), "i64[4,2] f32[4] boolean[4]"),
        ("3", const([4, 6]), tensor("?,2"), "i64[4..7,2] f32[4..7] boolean[4]"),
        ("2..3", tensor("2"), tensor("?,?"), "i64[2..,2] f32[2..] boolean[?]"),
        ("...", tensor("..."), tensor("..."), "i64[?,2] f32[?] boolean[?]"),
        (
            "1",
            tensor("2").with_value(from_dimensions(i64, PartialShape.parse("2..5,3"))),
            tensor("1,2"),
            "i64[2..6,2] f32[2..6] boolean[2..5]",
        ),
    ],
)
def test_shapes(values: str, dense_shape: TensorType, indices: TensorType, expected: str) -> None:
    found = SparseFillEmptyRows().infer(tensor(values, f32), dense_shape, indices, tensor("[]", f32))
    assert " ".join(map(str, found)) == expected


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((tensor("3,1", f32), tensor("2"), tensor("3,2"), tensor("[]", f32)), r"values must have rank 1, got shape \[3,1\]"),
        ((tensor("3", f32), tensor("3"), tensor("3,2"), tensor("[]", f32)), r"dense_shape must have shape \[2\], because only matrices are supported, got \[3\]"),
        ((tensor("3", f32), tensor("2"), tensor("2,2"), tensor("[]", f32)), r"values of shape \[3\] and indices of shape \[2,2\] must have the same number of entries"),
        ((tensor("3", string), tensor("2"), tensor("3,2"), tensor("[]", string)), "values must be of a numeric type, got string"),
        ((tensor("3", f32), tensor("2"), tensor("3,3"), tensor("[]", f32)), "indices must hold a pair for each value"),
        ((tensor("3", f32), tensor("2"), tensor("3,2"), tensor("1", f32)), r"default_value must have rank 0, got shape \[1\]"),
        ((tensor("3", f32), tensor("2", i32), tensor("3,2"), tensor("[]", f32)), "dense_shape is i32 and indices is i64"),
        ((tensor("3", f32), tensor("2"), tensor("3,2"), tensor("[]", f16)), "values is f32 and default_value is f16"),
        ((tensor("3", f32), tensor("2", f32), tensor("3,2"), tensor("[]", f32)), "dense_shape must be i32 or i64, got f32"),
        ((tensor("3", f32), const([-1, 2]), tensor("3,2"), tensor("[]", f32)), r"dense_shape\[0\] must not be negative, got -1"),
    ],
)  # fmt: skip
def test_errors(inputs: tuple[TensorType, ...], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        SparseFillEmptyRows().infer(*inputs)
