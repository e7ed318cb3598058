"""Diagnostics that repeat are summed up."""

from __future__ import annotations

import pytest
from builder import Net

import ovir


def doubles(count: int) -> list[ovir.Diagnostic]:
    net = Net()
    x = net.parameter("x", "2,3")
    for _ in range(count):
        net.result(net.op("Convert", x, destination_type="f64"))
    return ovir.check(net.xml())


@pytest.mark.parametrize(("count", "reported"), [(3, 3), (4, 1), (6, 1)])
def test_notes_of_many_layers(count: int, reported: int) -> None:
    found = doubles(count)
    assert [d.code for d in found] == ["OVIR704"] * reported
    if reported == 1:
        line = found[0].line
        assert line is not None
        expected = f"; {count - 1} more of this kind, for example on line "
        assert expected in found[0].message


def test_tensor_names_that_differ() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for i in range(10):
        x = net.op("ReLU", x, name=f"relu{i}", names=[f"name{i % 5}"])
    net.result(x)
    (found,) = ovir.check(net.xml())
    assert (found.code, found.layer_id) == ("OVIR214", 6)
    assert found.message.startswith("layer 1 'relu0' (ReLU, opset1) has the same tensor name 'name0'; 4 more of this")
    assert found.message.count("tensor name") == 3


def test_attributes_that_are_not_known() -> None:
    """They repeat where the message is the same."""
    net = Net()
    x = net.parameter("x", "2,3")
    for i in range(5):
        x = net.op("ReLU", x, colour="1")
        x = net.op("Sigmoid", x, **{f"shade{i}": "1"})
    net.result(x)
    messages = [d.message for d in ovir.check(net.xml())]
    assert len(messages) == 6
    assert "4 more of this kind, for example on line" in messages[0]


def test_errors_are_reported_one_by_one() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for _ in range(5):
        x = net.op("Sparkle", x)
    net.result(x)
    assert [d.code for d in ovir.check(net.xml())] == ["OVIR201"] * 5
