"""GroupedMatMul: groups by offsets and groups of equal size, types, shapes and what is refused."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.tensors import reports

from ovir.core.element_types import ElementType
from ovir.diagnostics.errors import OperatorError
from ovir.ops.matmul import GroupedMatMul

random = np.random.default_rng(0)


def product(*inputs: Any) -> Any:
    op = GroupedMatMul()
    op.input_types = tuple(ElementType.from_dtype(array.dtype) for array in inputs)
    return op.run(*inputs)


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return random.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.int8])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_meet_the_matrix_of_their_group(dtype: Any, index: Any) -> None:
    a, b = numbers((6, 5), dtype), numbers((4, 3, 5), dtype)
    result = product(a, b, np.array([2, 2, 5, 6], index))
    groups = [0, 0, 2, 2, 2, 3]
    assert result.dtype == dtype
    expected = [b[g].astype(np.float64) @ row.astype(np.float64) for g, row in zip(groups, a, strict=True)]
    np.testing.assert_array_equal(result.astype(np.float64), expected)


def test_groups_of_equal_size() -> None:
    a, b = numbers((2, 4, 5)), numbers((2, 3, 5))
    expected = np.einsum("gmk,gnk->gmn", a, b)
    for offsets in ((), (np.zeros(0, np.int32),)):
        np.testing.assert_array_equal(product(a, b, *offsets), expected)


def test_rows_in_no_group_are_zero_and_reported() -> None:
    with reports() as told:
        result = product(np.ones((4, 2), np.float32), np.ones((2, 3, 2), np.float32), np.int32([1, 3]))
    assert result[:, 0].tolist() == [2, 2, 2, 0]
    assert told == ["the last offset is 3, but a has 4 rows: rows after it are in no group and give 0"]


@pytest.mark.parametrize("ends", [[3, 2], [-1, 4], [2, 5]])
def test_offsets_out_of_order(ends: list[int]) -> None:
    with pytest.raises(OperatorError) as error:
        product(np.ones((4, 2), np.float32), np.ones((2, 3, 2), np.float32), np.int64(ends))
    assert f"offsets must ascend from 0 to the number of rows, 4, got [{ends[0]},{ends[1]}]" in str(error.value)


def test_nothing_to_multiply() -> None:
    assert product(numbers((0, 2)), numbers((2, 3, 2)), np.int32([0, 0])).shape == (0, 3)
    assert product(numbers((4, 0)), numbers((1, 3, 0)), np.int32([4])).tolist() == np.zeros((4, 3)).tolist()
