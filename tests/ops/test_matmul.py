"""MatMul, Einsum and Inverse: ranks, types, and memory layouts."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ovir.core.element_types import ElementType, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.matmul import Einsum, Inverse, MatMul

random = np.random.default_rng(0)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    return random.integers(-3, 4, shape).astype(dtype)


SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((3,), (2, 3, 4)),
    ((2, 5, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((0, 2, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((3, 2, 0), (0, 3)),
    ((300, 16, 16), (300, 16, 16)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int32, np.int64])
def test_matmul(left: tuple[int, ...], right: tuple[int, ...], dtype: Any) -> None:
    a, b = numbers(left, dtype), numbers(right, dtype)
    expected = np.matmul(a.astype(np.int64), b.astype(np.int64))
    for turn_a, turn_b in ((False, False), (True, False), (False, True)):
        op = MatMul(transpose_a=turn_a, transpose_b=turn_b)
        x = np.ascontiguousarray(a.swapaxes(-1, -2)) if turn_a and a.ndim > 1 else a
        y = np.ascontiguousarray(b.swapaxes(-1, -2)) if turn_b and b.ndim > 1 else b
        result = np.asarray(op.run(x, y))
        assert result.dtype == dtype
        np.testing.assert_array_equal(result.astype(np.int64), expected)
        inferred = op.infer(*(TensorType(ElementType.from_dtype(dtype), PartialShape(v.shape)) for v in (x, y)))
        assert inferred.shape.to_tuple() == expected.shape


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7, 40, 45])
def test_large_matrices_of_a_batch_are_multiplied_in_pieces(rows: int) -> None:
    a, b = numbers((12, rows, 128), np.float32), numbers((12, 128, 200), np.float32)
    for y in (b, np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2), b[:1]):
        np.testing.assert_array_equal(MatMul().run(a, y), np.matmul(a.astype(np.int64), y.astype(np.int64)))


@pytest.mark.parametrize(
    ("a", "b", "dtype", "result"),
    [
        ([2**30, 2**30], [2, 3], np.int32, 2**30),
        ([2**62 + 1] * 2, [2, 3], np.int64, 2**62 + 5),
        ([2**63 + 5], [1], np.uint64, 2**63 + 5),
        ([300, 300], [200, 300], np.int16, 18928),
        ([100, 100], [2, 3], np.int8, 127),
        ([200, 200], [2, 3], np.uint8, 255),
    ],
)
def test_integers_too_large(a: list[int], b: list[int], dtype: Any, result: int) -> None:
    assert MatMul().run(np.array(a, dtype), np.array(b, dtype)) == result


# ----- Einsum


@pytest.mark.parametrize(
    ("equation", "shapes", "same_as"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], None),
        ("ij,jk", [(2, 3), (3, 4)], "ij,jk->ik"),
        (" b i j, b j k -> b i k ", [(2, 2, 3), (2, 3, 4)], "bij,bjk->bik"),
        ("ab,bcd,bc->ca", [(2, 5), (5, 3, 6), (5, 3)], None),
        ("abbac,bad->ad", [(2, 3, 3, 2, 2), (3, 2, 2)], None),
        ("ijkj->ij", [(2, 4, 5, 4)], None),
        ("AbC", [(2, 3, 4)], "AbC->ACb"),
        ("dbbc,ca", [(2, 3, 3, 4), (4, 5)], "dbbc,ca->ad"),
        ("ii", [(3, 3)], "ii->"),
        ("i,->i", [(4,), ()], None),
        ("i,i->", [(4,), (4,)], None),
        ("a...b,b...->a...", [(9, 1, 4, 3), (3, 11, 7, 1)], None),
        ("ab...,ac...,ade->...bc", [(2, 3, 4), (2, 7, 1), (2, 4, 7)], None),
        ("...,...", [(2, 3), (3,)], "...,...->..."),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_einsum(equation: str, shapes: list[tuple[int, ...]], same_as: str | None, dtype: Any) -> None:
    inputs = [numbers(shape, dtype) for shape in shapes]
    op = Einsum(equation=equation)
    types = [TensorType(ElementType.from_dtype(dtype), PartialShape(shape)) for shape in shapes]
    inferred = op.infer(*types)
    op.input_types = tuple(t.element_type for t in types)
    op.output_types, op.output_shapes = (inferred.element_type,), (inferred.shape,)
    result = op.run(*inputs)
    expected = np.einsum(same_as or equation, *(x.astype(np.int64) for x in inputs))
    assert result.dtype == dtype
    assert inferred.shape.to_tuple() == result.shape
    np.testing.assert_array_equal(result, expected)


def test_einsum_broadcasts_and_sums_what_numpy_does_not() -> None:
    op = Einsum(equation="ij,jk->ik")
    op.input_types = (f32, f32)
    np.testing.assert_array_equal(op.run(np.ones((2, 1), np.float32), np.ones((3, 4), np.float32)), np.full((2, 4), 3))
    op = Einsum(equation="i...->i")
    op.input_types = (f32,)
    np.testing.assert_array_equal(op.run(np.ones((2, 3, 4), np.float32)), [12, 12])


# ----- Inverse


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_inverse(dtype: Any) -> None:
    data = np.array([[[0, 2], [4, 1]], [[1, 2], [3, 4]]], dtype)
    expected = np.array([[[-0.125, 0.25], [0.5, 0]], [[-2, 1], [1.5, -0.5]]])
    np.testing.assert_allclose(Inverse().run(data), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(Inverse(adjoint=True).run(data), np.swapaxes(expected, 1, 2), rtol=1e-5, atol=1e-6)
    assert Inverse().run(data).dtype == dtype
    assert Inverse().run(data[:0]).shape == (0, 2, 2)


@pytest.mark.parametrize("equation", ["...ij,jk,k,...i->...i", "i...,ij,...,j->...j", "a,b,c,ab->c", "i,...i,i,i->..."])
def test_einsum_of_more_operands_than_numpy_takes(equation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {label: size for size, label in enumerate("ijkabc", 2)}
    rng = np.random.default_rng(0)
    shapes = [
        [5 if label == "." else sizes[label] for label in part.replace("...", ".")]
        for part in equation.partition("->")[0].split(",")
    ]
    inputs = [rng.normal(size=shape) for shape in shapes]
    expected = np.einsum(equation, *inputs)
    monkeypatch.setattr("ovir.ops.matmul._MOST_OPERANDS", 2)
    np.testing.assert_allclose(Einsum(equation=equation).run(*inputs), expected, rtol=1e-9)
