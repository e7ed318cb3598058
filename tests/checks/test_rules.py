"""Rules on files that are wrong in other ways, too."""

from __future__ import annotations

import numpy as np
import pytest
from builder import Net

import ovir


def codes(net: Net) -> dict[str, str]:
    return {d.code: d.message for d in ovir.check(net.xml(), bytes(net.blob))}


@pytest.mark.parametrize(("opset", "batch_dims", "code"), [(8, "x", "OVIR302"), (99, "1", "OVIR202")])
def test_indices_of_an_operation_that_cannot_be_read(opset: int, batch_dims: str, code: str) -> None:
    net = Net()
    indices = net.const(np.array([[7]]))
    net.result(net.op("GatherND", net.parameter("data", "2,3"), indices, opset=opset, batch_dims=batch_dims))
    assert codes(net).keys() == {code}


@pytest.mark.parametrize(
    ("kind", "opset", "code"),
    [("ScatterUpdate", 3, "OVIR511"), ("ScatterElementsUpdate", 3, "OVIR703"), ("ScatterElementsUpdate", 12, None)],
)
def test_negative_indices(kind: str, opset: int, code: str | None) -> None:
    net = Net()
    data, updates = net.parameter("data", "4"), net.parameter("updates", "1")
    net.result(net.op(kind, data, net.const(np.array([-1])), updates, net.const(np.int64(0)), opset=opset))
    assert codes(net).keys() == ({code} if code else set())


def test_negative_indices_of_gather_nd() -> None:
    for opset, expected in (5, {"OVIR703"}), (8, set()):
        net = Net()
        net.result(net.op("GatherND", net.parameter("data", "4"), net.const(np.array([[-1]])), opset=opset))
        assert codes(net).keys() == expected


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('names="relu1"', 'name="relu1"', "<port> has no attribute 'name'; it is ignored", "did you mean 'names'?"),
        ('type="ReLU"', 'type="ReLU" colour="1"', "<layer> has no attribute 'colour'; it is ignored", None),
        ('type="ReLU"', 'type="ReLU" xml:lang="en"', None, None),
    ],
)
def test_unknown_attributes_of_layers_and_ports(old: str, new: str, message: str | None, hint: str | None) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "4")))
    text = net.xml()
    assert old in text
    found = [(d.code, d.message, d.hint) for d in ovir.check(text.replace(old, new), bytes(net.blob))]
    assert found == ([("OVIR304", message, hint)] if message else [])


def test_no_elements_along_huge_axes() -> None:
    """NumPy has no array of such a shape, though it would be empty."""
    net = Net()
    data = net.parameter("data", "0,3,9223372036854775807")
    net.result(net.op("ReduceSum", data, net.const(np.array([1])), keep_dims="true"))
    net.result(net.op("Add", data, net.const(np.float32(1)), auto_broadcast="numpy"))
    assert "OVIR999" not in codes(net)
