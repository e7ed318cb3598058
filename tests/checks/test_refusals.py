"""Faults in the computation of shapes, and the later layers that `read_model` would refuse."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from support.builder import Net
from support.faults import Plant, declared_constant, declared_input, declared_output, other_constant, other_source

import ovir
from ovir.checks.recovering import read_recovering
from ovir.cli.main import main


def products(count: int, version: int = 11) -> Net:
    """A Reshape to the sizes of a constant, and products that read it."""
    net = Net(version=version)
    x = net.op("ReLU", net.parameter("x", "1,3,8,8"))
    x = net.op("Reshape", x, net.const([1, 192]), special_zero="false", name="flat")
    for number in range(count):
        net.result(net.op("MatMul", x, net.const(np.ones((192, 4), np.float32)), name=f"product{number}"))
    return net


def with_other_sizes(net: Net) -> tuple[str, bytes]:
    """The file declares what it did before an edit of the constant."""
    return net.declared_xml(), np.int64([2, 96]).tobytes() + bytes(net.blob[16:])


def errors(text: str, weights: bytes, **options: Any) -> list[ovir.Diagnostic]:
    return [d for d in ovir.check(text, weights, **options) if d.severity is not ovir.Severity.INFO]


ALL = "  hint: `ovir check` reports every fault of the file, with what follows from it"
FAILS = "a of shape [2,96] has 96 columns, but b of shape [192,4] has 192 rows"


def test_check_and_run_name_the_same_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, weights = with_other_sizes(products(5))
    path = tmp_path / "model.xml"
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(weights)
    assert main(["check", str(path), "--no-config"]) == 1
    assert capsys.readouterr().out == (
        f"{path}:70: error[OVIR401] layer 5 'product0' (MatMul, opset1): {FAILS}; this follows from layer 3 'flat' "
        "(Reshape, opset1) on line 55: output port 2 declares shape [1,192], but inference gives [2,96]; 4 more errors "
        "of the same cause: layer 8 'product1' (MatMul, opset1), layer 11 'product2' (MatMul, opset1), layer 14 "
        "'product3' (MatMul, opset1), ...\n"
        "  hint: OpenVINO ignores what ports declare, too\n"
    )
    assert main(["run", str(path)]) == 1
    assert capsys.readouterr().err == (
        f"{path}:70: error[OVIR401] layer 5 'product0' (MatMul, opset1): {FAILS}\n(4 more errors)\n{ALL}\n"
    )


@pytest.mark.parametrize(("count", "notes"), [(1, []), (2, [ALL])])
def test_who_reads_a_file_with_several_faults_is_told_of_check(count: int, notes: list[str]) -> None:
    with pytest.raises(ovir.ModelError) as caught:
        ovir.read_model(*with_other_sizes(products(count)))
    assert getattr(caught.value, "__notes__", []) == notes


def test_files_of_version_10() -> None:
    """Differences between declared and inferred shapes are warnings in them, but what fails by one is an error."""
    found = errors(*with_other_sizes(products(1, version=10)))
    assert [(d.code, str(d.severity)) for d in found] == [("OVIR402", "warning"), ("OVIR401", "error")]


def test_two_causes_are_two_errors() -> None:
    net = Net()
    for name in "xy":
        flat = net.op("Reshape", net.parameter(name, "1,4,8"), net.const([1, 32]), special_zero="false")
        net.result(net.op("MatMul", flat, net.const(np.ones((32, 4), np.float32)), name=f"of_{name}"))
    text = net.declared_xml()
    weights = bytes(net.blob).replace(np.int64([1, 32]).tobytes(), np.int64([2, 16]).tobytes())
    assert [(d.code, (d.layer or "").split("'")[1]) for d in errors(text, weights)] == [
        ("OVIR401", "of_x"),
        ("OVIR401", "of_y"),
    ]


def test_a_layer_that_fails_in_any_case_hides_no_other() -> None:
    """An axis outside of its rank, and sizes that differ from what the file declares: two faults, two errors."""
    net = products(1)
    net.result(net.op("SoftMax", net.parameter("y", "2,3"), opset=8, axis=1))
    text, weights = with_other_sizes(net)
    assert text.count('axis="1"') == 1
    found = errors(text.replace('axis="1"', 'axis="5"'), weights)
    assert sorted(d.code for d in found) == ["OVIR305", "OVIR401"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults",
    [
        [declared_output, other_source],
        [declared_constant, declared_input, other_constant],
        [declared_output, declared_input, other_source, other_constant],
        [other_source, other_source],
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_every_layer_that_reading_refuses_is_named(faults: list[Callable[[Plant], None]], seed: int) -> None:
    plant = Plant(seed)
    for fault in faults:
        fault(plant)
    text, _ = plant.finish()
    with pytest.raises(ovir.ModelError) as refused:
        ovir.read_model(text, plant.weights)
    reported = "\n".join(map(str, errors(text, plant.weights)))
    assert [d.layer for d in refused.value.diagnostics if d.layer not in reported] == []


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_faulty_model_is_read_with_the_errors_of_a_check(need_weights: bool) -> None:
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", "2,4"), net.const(np.ones((4, 5), np.float32))))
    text, weights = net.declared_xml().replace('shape="2,4"', 'shape="2,3"'), bytes(net.blob)
    (found,) = read_recovering(text, weights if need_weights else None, need_weights=need_weights).errors
    assert found == errors(text, weights, need_weights=need_weights)[0]
    assert "this follows from" in found.message


def test_errors_in_other_shapes_are_none_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = products(3).write(tmp_path)
    assert main(["run", str(path), "--shape", "x=1,3,8,9"]) == 1
    assert "ovir check" not in capsys.readouterr().err
    assert ovir.check(path) == []


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


CODES = set[tuple[str, str]]
FAULTS: dict[str, tuple[str, str, str, CODES]] = {
    "an index outside": ("where", "", "", {("OVIR511", "warning")}),
    "a folded index outside": ("picked", "", "", {("OVIR511", "warning"), ("OVIR401", "error")}),
    "another type": ("rows", "element_type", "i32", {("OVIR410", "error")}),
    # of [1, 0, 2] in i64 the first three i32 are 1, 0, 0, which is not an order of a Transpose
    "a type that moves numbers": ("picked", "element_type", "i32", {("OVIR405", "warning"), ("OVIR401", "error")}),
    "past the end": ("none", "offset", "100000", {("OVIR502", "error")}),
    "an axis": ("sizes", "axis", "5", {("OVIR305", "error")}),
    "a lost edge": ("none", "from-port", "7", {("OVIR208", "error")}),
    "a misspelled variable": ("variable", "type", "ReadValu", {("OVIR201", "error")}),
}
"""A layer, one of its attributes with another value, or another first number of its data; and what is reported."""


@pytest.mark.parametrize("name", [None, *FAULTS])
def test_one_fault(name: str | None) -> None:
    net = computing()
    root, weights = etree.fromstring(net.declared_xml().encode()), bytearray(net.blob)
    expected: CODES = set()
    if name is not None:
        layer_name, key, value, expected = FAULTS[name]
        (layer,) = root.findall(f"layers/layer[@name='{layer_name}']")
        places = [layer, *layer.findall("data"), *root.findall(f"edges/edge[@from-layer='{layer.get('id')}']")]
        if key:
            next(place for place in places if key in place.attrib).set(key, value)
        else:
            weights[int(places[1].get("offset", ""))] = 9
    found = [d for d in ovir.check(etree.tostring(root), bytes(weights)) if d.severity is not ovir.Severity.INFO]
    assert {(d.code, str(d.severity)) for d in found} == expected, "\n".join(map(str, found))
    assert len(found) == len(expected)
