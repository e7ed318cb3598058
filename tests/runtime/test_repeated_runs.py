"""What a request gives in its first run, it gives in every later one, whatever it has run in between."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.core.arrays import Array

MATMUL_TYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64")
CONSTANT = 7
"""The seed of the values of constants."""
DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def values(shape: tuple[int, ...], element_type: str, seed: int) -> Array:
    """Small numbers, whose products every type represents."""
    dtype = DTYPES.get(element_type, f"{'uint' if element_type[0] == 'u' else 'int'}{element_type[1:]}")
    return np.random.default_rng(seed).integers(0, 4, shape).astype(dtype)


def check_products(net: Net, element_type: str, *calls: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Run products of inputs of these shapes, each three times with other values, then all of them again."""
    request = net.compiled().create_infer_request()
    held: list[tuple[Array, Array]] = []
    for seed, (left, right) in enumerate([shapes for shapes in calls for _ in range(3)] + [*calls] * 2):
        is_constant = len(request.compiled.inputs) == 1
        a, b = (values(left, element_type, seed), values(right, element_type, CONSTANT if is_constant else seed + 100))
        got = request.infer([a] if is_constant else [a, b])[0]
        expected = np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(a.dtype)
        assert got.dtype == a.dtype
        np.testing.assert_array_equal(got, expected)
        held.append((got, expected))
    for got, expected in held:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("element_type", MATMUL_TYPES)
@pytest.mark.parametrize("shapes", [("?,?", "?,?"), ("2,?", "?,2"), ("...", "...")])
def test_products_of_sizes_that_the_run_shows(element_type: str, shapes: tuple[str, str]) -> None:
    net = Net()
    a, b = (net.parameter(name, shape, element_type) for name, shape in zip("ab", shapes, strict=True))
    net.result(net.op("MatMul", a, b))
    check_products(net, element_type, ((2, 3), (3, 2)), ((2, 5), (5, 2)), ((2, 1), (1, 2)), ((2, 3), (3, 2)))


@pytest.mark.parametrize("element_type", MATMUL_TYPES)
def test_products_of_an_inner_dimension_that_no_inference_knows(element_type: str) -> None:
    """The inner dimension is the number of nonzero elements of an input."""
    net = Net()
    places = net.op("NonZero", net.parameter("which", "4", "i32"), opset=3, output_type="i64")
    indices = net.op("Squeeze", places, net.const(np.int64([0])))
    a, b = net.parameter("a", "2,4", element_type), net.parameter("b", "4,2", element_type)
    columns = net.op("Gather", a, indices, net.const(np.int64(1)), opset=8)
    rows = net.op("Gather", b, indices, net.const(np.int64(0)), opset=8)
    product = net.op("MatMul", columns, rows)
    net.result(net.op("Maximum", product, product))
    request = net.compiled().create_infer_request()
    for seed, which in enumerate(("1101", "1101", "1101", "1110", "0001", "0001", "0001", "0000", "1111", "1101")):
        mask = np.array([int(digit) for digit in which], np.int32)
        a_values, b_values = values((2, 4), element_type, seed), values((4, 2), element_type, seed + 100)
        got = request.infer([mask, a_values, b_values])[0]
        kept = mask != 0
        expected = np.matmul(a_values[:, kept].astype(np.int64), b_values[kept].astype(np.int64))
        np.testing.assert_array_equal(got.astype(np.int64), expected)


@pytest.mark.parametrize("element_type", MATMUL_TYPES)
@pytest.mark.parametrize("transpose", ["false", "true"])
def test_products_with_constants(element_type: str, transpose: str) -> None:
    net = Net()
    b = values((3, 2), element_type, CONSTANT)
    constant = net.const(b.T if transpose == "true" else b, element_type)
    net.result(net.op("MatMul", net.parameter("a", "?,3", element_type), constant, transpose_b=transpose))
    check_products(net, element_type, ((2, 3), (3, 2)), ((4, 3), (3, 2)), ((2, 3), (3, 2)))


class Doubling(ovir.Operator):
    """An operation whose kernel takes an output array, and does not use it."""

    def infer(self, data: Any) -> Any:
        return data

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return data + data


@pytest.mark.parametrize("emulate", [None, "f16"])
@pytest.mark.parametrize("shape", ["2,3", "?,?"])
def test_a_kernel_may_leave_the_array_that_it_is_given(shape: str, emulate: str | None) -> None:
    ovir.register("Doubling", version="repeated")(Doubling)
    net = Net()
    doubled = net.op("Doubling", net.parameter("x", shape))
    net.result(net.op("ReLU", doubled))
    xml = net.xml().replace('type="Doubling" version="opset1"', 'type="Doubling" version="repeated"')
    request = ovir.compile_model(ovir.read_model(xml.encode()), emulate=emulate).create_infer_request()
    for number in range(1, 5):
        got = request.infer([np.full((2, 3), number, np.float32)])[0]
        np.testing.assert_array_equal(got, np.full((2, 3), 2 * number))


@pytest.mark.parametrize("element_type", ["u1", "u3", "u6"])
def test_arithmetic_of_types_that_bytes_hold_is_refused_in_every_run(element_type: str) -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("a", "4", element_type), net.parameter("b", "4", element_type)))
    request = net.compiled().create_infer_request()
    for _ in range(3):
        with pytest.raises(ovir.RunError, match=f"execution of Add on {element_type} is not supported"):
            request.infer([np.ones(4, np.uint8), np.ones(4, np.uint8)])


def test_a_constant_part_of_rows_that_only_the_run_counts() -> None:
    net = Net()
    places = net.op("NonZero", net.parameter("which", "6", "i32"), opset=3, output_type="i64")
    rows = net.op("Transpose", places, net.const(np.int64([1, 0])))
    picked = net.op("Gather", rows, net.const(np.int64(0)), net.const(np.int64(1)), opset=8)
    net.result(net.op("Add", picked, net.const(np.int64(1))))
    request = net.compiled().create_infer_request()
    for which in ("110100", "110100", "001011", "110100", "000000", "000000", "111111", "110100"):
        mask = np.array([int(digit) for digit in which], np.int32)
        np.testing.assert_array_equal(request.infer([mask])[0], np.flatnonzero(mask) + 1)
