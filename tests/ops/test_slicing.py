"""Slice, StridedSlice, SliceScatter."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
from support.tensors import inferred, tensor

from ovir.core.element_types import f32, i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_dimensions
from ovir.ops.slicing import Position, Slice, SliceScatter, StridedSlice, clamped, sliced

INT_MAX, INT_MIN = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def const(*values: int, dtype: Any = np.int64) -> TensorType:
    return constant_type(np.array(values, dtype))


# ----- the dimension after slicing


@pytest.mark.parametrize("step", [1, -1, 2])
@pytest.mark.parametrize("size", [(2, 4), (1, 5), (3, 3)])
def test_a_slice_of_all_elements_keeps_the_symbol(step: int, size: tuple[int, int]) -> None:
    numbers = range(size[0], size[1] + 1)
    for start, stop in itertools.product((*range(-6, 7), -99, 99), repeat=2):
        result = sliced(Dimension(*size, 77), Position(start, start), Position(stop, stop), step)
        is_whole = all(len(range(n)[clamped(start, step, n) : stop : step]) == n for n in numbers)
        assert (result.symbol == 77) == is_whole, (start, stop)


@pytest.mark.parametrize("seed", range(60))
def test_sliced_dimension_is_exact(seed: int) -> None:
    """Against every size and every pair of positions within the bounds."""
    r = random.Random(seed)

    def bounds(low: int, high: int, width: int) -> tuple[int, int]:
        lower = r.randint(low, high)
        return lower, lower + r.randint(0, width)

    size, start, stop = bounds(0, 7, 6), bounds(-9, 8, 5), bounds(-9, 8, 5)
    step = r.choice([1, 1, 2, 3, -1, -1, -2, -3])
    lengths = [
        len(range(n)[clamped(first, step, n) : last : step])
        for n in range(size[0], size[1] + 1)
        for first in range(start[0], start[1] + 1)
        for last in range(stop[0], stop[1] + 1)
    ]
    result = sliced(Dimension(*size), Position(*start), Position(*stop), step)
    assert (result.lower, result.upper) == (min(lengths), max(lengths))


def test_symbol_stays_where_all_is_kept() -> None:
    size = Dimension(0, None, symbol=3)
    data = TensorType(f32, PartialShape([size]))
    length = TensorType(i64, PartialShape([1]), from_dimensions(i64, [size]))
    for start, stop, step in ((0, INT_MAX, 1), (-1, INT_MIN, -1), (0, length, 1)):
        stop = stop if isinstance(stop, TensorType) else const(stop)
        assert Slice().infer(data, const(start), stop, const(step)).shape[0].symbol == 3
    assert Slice().infer(data, const(1), const(INT_MAX), const(1)).shape[0].symbol == 0


# ----- Slice


def test_slice_is_a_view() -> None:
    data = np.arange(10).reshape(2, 5)
    result = Slice().run(data, np.array([0, 1]), np.array([2, 4]), np.array([1, 2]), np.array([-2, 1]))
    assert result.tolist() == [[1, 3], [6, 8]]
    assert np.shares_memory(result, data)


@pytest.mark.parametrize("op", [Slice(), StridedSlice(begin_mask=())], ids=lambda op: op.type)
def test_slice_backwards(op: Slice | StridedSlice) -> None:
    def run(start: int, stop: int, step: int) -> Any:
        found = op.run(np.arange(4), *(np.array([v]) for v in (start, stop, step)))
        assert inferred(op, tensor("4"), const(start), const(stop), const(step)) == f"[{found.size}]"
        return found.tolist()

    assert run(100, -100, -1) == [3, 2, 1, 0]
    assert run(3, INT_MIN, -2) == [3, 1]
    assert run(3, 0, -1) == [3, 2, 1]
    assert run(-9, -7, -1) == [0]  # a start before the beginning is the first element


# ----- StridedSlice


@pytest.mark.parametrize(
    ("masks", "begin", "end", "stride", "index"),
    [
        ({"begin_mask": (0, 1), "end_mask": (1, 0)}, [1, 7], [9, -1], [1, 1], np.s_[1:, :-1]),
        ({"shrink_axis_mask": (1, 0)}, [-1, 1], [0, 3], [1, 1], np.s_[-1, 1:3]),
        ({"ellipsis_mask": (0, 1, 0)}, [1, 0, 1], [2, 0, 3], [1, 1, 1], np.s_[1:2, ..., 1:3]),
        ({"ellipsis_mask": (1,), "new_axis_mask": (0, 1)}, [0, 0, 2], [0, 0, 3], [1, 1, 1], np.s_[..., None, 2:3]),
    ],
)
def test_strided_slice(masks: dict[str, Any], begin: list[int], end: list[int], stride: list[int], index: Any) -> None:
    data = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    op = StridedSlice(**{"begin_mask": (), **masks})
    expected = data[index]
    result = op.run(data, np.array(begin), np.array(end), np.array(stride))
    assert result.tolist() == expected.tolist()
    assert np.shares_memory(result, data) == (result.size > 0)
    assert inferred(op, tensor("2,3,4"), const(*begin), const(*end), const(*stride)) == str(
        PartialShape(expected.shape)
    )


# ----- SliceScatter


def test_slice_scatter() -> None:
    data, updates = np.zeros((2, 5)), np.arange(1.0, 7).reshape(2, 3)
    vectors = [np.array([v]) for v in (-25, 25, 2, 1)]
    expected = [[1, 0, 2, 0, 3], [4, 0, 5, 0, 6]]
    assert SliceScatter().run(data, updates, *vectors).tolist() == expected
    assert not data.any()
