"""``ovir bisect`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builder import Net

import ovir


def _net(folder: Path, name: str, factor: float) -> Path:
    net = Net()
    x = net.op("ReLU", net.parameter("x", "2,3"), name="relu")
    product = net.op("Multiply", x, net.const(np.float32([[1, 2, factor]]), name="factors"), name="product")
    net.result(net.op("Sigmoid", product, name="sigmoid"), "out")
    return net.write(folder, name)


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    return _net(tmp_path, "one", 3), _net(tmp_path, "other", 4)


def test_the_table_and_the_part(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    done = cli("bisect", *models, "-o", tmp_path / "part.xml")
    assert done.status == 1
    assert "first diverging layer: Multiply 'product' (id 3)" in done.out
    assert "smallest part that differs: 1 layer: product" in done.out
    assert [layer.name for layer in ovir.read_model(tmp_path / "part.xml").layers] == [
        *("relu", "factors", "product", "product/sink_port_0")
    ]


def test_models_that_agree(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    done = cli("bisect", models[0], models[0], "-o", tmp_path / "part.xml")
    assert (done.status, "within tolerance" in done.out) == (0, True)
    assert "part.xml is not written, because nothing differs" in done.err
    assert not (tmp_path / "part.xml").exists()
    assert cli("bisect", *models, "--rtol", 1).status == 0


def test_json(models: tuple[Path, Path], cli: Any) -> None:
    done = cli("bisect", *models, "--json", "--input", "x=[[1,2,3],[4,5,6]]")
    found = json.loads(done.out)
    assert (done.status, found["within"], found["first"]["name"], found["part"]) == (1, False, "product", None)


def test_recorded_tensors(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    recorded = tmp_path / "recorded.npz"
    np.savez(recorded, x=np.ones((2, 3), np.float32), relu=np.ones((2, 3), np.float32), product=np.zeros((2, 3)))
    done = cli("bisect", models[0], "--against", recorded)
    assert "first diverging layer: Multiply 'product'" in done.out
    assert done.err == ""


def test_tensors_that_were_not_recorded(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    """The recording has the input and the output of the other model, and nothing between them."""
    assert cli("run", models[1], "--record", tmp_path / "all.npz", "--seed", 3).status == 0
    with np.load(tmp_path / "all.npz") as tensors:
        np.savez(tmp_path / "some.npz", **{name: tensors[name] for name in ("x", "sigmoid")})
    arguments = ("bisect", models[0], "--against", tmp_path / "some.npz")
    done = cli(*arguments, "-o", tmp_path / "part.xml")
    assert done.status == 1
    assert "3 layers (1 compared, 2 not)" in done.out
    assert "first tensor that was seen to differ: of Sigmoid 'sigmoid' (id 4)" in done.out
    assert "at least one of 3 layers is at fault, between 'x' and 'sigmoid'" in done.out
    assert "not compared: it was not recorded" in done.out
    assert "diverging" not in done.out
    assert "part of all suspects, which differs: 3 layers: relu, product, sigmoid" in done.out
    part = [tmp_path / name for name in ("part.xml", "part_actual.npz", "part_input.npz")]
    assert cli("compare", part[0], "--against", part[1], "--input", part[2]).status == 1
    found = json.loads(cli(*arguments, "--json").out)
    assert [suspect["name"] for suspect in found["suspects"]] == ["relu", "product", "sigmoid"]
    assert (found["between"], found["first"]["name"]) == (["x"], "sigmoid")
    assert [layer["reason"] for layer in found["not_compared"]] == ["it was not recorded"] * 2


def test_agreement_is_claimed_for_what_was_compared_alone(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    """``relu`` differs and the layers after it do not, but the output was not recorded."""
    recorded = {"x": np.ones((2, 3)), "relu": np.zeros((2, 3)), "product": np.float32([[1, 2, 3]] * 2)}
    np.savez(tmp_path / "recorded.npz", **{name: array.astype(np.float32) for name, array in recorded.items()})
    done = cli("bisect", models[0], "--against", tmp_path / "recorded.npz")
    assert "first diverging layer: ReLU 'relu'" in done.out
    assert "agree again" not in done.out
    del recorded["relu"]
    np.savez(tmp_path / "recorded.npz", **{name: array.astype(np.float32) for name, array in recorded.items()})
    done = cli("bisect", models[0], "--against", tmp_path / "recorded.npz")
    assert done.status == 0
    assert "all tensors that were compared are within tolerance; the others are unknown" in done.out
    assert "3 layers (1 compared, 2 not)" in done.out


def test_a_second_model_may_be_given_as_the_other_side(models: tuple[Path, Path], cli: Any) -> None:
    done = cli("bisect", models[0], "--against", models[1])
    assert (done.status, "first diverging layer: Multiply 'product' (id 3)" in done.out) == (1, True)


def test_sets_of_inputs(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    """The models differ only where the last column is positive."""
    for name, value in (("a", -1), ("b", -2), ("c", 3)):
        np.savez(tmp_path / name, x=np.full((2, 3), value, np.float32))
    done = cli("bisect", *models, "--inputs", tmp_path)
    assert done.status == 1
    assert "4 runs, 3 sets of inputs" in done.out
    assert "set 3 of the inputs is the first for which tensors differ" in done.out
    (tmp_path / "c.npz").unlink()
    assert cli("bisect", *models, "--inputs", tmp_path).status == 0
    found = json.loads(cli("bisect", *models, "--samples", 4, "--json").out)
    assert (found["sets"], found["searched_set"], found["runs"]) == (4, 0, 2)


def test_errors_have_a_status_of_their_own(models: tuple[Path, Path], cli: Any) -> None:
    done = cli("bisect", *models, "--input", "x=[1,2]")
    assert (done.status, "input 'x'" in done.err) == (2, True)


def test_wrong_usage(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    for arguments, message in [
        ([], "there is nothing to compare with"),
        ([models[1], "--against", "onnx:model.onnx"], "a second model runs in ovir, or on openvino:DEVICE"),
        (["--against", "somewhere"], "cannot compare with 'somewhere'"),
        (["--against", "openvino:CPU", "--config", "x"], "--config x: expected KEY=VALUE"),
        ([models[1], "-o", tmp_path / "part.txt"], "must end in .xml"),
        ([models[1], "--rtol", "-1"], "not a number of 0 or more"),
    ]:
        done = cli("bisect", models[0], *arguments)
        assert (done.status, message in done.err) == (2, True), done


def test_tensors_that_were_not_recorded_are_not_said_to_agree(
    models: tuple[Path, Path], tmp_path: Path, cli: Any
) -> None:
    right = 1 / (1 + np.exp(-np.float32([[1, 2, 3]] * 2)))
    x = np.ones((2, 3), np.float32)
    np.savez(tmp_path / "recorded.npz", x=x, relu=x * 2, out=right)
    done = cli("bisect", models[0], "--against", tmp_path / "recorded.npz")
    assert "all tensors that were compared agree again" in done.out
    assert "(2 compared, 1 not)" in done.out
