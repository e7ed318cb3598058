"""The program of the processes of engines, which runs in the process of the test here."""

import importlib.util
import io
import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import ELEMENT_TYPES
from ovir.debugging.engines import process
from ovir.debugging.engines.child import Worker
from ovir.debugging.engines.process import EngineError, EngineMissingError, EngineProcess, UnsupportedError
from ovir.fuzzing.making import random_array


class Inside(io.BytesIO):
    """A stand-in for a process: a stream for requests, which writes the answer to ``stdout`` when it is flushed."""

    def __init__(self, *_: Any, **options: Any) -> None:
        super().__init__()
        self.stdin, self.stdout, self._worker = self, io.BytesIO(), Worker()

    def flush(self) -> None:
        answer = self._worker.answer(*pickle.loads(self.getvalue()))
        for stream, content in ((self, b""), (self.stdout, pickle.dumps(answer, 5))):
            stream.seek(0)
            stream.truncate()
            stream.write(content)
        self.stdout.seek(0)

    @contextmanager
    def killed_after(self, limit: float | None) -> Iterator[threading.Event]:
        yield threading.Event()

    def end(self) -> None:
        self.close()


@pytest.fixture(scope="module")
def _stand_in() -> ModuleType:
    spec = importlib.util.spec_from_file_location("openvino", Path(__file__).parent / "stand_in/openvino/__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def openvino(_stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "openvino", _stand_in)
    monkeypatch.setattr(process, "ChildProcess", Inside)
    return _stand_in


X = np.float32([[1, -2, 3], [-4, 5, -6]])


def test_several_models_are_loaded_at_a_time(path: Path, tmp_path: Path) -> None:
    x = ops.parameter([3], "f32", name="x")
    ovir.save_model(ovir.Model([ops.negative(x)], [x]), tmp_path / "other.xml")
    with EngineProcess("openvino:") as engine:
        first, second = engine.load(path), engine.load(tmp_path / "other.xml")
        assert engine.description == "OpenVINO 1.2.3 on CPU"
        assert second.infer([X[0]])[0].tolist() == [-1, 2, -3]
        assert first.infer([X])[1].tolist() == np.abs(X).tolist()
        first.unload()
        assert second.infer([X[1]])[0].tolist() == [4, -5, 6]
        with pytest.raises(EngineError, match="cannot run the model: 'NoneType' object has no attribute"):
            first.infer([X])


class Names(str):
    """A value of a property that prints its type, as enumerations of OpenVINO do."""

    def __str__(self) -> str:
        return f"Names.{super().__str__()}"


def test_properties_are_told_as_text(path: Path, openvino: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"PERF_COUNT": True, "CACHE": False, "MODE": Names("FAST"), "NUM": 3, "EXECUTION_DEVICES": ["(CPU)"]}
    for name, value in given.items():
        monkeypatch.setitem(openvino.PROPERTIES, name, value)
    told = {"PERF_COUNT": "YES", "CACHE": "NO", "MODE": "FAST", "NUM": "3", "INFERENCE_PRECISION_HINT": "f32"}
    with EngineProcess("openvino:CPU") as engine:
        loaded = engine.load(path)
        assert loaded.facts == {"precision": "f32", "devices": []}
        assert loaded.properties([*told, "ABSENT"]) == told
        loaded.renew()
        assert loaded.infer([X])[1].tolist() == np.abs(X).tolist()


def test_a_virtual_device_tells_properties_of_the_first_behind_it(
    path: Path, openvino: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(openvino.PROPERTIES, "EXECUTION_DEVICES", ["(GPU.0)", "CPU"])
    monkeypatch.setitem(openvino.PROPERTIES, "ONE", "1")
    of_devices = {"CPU": {"NUM": 8, "ONE": 2}, "GPU.0": {"NUM": 5}}
    with EngineProcess("openvino:AUTO:CPU", {"PERF_COUNT": "YES", "ONE": "1"}) as engine:
        loaded = engine.load(path)
        assert loaded.facts["devices"] == ["GPU.0", "CPU"]
        monkeypatch.setattr(openvino.Core, "get_property", lambda self, device, name: of_devices[device][name])
        monkeypatch.setattr("ovir.debugging.engines.child._UNKNOWN", (RuntimeError, KeyError))
        assert loaded.properties(["NUM", "ONE", "PERF_COUNT", "ABSENT"]) == {
            "NUM": "5",
            "ONE": "1",
            "PERF_COUNT": "YES",
        }
        monkeypatch.delitem(openvino.PROPERTIES, "EXECUTION_DEVICES")
        assert loaded.properties(["ONE", "NUM"]) == {"ONE": "1"}


def test_properties_that_a_device_refuses() -> None:
    for config, hint in (({"PERF_COUNTS": "YES"}, "did you mean PERF_COUNT?"), ({"PERF_COUNT": "YES", "Z": "1"}, "Z")):
        listed = ", ".join(f"{key}={value}" for key, value in config.items())
        with EngineProcess("openvino:CPU", config) as engine, pytest.raises(EngineMissingError) as caught:
            engine.open()
        message = caught.value.diagnostic.message
        assert message.startswith(f"openvino:CPU: CPU refuses the properties {listed}: Unsupported property ")
        assert message.endswith(hint)


def test_releases_without_newer_modules(openvino: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ModuleType("openvino")
    before.runtime = openvino
    monkeypatch.setitem(sys.modules, "openvino", before)
    monkeypatch.setitem(sys.modules, "openvino.runtime", openvino)
    monkeypatch.delattr(openvino, "opset13")
    with EngineProcess("openvino:CPU", {"ABSENT": "1"}) as engine:
        engine.open()
        assert engine.description == "OpenVINO 1.2.3 on CPU"


@pytest.mark.parametrize("size", [0, 3])
def test_tensors_of_the_first_release_share_no_memory(
    size: int, tmp_path: Path, openvino: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = openvino.Tensor
    monkeypatch.setattr(openvino, "get_version", lambda: "2022.1.0-7019")
    monkeypatch.setattr(openvino, "Tensor", lambda kind, shape: tensor(kind, shape))
    x = ops.parameter([size], "f32")
    ovir.save_model(ovir.Model([ops.negative(x)], [x]), tmp_path / "model.xml")
    with EngineProcess("openvino:CPU") as engine:
        assert engine.load(tmp_path / "model.xml").infer([X[0, :size]])[0].tolist() == (-X[0, :size]).tolist()


def test_extensions_are_added_once_to_models_that_need_them(
    path: Path, openvino: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[str] = []
    monkeypatch.setattr(openvino.Core, "add_extension", lambda self, path: added.append(path), raising=False)
    package = ModuleType("openvino_tokenizers")
    package._ext_path = "tokenizers.so"
    package.__spec__ = importlib.util.spec_from_loader("openvino_tokenizers", None)
    monkeypatch.setitem(sys.modules, "openvino_tokenizers", package)
    with EngineProcess("openvino:CPU") as engine:
        engine.load(path)
        assert added == []
        path.write_text(path.read_text().replace("<layers>", '<!-- version="extension" --><layers>'))
        engine.load(path)
        engine.load(path)
        assert added == ["tokenizers.so"]
    with EngineProcess("openvino:CPU") as engine:
        monkeypatch.setattr("ovir.debugging.engines.child.find_spec", lambda name: None)
        engine.load(path)
        assert added == ["tokenizers.so"]


def test_a_device_is_asked_with_the_weights(path: Path, openvino: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino.Core, "read_model", lambda self, *files: files, raising=False)
    monkeypatch.setattr(openvino.Core, "query_model", lambda self, files, *rest: [*files, *rest], raising=False)
    with EngineProcess("openvino:CPU", {"PERF_COUNT": "YES"}) as engine:
        assert engine.query(path) == [str(path), "", "CPU", {"PERF_COUNT": "YES"}]
        assert engine.query(path, "w.bin")[1] == "w.bin"


def test_a_package_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise ImportError("libtbb.so is missing")

    monkeypatch.setitem(sys.modules, "openvino", Broken("openvino"))
    with EngineProcess("openvino:CPU") as engine, pytest.raises(EngineMissingError) as caught:
        engine.open()
    text = "openvino:CPU: the package cannot be imported: libtbb.so is missing"
    assert caught.value.diagnostic.message == text
    monkeypatch.setitem(sys.modules, "openvino", None)
    with EngineProcess("openvino:CPU") as engine, pytest.raises(EngineMissingError) as caught:
        engine.open()
    assert str(caught.value) == (
        "error[OVIR904] openvino:CPU needs the package openvino, which is missing\n"
        '  hint: install it with `pip install "ovir[openvino]"`'
    )


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), ()])
@pytest.mark.parametrize("kind", [kind for kind in ELEMENT_TYPES if not kind.is_dynamic], ids=str)
def test_tensors_of_every_type_arrive(kind: ovir.ElementType, shape: tuple[int, ...], tmp_path: Path) -> None:
    given = random_array(np.random.default_rng(0), kind, shape)
    x = ops.parameter(list(shape), kind, name="x")
    ovir.save_model(ovir.Model([ops.result(x)], [x]), tmp_path / "model.xml")
    with EngineProcess("openvino:CPU") as engine:
        (found,) = engine.load(tmp_path / "model.xml", types=[kind]).infer([given])
    assert (found.dtype, found.shape, repr(found.tolist())) == (given.dtype, given.shape, repr(given.tolist()))


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


def test_a_state_starts_anew_unless_it_is_kept(tmp_path: Path) -> None:
    x = ops.parameter([2], "f32", name="x")
    total = ops.add(ops.read_value(np.zeros(2, np.float32), "v", "f32", [2]), x)
    ovir.save_model(ovir.Model([ops.abs(total)], [ops.assign(total, "v")], [x]), tmp_path / "model.xml")
    with EngineProcess("openvino:CPU") as engine:
        model = engine.load(tmp_path / "model.xml")
        keeps = [False, True, True, False]
        sums = [model.infer([np.float32([1, 2])], keeps_state=kept)[0].tolist() for kept in keeps]
        assert sums == [[1, 2], [2, 4], [3, 6], [1, 2]]
        assert model.infer([np.float32([1, 2])])[0].tolist() == [1, 2]


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


def test_onnxruntime_computes_tensors_that_are_asked_for(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="tensors of ONNX models need onnx")
    pytest.importorskip("onnxruntime", reason="the engine needs onnxruntime")
    helper, numbers = onnx.helper, onnx.numpy_helper.from_array(np.float32([1, 2]), "c")
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xyz"]
    nodes = [helper.make_node("Add", ["x", "c"], ["h"]), helper.make_node("Neg", ["h"], ["z"])]
    nodes.append(helper.make_node("Abs", ["h"], ["y"]))
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numbers])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    with EngineProcess("onnxruntime") as engine:
        loaded = engine.load(tmp_path / "m.onnx", ["h", "absent", "z"])
        assert loaded.facts == {"inputs": [("x", "f32")], "outputs": ["y", "z"], "tensors": ["h", "z"]}
        (h,) = loaded.infer([np.float32([3, -4])], outputs=["h"])
        assert h.tolist() == [4, -2]
        plain = engine.load(tmp_path / "m.onnx")
        plain.renew()
        assert plain.facts["tensors"] == []
        assert [array.tolist() for array in plain.infer([np.float32([3, -4])])] == [[4, 2], [-4, 2]]
        with pytest.raises(EngineError, match=r"zip\(\) argument 2 is shorter"):
            plain.infer([])
    with EngineProcess("onnxruntime:XPU") as engine, pytest.raises(EngineMissingError) as caught:
        engine.open()
    assert "no execution provider XPUExecutionProvider; available: " in str(caught.value)
    assert "CPUExecutionProvider" in str(caught.value)
