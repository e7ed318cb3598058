"""Concat, Split, VariadicSplit and Pad."""

import numpy as np
import pytest
from support.tensors import assert_refused, const, tensor

from ovir.core.element_types import i32, i64, string
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_dimensions
from ovir.diagnostics.errors import OperatorError
from ovir.ops.base.operator import Operator
from ovir.ops.movement import Concat, Pad1, Pad12, Split, VariadicSplit


def inferred(op: Operator, *inputs: TensorType) -> list[str]:
    result = op.infer(*inputs)
    return [str(t.shape) for t in (result if isinstance(result, tuple) else (result,))]


# ----- Concat


@pytest.mark.parametrize(
    ("shapes", "axis", "result"),
    [
        (["1,8,50", "1,16,50", "1,32,50"], 1, "[1,56,50]"),
        (["2,3"], -1, "[2,3]"),
        (["?,3", "2..4,?"], 0, "[2..,3]"),
        (["?,3", "2..4,?"], 1, "[2..4,3..]"),
        (["...", "2,3"], 1, "[2,3..]"),
        (["...", "..."], 1, "[...]"),
        (["2,0", "2,3"], 1, "[2,3]"),
    ],
)
def test_concat_shape(shapes: list[str], axis: int, result: str) -> None:
    assert inferred(Concat(axis=axis), *map(tensor, shapes)) == [result]


@pytest.mark.parametrize(
    ("inputs", "axis", "message"),
    [
        ([tensor("2,3"), tensor("4,4")], 0, "input 1 has shape [4,4], which differs from [?,3] in a dimension other"),
        ([tensor("2,3"), tensor("2")], 0, "input 1 has shape [2], which differs from [?,3] in a dimension other than"),
        ([tensor("2"), tensor("2", i32)], 0, "input 0 is f32 and input 1 is i32: their element types must be equal"),
        ([tensor("")], 0, "input 0 is a scalar, which has no axis to concatenate along"),
        ([tensor("2,3")], 2, "axis 2 is outside [-2, 1] of a tensor of rank 2"),
    ],
)
def test_concat_errors(inputs: list[TensorType], axis: int, message: str) -> None:
    assert_refused(message, Concat(axis=axis), *inputs)


def test_concat() -> None:
    parts = np.ones((2, 1), np.float32), np.zeros((2, 2), np.float32)
    assert Concat(axis=-1).run(*parts).tolist() == [[1, 0, 0], [1, 0, 0]]


# ----- Split and VariadicSplit


def test_split_shape() -> None:
    assert inferred(Split(num_splits=3), tensor("6,12"), const(1)) == ["[6,4]"] * 3
    assert inferred(Split(num_splits=2), tensor("5..9,?"), const(-2)) == ["[3..4,?]"] * 2
    assert inferred(Split(num_splits=2), tensor("5,?"), tensor("", i64)) == ["[?,?]"] * 2
    assert inferred(Split(num_splits=2), tensor("..."), const(1)) == ["[...]"] * 2


@pytest.mark.parametrize(
    ("data", "axis", "message"),
    [
        ("2,6", const(1), "dimension 6 of axis 1 cannot be split into 4 equal parts"),
        ("2,..3", const(1), "dimension ..3 of axis 1 cannot be split into 4 equal parts"),
        ("4,4", const([1]), "axis must have rank 0, got shape [1]"),
        ("4,4", const(2), "axis 2 is outside [-2, 1] for data of shape [4,4]"),
    ],
)
def test_split_errors(data: str, axis: TensorType, message: str) -> None:
    assert_refused(message, Split(num_splits=4), tensor(data), axis)


def test_parts_are_views() -> None:
    data = np.arange(12).reshape(2, 6)
    parts = Split(num_splits=3).run(data, np.array(1))
    assert [p.tolist() for p in parts] == [[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]
    assert all(np.shares_memory(p, data) for p in parts)
    parts = VariadicSplit().run(data, np.array([-1]), np.array([1, -1, 2]))
    assert [p.shape for p in parts] == [(2, 1), (2, 3), (2, 2)]
    with pytest.raises(OperatorError, match="dimension 6 of axis 1 cannot be split into 4 equal parts"):
        Split(num_splits=4).run(data, np.array(1))


@pytest.mark.parametrize(
    ("data", "lengths", "result"),
    [
        ("6,12", [1, 2, 3], ["[1,12]", "[2,12]", "[3,12]"]),
        ("6,12", [-1, 2], ["[4,12]", "[2,12]"]),
        ("5..9,12", [-1, 2], ["[3..7,12]", "[2,12]"]),
        ("?,12", [2, -1, 0], ["[2,12]", "[?,12]", "[0,12]"]),
        ("...", [2, 4], ["[...]", "[...]"]),
    ],
)
def test_variadic_split_shape(data: str, lengths: list[int], result: list[str]) -> None:
    assert inferred(VariadicSplit(), tensor(data), const(0), const(lengths)) == result


def test_variadic_split_by_partly_known_lengths() -> None:
    sizes = [Dimension(2, 2), Dimension(1, 3, symbol=5)]
    lengths = TensorType(i64, PartialShape([2]), from_dimensions(i64, sizes))
    first, second = VariadicSplit().infer(tensor("?,4"), const(0), lengths)
    assert (str(first.shape), str(second.shape), second.shape[0].symbol) == ("[2,4]", "[1..3,4]", 5)
    assert inferred(VariadicSplit(), tensor("6,4"), const(0), tensor("2", i64)) == ["[?,4]", "[?,4]"]
    assert inferred(VariadicSplit(), tensor("6,4"), const(0), tensor("?", i64)) == []


@pytest.mark.parametrize(
    ("data", "lengths", "message"),
    [
        ("8", [3, 4], "the sum of split_lengths is 7, but axis 0 has dimension 8"),
        ("2", [3, -1], "the sum of split_lengths is 3, but axis 0 has dimension 2"),
        ("..2", [3, 1], "the sum of split_lengths is 4, but axis 0 has dimension ..2"),
        ("8", [-1, 4, -1], "split_lengths is -1 at positions 0 and 2: at most one -1 is allowed"),
        ("8", [-2, 10], "split_lengths[0] must be at least -1, got -2"),
    ],
)
def test_variadic_split_errors(data: str, lengths: list[int], message: str) -> None:
    assert_refused(message, VariadicSplit(), tensor(data), const(0), const(lengths))


# ----- Pad


@pytest.mark.parametrize(
    ("mode", "begin", "end", "result"),
    [
        ("constant", 2, 3, [9, 9, 1, 2, 3, 4, 9, 9, 9]),
        ("edge", 2, 3, [1, 1, 1, 2, 3, 4, 4, 4, 4]),
        ("reflect", 2, 3, [3, 2, 1, 2, 3, 4, 3, 2, 1]),
        ("symmetric", 2, 4, [2, 1, 1, 2, 3, 4, 4, 3, 2, 1]),
        ("constant", -1, -1, [2, 3]),
        ("edge", -2, 2, [3, 4, 4, 4]),
        ("reflect", -3, 3, [4, 3, 2, 1]),
        ("symmetric", 3, -3, [3, 2, 1, 1]),
        ("constant", -6, 4, [9, 9]),
        ("edge", -5, 4, [4, 4, 4]),
        ("reflect", -4, 3, [3, 2, 1]),
        ("constant", -3, -3, []),
    ],
)
def test_pad(mode: str, begin: int, end: int, result: list[int]) -> None:
    op, value = Pad12(pad_mode=mode), np.float32(9)
    data, first, last = np.arange(1, 5, dtype=np.float32), np.array([begin]), np.array([end])
    assert inferred(op, tensor("4"), const([begin]), const([end])) == [f"[{len(result)}]"]
    assert op.run(data, first, last, np.array(value)).tolist() == result


def test_pad_of_two_axes_mirrors_what_is_cropped() -> None:
    data = np.arange(1, 13).reshape(3, 4)
    result = Pad12(pad_mode="reflect").run(data, np.array([2, -1]), np.array([-1, 3]))
    assert result.tolist() == [[10, 11, 12, 11, 10, 9], [6, 7, 8, 7, 6, 5], [2, 3, 4, 3, 2, 1], [6, 7, 8, 7, 6, 5]]


@pytest.mark.parametrize(
    ("data", "begin", "end", "result"),
    [
        ("?,3..5", const([1, 1]), const([0, 2]), "[1..,6..8]"),
        ("?,3..5", const([-2, -4]), const([0, 0]), "[?,..1]"),
        ("?,3", const([0, 0]), const([0, 0]), "[?,3]"),
        ("2,3", tensor("2", i64), const([0, 0]), "[?,?]"),
        ("...", const([0]), const([0]), "[...]"),
    ],
)
def test_pad_shape(data: str, begin: TensorType, end: TensorType, result: str) -> None:
    assert inferred(Pad1(), tensor(data), begin, end) == [result]


@pytest.mark.parametrize(
    ("mode", "inputs", "message"),
    [
        ("reflect", [tensor("3"), const([3]), const([0])],
         "pads_begin[0] is 3: mode reflect allows at most 2 for dimension 3"),
        ("symmetric", [tensor("3"), const([0]), const([4])],
         "pads_end[0] is 4: mode symmetric allows at most 3 for dimension 3"),
        ("edge", [tensor("0"), const([1]), const([0])],
         "pads_begin[0] is 1: mode edge allows at most 0 for dimension 0"),
        ("constant", [tensor("3,3"), const([1]), const([0, 0])],
         "pads_begin must have 2 elements for data of shape [3,3], got 1"),
        ("constant", [tensor("3"), const([1]), const([0]), const(1)],
         "data is f32 and pad_value is i64: their element types must be equal"),
        ("edge", [tensor("3", string), const([1]), const([0])],
         "strings can be padded in mode constant only, not edge"),
    ],
)  # fmt: skip
def test_pad_errors(mode: str, inputs: list[TensorType], message: str) -> None:
    assert_refused(message, Pad12(pad_mode=mode), *inputs)


def test_pad_checks_at_run_time() -> None:
    with pytest.raises(OperatorError, match="pads_begin\\[0\\] is 2: mode reflect allows at most 1 for dimension 2"):
        Pad1(pad_mode="reflect").run(np.zeros(2), np.array([2]), np.array([0]))
