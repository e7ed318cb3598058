"""`ovir run --record`: the results of all layers in a file."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.record import Recorder, record_keys
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


def test_types_that_npz_lacks_are_read_back(cli: Any, tmp_path: Path) -> None:
    x = ops.parameter([4], "f32", name="x")
    narrow = ops.convert(x, "bf16", name="narrow")
    small = ops.convert(x, "i4", name="small")
    path = saved(ovir.Model([ops.relu(narrow), small], [x], "types"), tmp_path)
    assert cli("run", path, "--input", "x=1,-2,3,7", "--record", tmp_path / "all.npz").status == 0
    recorded = load_npz(tmp_path / "all.npz")
    assert recorded["narrow"].dtype == ml_dtypes.bfloat16
    assert recorded["small"].dtype == ml_dtypes.int4
    assert recorded["small"].astype(int).tolist() == [1, -2, 3, 7]


def test_layers_that_are_folded_are_recorded(cli: Any, tmp_path: Path) -> None:
    x = ops.parameter([2, 3], "f32", name="x")
    size = ops.shape_of(x, name="size")
    doubled = ops.multiply(ops.constant(np.float32([1, 2, 3])), ops.constant(np.float32(2)), name="doubled")
    path = saved(ovir.Model([ops.reshape(ops.add(x, doubled), size, False, name="out")], [x], "folded"), tmp_path)
    assert cli("run", path, "--record", tmp_path / "all.npz").status == 0
    recorded = load_npz(tmp_path / "all.npz")
    assert recorded["size"].tolist() == [2, 3]
    assert recorded["doubled"].tolist() == [2, 4, 6]


def loop_model() -> ovir.Model:
    """x + 3 steps, each of which adds 1."""
    x = ops.parameter([2], "f32", name="x")
    state = ops.parameter([2], "f32", name="state")
    raised = ops.add(state, ops.constant(np.float32(1)), name="raised")
    body = ovir.Model([raised, ops.constant(np.array(True))], [state], "body")
    loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(state, x.output(0), raised.output(0))
    out = loop.get_iter_value(raised.output(0), -1)
    return ovir.Model([ops.relu(out, name="out")], [x], "loop")


def test_the_last_result_of_a_layer_in_a_body_counts() -> None:
    model = loop_model()
    written: dict[str, np.ndarray[Any, Any]] = {}
    recorder = Recorder(model, lambda key, array: written.update({key: array.copy()}))
    ovir.compile_model(model)([np.float32([0, 5])], listeners=[recorder])
    inside = next(key for key in written if key.endswith("body/raised"))
    assert written[inside].tolist() == [3, 8]
    assert written["out"].tolist() == [3, 8]
    assert recorder.count == len(written)


def test_tensors_of_the_same_name_have_keys_of_their_own() -> None:
    net = Net()
    x = net.parameter("x", "2")
    one = net.op("Relu", x, name="same", names=["tensor"])
    two = net.op("Relu", one, name="other", names=["tensor"])
    net.result(net.op("Split", two, net.const(np.int64(0)), name="parts", outputs=2, names=["", "x"], num_splits=2))
    model = net.model()
    assert list(record_keys(model)) == ["x", "tensor", "other", "parts", "parts:1"]


def test_what_has_run_before_an_error_is_kept(cli: Any, tmp_path: Path) -> None:
    x = ops.parameter([3], "i32", name="x")
    rows = ops.gather(ops.constant(np.float32([[1], [2]])), ops.abs(x, name="abs"), ops.constant(np.int64(0)))
    path = saved(ovir.Model([rows], [x], "fails"), tmp_path)
    result = cli("run", path, "--input", "x=0,1,-9", "--record", tmp_path / "all.npz", "--strict")
    assert result.status == 1
    assert list(load_npz(tmp_path / "all.npz")) == ["x", "abs"]


@pytest.mark.parametrize("key", ["datta", "rows"])
def test_a_file_that_lacks_an_input_may_hold_nothing_else(cli: Any, model: Path, tmp_path: Path, key: str) -> None:
    np.savez(tmp_path / "in.npz", indices=np.zeros(4, np.int64), **{key: np.zeros((2, 3), np.float32)})
    assert cli("run", model, "--input", tmp_path / "in.npz").status != 0
