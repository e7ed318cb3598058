"""Constants that are read as another element type than their ports declare: one diagnostic, with all that follows."""

from collections.abc import Callable

import numpy as np
import pytest
from support.builder import Net

import ovir

Handle = tuple[int, int]


def product(net: Net, weights: Handle, name: str = "x") -> Handle:
    return net.op("MatMul", net.parameter(name, "2,2"), weights)


def converted(net: Net, weights: Handle) -> Handle:
    return net.op("Convert", weights, destination_type="f16")


def turned(net: Net, order: Handle) -> Handle:
    return net.op("Transpose", net.parameter("x", "2,3"), order)


ONES = np.float32([[1, 2], [3, 4]])
DIFFER = "a is f32 and b is {}: their element types must be equal; layer 0 'w' (Const, opset1) on line 7: "
DECLARES = "output port 0 declares type {}, but the Const itself has {}"
IGNORED = "; attribute 'size' is {}, but {} needs {} bytes; the rest is ignored"


@pytest.mark.parametrize(
    ("kind", "read_as", "array", "use", "more", "expected"),
    [
        ("f32", "i32", ONES, product, 0, ("OVIR410", DIFFER.format("i32") + DECLARES.format("f32", "i32"))),
        ("f32", "f16", ONES, product, 0, ("OVIR410", DIFFER.format("f16") + DECLARES.format("f32", "f16") + IGNORED.format(16, "f16[2,2]", 8))),
        ("f32", "i32", ONES, lambda net, w: product(net, net.op("ReLU", w)), 0, ("OVIR410", DIFFER.format("i32") + DECLARES.format("f32", "i32"))),
        ("f32", "i32", ONES, lambda net, w: net.op("Add", product(net, w), product(net, w, "y")), 0, ("OVIR410", DIFFER.format("i32") + DECLARES.format("f32", "i32"))),
        ("bf16", "i16", ONES, converted, 0, ("OVIR405", DECLARES.format("bf16", "i16"))),
        ("i32", "f32", np.int32([2**31 - 1, -1]), converted, 0, ("OVIR405", DECLARES.format("i32", "f32"))),  # as f32 these are NaN
        ("i64", "i32", np.int64([1, 0]), converted, 0, ("OVIR405", DECLARES.format("i64", "i32") + IGNORED.format(16, "i32[2]", 8))),
        ("i64", "i32", np.int64([1, 0]), converted, 8, ("OVIR405", DECLARES.format("i64", "i32") + IGNORED.format(24, "i32[2]", 8))),
        ("i64", "f64", np.int64([1, 0]), turned, 0, ("OVIR409", "order must be of an integer type, got f64; layer 0 'w' (Const, opset1) on line 7: " + DECLARES.format("i64", "f64"))),
        ("i64", "f64", np.int64([1, 0]), converted, 0, ("OVIR405", DECLARES.format("i64", "f64"))),
    ],
)  # fmt: skip
def test_one_diagnostic_of_a_constant(
    kind: str,
    read_as: str,
    array: np.ndarray,
    use: Callable[[Net, Handle], Handle],
    more: int,
    expected: tuple[str, str],
) -> None:
    net = Net()
    net.result(use(net, net.const(array, kind, name="w")))
    size = len(net.blob)
    text = net.declared_xml().replace(f'element_type="{kind}"', f'element_type="{read_as}"', 1)
    text = text.replace(f'size="{size}"', f'size="{size + more}"', 1)
    (found,) = ovir.check(text, bytes(net.blob) + bytes(more))
    assert (found.code, found.message) == expected
    assert found.severity == ("warning" if found.code == "OVIR405" else "error")
    fits = f"its size fits {kind}: change the attribute element_type of layer 0 'w' (Const, opset1) from {read_as}"
    assert found.hint == (None if more else fits)


def test_errors_of_other_layers_stay() -> None:
    net = Net()
    net.result(product(net, net.const(ONES, name="w")))
    net.result(net.op("SoftMax", net.parameter("y", "2,3"), opset=8, axis=5))
    ports = net.xml().replace(
        '<port id="0" precision="UNSPECIFIED" names="w"/>', '<port id="0" precision="FP32" names="w"/>'
    )
    text = ports.replace('element_type="f32" shape="2,2" offset', 'element_type="i32" shape="2,2" offset')
    found = ovir.check(text, bytes(net.blob))
    assert sorted(d.code for d in found) == ["OVIR305", "OVIR410"]
