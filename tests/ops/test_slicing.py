"""Slice, StridedSlice, SliceScatter."""

import random
from typing import Any

import numpy as np
import pytest
from support.tensors import assert_refused, inferred, tensor

from ovir.core.element_types import f32, i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_dimensions
from ovir.diagnostics.errors import OperatorError
from ovir.ops.slicing import Position, Slice, SliceScatter, StridedSlice, clamped, sliced

INT_MAX, INT_MIN = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def const(*values: int, dtype: Any = np.int64) -> TensorType:
    return constant_type(np.array(values, dtype))


# ----- the dimension after slicing


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


@pytest.mark.parametrize(
    ("data", "start", "stop", "step", "result"),
    [
        ("?", 0, 5, 1, "[..5]"),
        ("10..20", 0, 5, 1, "[5]"),
        ("?", 2, INT_MAX, 1, "[?]"),
        ("6..", 2, INT_MAX, 1, "[4..]"),
        ("5..", -4, INT_MAX, 3, "[2]"),
        ("?", -1, INT_MIN, -1, "[?]"),
        ("6..", -4, 3, 3, "[..1]"),
        ("7", 100, -100, -1, "[7]"),
        ("7", -100, 100, 2, "[4]"),
        ("0", 0, 5, 1, "[0]"),
    ],
)
def test_slice_shape(data: str, start: int, stop: int, step: int, result: str) -> None:
    assert inferred(Slice(), tensor(data), const(start), const(stop), const(step)) == result


def test_limits_of_i32_mean_the_end() -> None:
    start, stop = (const(v, dtype=np.int32) for v in (0, 2**31 - 1))
    assert inferred(Slice(), tensor("?"), start, stop, const(1)) == "[?]"


def test_unknown_vectors() -> None:
    known, unknown = const(0), tensor("1", i64)
    assert inferred(Slice(), tensor("4,?"), unknown, const(2), const(1)) == "[..2,?]"
    assert inferred(Slice(), tensor("4,5"), known, known, known.with_value(None)) == "[..4,5]"
    assert inferred(Slice(), tensor("4,5"), known, known, const(1), unknown) == "[..4,..5]"
    assert inferred(Slice(), tensor("..."), known, known, const(1)) == "[...]"


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


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([tensor("4"), const(0), const(1), const(0)], "step[0] must not be 0"),
        ([tensor("..."), const(0, 0), const(1, 1), const(1, 0)], "step[1] must not be 0"),
        ([tensor("4,4"), const(0, 0), const(1, 1), const(1, 1), const(1, -1)], "axes [1,-1] are not distinct"),
        ([tensor("4"), const(0, 0), const(1, 2), const(1, 1)],
         "start has 2 elements, more than the 1 dimension of data"),
        ([tensor("4,4"), const(0), const(1, 2), const(1)],
         "start of shape [1] and stop of shape [2] must have the same number of elements (dimensions 0 and 0)"),
        ([tensor(""), const(), const(), const()], "data is a scalar, which cannot be sliced"),
        ([tensor("4"), tensor("1"), const(1), const(1)], "start must be of an integer type, got f32"),
    ],
)  # fmt: skip
def test_slice_errors(inputs: list[TensorType], message: str) -> None:
    assert_refused(message, Slice(), *inputs)


# ----- StridedSlice


@pytest.mark.parametrize(
    ("masks", "begin", "end", "stride", "index"),
    [
        ({}, [0, 1], [2, 3], [1, 2], np.s_[0:2, 1:3:2]),
        ({"begin_mask": (0, 1), "end_mask": (1, 0)}, [1, 7], [9, -1], [1, 1], np.s_[1:, :-1]),
        ({"begin_mask": (1,), "end_mask": (1,)}, [1], [1], [-1], np.s_[::-1]),
        ({"new_axis_mask": (1, 0)}, [5, 1], [5, 2], [1, 1], np.s_[None, 1:2]),
        ({"shrink_axis_mask": (1, 0)}, [-1, 1], [0, 3], [1, 1], np.s_[-1, 1:3]),
        ({"shrink_axis_mask": (1, 1, 1)}, [1, 2, 3], [0, 0, 0], [1, 1, 1], np.s_[1, 2, 3]),
        ({"ellipsis_mask": (0, 1, 0)}, [1, 0, 1], [2, 0, 3], [1, 1, 1], np.s_[1:2, ..., 1:3]),
        ({"ellipsis_mask": (1,), "new_axis_mask": (0, 1)}, [0, 0, 2], [0, 0, 3], [1, 1, 1], np.s_[..., None, 2:3]),
        ({"ellipsis_mask": (0, 0, 0, 1)}, [0, 0, 0, 0], [1, 1, 1, 9], [1, 1, 1, 1], np.s_[0:1, 0:1, 0:1, ...]),
        ({}, [9, 0], [9, 2], [1, 1], np.s_[9:9, 0:2]),
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


def test_strided_slice_of_unknown_sizes() -> None:
    op = StridedSlice(begin_mask=(1, 0), end_mask=(1, 0), shrink_axis_mask=(0, 1))
    assert inferred(op, tensor("?,2..5,?"), const(0, 1), const(0, 2)) == "[?,?]"
    assert inferred(StridedSlice(begin_mask=()), tensor("4,?"), tensor("1", i64), const(3)) == "[..3,?]"
    assert inferred(StridedSlice(begin_mask=()), tensor("4,?"), tensor("?", i64), tensor("?", i64)) == "[...]"


@pytest.mark.parametrize(
    ("masks", "begin", "message"),
    [
        ({"begin_mask": (0, 2)}, [0, 0], "begin_mask must hold only 0 and 1, got [0,2]"),
        ({"ellipsis_mask": (1, 1)}, [0, 0], "ellipsis_mask must have at most one 1, got [1,1]"),
        ({}, [0, 0, 0], "begin and end slice 3 dimensions, but data has 2"),
        ({"shrink_axis_mask": (1,)}, [4], "begin[0] is 4, outside of axis 0 of size 4, which shrink_axis_mask drops"),
    ],
)
def test_strided_slice_errors(masks: dict[str, Any], begin: list[int], message: str) -> None:
    op = StridedSlice(**{"begin_mask": (), **masks})
    assert_refused(message, op, tensor("4,4"), const(*begin), const(*[1] * len(begin)), const(*[1] * len(begin)))


# ----- SliceScatter


def test_slice_scatter() -> None:
    data, updates = np.zeros((2, 5)), np.arange(1.0, 7).reshape(2, 3)
    vectors = [np.array([v]) for v in (-25, 25, 2, 1)]
    expected = [[1, 0, 2, 0, 3], [4, 0, 5, 0, 6]]
    assert SliceScatter().run(data, updates, *vectors).tolist() == expected
    assert not data.any()


def test_slice_scatter_checks_updates() -> None:
    inputs = [const(v) for v in (0, 3, 1)]
    assert inferred(SliceScatter(), tensor("?,4"), tensor("3,4"), *inputs) == "[?,4]"
    assert inferred(SliceScatter(), tensor("..."), tensor("3,4"), *inputs) == "[?,?]"
    with pytest.raises(OperatorError) as error:
        SliceScatter().infer(tensor("5,4"), tensor("2,4"), *inputs)
    assert error.value.message == "updates of shape [2,4] must have the shape of the slice, [3,4]"
