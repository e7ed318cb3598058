"""``ovir export``: the file, the comparison, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the command needs {package}")

from ovir.debugging import export_check  # noqa: E402  (it imports these packages)
from ovir.debugging.export_check import verify_export  # noqa: E402


def softmax(folder: Path, shape: str = "2,4") -> Path:
    net = Net()
    net.result(net.op("SoftMax", net.parameter("x", shape), opset=8, axis="-1", names=["scores"]))
    return net.write(folder)


def counter(folder: Path) -> Path:
    """Return a model that adds its input to a variable."""
    net = Net()
    state = net.op("ReadValue", net.const(np.zeros(2, np.float32)), opset=6, variable_id="sum", variable_type="f32", variable_shape="2")  # fmt: skip
    total = net.op("Add", net.parameter("x", "2"), state, names=["total"])
    net.op("Assign", total, opset=6, outputs=0, variable_id="sum")
    net.result(total)
    return net.write(folder)


def test_the_export_is_compared(cli: Any, tmp_path: Path) -> None:
    result = cli("export", softmax(tmp_path), "-o", tmp_path / "model.onnx", "--verify", "--opset", "21", "--seed", "3")
    assert result.status == 0
    lines = result.out.splitlines()
    assert lines[0].endswith("model.onnx: opset 21, 1 node, checked by onnx.checker")
    assert "compared with onnxruntime: within tolerance" in lines
    assert lines[-1].split()[:2] == ["scores", "f32"]


def test_json(cli: Any, tmp_path: Path) -> None:
    result = cli("export", counter(tmp_path), "-o", tmp_path / "model.onnx", "--verify", "--json")
    found = json.loads(result.out)
    assert found["variables"] == {"sum": {"input": "sum", "output": "sum/next"}}
    assert [(o["name"], o["call"], o["within"]) for o in found["verification"]["outputs"]] == [
        ("total", 0, True),
        ("sum/next", 0, True),
        ("total", 1, True),
        ("sum/next", 1, True),
    ]


def test_a_difference_gives_status_1(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = export_check.OnnxRuntimeSession.run
    monkeypatch.setattr(export_check.OnnxRuntimeSession, "run", lambda *given: [a * 1.01 for a in run(*given)])
    result = cli("export", softmax(tmp_path), "-o", tmp_path / "model.onnx", "--verify")
    assert result.status == 1
    assert "compared with onnxruntime: beyond tolerance" in result.out


def test_the_reference_stands_in_with_a_warning(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(exported: Any) -> Any:
        from ovir.diagnostics.codes import ENGINE
        from ovir.diagnostics.diagnostic import diagnose

        raise ovir.RunError(diagnose(ENGINE, "there is no kernel"))

    monkeypatch.setattr(export_check, "OnnxRuntimeSession", refuse)
    result = cli("export", softmax(tmp_path), "-o", tmp_path / "model.onnx", "--verify")
    assert result.status == 0
    assert "warning: onnxruntime does not run the export: there is no kernel" in result.err
    assert "compared with onnx.reference: within tolerance" in result.out


def test_variables_that_grow_are_compared_once(tmp_path: Path) -> None:
    net = Net()
    state = net.op("ReadValue", net.const(np.zeros((0, 2), np.float32)), opset=6, variable_id="v", variable_type="f32", variable_shape="?,2")  # fmt: skip
    longer = net.op("Concat", state, net.parameter("x", "1,2"), axis="0", names=["longer"])
    net.op("Assign", longer, opset=6, outputs=0, variable_id="v")
    net.result(longer)
    model = ovir.read_model(net.write(tmp_path))
    exported = ovir.export_onnx(model, tmp_path / "model.onnx")
    found = verify_export(model, exported, [np.ones((1, 2), np.float32)])
    assert [(o.name, o.call) for o in found.outputs] == [("longer", 0), ("v/next", 0)]
    assert found.within


def test_a_variable_that_nothing_uses_is_an_input_of_the_comparison(tmp_path: Path) -> None:
    net = Net()
    net.op("ReadValue", net.const(np.zeros(2, np.float32)), opset=6, variable_id="v", variable_type="f32", variable_shape="2")  # fmt: skip
    net.result(net.op("ReLU", net.parameter("x", "2"), names=["y"]))
    model = ovir.read_model(net.write(tmp_path))
    exported = ovir.export_onnx(model, tmp_path / "model.onnx")
    assert exported.state_inputs == {"v": "v"}
    found = verify_export(model, exported, [np.ones(2, np.float32)])
    assert [(o.name, o.call, o.found.within) for o in found.outputs] == [("y", 0, True), ("y", 1, True)]


def test_operators_of_onnxruntime(cli: Any, tmp_path: Path) -> None:
    codes = ops.convert(ops.constant(np.arange(4 * 32, dtype=np.uint8).reshape(4, 32)), "f32")
    x = ops.parameter([1, 32], "f32", name="x")
    model = ovir.Model([ops.matmul(x, ops.multiply(codes, np.float32(0.5)), False, True)], [x])
    ovir.save_model(model, tmp_path / "model.xml")
    result = cli("export", tmp_path / "model.xml", "-o", tmp_path / "model.onnx", "--contrib", "--verify")
    assert result.status == 0
    assert "compared with onnxruntime: within tolerance" in result.out
    assert b"MatMulNBits" in (tmp_path / "model.onnx").read_bytes()
