"""``ovir reduce`` on the command line."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir

TANH = shlex.join([sys.executable, "-c", "import sys; sys.exit(7 * ('Tanh' in open(sys.argv[1]).read()))"]) + " {}"
"""A command that exits with status 7 for a model with a Tanh."""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """x -> relu -> tanh -> abs."""
    net = Net()
    tanh = net.op("Tanh", net.op("ReLU", net.parameter("x", "2,3"), name="relu"), name="tanh")
    net.result(net.op("Abs", tanh, name="abs"), "out")
    return net.write(tmp_path)


def test_the_table_and_the_file(net: Path, tmp_path: Path, cli: Any) -> None:
    small = tmp_path / "small.xml"
    done = cli("reduce", net, "--check", TANH, "-o", small, "--timeout", 30, "--work", tmp_path / "work")
    assert (done.status, done.err) == (0, "")
    assert "tanh   Tanh (opset1)" in done.out
    assert f"{small}: 1 of 3 layers, status 7 as for the whole model, after " in done.out
    assert [layer.type for layer in ovir.read_model(small).layers] == ["Parameter", "Tanh", "Result"]
    done = cli("reduce", net, "--check", TANH, "-o", small, "--timeout", 30, "--work", tmp_path / "work")
    assert "after 3 runs" in done.out


def test_json(net: Path, tmp_path: Path, cli: Any) -> None:
    found = json.loads(cli("reduce", net, "--check", TANH, "-o", tmp_path / "small.xml", "--json").out)
    assert (found["status"], found["layers_before"], found["layers"], found["complete"]) == (7, 3, 1, True)
    assert [layer["type"] for layer in found["remaining"]] == ["Parameter", "Tanh", "Result"]
    assert found["steps"][-1]["layers"] == 1


def test_inputs_as_for_a_run(net: Path, tmp_path: Path, cli: Any) -> None:
    small, saved = tmp_path / "small.xml", tmp_path / "saved.npz"
    arguments = ("--input", "x=[[1,2,3],[4,5,6]]", "--save-inputs", saved, "--max-runs", 4)
    done = cli("reduce", net, "--check", TANH, "-o", small, *arguments)
    assert (done.status, done.out.endswith("after 4 runs, stopped by --max-runs 4\n")) == (0, True)
    assert np.load(saved)["x"].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_shapes_as_for_a_run(tmp_path: Path, cli: Any) -> None:
    net, small = Net(), tmp_path / "small.xml"
    net.result(net.op("Abs", net.op("Tanh", net.parameter("x", "?,3"), name="tanh")))
    model = net.write(tmp_path)
    done = cli("reduce", model, "--check", TANH, "-o", small, "--shape", "x=5,3", "--max-runs", 3)
    assert done.status == 0
    assert str(ovir.read_model(small).inputs[0].shape) == "[5,3]"
