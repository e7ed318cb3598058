"""What is reported where declared and inferred types differ: how severe it is, and what its message names."""

import re

import pytest
from support.builder import Net

import ovir
from ovir.core.tensor_types import TensorType
from ovir.inference.differences import about_other_shapes, difference


def network() -> ovir.Model:
    net = Net()
    relu = net.op("ReLU", net.parameter("x", "2,3"), name="relu")
    net.op("Exp", relu, name="dead")
    top = net.op("TopK", relu, net.const(1, "i64"), axis="0", mode="max", sort="none", name="top", outputs=2)
    net.result(top, "end")
    return ovir.read_model(net.declared_xml(), bytes(net.blob))


@pytest.mark.parametrize(
    ("name", "is_output", "index", "codes", "severity", "declared", "there"),
    [
        ("relu", True, 0, "OVIR402 OVIR403", "error", "output port 1 declares", "inference gives"),
        ("relu", False, 0, "OVIR406 OVIR407", "error", "input port 0 declares", "its tensor has"),
        ("x", True, 0, "OVIR404 OVIR405", "error", "output port 0 declares", "the Parameter itself has"),
        ("dead", True, 0, "OVIR402 OVIR403", "warning", "output port 1 declares", "inference gives"),
        ("dead", False, 0, "OVIR406 OVIR407", "warning", "input port 0 declares", "its tensor has"),
        ("top", True, 1, "OVIR402 OVIR403", "warning", "output port 3 declares", "inference gives"),
        ("end", False, 0, "OVIR406 OVIR407", "error", "input port 0 declares", "its tensor has"),
    ],
)
def test_differences(
    name: str, is_output: bool, index: int, codes: str, severity: str, declared: str, there: str
) -> None:
    layer = network().layer(name)
    port = (layer.outputs if is_output else layer.inputs)[index]
    own = str(port.declared_shape), str(port.declared_element_type)
    for version, expected in ((11, severity), (10, "warning")):
        found = difference(port, TensorType("u8", [9, 9]), version)
        assert [d.code for d in found] == codes.split()
        assert [str(d.severity) for d in found] == [expected, "warning" if codes.endswith("405") else expected]
        for diagnostic, kind, value, other in zip(found, ("shape", "type"), own, ("[9,9]", "u8"), strict=True):
            origin = "" if is_output else r" \(layer \d '(?:relu|x|top)' \(.*\) by the edge on line \d+\)"
            begin = f"{declared} {kind} {value}, but {there} {other}"
            assert re.fullmatch(re.escape(begin) + origin, diagnostic.message)
        assert [d.code for d in difference(port, TensorType("u8", own[0]), version)] == codes.split()[1:]
        assert [d.code for d in difference(port, TensorType(own[1], [9, 9]), version)] == codes.split()[:1]
    assert difference(port, TensorType("dynamic", "..."), 11) == []


@pytest.mark.parametrize("connected", [0, 1])
def test_exchanged_inputs_of_which_an_edit_has_connected_one(connected: int) -> None:
    """The new edge is on no line."""
    net = Net()
    a, b, *_ = [net.parameter(name, shape) for name, shape in zip("abcd", ("2,3", "2,1") * 2, strict=True)]
    net.result(net.op("Subtract", a, b, name="both"))
    text = net.declared_xml()
    for old, new in (("0", "x"), ("1", "0"), ("x", "1")):
        text = text.replace(f'to-layer="4" to-port="{old}"', f'to-layer="4" to-port="{new}"')
    model = ovir.read_model(text)
    ports = model.layer("both").inputs
    lines = [port.edge_line for port in ports]
    model.connect(model.layer("dc"[connected]).outputs[0], ports[connected])
    model.infer_shapes()
    (found,) = model.inference_diagnostics
    assert (found.code, found.line, found.port) == ("OVIR222", [ports[0].line, lines[0]][connected], 0)
    assert [f"by the edge on line {line}" in found.message for line in lines] == [connected == 1, connected == 0]
    assert found.hint == "exchange the input ports of the edges"


def test_diagnostics_of_a_reshaped_model() -> None:
    port = network().layer("relu").outputs[0]
    earlier, later = (difference(port, TensorType(kind, [size]), 11) for kind, size in (("u8", 8), ("i8", 9)))
    found = [(d.code, d.message.rpartition(" ")[2]) for d in about_other_shapes(earlier, later)]
    assert found == [("OVIR402", "[8]"), ("OVIR403", "i8")]
