"""`ovir run --watch` and `--emulate`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops


@pytest.fixture
def squares(tmp_path: Path) -> Path:
    x = ops.parameter([2], "f32", name="x")
    squared = ops.multiply(x, x, name="squared")
    scaled = ops.multiply(squared, ops.constant(np.float32(0.001)), name="scaled")
    ovir.save_model(ovir.Model([scaled], [x], "squares"), tmp_path / "squares.xml")
    return tmp_path / "squares.xml"


def test_json_lists_events_and_margins(cli: Any, squares: Path) -> None:
    result = cli("run", squares, "--input", "x=1,300", "--watch", "nan,inf,overflow:f16", "--json")
    assert result.status == 1
    document = json.loads(result.out)
    (event,) = document["watch"]
    assert (event["layer"], event["what"], event["value"]) == ("squared", "overflow:f16", 90000.0)
    assert event["id"] == ovir.read_model(squares).layer("squared").id
    assert event["position"] == [1]
    assert [margin["layer"] for margin in document["margins"]] == ["squared", "scaled"]


def test_the_table_names_the_layer_and_its_inputs(cli: Any, squares: Path) -> None:
    result = cli("run", squares, "--input", "x=1,300", "--watch", "overflow:f16")
    assert result.status == 1
    row = next(line for line in result.out.splitlines() if line.startswith("squared"))
    assert row.split()[1:6] == ["Multiply", "overflow:f16", "90000", "[1]", "1"]
    assert "x 1..300; x 1..300" in row
    assert "nearest to overflow in f16:" in result.out


def test_nothing_found_is_no_fault(cli: Any, squares: Path) -> None:
    result = cli("run", squares, "--input", "x=1,2", "--watch", "nan,inf")
    assert result.status == 0
    assert "no layer makes such values" in result.out
    result = cli("run", squares, "--input", "x=1,nan", "--watch", "nan,inf")
    assert result.status == 0
    assert "input 'x' contains NaN; layers that depend on it are not reported" in result.out
    result = cli("run", squares, "--input", "x=inf,1e5", "--watch", "inf,overflow:f16")
    assert "input 'x' contains infinity\ninput 'x' contains values of overflow:f16\n" in result.out


def test_emulated_overflow_is_infinite(cli: Any, squares: Path) -> None:
    result = cli("run", squares, "--input", "x=1,300", "--emulate", "f16", "--watch", "overflow:f16", "--json")
    document = json.loads(result.out)
    assert [(event["layer"], event["what"]) for event in document["watch"]] == [("squared", "inf")]
    assert document["outputs"][0]["values"] == [float(np.float16(0.001)), "inf"]


def test_wrong_usage(cli: Any, squares: Path) -> None:
    result = cli("run", squares, "--watch", "overflw:f16")
    assert result.status == 2
    assert "did you mean 'overflow'?" in result.err
    assert cli("run", squares, "--emulate", "f8").status == 2
    assert cli("run", squares, "--emulate", "f16", "--keep-compressed").status == 2


@pytest.mark.parametrize("emulated", [(), ("--emulate", "f16")])
def test_constants_beyond_the_type_are_named(cli: Any, tmp_path: Path, emulated: tuple[str, ...]) -> None:
    net = Net()
    large = net.const(np.float32([9e5, 1.0]), name="large")
    net.result(net.op("Multiply", net.parameter("x", "2"), large, name="scaled"))
    path = net.write(tmp_path)
    arguments = ("run", path, "--input", "x=[0.28,1]", "--watch", "overflow:f16", *emulated)
    done = cli(*arguments)
    assert "constant 'large' is beyond f16: 900000, read by scaled" in done.out
    assert ("1 layer beyond f16 (margin below 1)" in done.out) == (not emulated)
    assert "no layer makes such values, apart from what follows from these constants" in done.out
    plain = cli(*arguments[:4], *emulated)
    assert ("constant 'large' is beyond f16: 900000, read by scaled; it is clamped" in plain.err) == bool(emulated)
    [constant] = json.loads(cli(*arguments, "--json").out)["constants"]
    assert (constant["layer"], constant["value"], constant["readers"]) == ("large", 9e5, ["scaled"])
