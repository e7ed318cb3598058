"""Layers that are computed from constants alone, codes that a layer decompresses, and numbers that must be exact."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.graph.constant_layers import (
    all_constant_layers,
    constant_layers,
    converted_codes,
    deciding_constants,
    exact_layers,
    is_function,
)


@pytest.mark.parametrize("zero_points", [None, "constant", "input", "missing"])
@pytest.mark.parametrize("is_constant", [True, False])
def test_codes_that_a_product_reads(zero_points: str | None, is_constant: bool) -> None:
    net = Net()
    x, y = net.parameter("x", "?,3"), net.parameter("y", "3,2", "u8")
    codes = net.const(np.ones((3, 2), np.uint8), name="codes") if is_constant else y
    weights = net.op("Convert", codes, destination_type="f32", name="converted")
    if zero_points is not None:
        zero = net.parameter("zero", "1") if zero_points == "input" else net.const(np.float32(3))
        weights = net.op("Subtract", weights, zero, name="shifted")
    net.result(net.op("MatMul", x, weights, name="product"))
    model = net.model()
    if zero_points == "missing":
        model.disconnect(model.layer("shifted").inputs[1])
    data, port = model.layer("product").inputs
    is_known = is_constant and zero_points in (None, "constant")
    assert converted_codes(port) is (model.layer("codes") if is_known else None)
    assert converted_codes(data) is converted_codes(model.layer("converted").inputs[0]) is None
    assert port.source is not None
    found = constant_layers(port.source.layer)
    assert is_known == (found is not None)
    assert found is None or constant_layers(found[0], len(found)) == found
    assert found is None or constant_layers(found[0], len(found) - 1) is None
    assert is_function(port.source.layer) == (zero_points != "missing")


def branch(change: Callable[[Any], Any]) -> ovir.Model:
    p = ops.parameter([2], "f32", name="p")
    return ovir.Model([change(p)], [p])


def chosen(x: Any, condition: Any, data: Any, change: Callable[[Any], Any]) -> Any:
    """Return the result of an If that gets data: a layer in a branch, or the data plus 1."""
    layer, then, other = ops.if_op(condition, name="if"), branch(change), branch(lambda p: p + 1)
    layer.set_then_body(then)
    layer.set_else_body(other)
    layer.set_input(data, then.inputs[0], other.inputs[0])
    return layer.set_output(then.outputs[0], other.outputs[0])


DECIDING: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "compared": (lambda x, c, d, on: ops.greater(x, c), {"c"}),
    "computed before": (lambda x, c, d, on: ops.greater(x, ops.exp(c) * d), {"c", "d"}),
    "added": (lambda x, c, d, on: ops.greater(x + c, d), {"d"}),
    "rounded": (lambda x, c, d, on: ops.floor(ops.concat([x, c], 0)), {"c"}),
    "converted": (lambda x, c, d, on: ops.convert(ops.reshape(c + x, [1, 2], False), "i32"), set()),
    "moved and converted": (lambda x, c, d, on: ops.convert(ops.unsqueeze(ops.select(on, c, x), 0), "i32"), {"c"}),
    "in another type": (lambda x, c, d, on: ops.floor(ops.convert(ops.concat([x, c], 0), "f64")), {"c"}),
    "in another shape": (lambda x, c, d, on: ops.floor(ops.reshape(ops.concat([x, c], 0), [2, 2], False)), {"c"}),
    "nothing jumps": (lambda x, c, d, on: ops.exp(x * c) + d, set()),
    "only the shape is read": (lambda x, c, d, on: ops.shape_of(c + x), set()),
    "in a branch": (lambda x, c, d, on: chosen(x, on, c, lambda p: ops.convert(ops.floor(p), "f32")), {"c"}),
    "added in a branch": (lambda x, c, d, on: chosen(x, on, c, lambda p: ops.exp(p)), set()),
    "of a branch": (
        lambda x, c, d, on: ops.greater(x, chosen(x, on, d, lambda p: ops.constant(np.float32([5, 6]), name="inside"))),
        {"inside"},
    ),
    "through a branch": (lambda x, c, d, on: ops.greater(x, chosen(x, on, d, lambda p: p)), {"d"}),
}


@pytest.mark.parametrize("name", DECIDING)
def test_constants_that_decide(name: str) -> None:
    build, expected = DECIDING[name]
    x, on = ops.parameter([2], "f32", name="x"), ops.parameter([], "boolean", name="on")
    c, d = (ops.constant(np.float32([k, 2]), name=key) for k, key in ((1, "c"), (3, "d")))
    model = ovir.Model([build(x, c, d, on)], [x, on])
    assert {layer.name for layer in deciding_constants(model)} == expected


def test_layers_from_which_sizes_are_computed() -> None:
    x, size = ops.parameter([-1, 6], "f32", name="x"), ops.parameter([1], "i64", name="size")
    rows = ops.gather(ops.shape_of(x, name="shape"), ops.constant([0], name="first"), 0, name="rows")
    half = ops.divide(ops.convert(size, "f32", name="real"), ops.constant(np.float32(2), name="two"), name="half")
    target = ops.concat([rows, ops.convert(half, "i64", name="whole")], 0, name="target")
    data = ops.relu(ops.multiply(x, np.float32(2)), name="data")
    model = ovir.Model([ops.reshape(data, target, False)], [x, size])
    named = {layer.name for layer in exact_layers(model) if not layer.name.startswith("Const")}
    assert named == {"target", "rows", "first", "whole", "half", "two", "real", "size"}
    assert {layer.name for layer in all_constant_layers(model)} >= {"first", "two"}
    assert all(layer.type == "Const" for layer in all_constant_layers(model))
