"""Faults in the computation of shapes: later layers get one report of what `read_model` would refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from builder import Net
from lxml import etree

import ovir


def computing() -> Net:
    """The shapes of a Reshape and of a variable's first value, computed from the batch of the data."""
    net = Net()
    x = net.parameter("x", "?,8")
    batch = net.op("Gather", net.op("ShapeOf", x, opset=3), net.const([0], name="where"), net.const(0), opset=8)
    sizes = net.op("Concat", batch, net.const([2], name="rows"), net.const([4]), name="sizes", axis=0)
    x = net.op("Reshape", x, sizes, special_zero="false")
    sizes = net.op("Concat", batch, net.const([0], name="none"), net.const([4]), axis=0)
    first = net.op("Broadcast", net.const(np.float32(0)), sizes, opset=3, mode="numpy")
    before = net.op(
        "ReadValue", first, name="variable", opset=6, variable_id="v", variable_type="f32", variable_shape="?,?,4"
    )
    both = net.op("Concat", before, x, axis=1)
    net.op("Assign", both, opset=6, variable_id="v")
    order = net.op(
        "Gather", net.const([0, 1, 2], name="orders"), net.const([1, 0, 2], name="picked"), net.const(0), opset=8
    )
    net.result(net.op("Transpose", both, order, name="turned"))
    return net


def data_of(root: etree._Element, name: str) -> etree._Element:
    (data,) = root.findall(f"layers/layer[@name='{name}']/data")
    return data


def index_outside(root: etree._Element, weights: bytearray) -> None:
    weights[int(data_of(root, "where").get("offset", ""))] = 9


def folded_index_outside(root: etree._Element, weights: bytearray) -> None:
    weights[int(data_of(root, "picked").get("offset", ""))] = 9


def another_type(root: etree._Element, weights: bytearray) -> None:
    data_of(root, "rows").set("element_type", "i32")


def a_type_that_moves_numbers(root: etree._Element, weights: bytearray) -> None:
    """Of [1, 0, 2] in i64 the first three i32 are 1, 0, 0, which is no order of a Transpose."""
    data_of(root, "picked").set("element_type", "i32")


def past_the_end(root: etree._Element, weights: bytearray) -> None:
    data_of(root, "none").set("offset", "100000")


def axis(root: etree._Element, weights: bytearray) -> None:
    data_of(root, "sizes").set("axis", "5")


def misspelt_variable(root: etree._Element, weights: bytearray) -> None:
    (layer,) = root.findall("layers/layer[@name='variable']")
    layer.set("type", "ReadValu")


def lost_edge(root: etree._Element, weights: bytearray) -> None:
    (layer,) = root.findall("layers/layer[@name='none']")
    (edge,) = root.findall(f"edges/edge[@from-layer='{layer.get('id')}']")
    edge.set("from-port", "7")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (index_outside, {("OVIR511", "warning")}),
        (folded_index_outside, {("OVIR511", "warning"), ("OVIR401", "error")}),
        (another_type, {("OVIR410", "error")}),
        (a_type_that_moves_numbers, {("OVIR405", "warning"), ("OVIR401", "error")}),
        (past_the_end, {("OVIR502", "error")}),
        (axis, {("OVIR305", "error")}),
        (lost_edge, {("OVIR208", "error")}),
        (misspelt_variable, {("OVIR201", "error")}),
    ],
)
def test_one_fault(fault: Callable[[etree._Element, bytearray], None], expected: set[tuple[str, str]]) -> None:
    net = computing()
    root, weights = etree.fromstring(net.declared_xml().encode()), bytearray(net.blob)
    fault(root, weights)
    found = [d for d in ovir.check(etree.tostring(root), bytes(weights)) if d.severity is not ovir.Severity.INFO]
    assert {(d.code, str(d.severity)) for d in found} == expected, "\n".join(map(str, found))
    assert len(found) == len(expected)


def test_the_model_is_right_without_them() -> None:
    net = computing()
    assert [d for d in ovir.check(net.declared_xml(), bytes(net.blob)) if d.severity is not ovir.Severity.INFO] == []


def test_a_constant_that_fails_all_its_readers_is_one_error() -> None:
    net = Net()
    x, axis = net.parameter("x", "2,3"), net.const(5, name="axis")
    for _ in range(4):
        net.result(net.op("Gather", x, net.const([0]), axis, opset=8))
    (found,) = [d for d in ovir.check(net.xml(), bytes(net.blob)) if d.severity is ovir.Severity.ERROR]
    assert (found.code, found.layer_id) == ("OVIR305", 3)
    assert found.hint == "3 other layers that read layer 1 'axis' (Const, opset1) fail: its value may be wrong"
