"""Sizes that are computed in types which may not hold them: what inference folds is what a run computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from builder import Net

Port = tuple[int, int]
Build = Callable[[Net, Port], Port]

TYPES = ["u8", "i8", "u4", "i4", "i16", "u16", "i32", "u32", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"]
SIZES = [300, 0, 1, 7, 16, 17, 127, 128, 255, 256, 257, 449, 2049, 32768, 46341, 65520, 65536, 2**24 + 1, 300]


def number(net: Net, value: int, element_type: str) -> Port:
    return net.const(np.array([value]), element_type)


def there_and_back(element_type: str) -> Build:
    """Return what compares a size with itself, converted to a type and back."""

    def build(net: Net, size: Port) -> Port:
        converted = net.op("Convert", size, destination_type=element_type)
        return net.op("Equal", size, net.op("Convert", converted, destination_type="i64"))

    return build


def like(net: Net, size: Port) -> Port:
    converted = net.op("ConvertLike", size, number(net, 1, "u8"))
    return net.op("Equal", size, net.op("Convert", converted, destination_type="i64"))


def comparison(element_type: str, kind: str, operand: int, relation: str, limit: int) -> Build:
    """Return what compares the result of an operation in a type with a limit."""

    def build(net: Net, size: Port) -> Port:
        converted = net.op("Convert", size, destination_type=element_type)
        result = net.op(kind, converted, number(net, operand, element_type))
        return net.op(relation, result, number(net, limit, element_type))

    return build


def square(element_type: str) -> Build:
    def build(net: Net, size: Port) -> Port:
        converted = net.op("Convert", size, destination_type=element_type)
        return net.op("GreaterEqual", net.op("Multiply", converted, converted), number(net, 0, element_type))

    return build


def product_of_all(element_type: str) -> Build:
    def build(net: Net, size: Port) -> Port:
        converted = net.op("Convert", size, destination_type=element_type)
        both = net.op("Concat", converted, converted, axis=0)
        product = net.op("ReduceProd", both, net.const(np.array([0])), keep_dims="true")
        return net.op("GreaterEqual", product, number(net, 0, element_type))

    return build


def unary(element_type: str, kind: str) -> Build:
    def build(net: Net, size: Port) -> Port:
        converted = net.op("Convert", size, destination_type=element_type)
        return net.op("LessEqual", net.op(kind, converted), number(net, 0, element_type))

    return build


CASES: dict[str, Build] = {
    **{f"{element_type} and back": there_and_back(element_type) for element_type in TYPES},
    "like u8": like,
    "u8 + 1": comparison("u8", "Add", 1, "GreaterEqual", 1),
    "i16 + 1": comparison("i16", "Add", 1, "Less", 1),
    "u32 - 5": comparison("u32", "Subtract", 5, "LessEqual", 100),
    "u64 - 5": comparison("u64", "Subtract", 5, "LessEqual", 100),
    "min(u8, 5)": comparison("u8", "Minimum", 5, "LessEqual", 5),
    "i32 * 100000": comparison("i32", "Multiply", 100_000, "GreaterEqual", 0),
    "f16 * 0": comparison("f16", "Multiply", 0, "Equal", 0),
    "f16 mod 3": comparison("f16", "FloorMod", 3, "Less", 3),
    "f8e4m3 + 0": comparison("f8e4m3", "Add", 0, "GreaterEqual", 0),
    "i32 squared": square("i32"),
    "i32 product": product_of_all("i32"),
    "-u32": unary("u32", "Negative"),
    "|i8|": unary("i8", "Abs"),
}


@pytest.mark.slow
@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_what_is_folded_is_what_a_run_computes(build: Build) -> None:
    folded, computed = Net(), Net()
    data = folded.parameter("x", "?", "u8")
    folded.result(build(folded, folded.op("ShapeOf", data, opset=3)))
    computed.result(build(computed, computed.parameter("size", "1", "i64")))
    request, oracle = (net.compiled().create_infer_request() for net in (folded, computed))
    for size in SIZES:
        expected = oracle.infer([np.array([size])])[0]
        for _ in range(3):
            assert request.infer([np.zeros(size, np.uint8)])[0] == expected, size


def test_a_size_that_fits_is_folded() -> None:
    net = Net()
    size = net.op("ShapeOf", net.parameter("x", "1..200", "u8"), opset=3)
    net.result(there_and_back("u8")(net, size))
    known = net.model().outputs[0].type.constant
    assert known is not None
    assert known.tolist() == [True]


def test_the_magnitude_of_the_smallest_integer_is_not_known_to_be_positive() -> None:
    net = Net()
    net.result(net.op("GreaterEqual", net.op("Abs", net.parameter("x", "1", "i32")), number(net, 0, "i32")))
    request = net.compiled().create_infer_request()
    for value in (5, -(2**31), -5, -(2**31)):
        assert request.infer([np.int32([value])])[0] == (value > -(2**31))
