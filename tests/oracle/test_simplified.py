"""Simplified models compute in OpenVINO what the models before compute there, call after call."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.simplifiable import around, loop, mixed, unassigned, vad

import ovir
from ovir import opset16 as ops

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
WORKER = Path(__file__).with_name("openvino_worker.py")
CALLS = 3
MODELS: dict[str, Callable[[], ovir.Model]] = {
    "vad": vad,
    "once": lambda: loop(1),
    "stops": lambda: loop(5, again=False),
    "never": lambda: loop(0),
    "unassigned": unassigned,
    "mixed": mixed,
    "equal": lambda: around(lambda t: ops.add(ops.exp(t), ops.exp(t))),
    "pads": lambda: around(lambda t: ops.pad(t, [0] * 3, [0] * 3, "edge")),
    "slices": lambda: around(lambda t: ops.slice(t, [0], [9], [1], [1])),
    "reshapes": lambda: around(lambda t: ops.reshape(ops.reshape(t, [0, 0, 2, 2], True), [0, -1], True)),
}


NOT_RUN = {"never", "unassigned"}
"""Originals that OpenVINO cannot run: the CPU plugin divides by zero, or wants an Assign."""


@pytest.mark.parametrize("rate", [16000, 8000])
def test_openvino_agrees(rate: int, tmp_path: Path) -> None:
    expected = {}
    for name in MODELS if rate == 16000 else ["vad"]:
        before, after = MODELS[name](), MODELS[name]()
        given = {"sr": np.int64(rate)} if name == "vad" else {}
        for key, value in given.items():
            after.fix_input(key, value)
        assert after.simplify().changes, name
        calls = [ovir.random_inputs(before, call) | given for call in range(CALLS)]
        request = ovir.compile_model(before).create_infer_request()
        expected[name] = [[array.copy() for array in request.infer(inputs).values()] for inputs in calls]
        for model, kind in ((after, "after"), *([] if name in NOT_RUN else [(before, "before")])):
            folder = tmp_path / f"{name}_{kind}"
            folder.mkdir()
            ovir.save_model(model, folder / "model.xml")
            for call, inputs in enumerate(calls):
                np.savez(
                    folder / f"inputs{call}.npz", **{port.any_name: inputs[port.any_name] for port in model.inputs}
                )
    subprocess.run([sys.executable, str(WORKER), str(tmp_path)], check=True, timeout=240)
    for folder in tmp_path.iterdir():
        for call, arrays in enumerate(expected[folder.name.rpartition("_")[0]]):
            found = np.load(folder / f"expected{call}.npz")
            for key, array in zip(found.files, arrays, strict=True):
                np.testing.assert_allclose(found[key], array, rtol=1e-5, atol=1e-6, err_msg=folder.name)
