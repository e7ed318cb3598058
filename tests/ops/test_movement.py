"""Concat, Split, VariadicSplit and Pad."""

from itertools import product

import numpy as np
import pytest
from support.tensors import const, tensor

from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.ops.base.operator import Operator
from ovir.ops.movement import Concat, Pad12, Split, VariadicSplit


def inferred(op: Operator, *inputs: TensorType) -> list[str]:
    result = op.infer(*inputs)
    return [str(t.shape) for t in (result if isinstance(result, tuple) else (result,))]


# ----- Concat


def test_concat() -> None:
    parts = np.ones((2, 1), np.float32), np.zeros((2, 2), np.float32)
    assert Concat(axis=-1).run(*parts).tolist() == [[1, 0, 0], [1, 0, 0]]


# ----- Split and VariadicSplit


def test_parts_are_views() -> None:
    data = np.arange(12).reshape(2, 6)
    parts = Split(num_splits=3).run(data, np.array(1))
    assert [p.tolist() for p in parts] == [[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]
    assert all(np.shares_memory(p, data) for p in parts)
    parts = VariadicSplit().run(data, np.array([-1]), np.array([1, -1, 2]))
    assert [p.shape for p in parts] == [(2, 1), (2, 3), (2, 2)]
    with pytest.raises(OperatorError, match="dimension 6 of axis 1 cannot be split into 4 equal parts"):
        Split(num_splits=4).run(data, np.array(1))


# ----- Pad


@pytest.mark.parametrize(
    ("mode", "begin", "end", "result"),
    [
        ("constant", 2, 3, [9, 9, 1, 2, 3, 4, 9, 9, 9]),
        ("edge", 2, 3, [1, 1, 1, 2, 3, 4, 4, 4, 4]),
        ("reflect", 2, 3, [3, 2, 1, 2, 3, 4, 3, 2, 1]),
        ("symmetric", 2, 4, [2, 1, 1, 2, 3, 4, 4, 3, 2, 1]),
        ("edge", -2, 2, [3, 4, 4, 4]),
        ("reflect", -3, 3, [4, 3, 2, 1]),
        ("symmetric", 3, -3, [3, 2, 1, 1]),
        ("edge", -5, 4, [4, 4, 4]),
        ("reflect", -4, 3, [3, 2, 1]),
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


@pytest.mark.parametrize("size", [0, 1, 3])
def test_pads_of_either_sign(size: int) -> None:
    numbers = list(range(1, size + 1))
    for begin, end in product(range(-4, 4), repeat=2):
        padded = [0] * begin + numbers + [0] * end
        expected = padded[max(-begin, 0) :]
        expected = expected[: max(len(expected) + min(end, 0), 0)]
        result = Pad12().run(np.array(numbers, np.int32), np.array([begin]), np.array([end]))
        assert result.tolist() == expected, (begin, end)
