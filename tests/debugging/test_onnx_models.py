"""``ovir.compare`` and ``ovir.bisect`` with an ONNX model: its tensors are matched by name, or else by position."""

from pathlib import Path

import numpy as np
import pytest
from support.comparing import X, small_net

import ovir
from ovir import opset13 as ops

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the comparison with ONNX models needs {package}")

pytestmark = pytest.mark.slow


def exported(folder: Path, model: ovir.Model) -> str:
    ovir.export_onnx(model, folder / "model.onnx")
    return f"onnx:{folder / 'model.onnx'}"


def difference(inputs: str, outputs: str, kind: str = "f32", size: int = 2) -> ovir.Model:
    """Return a model of two inputs, with outputs of ``a - b``, ``2a - b`` and so on; names are single letters."""
    ports = {name: ops.parameter([size], kind, name=name, tensor_names=name) for name in inputs}
    a, b = (ops.convert(ports[name], "f32") for name in sorted(inputs))
    made = [
        ops.subtract(ops.multiply(a, np.float32(i + 1)), b, name=f"layer{i}", tensor_names=name)
        for i, name in enumerate(outputs)
    ]
    return ovir.Model(made, list(ports.values()))


FEEDS = {"a": np.float32([1, 2]), "b": np.float32([-3, 4])}


def test_the_layer_that_differs_is_named(tmp_path: Path) -> None:
    path = exported(tmp_path, small_net())
    same = ovir.compare(small_net(), path, inputs=[X])
    assert same
    assert [layer.name for layer in same.layers] == ["product", "tanh", "soft", "rows"]
    assert (same.mode, same.not_compared, same.diagnostics) == ("cumulative", [], [])
    assert same.against.startswith(f"{tmp_path / 'model.onnx'} in onnxruntime ")
    changed = small_net(scale=1.01)
    found = ovir.compare(changed, path, inputs=[X])
    assert [layer.name for layer in found.layers if not layer.within] == ["product", "tanh", "soft"]
    assert [suspect.name for suspect in ovir.bisect(changed, path, inputs=[X]).suspects] == ["product"]


def test_inputs_are_matched_by_name_and_converted(tmp_path: Path) -> None:
    path = exported(tmp_path, difference("ba", "p"))
    assert ovir.compare(difference("ab", "p"), path, inputs=FEEDS)
    assert ovir.compare(difference("ab", "p", "i32"), path, inputs={k: v.astype(np.int32) for k, v in FEEDS.items()})
    with pytest.raises(ovir.RunError, match="Got invalid dimensions for input: "):
        ovir.compare(difference("ab", "p", size=3), path)
    with pytest.raises(ovir.InputError, match="its input 'a' is not an input of the IR, whose inputs are 'b', 'c'"):
        ovir.compare(difference("bc", "p"), path)
    x = ops.parameter([2], "f32", name="x")
    total = ops.add(ops.read_value(x, "v"), x, name="total")
    stateful = ovir.Model([total], [x], sinks=[ops.assign(total, "v")])
    with pytest.raises(ovir.InputError, match="`ovir edit --states-to-inputs` makes inputs of the variables"):
        ovir.compare(stateful, exported(tmp_path, stateful))
    renamed = small_net()
    renamed.inputs[0].own_names, renamed.inputs[0].layer.name = frozenset("y"), "y"
    assert ovir.compare(renamed, exported(tmp_path, small_net()), inputs=[X]), "the only inputs go by position"


def test_outputs_go_by_position_only_if_no_name_matches(tmp_path: Path) -> None:
    path = exported(tmp_path, difference("ab", "pqrstuv"))
    found = ovir.compare(difference("ab", "hijklmn"), path, inputs=FEEDS)
    assert found
    assert (len(found.outputs), found.diagnostics) == (7, [])
    assert {item.reason for item in found.not_compared} == {"the ONNX model has no tensor of its name"}
    found = ovir.compare(difference("ab", "hijklmv"), path, inputs=FEEDS)
    assert found
    assert [output.name for output in found.outputs] == ["v"]
    (warning,) = found.diagnostics
    assert warning.message == (
        "6 outputs not compared, because the ONNX model has no tensor of this name: 'h', 'i', 'j', 'k', 'l'"
    )


def test_without_the_package_onnx_only_outputs_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = exported(tmp_path, small_net())
    (tmp_path / "onnx.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = ovir.compare(small_net(), path, inputs=[X])
    assert found
    assert [item.name for item in (*found.outputs, *found.layers)] == ["soft", "rows"] * 2
    assert [d.message for d in found.diagnostics] == [
        "only outputs are compared: tensors between layers need the package onnx, which is missing"
    ]
