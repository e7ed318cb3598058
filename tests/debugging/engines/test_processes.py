"""Engines in processes of their own, with a stand-in for OpenVINO that has the faults of devices."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.processes import has_ended, started, wait_for

import ovir
from ovir import opset13 as ops
from ovir.debugging.device_queries import execute
from ovir.debugging.engines.process import (
    EngineDiedError,
    EngineError,
    EngineMissingError,
    EngineProcess,
    UnsupportedError,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent.parent
STAND_IN = Path(__file__).parent / "stand_in"


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{STAND_IN}:{ROOT}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    x = ops.parameter([2, 3], "f32", name="x")
    ovir.save_model(ovir.Model([ops.tanh(x), ops.abs(x)], [x]), tmp_path / "model.xml")
    return tmp_path / "model.xml"


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


@pytest.mark.parametrize(
    ("element_type", "array"),
    [
        ("bf16", np.array([[1.5, -2]])),
        ("f8e4m3", np.array([[1.5, -2, 3]])),
        ("u4", np.array([[1, 15, 7]])),
        ("i4", np.array([[-8, 7, 1]])),
        ("boolean", np.array([[True, False]])),
        ("i64", np.array([[2**60, -1]])),
        ("string", np.array([["a", "é"], ["", "long text"]])),
        ("f32", np.zeros((0, 3))),
        ("string", np.zeros((0, 3), "U1")),
        ("f64", np.array(3.5)),
    ],
    ids=str,
)
def test_tensors_of_every_type_arrive(element_type: str, array: np.ndarray, tmp_path: Path) -> None:
    kind = ovir.ElementType.parse(element_type)
    given = array.astype(kind.to_dtype())
    x = ops.parameter(list(given.shape), element_type, name="x")
    ovir.save_model(ovir.Model([ops.result(x)], [x]), tmp_path / "model.xml")
    with EngineProcess("openvino:CPU") as engine:
        (found,) = engine.load(tmp_path / "model.xml", types=[kind]).infer([given])
    assert found.dtype == given.dtype
    assert found.shape == given.shape
    assert found.tolist() == given.tolist()


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
        assert caller.stdout is not None
        worker = int(caller.stdout.readline())
        if not fault:
            assert caller.stdout.readline() == "loaded\n"
        caller.kill()
    wait_for(lambda: has_ended(worker))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVIR_TEST_FAULT", "missing:")
    with EngineProcess("openvino:CPU") as engine, pytest.raises(EngineMissingError) as caught:
        engine.open()
    assert str(caught.value) == (
        "error[OVIR904] openvino:CPU needs the package openvino, which is missing\n"
        '  hint: install it with `pip install "ovir[openvino]"`'
    )


@pytest.mark.parametrize("device", ["GPU", "GPU.0", "HETERO:NPU,CPU", "MULTI:CPU,XPU", "cpu", "hetero:CPU"])
def test_a_device_that_does_not_exist(device: str) -> None:
    with EngineProcess(f"openvino:{device}") as engine, pytest.raises(EngineMissingError) as caught:
        engine.open()
    hint = {"cpu": "; did you mean CPU?", "hetero:CPU": "; did you mean HETERO:CPU?"}.get(device, "")
    assert caught.value.diagnostic.message == f"openvino:{device}: no device {device}; available: CPU{hint}"


@pytest.mark.parametrize("device", ["", "CPU", "AUTO", "AUTO:CPU", "HETERO:CPU", "BATCH:CPU(4)", "AUTO:-CPU"])
def test_devices_that_pass_models_on(device: str) -> None:
    with EngineProcess(f"openvino:{device}") as engine:
        engine.open()


def test_an_unknown_engine() -> None:
    with pytest.raises(ovir.InputError, match="unknown engine 'tensorrt': expected openvino:DEVICE, onnxruntime"):
        EngineProcess("tensorrt")


FUNCTIONS = """
def twice(path, arrays):
    return [arrays[0] * 2, arrays[0] > 0, arrays[0].astype("complex64")][: int(len(path) and arrays[0].max())]

def declines(path, arrays):
    raise NotImplementedError("no such layers")
"""


def test_a_python_function_is_an_engine(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "engine.py"
    file.write_text(FUNCTIONS)
    with EngineProcess(f"python:{file}:twice") as engine:
        model = engine.load(path)
        assert engine.description == f"twice of {file}"
        doubled, positive = model.infer([np.float32([2, -1])])
        assert (doubled.tolist(), positive.tolist(), positive.dtype) == ([4, -2], [True, False], bool)
        with pytest.raises(UnsupportedError, match="NumPy has no element type complex64"):
            model.infer([np.float32([3])])
        assert not model.is_lost
    assert model.is_lost
    with EngineProcess(f"python:{file}:declines") as engine, pytest.raises(UnsupportedError, match="no such layers"):
        engine.load(path).infer([X])
    for name, message in (
        ("twice", "expected python:FILE.py:FUNCTION"),
        (f"{file}:thrice", "defines no function thrice"),
    ):
        with EngineProcess(f"python:{name}") as engine, pytest.raises(EngineMissingError, match=message):
            engine.open()


def test_a_state_starts_anew_unless_it_is_kept(tmp_path: Path) -> None:
    x = ops.parameter([2], "f32", name="x")
    total = ops.add(ops.read_value(np.zeros(2, np.float32), "v", "f32", [2]), x)
    ovir.save_model(ovir.Model([ops.abs(total)], [ops.assign(total, "v")], [x]), tmp_path / "model.xml")
    with EngineProcess("openvino:CPU") as engine:
        model = engine.load(tmp_path / "model.xml")
        keeps = [False, True, True, False]
        sums = [model.infer([np.float32([1, 2])], keeps_state=kept)[0].tolist() for kept in keeps]
        assert sums == [[1, 2], [2, 4], [3, 6], [1, 2]]


def test_times_are_those_of_the_second_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ovir.read_model(path)
    with pytest.raises(EngineError, match="cannot show its executed graph: not implemented"):
        execute(model, "openvino:CPU")
    monkeypatch.setenv("OVIR_TEST_FAULT", "executes:")
    found = execute(model, "openvino:CPU", [X], config={"INFERENCE_PRECISION_HINT": "f32"})
    assert {item.by.microseconds for item in found.of(model).values()} == {2}
