"""Operations on weights that stay compressed, against those that they take the place of."""

from typing import Any

import numpy as np
import pytest
from support.tensors import operation, types

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f16, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.registry import kernel_of
from ovir.ops.compressed import (
    Codes,
    CompressedGather,
    CompressedGroupedMatMul,
    CompressedMatMul,
    Decompress,
    blocks,
)
from ovir.ops.infrastructure import Const


class Weights:
    """Weights that note which slices of them are asked for."""

    def __init__(self, array: Array, element_type: ElementType = f32, *, has_slices: bool = True) -> None:
        self.array, self.element_type, self.has_slices = array, element_type, has_slices
        self.shape = array.shape
        self.codes: Codes | None = None
        self.numbers: Array | None = None
        self.asked: list[int] = []

    def stored(self) -> list[Array]:
        return [self.array]

    def slices(self, which: Any) -> Array:
        self.asked += np.arange(len(self.array))[which].tolist()
        return self.array[which]

    def fill(self, first: int, out: Array) -> None:
        out[...] = self.array[first : first + len(out)]

    def whole(self) -> Array:
        self.asked += range(len(self.array))
        return self.array


def numbers(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1


@pytest.mark.parametrize(
    ("version", "indices", "asked"),
    [
        ("Gather-8", [[3, 1], [3, 0]], [3, 1, 3, 0]),
        ("Gather-1", [3, 1, 3], [3, 1, 3]),
        ("Gather-8", [[3, 1, 3]] * 22, [1, 3]),
        ("Gather-8", 4, [4]),
        ("Gather-8", [0], [0]),
        ("Gather-8", [-1, 2], range(5)),
        ("Gather-8", [0, 5], range(5)),
        ("Gather-7", [[1], [5]], range(5)),
        ("Gather-8", np.zeros((2, 0), np.int64), []),
    ],
)
def test_a_gather_decompresses_the_slices_that_it_picks(version: str, indices: Any, asked: Any) -> None:
    weights, places, axis = Weights(numbers(5, 2)), np.asarray(indices), np.array(0)
    op = operation(version)
    picking = CompressedGather(op, weights)
    np.testing.assert_array_equal(picking.run(places, axis), op.run(weights.array, places, axis))
    assert weights.asked == list(asked)
    (given,) = types(f"i64[{','.join(map(str, places.shape))}]")
    assert str(picking.infer(given, *types("=0"))) == f"f32{[*places.shape, 2]}".replace(" ", "")


@pytest.mark.parametrize(
    ("op", "inputs", "serves"),
    [
        ("Gather-8", "5,2 i64[3] =0", True),
        ("Gather-8", "5,2 i64[3] =-2", True),
        ("Gather-8", "5,2 i64[3] =1", False),
        ("Gather-8", "5,2 i64[3] =-1", False),
        ("Gather-8", "5,2 i64[3] i64[]", False),
        ("Gather-8 batch_dims=1", "5,2 i64[5,3] =0", False),
    ],
)
def test_a_gather_along_the_first_axis_may_pick_slices(op: str, inputs: str, serves: bool) -> None:
    for has_slices in (True, False):
        weights = Weights(numbers(5, 2), has_slices=has_slices)
        assert CompressedGather.serves(operation(op), weights, types(inputs)) == (serves and has_slices)


@pytest.mark.parametrize("shape", [(2,), (2, 2), (2, 2, 2), (1, 2, 2, 2)])
@pytest.mark.parametrize("element_type", [f32, f16])
@pytest.mark.parametrize("has_slices", [True, False])
def test_which_weights_products_multiply(shape: tuple[int, ...], element_type: ElementType, has_slices: bool) -> None:
    weights = Weights(numbers(*shape), element_type, has_slices=has_slices)
    is_f32 = element_type == f32
    assert CompressedMatMul.serves(operation("MatMul-1"), weights, []) == (is_f32 and len(shape) in (2, 3))
    grouped = CompressedGroupedMatMul.serves(operation("GroupedMatMul-17"), weights, [])
    assert grouped == (is_f32 and len(shape) == 3 and has_slices)


@pytest.mark.parametrize("transposed", ["transpose_b=false", "transpose_b=true", "transpose_a=true"])
def test_a_product_of_compressed_weights(transposed: str) -> None:
    op, a, weights = operation(f"MatMul-1 {transposed}"), numbers(3, 3), Weights(numbers(3, 3))
    product = CompressedMatMul(op, weights)
    np.testing.assert_array_equal(product.run(a), op.run(a, weights.array))
    assert str(product.infer(*types("3,3"))) == "f32[3,3]"
    assert product.form is None
    weights.codes = Codes(f32, *[weights.array] * 3)
    assert (product.form is not None) == (transposed == "transpose_b=true")


@pytest.mark.parametrize("transposed", ["transpose_b=false", "transpose_b=true", "transpose_a=true"])
@pytest.mark.parametrize(("a", "asked"), [((0, 3), []), ((2, 0, 3), []), ((2, 3, 3), [0, 1, 2])])
def test_no_weights_are_decompressed_for_a_product_without_rows(transposed: str, a: Any, asked: list[int]) -> None:
    op, weights, x = operation(f"MatMul-1 {transposed}"), Weights(numbers(3, 3)), numbers(*a)
    x = x.swapaxes(-1, -2) if op.transpose_a else x
    (product,) = kernel_of(CompressedMatMul(op, weights))(x)
    np.testing.assert_array_equal(product, op.run(x, weights.array))
    assert product.dtype == np.float32
    assert weights.asked == (asked if not op.transpose_b else [])


@pytest.mark.parametrize(
    ("a", "offsets", "asked"),
    [((6, 3), [2, 6, 6], [0, 1]), ((6, 3), [0, 1, 6], [1, 2]), ((3, 2, 3), None, [0, 1, 2])],
)
def test_a_grouped_product_decompresses_the_matrices_of_its_rows(a: Any, offsets: Any, asked: list[int]) -> None:
    op, weights = operation("GroupedMatMul-17"), Weights(numbers(3, 4, 3))
    product = CompressedGroupedMatMul(op, weights)
    inputs = [numbers(*a)] if offsets is None else [numbers(*a), np.int32(offsets)]
    expected = op.run(inputs[0], weights.array, *inputs[1:])
    np.testing.assert_array_equal(product.run(*inputs), expected)
    assert weights.asked == asked
    given = [TensorType(f32, PartialShape(a)), *types("" if offsets is None else "i32[3]")]
    result = product.infer(*given)
    assert result.shape == list(expected.shape)


def test_what_weights_decompress_to() -> None:
    weights = Weights(numbers(2, 3))
    tensor = Decompress(Const.of(weights.array), weights)
    assert str(tensor.infer()) == "f32[2,3]"
    assert tensor.run() is weights.array


@pytest.mark.parametrize(
    ("shape", "elements", "lengths"),
    [
        ((5, 3), 6, [2, 2, 1]),
        ((6, 3), 8, [2, 2, 2]),
        ((3, 2, 2), 3, [1, 1, 1]),
        ((3,), 2, [2, 1]),
        ((3, 0), 2, [2, 1]),
        ((0, 3), 6, []),
        ((4, 3), 99, [4]),
    ],
)
def test_blocks_are_all_slices_in_order(shape: tuple[int, ...], elements: int, lengths: list[int]) -> None:
    found = list(blocks(shape, elements))
    assert [part.stop - part.start for part in found] == lengths
    assert [i for part in found for i in range(shape[0])[part]] == list(range(shape[0]))
