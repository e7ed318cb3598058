"""``ovir bisect`` on the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.command import Cli, require_row

import ovir


def _net(folder: Path, name: str, factor: float) -> Path:
    net = Net()
    x = net.op("ReLU", net.parameter("x", "2,3"), name="relu")
    product = net.op("Multiply", x, net.const(np.float32([[1, 2, factor]]), name="factors"), name="product")
    net.result(net.op("Sigmoid", product, name="sigmoid"), "out")
    return net.write(folder, name)


def _quantized(folder: Path, name: str, high: float) -> None:
    net = Net()
    ends = [net.const(np.float32([end])) for end in (0, high, 0, high)]
    net.result(net.op("FakeQuantize", net.parameter("x", "2,3"), *ends, name="quantized", levels=256))
    net.write(folder, name)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Go to a folder with two models, which differ in the last column, recordings of the first, and others."""
    monkeypatch.chdir(tmp_path)
    x, product = np.ones((2, 3), np.float32), np.float32([[1, 2, 3]] * 2)
    out = 1 / (1 + np.exp(-product))
    np.savez("wrong_product.npz", x=x, relu=x, product=product * 0)
    np.savez("wrong_relu.npz", x=x, relu=x * 0, product=product)
    np.savez("product.npz", x=x, product=product)
    np.savez("infinite.npz", x=x, product=np.where(product == 3, np.inf, product))
    np.savez("nan.npz", x=x, product=np.where(product == 3, np.nan, product))
    np.savez("wrong_relu_right_out.npz", x=x, relu=x * 2, out=out)
    for folder, values in (("agreeing", (-1, -2)), ("differing", (-1, -2, 3))):
        Path(folder).mkdir()
        for number, value in enumerate(values):
            np.savez(f"{folder}/{number}.npz", x=np.full((2, 3), value, np.float32))
    for name, high in (("quantized", 1.0), ("requantized", 1.2)):
        _quantized(tmp_path, name, high)
    return _net(tmp_path, "one", 3), _net(tmp_path, "other", 4)


RESULTS = """
bisect one.xml other.xml -o part.xml => 1 => first layer beyond tolerance: Multiply 'product' (id 3) && smallest part that differs: 1 layer: product
bisect one.xml one.xml -o part.xml => 0 => within tolerance && part.xml is not written, because nothing differs
bisect one.xml other.xml --rtol 1 => 0 => within tolerance
bisect one.xml --against other.xml => 1 => first layer beyond tolerance: Multiply 'product' (id 3)
bisect one.xml --against wrong_product.npz => 1 => first layer beyond tolerance: Multiply 'product' && !error && !warning
bisect one.xml --against wrong_relu.npz => 1 => first layer beyond tolerance: ReLU 'relu' && !agree again
bisect one.xml --against infinite.npz => 1 => nonfinite && 2 NaN or Inf
bisect one.xml --against nan.npz => 1 => nonfinite && 2 NaN or Inf
bisect one.xml --against nan.npz --json => 1 => "lone": 2
bisect one.xml --against product.npz => 0 => all tensors that were compared are within tolerance; the others are unknown && 3 layers (1 compared, 2 not)
bisect one.xml --against wrong_relu_right_out.npz => 1 => all tensors that were compared agree again && (2 compared, 1 not)
bisect one.xml other.xml --inputs differing => 1 => 4 runs, 3 sets of inputs && set 3 of the inputs, counted from 1, is the first for which tensors differ
bisect one.xml other.xml --inputs agreeing => 0 => within tolerance
bisect one.xml other.xml --samples 4 => 1 => 2 runs, 4 sets of inputs && set 1 of the inputs
bisect quantized.xml requantized.xml => 1 => the model has 1 FakeQuantize layer and the other model has 1 FakeQuantize layer, so values may && --metric sqnr_db=20 judges quantized models as a whole
bisect quantized.xml requantized.xml --metric sqnr_db=20 => 0 => !FakeQuantize layer
"""


@pytest.mark.parametrize("row", RESULTS.strip().splitlines())
@pytest.mark.usefixtures("models")
def test_what_is_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    require_row(cli, monkeypatch, row)
    if Path("part.xml").exists():
        names = [layer.name for layer in ovir.read_model("part.xml").layers]
        assert names == ["relu", "factors", "product", "product/sink_port_0"]
    assert Path("part.xml").exists() == ("other.xml -o" in row)


def test_an_onnx_model_with_few_names_leaves_suspects(tmp_path: Path, cli: Any) -> None:
    """Only the tensors 'relu' and 'out' have their names in the ONNX model, which was made of the other model."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    one, other = _net(tmp_path, "one", 3), _net(tmp_path, "other", 4)
    assert cli("export", other, "-o", tmp_path / "other.onnx").status == 0
    exported = onnx.load(tmp_path / "other.onnx")
    for node in exported.graph.node:
        for names in (node.input, node.output):
            names[:] = ["unnamed" if name == "product" else name for name in names]
    del exported.graph.value_info[:]
    onnx.save(exported, tmp_path / "other.onnx")
    done = cli("bisect", one, "--against", f"onnx:{tmp_path / 'other.onnx'}", "-o", tmp_path / "part.xml")
    assert done.status == 1
    assert "3 layers (2 compared, 1 not)" in done.out
    assert "at least one of 2 layers is at fault, between 'relu' and 'sigmoid'" in done.out
    assert "not compared: the ONNX model has no tensor of its name" in done.out
    assert "part of all suspects, which differs: 2 layers: product, sigmoid" in done.out
    part = [tmp_path / name for name in ("part.xml", "part_actual.npz", "part_input.npz")]
    assert cli("compare", part[0], "--against", part[1], "--input", part[2]).status == 1


@pytest.mark.oracle
@pytest.mark.slow
def test_a_second_model_on_a_device(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    pytest.importorskip("openvino")
    device = ("--against", "openvino:CPU", "--config", "INFERENCE_PRECISION_HINT=f32")
    done = cli("bisect", *models, *device, "-o", tmp_path / "part.xml")
    assert done.status == 1
    assert "first layer beyond tolerance: Multiply 'product' (id 3)" in done.out
    endings = (".xml", ".bin", "_input.npz", "_expected.npz", "_actual.npz", "_other.xml", "_other.bin")
    assert {path.name for path in tmp_path.glob("part*")} == {f"part{ending}" for ending in endings}
    again = cli(
        "compare", tmp_path / "part.xml", tmp_path / "part_other.xml", *device, "--input", tmp_path / "part_input.npz"
    )
    assert again.status == 1
    assert cli("bisect", models[0], models[0], *device).status == 0
