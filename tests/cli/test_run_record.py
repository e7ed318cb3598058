"""`ovir run --record`: the results of all layers in a file."""

from pathlib import Path
from typing import Any

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.io.tensor_files import load_npz


def saved(model: ovir.Model, folder: Path) -> Path:
    ovir.save_model(model, folder / "model.xml")
    return folder / "model.xml"


def test_every_layer_and_every_input_is_recorded(cli: Any, model: Path, tmp_path: Path) -> None:
    result = cli("run", model, "--shape", "data=3,3", "--record", tmp_path / "all.npz")
    assert result.status == 0
    assert "recorded 5 tensors in" in result.err
    recorded = load_npz(tmp_path / "all.npz")
    assert list(recorded) == ["data", "indices", "rows", "product", "probabilities"]
    np.testing.assert_array_equal(recorded["rows"], recorded["data"][recorded["indices"]])


def test_a_record_can_be_fed_again(cli: Any, model: Path, tmp_path: Path) -> None:
    assert cli("run", model, "--shape", "data=3,3", "--record", tmp_path / "all.npz").status == 0
    result = cli("run", model, "--input", tmp_path / "all.npz", "--output", tmp_path / "out.npz")
    assert result.status == 0
    assert "3 arrays that belong to no input are not read" in result.err
    assert "random" not in result.err
    expected = load_npz(tmp_path / "all.npz")["probabilities"]
    np.testing.assert_array_equal(load_npz(tmp_path / "out.npz")["probabilities"], expected)


def test_tap_selects_what_is_recorded(cli: Any, model: Path, tmp_path: Path) -> None:
    result = cli("run", model, "--shape", "data=3,3", "--record", tmp_path / "part.npz", "--tap", "^pro")
    assert result.status == 0
    assert list(load_npz(tmp_path / "part.npz")) == ["data", "indices", "product", "probabilities"]
    assert "tap" not in result.out


def test_layers_that_are_folded_are_recorded(cli: Any, tmp_path: Path) -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    size = ops.shape_of(x, name="size")
    doubled = ops.multiply(ops.constant(np.float32([1, 2, 3])), ops.constant(np.float32(2)), name="doubled")
    path = saved(ovir.Model([ops.reshape(ops.add(x, doubled), size, False, name="out")], [x], "folded"), tmp_path)
    assert cli("run", path, "--record", tmp_path / "all.npz").status == 0
    recorded = load_npz(tmp_path / "all.npz")
    assert recorded["size"].tolist() == [2, 3]
    assert recorded["doubled"].tolist() == [2, 4, 6]


def test_what_has_run_before_an_error_is_kept(cli: Any, tmp_path: Path) -> None:
    x = ops.parameter([3], "i32", name="x")
    rows = ops.gather(ops.constant(np.float32([[1], [2]])), ops.abs(x, name="abs"), ops.constant(np.int64(0)))
    path = saved(ovir.Model([rows], [x], "fails"), tmp_path)
    result = cli("run", path, "--input", "x=0,1,-9", "--record", tmp_path / "all.npz", "--strict")
    assert result.status == 1
    assert list(load_npz(tmp_path / "all.npz")) == ["x", "abs"]
