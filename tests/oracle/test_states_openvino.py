"""Models whose states have become inputs, and states again, give the same results in OpenVINO, call after call."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
CALLS = 5


def _lstm(folder: Path) -> list[dict[str, np.ndarray]]:
    """Write a cell whose two states hand on what it has seen."""
    rng = np.random.default_rng(2)
    x = ops.parameter([1, 3], "f32", name="x", tensor_names={"x"})
    h, c = (ops.read_value(np.zeros((1, 4), np.float32), name) for name in ("h", "c"))
    weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 3), (16, 4), (16,)))
    cell = ops.lstm_cell(x, h, c, *weights, hidden_size=4)
    y = ops.relu(cell.output(0), name="y", tensor_names={"y"})
    sinks = [ops.assign(cell.output(0), "h"), ops.assign(cell.output(1), "c")]
    ovir.save_model(ovir.Model([y], [x], "lstm", sinks=sinks), folder / "stateful.xml")
    return [{"x": rng.standard_normal((1, 3)).astype(np.float32)} for _ in range(CALLS)]


def _decoder(folder: Path) -> list[dict[str, np.ndarray]]:
    """Write a decoder with a cache of keys and values, which beam_idx orders."""
    worker = Path(__file__).with_name("decoder_worker.py")
    subprocess.run([sys.executable, str(worker), str(folder), "f32"], check=True, timeout=240)
    for end in (".xml", ".bin"):
        (folder / f"model{end}").rename(folder / f"stateful{end}")
    rng = np.random.default_rng(4)
    calls, past = [], 0
    for number in range(CALLS):
        length = 4 if number == 0 else 1
        ids = rng.integers(0, 96, (1, length))
        positions = np.arange(past, past + length)[np.newaxis]
        calls.append({"input_ids": ids, "position_ids": positions, "beam_idx": np.zeros(1, np.int32)})
        past += length
    return calls


@pytest.mark.parametrize("make", [_lstm, _decoder])
def test_the_same_results_in_openvino(make: object, tmp_path: Path) -> None:
    calls = make(tmp_path)  # type: ignore[operator]
    model = ovir.read_model(tmp_path / "stateful.xml")
    edit = model.states_to_inputs()
    assert edit.verdict.startswith(f"proven: the results agree for {CALLS} calls")
    ovir.save_model(model, tmp_path / "open.xml")
    assert model.inputs_to_states().verdict.startswith(f"proven: the results agree for {CALLS} calls")
    ovir.save_model(model, tmp_path / "back.xml")
    np.savez(tmp_path / "calls.npz", **{f"{i}:{name}": a for i, feeds in enumerate(calls) for name, a in feeds.items()})
    pairs = json.dumps(dict(edit.relation["states"].values()))
    worker = Path(__file__).with_name("states_worker.py")
    subprocess.run([sys.executable, str(worker), str(tmp_path), pairs], check=True, timeout=240)
    found = np.load(tmp_path / "outputs.npz")
    request = ovir.compile_model(tmp_path / "stateful.xml").create_infer_request()
    expected = [request.infer(feeds)[0] for feeds in calls]
    assert np.abs(expected[0][:, -1:] - expected[-1][:, -1:]).max() > 0.01
    for key, array in found.items():
        np.testing.assert_allclose(array, expected[int(key.split(":")[1])], rtol=1e-3, atol=1e-4, err_msg=key)
    assert {key.split(":")[0] for key in found} >= {"stateful", "open", "back"}
