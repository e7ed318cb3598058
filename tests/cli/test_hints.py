"""Hints name what is at fault, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net, unary_net

import ovir
from ovir import opset13 as ops


def hints(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  hint: ")]


# --------------------------------------------------------------------------- checks


def no_op_that_fails(net: Net) -> tuple[int, int]:
    """A Reshape that its ports call a copy, of data that it cannot take."""
    x = net.parameter("x", "2,3")
    return net.op("Reshape", x, net.const([2, 3], name="sizes"), special_zero="false")


def test_a_layer_with_an_error_gets_no_advice() -> None:
    net = Net()
    net.result(no_op_that_fails(net))
    text, weights = net.declared_xml(), bytes(net.blob)
    assert [d.code for d in ovir.check(text, weights)] == ["OVIR702"]
    found = ovir.check(text, np.int64([2, 4]).tobytes())
    assert [(d.code, str(d.severity)) for d in found] == [("OVIR401", "error")]


def test_a_shape_that_is_not_read_is_not_unknown() -> None:
    net = unary_net("ReLU", "...")
    assert "OVIR707" in {d.code for d in ovir.check(net.xml(), b"")}
    found = ovir.check(net.xml().replace('shape="..."', 'shape="two"'), b"")
    assert [d.code for d in found] == ["OVIR302"]


# --------------------------------------------------------------------------- exports


def quantized(layers: int) -> Net:
    net = Net()
    x = net.op("MatMul", net.parameter("x", "4,8"), net.const(np.ones((8, 4), np.float32)))
    for _ in range(layers):
        low, high = net.const(np.float32(-8)), net.const(np.float32(8))
        x = net.op("FakeQuantize", x, low, high, low, high, levels=256, auto_broadcast="numpy", name="rounded")
    net.result(x)
    return net


@pytest.mark.parametrize("layers", [0, 1])
def test_what_rounding_does_not_explain_is_no_rounding(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: int
) -> None:
    pytest.importorskip("onnxruntime", reason="the command needs onnxruntime")
    pytest.importorskip("onnx_ir", reason="the command needs onnx_ir")
    from ovir.debugging import export_check

    path = quantized(layers).write(tmp_path)
    arguments = "export", path, "-o", tmp_path / "model.onnx", "--verify", "--opset", "21"
    assert "rounding" not in cli(*arguments).err
    run: Callable[..., Any] = export_check.OnnxRuntimeSession.run
    monkeypatch.setattr(export_check.OnnxRuntimeSession, "run", lambda *given: [array + 1 for array in run(*given)])
    failed = cli(*arguments)
    assert failed.status == 1
    assert "rounding" not in failed.err


# --------------------------------------------------------------------------- many inputs


@pytest.mark.slow
@pytest.mark.usefixtures("shared_workers")
@pytest.mark.parametrize("kind", ["png", "npy"])
def test_sizes_that_fit_are_said_if_all_inputs_fail(cli: Any, tmp_path: Path, kind: str) -> None:
    """Anchors of images of 320 x 320 fit no image of another size."""
    x = ops.parameter([-1, 3, -1, -1], "f32", name="images")
    cells = ops.reshape(ops.avg_pool(x, [8, 8], [0, 0], [0, 0], [8, 8], False), [0, 3, -1], True)
    ovir.save_model(ovir.Model([ops.add(cells, np.ones((1, 1, 1600), np.float32))], [x], "yolo"), tmp_path / "m.xml")
    folder = tmp_path / "inputs"
    folder.mkdir()
    for number in range(2):
        if kind == "png":
            pytest.importorskip("PIL.Image").new("RGB", (640 + number, 480)).save(folder / f"{number}.png")
        else:
            np.save(folder / f"{number}.npy", np.ones((1, 3, 480, 640 + 8 * number), np.float32))
    failed = cli("run", tmp_path / "m.xml", "--inputs", folder, "--output", tmp_path / "out")
    assert failed.status == 1
    (hint,) = hints(failed.err)
    shape = hint.rpartition(" ")[2]
    assert hint.startswith("hint: the model takes other sizes, as in: --shape images=1,3,")
    if kind == "png":
        assert shape == "images=1,3,320,320"
        done = cli("run", tmp_path / "m.xml", "--inputs", folder, "--output", tmp_path / "new", "--shape", shape)
        assert (done.status, hints(done.err)) == (0, [])
