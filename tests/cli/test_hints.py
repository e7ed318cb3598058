"""Hints name what is at fault, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net, unary_net

import ovir
from ovir import opset13 as ops

# --------------------------------------------------------------------------- runs with random inputs, and edits


def hints(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("  hint: ")]


def _written(folder: Path) -> None:
    """Write models whose layers fail for values of constants, of inputs, and for sizes."""

    def gathered(name: str, size: str, indices: Callable[[Net], tuple[int, int]]) -> None:
        net = Net()
        where = indices(net)
        net.result(net.op("GatherElements", net.parameter("data", size), where, opset=6, axis=0))
        net.write(folder, name)

    def computed(net: Net) -> tuple[int, int]:
        where = net.op("Multiply", net.parameter("x", "2", "i64"), net.const(np.array([1000, 1000])))
        return net.op("Add", where, net.const(np.array([77, 77])))

    def converted(net: Net) -> tuple[int, int]:
        return net.op("Convert", net.const(np.array([9.0], np.float32), name="where"), destination_type="i64")

    gathered("constant", "4", lambda net: net.const(np.array([9]), name="where"))
    gathered("chosen", "?", lambda net: net.const(np.array([90]), name="where"))
    gathered("converted", "4", converted)
    gathered("random", "4", computed)
    net = Net()
    inverse = net.op("Inverse", net.const(np.zeros((3, 3), np.float32), name="where"), opset=14, adjoint="false")
    net.result(net.op("Add", net.parameter("x", "3,3"), inverse, auto_broadcast="numpy"))
    net.write(folder, "inverted")
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2,3"), net.parameter("y", "2,3"), auto_broadcast="numpy"))
    net.write(folder, "sum")
    net = Net()
    net.result(net.op("Reshape", net.parameter("x", "4,4"), net.const([2, 8], name="sizes"), special_zero="false"))
    net.write(folder, "reshape")


OF_CONSTANT = "the values are not from the random inputs, but from layer 0 'where' (Const, opset1)"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("run constant.xml", [OF_CONSTANT]),
        ("run converted.xml", [OF_CONSTANT]),
        ("run inverted.xml", [OF_CONSTANT]),
        ("run chosen.xml", [OF_CONSTANT, "sizes were chosen for this run; give others as in: --shape data=1"]),
        ("run random.xml", ["the inputs were random, which may be the cause: give real ones with --input NAME=file.npy"]),
        ("edit sum.xml --shape x=2,4 --dry-run", ["this follows from --shape x=2,4; --adapt lets constants follow --shape; nothing is written"]),
        ("edit sum.xml --shape x=2,4 --shape y=2,5 --dry-run", ["this follows from the edits together; --adapt lets constants follow --shape; nothing is written"]),
        ("edit reshape.xml --shape x=3,4 --dry-run", ["this follows from --shape x=3,4; the layer takes sizes or axes from layer 1 'sizes' (Const, opset1); --adapt lets constants follow --shape; nothing is written"]),
    ],
)  # fmt: skip
def test_what_may_be_at_fault(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, expected: list[str]
) -> None:
    _written(tmp_path)
    monkeypatch.chdir(tmp_path)
    failed = cli(*command.split())
    assert failed.status == 1
    assert hints(failed.err) == [f"hint: {text}" for text in expected]


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


# --------------------------------------------------------------------------- what to type


DIGITS = "examples/xml/digits.xml"


@pytest.mark.slow
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
