"""Engines in processes of their own, with a stand-in for OpenVINO that has the faults of devices."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.processes import has_ended, started, wait_for

import ovir
from ovir.debugging.device_queries import execute
from ovir.debugging.engines.process import (
    EngineDiedError,
    EngineError,
    EngineProcess,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent.parent
STAND_IN = Path(__file__).parent / "stand_in"


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{STAND_IN}:{ROOT}")


X = np.float32([[1, -2, 3], [-4, 5, -6]])


def test_a_model_runs_in_the_other_process(path: Path) -> None:
    with EngineProcess("openvino:CPU") as engine:
        model = engine.load(path)
        assert engine.description == "OpenVINO 1.2.3 on CPU"
        assert model.facts == {"precision": "f32", "devices": []}
        for factor in (1, 2):
            tanh, absolute = model.infer([X * factor])
            np.testing.assert_allclose(tanh, np.tanh(X * factor), rtol=1e-6)
            np.testing.assert_array_equal(absolute, np.abs(X * factor))
        model.unload()
        assert engine.starts == 1


def test_a_process_that_dies_is_reported_and_started_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVIR_TEST_FAULT", "die:Tanh")
    with EngineProcess("openvino:CPU") as engine:
        for starts in (1, 2):
            with pytest.raises(EngineDiedError) as caught:
                engine.load(path)
            assert str(caught.value) == (
                "error[OVIR805] OpenVINO 1.2.3 on CPU: cannot compile the model: the process ended with signal SIGKILL\n"
                "  hint: its last message: the device says goodbye"
            )
            assert engine.starts == starts


def test_a_process_that_hangs_is_stopped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EngineProcess("openvino:CPU", timeout=60) as engine:
        engine.open()
    monkeypatch.setenv("OVIR_TEST_FAULT", "hang:Tanh")
    with EngineProcess("openvino:CPU") as engine:
        engine.open()
        engine.timeout = 0.2
        start = time.monotonic()
        with pytest.raises(EngineDiedError, match=r"the process took longer than 0\.2 s and was stopped"):
            engine.load(path)
        assert time.monotonic() - start < 30


_CALLER = """
import sys
from ovir.debugging.engines.process import EngineProcess

engine = EngineProcess("openvino:CPU")
engine.open()
print(engine._process.pid, flush=True)
engine.load(sys.argv[1])
print("loaded", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("fault", ["", "hang:Tanh"])
def test_the_process_ends_when_its_caller_is_killed(path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVIR_TEST_FAULT", fault)
    arguments = [sys.executable, "-c", _CALLER, str(path)]
    with started(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as caller:
        worker = int(caller.stdout.readline())
        if not fault:
            assert caller.stdout.readline() == "loaded\n"
        caller.kill()
    wait_for(lambda: has_ended(worker))


def test_an_unknown_engine() -> None:
    with pytest.raises(ovir.InputError, match="unknown engine 'tensorrt': expected openvino:DEVICE, onnxruntime"):
        EngineProcess("tensorrt")


def test_times_are_those_of_the_second_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ovir.read_model(path)
    with pytest.raises(EngineError, match="cannot show its executed graph: not implemented"):
        execute(model, "openvino:CPU")
    monkeypatch.setenv("OVIR_TEST_FAULT", "executes:")
    found = execute(model, "openvino:CPU", [X], config={"INFERENCE_PRECISION_HINT": "f32"})
    assert {item.by.microseconds for item in found.of(model).values()} == {2}
