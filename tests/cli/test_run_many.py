"""``ovir run --inputs``: every input has exactly one correct result, whatever happens meanwhile."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.command import Cli
from support.processes import PATIENCE, started, wait_for

from ovir.io.result_folder import NAME
from ovir.io.tensor_files import load_npz
from ovir.ops.base import registry
from ovir.system.processes import ChildProcess

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_workers")]

COUNT = 50
LAYERS = 4


def _write_model(folder: Path, *, gated: bool = False) -> Path:
    """Write x [?,64] -> products with a constant, each with Tanh -> Gate, if asked for -> Tanh."""
    net = Net()
    x = net.parameter("x", "?,64")
    weights = net.const(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) / 8, name="weights")
    for _ in range(LAYERS):
        x = net.op("Tanh", net.op("MatMul", x, weights))
    if gated:
        x = net.op("Gate", x)
    net.result(net.op("Tanh", x, name="last"), "out")
    return net.write(folder)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return _write_model(tmp_path)


GATE = """
import os, time
import ovir

@ovir.register("Gate", version="opset1")
class Gate(ovir.Operator):
    pure = False
    calls = 0

    def infer(self, x):
        return x

    def run(self, x):
        Gate.calls += 1
        while Gate.calls > 8 and not os.path.exists(OPEN):
            time.sleep(0.001)
        return x.copy()
"""
PASSED = 16
"""The inputs that two workers finish before both wait at the gate."""


@pytest.fixture
def gated(tmp_path: Path) -> list[object]:
    """Return a model, with the option for its extension, of which each worker runs eight inputs, and the others only when
    there is a file named ``open``."""
    extension = tmp_path / "gate.py"
    extension.write_text(GATE.replace("OPEN", repr(str(tmp_path / "open"))))
    return [_write_model(tmp_path, gated=True), "--extension", extension]


def _write_inputs(folder: Path, count: int) -> Path:
    for number in range(count):
        path = folder / "in" / str(number % 7) / f"x{number // 7}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, x=np.random.default_rng(number).standard_normal((20, 64)).astype(np.float32))
    return folder / "in"


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / NAME).read_text().splitlines()[1:]]


def _require_all(model: Path, inputs: Path, folder: Path, *, once: bool = True) -> None:
    """Check that each input has one correct result, and nothing else is in the folder."""
    names = {path.relative_to(inputs).as_posix() for path in inputs.rglob("*.npz")}
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {*names, NAME}
    done = Counter(row["input"] for row in _rows(folder) if row["status"] == "done")
    assert set(done) == names
    if once:
        assert set(done.values()) == {1}, "nothing is computed twice"
    weights = np.fromfile(model.with_suffix(".bin"), np.float32).reshape(64, 64)
    for name in names:
        expected = load_npz(inputs / name)["x"]
        for _ in range(LAYERS):
            expected = np.tanh(expected @ weights)
        np.testing.assert_allclose(load_npz(folder / name)["last"], np.tanh(expected), rtol=1e-5, atol=1e-6)


def _start(*arguments: object) -> AbstractContextManager[ChildProcess]:
    command = [sys.executable, "-m", "ovir", "run", *map(str, arguments), "--workers", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return started(command, **pipes)


def _wait_for_rows(folder: Path, count: int) -> None:
    wait_for(lambda: (folder / NAME).exists() and (folder / NAME).read_bytes().count(b"\n") > count)


def _workers(process: int) -> list[int]:
    """Return the processes of the pool, without the one that tracks resources."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


# --------------------------------------------------------------------------- what goes wrong


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_worker_that_dies_loses_nothing(gated: list[object], tmp_path: Path) -> None:
    inputs, folder = _write_inputs(tmp_path, COUNT), tmp_path / "out"
    with _start(*gated, "--inputs", inputs, "--output", folder) as run:
        for rows in (PASSED, 2 * PASSED):
            _wait_for_rows(folder, rows)
            os.kill(_workers(run.pid)[0], signal.SIGKILL)
        (tmp_path / "open").touch()
        out, err = run.communicate(timeout=PATIENCE)
    assert (run.returncode, err) == (0, "")
    assert f"{COUNT} inputs, {COUNT} done, 0 failed" in out
    _require_all(tmp_path / "model.xml", inputs, folder)


@pytest.mark.skipif(os.name != "posix", reason="other systems do not deliver these signals to Python")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_an_interrupted_run_is_resumed(
    gated: list[object], tmp_path: Path, number: signal.Signals, status: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, folder = _write_inputs(tmp_path, COUNT), tmp_path / "out"
    with _start(*gated, "--inputs", inputs, "--output", folder) as run:
        _wait_for_rows(folder, PASSED)
        run.send_signal(number)
        _, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == status
    if number != signal.SIGKILL:
        assert "left; --resume continues" in err
        assert "Traceback" not in err
    kept = len([row for row in _rows(folder) if row["status"] == "done"])
    assert kept == PASSED
    (tmp_path / "open").touch()
    monkeypatch.setattr(registry, "_users", dict(registry._users))
    done = cli("run", *gated, "--inputs", inputs, "--output", folder, "--resume", "--workers", "2")
    assert (done.status, done.err) == (0, "")
    assert f"{COUNT} inputs, {COUNT} done ({kept} of an earlier run), 0 failed" in done.out
    _require_all(tmp_path / "model.xml", inputs, folder)


def test_an_input_that_fails_is_listed_and_run_again(net: Path, tmp_path: Path, cli: Any) -> None:
    inputs, folder = _write_inputs(tmp_path, 10), tmp_path / "out"
    good = np.load(inputs / "0" / "x0.npz")["x"]
    np.savez(inputs / "0" / "x0.npz", x=good[:, :3])
    (inputs / "1" / "x0.npz").write_bytes(b"no archive")
    arguments = ("run", net, "--inputs", inputs, "--output", folder, "--workers", 2)
    done = cli(*arguments)
    assert done.status == 1
    head, *failed = done.out.splitlines()
    assert "10 inputs, 8 done, 2 failed" in head
    assert (
        "failed: 0/x0.npz: error[OVIR901] layer 0 'x' (Parameter, opset1): input 'x' takes shape [?,64], got [20,3]"
        in failed
    )
    assert any(line.startswith("failed: 1/x0.npz: error[OVIR101] ") for line in failed)
    for name in ("0/x0.npz", "1/x0.npz"):
        np.savez(inputs / name, x=good)
    done = cli(*arguments, "--resume", "--json")
    assert done.status == 0
    found = json.loads(done.out)
    assert (found["inputs"], found["done"], found["kept"], found["failed"]) == (10, 10, 8, [])
    _require_all(net, inputs, folder)


# --------------------------------------------------------------------------- what is asked for


def test_a_changed_model_runs_again_and_other_options_are_refused(net: Path, tmp_path: Path, cli: Any) -> None:
    inputs, folder = _write_inputs(tmp_path, 3), tmp_path / "out"
    arguments = ("run", net, "--inputs", inputs, "--output", folder, "--workers", 1)
    assert cli(*arguments).status == 0
    done = cli(*arguments)
    assert (done.status, "--resume continues that run" in done.err) == (2, True)
    done = cli(*arguments, "--resume", "--emulate", "bf16")
    assert (done.status, "--emulate was not given, and is now bf16" in done.err) == (2, True)
    assert "3 of an earlier run" in cli(*arguments, "--resume").out
    weights = net.with_suffix(".bin")
    weights.write_bytes((np.frombuffer(weights.read_bytes(), np.float32) * 2).tobytes())
    assert "3 done, 0 failed" in cli(*arguments, "--resume").out
    _require_all(net, inputs, folder, once=False)


def test_taps_and_batches(net: Path, tmp_path: Path, cli: Any) -> None:
    inputs = _write_inputs(tmp_path, 10)
    assert cli("run", net, "--inputs", inputs, "--output", tmp_path / "a", "--batch", 4, "--workers", 1).status == 0
    _require_all(net, inputs, tmp_path / "a")
    done = cli(
        "run", net, "--inputs", inputs / "0" / "*.npz", "--output", tmp_path / "b", "--tap", "matmul", "--workers", 1
    )
    assert done.status == 0
    assert len([key for key in load_npz(tmp_path / "b" / "x0.npz") if key.startswith("tap:matmul")]) == LAYERS


def test_images_are_prepared_by_workers(tmp_path: Path, cli: Any) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow, of the extra `image`")
    net = Net()
    net.result(net.op("Relu", net.parameter("image", "1,3,8,8"), name="relu"))
    model = net.write(tmp_path)
    (tmp_path / "in").mkdir()
    for number in (10, 20):
        image.fromarray(np.full((16, 16, 3), number, np.uint8)).save(tmp_path / "in" / f"{number}.png")
    arguments = ("run", model, "--inputs", tmp_path / "in", "--output", tmp_path / "out", "--workers", 1)
    assert cli(*arguments, "--mean", "4", "--scale", "2").status == 0
    assert set(load_npz(tmp_path / "out" / "20.png.npz")["relu"].ravel()) == {8.0}
    done = cli(*arguments, "--mean", "5", "--resume")
    assert (done.status, "--mean was [4.0], and is now [5.0]" in done.err) == (2, True)


def test_dask(net: Path, tmp_path: Path, cli: Any) -> None:
    pytest.importorskip("distributed", reason="needs distributed, of the extra `dask`")
    inputs, folder = _write_inputs(tmp_path, 30), tmp_path / "out"
    assert cli("run", net, "--inputs", inputs, "--output", folder, "--dask", "local", "--workers", 2).status == 0
    _require_all(net, inputs, folder)
