"""Types that a file declares, held against those that inference finds: what is in doubt, and what is reported of it."""

import numpy as np
import pytest
from support.builder import Net

import ovir


def test_no_elements_along_huge_axes() -> None:
    """NumPy has no array of such a shape, though it would be empty."""
    net = Net()
    data = net.parameter("data", "0,3,9223372036854775807")
    net.result(net.op("ReduceSum", data, net.const(np.array([1])), keep_dims="true"))
    net.result(net.op("Add", data, net.const(np.float32(1)), auto_broadcast="numpy"))
    assert "OVIR999" not in {d.code for d in ovir.check(net.xml(), bytes(net.blob))}


@pytest.mark.parametrize("is_declared", [True, False])
def test_the_line_of_an_output_that_no_memory_holds(is_declared: bool) -> None:
    net = Net()
    data = net.parameter("data", "1,1")
    net.result(net.op("Tile", data, net.const(np.array([2**40, 2**40])), name="tiled"))
    text = net.xml()
    if not is_declared:
        start = text.index("<output>", text.index('name="tiled"'))
        text = text[:start] + text[text.index("</layer>", start) :]
    (found,) = (d for d in ovir.check(text, bytes(net.blob)) if d.code == "OVIR411")
    assert found.line == line_of(text, 'names="tiled"' if is_declared else 'name="tiled"')


def test_a_size_that_contradicts_inference_is_not_said_to_be_declared_twice() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3")))
    lines = net.declared_xml().split("\n")
    place = max(i for i, line in enumerate(lines) if "<dim>2</dim>" in line)
    lines[place : place + 2] = ["<dim>-1</dim>", "<dim>9</dim>"]
    assert {d.code for d in ovir.check("\n".join(lines), b"")} == {"OVIR406"}


@pytest.mark.parametrize("is_input", [True, False])
def test_a_size_that_only_one_of_two_ports_leaves_open(is_input: bool) -> None:
    net = Net()
    net.result(net.op("Exp", net.op("ReLU", net.parameter("x", "2,3"), name="relu"), name="exp"))
    before, after = net.declared_xml().split('name="exp"' if is_input else 'name="relu"')
    at = after.index("<input>" if is_input else "<output>")
    text = f'{before}name="{"exp" if is_input else "relu"}"{after[:at]}{after[at:].replace("<dim>2</dim>", "<dim>-1</dim>", 1)}'
    (warning,) = ovir.check(text, b"")
    assert (warning.code, "but its source declares" in warning.message) == ("OVIR413", True)


@pytest.mark.parametrize(("is_read", "severity"), [(False, "warning"), (True, "error")])
def test_what_is_declared_of_an_output_that_nothing_reads(is_read: bool, severity: str) -> None:
    """Exports of Open Model Zoo declare f32 for the indices of a MaxPool."""
    net = Net()
    pooled, port = net.op(
        "MaxPool", net.parameter("data", "1,1,4,4"), opset=8, outputs=2, kernel="2,2", strides="2,2",
        pads_begin="0,0", pads_end="0,0",
    )  # fmt: skip
    net.result((pooled, port))
    if is_read:
        net.result((pooled, port + 1))
    text = net.xml()
    declared = f'<port id="{port + 1}" precision="FP32"'
    assert declared.replace("FP32", "UNSPECIFIED") in text
    found = ovir.check(text.replace(declared.replace("FP32", "UNSPECIFIED"), declared), bytes(net.blob))
    assert [(d.code, str(d.severity)) for d in found] == [("OVIR403", severity)]


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
