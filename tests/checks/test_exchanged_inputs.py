"""Edges that lead to the wrong input, or from the wrong layer."""

from __future__ import annotations

import pytest
from builder import Net

import ovir


def exchanged(kind: str, first: tuple[str, str], second: tuple[str, str], **options: int | str) -> str:
    """A layer whose two inputs are exchanged, in a file that declares what was meant."""
    net = Net()
    a, b = net.parameter("a", *first), net.parameter("b", *second)
    net.result(net.op(kind, a, b, name="both", **options))  # type: ignore[arg-type]
    text = net.declared_xml()
    for old, new in (("0", "x"), ("1", "0"), ("x", "1")):
        text = text.replace(f'to-layer="2" to-port="{old}"', f'to-layer="2" to-port="{new}"')
    return text


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def test_exchanged_inputs_are_one_error() -> None:
    text = exchanged("Subtract", ("2,3", "f32"), ("2,1", "f32"))
    to_0, to_1 = (line_of(text, f'to-layer="2" to-port="{port}"') for port in (0, 1))
    (found,) = ovir.check(text)
    assert (found.code, found.severity, found.line) == ("OVIR222", ovir.Severity.ERROR, to_0)
    assert found.message == (
        "the inputs look exchanged: "
        f"port 0 declares f32[2,3] but gets f32[2,1] (layer 1 'b' (Parameter, opset1) by the edge on line {to_0}), "
        f"port 1 declares f32[2,1] but gets f32[2,3] (layer 0 'a' (Parameter, opset1) by the edge on line {to_1})"
    )
    assert found.hint == f"exchange the input ports of the edges on lines {to_0} and {to_1}"
    assert [d.code for d in ovir.read_model(text).diagnostics] == ["OVIR222"]


@pytest.mark.parametrize(
    ("kind", "first", "second", "options", "code"),
    [
        ("MatMul", ("2,3", "f32"), ("3,4", "f32"), {}, "OVIR401"),
        ("GatherND", ("2,3", "f32"), ("2,1", "i64"), {"opset": 8}, "OVIR409"),
    ],
)
def test_inputs_that_the_operation_cannot_take_so(
    kind: str, first: tuple[str, str], second: tuple[str, str], options: dict[str, int], code: str
) -> None:
    (found,) = ovir.check(exchanged(kind, first, second, **options))
    assert (found.code, found.severity) == (code, ovir.Severity.ERROR)
    assert found.message.startswith("the inputs look exchanged: port 0 declares ")
    assert found.hint is not None
    assert found.hint.startswith("exchange the input ports of the edges on lines ")


def test_inputs_that_differ_otherwise_are_not_exchanged() -> None:
    text = exchanged("Subtract", ("2,3", "f32"), ("2,1", "f32")).replace("<dim>1</dim>", "<dim>3</dim>")
    assert "OVIR222" not in {d.code for d in ovir.check(text)}


def test_an_edge_from_another_layer() -> None:
    """The message names the edge and both layers."""
    net = Net()
    x = net.parameter("x", "2,3")
    net.parameter("y", "4,5")
    net.result(net.op("ReLU", x))
    text = net.declared_xml().replace('<edge from-layer="0"', '<edge from-layer="1"')
    (found,) = [d for d in ovir.check(text) if d.severity is ovir.Severity.ERROR and d.code == "OVIR406"]
    line = line_of(text, '<edge from-layer="1"')
    assert found.layer == "layer 2 'relu2' (ReLU, opset1)"
    assert found.message == (
        "input port 0 declares shape [2,3], but its tensor has [4,5] "
        f"(layer 1 'y' (Parameter, opset1) by the edge on line {line})"
    )
