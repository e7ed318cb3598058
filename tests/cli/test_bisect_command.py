"""``ovir bisect`` on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir


def _net(folder: Path, name: str, factor: float) -> Path:
    net = Net()
    x = net.op("ReLU", net.parameter("x", "2,3"), name="relu")
    product = net.op("Multiply", x, net.const(np.float32([[1, 2, factor]]), name="factors"), name="product")
    net.result(net.op("Sigmoid", product, name="sigmoid"), "out")
    return net.write(folder, name)


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    return _net(tmp_path, "one", 3), _net(tmp_path, "other", 4)


def test_the_table_and_the_part(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    done = cli("bisect", *models, "-o", tmp_path / "part.xml")
    assert done.status == 1
    assert "first layer beyond tolerance: Multiply 'product' (id 3)" in done.out
    assert "smallest part that differs: 1 layer: product" in done.out
    assert [layer.name for layer in ovir.read_model(tmp_path / "part.xml").layers] == [
        *("relu", "factors", "product", "product/sink_port_0")
    ]


def test_models_that_agree(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    done = cli("bisect", models[0], models[0], "-o", tmp_path / "part.xml")
    assert (done.status, "within tolerance" in done.out) == (0, True)
    assert "part.xml is not written, because nothing differs" in done.err
    assert not (tmp_path / "part.xml").exists()
    assert cli("bisect", *models, "--rtol", 1).status == 0


def test_json(models: tuple[Path, Path], cli: Any) -> None:
    done = cli("bisect", *models, "--json", "--input", "x=[[1,2,3],[4,5,6]]")
    found = json.loads(done.out)
    assert (done.status, found["within"], found["first"]["name"], found["part"]) == (1, False, "product", None)


def test_recorded_tensors(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    recorded = tmp_path / "recorded.npz"
    np.savez(recorded, x=np.ones((2, 3), np.float32), relu=np.ones((2, 3), np.float32), product=np.zeros((2, 3)))
    done = cli("bisect", models[0], "--against", recorded)
    assert "first layer beyond tolerance: Multiply 'product'" in done.out
    assert done.err == ""


def test_tensors_that_were_not_recorded(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    """The recording has the input and the output of the other model, and nothing between them."""
    assert cli("run", models[1], "--record", tmp_path / "all.npz", "--seed", 3).status == 0
    with np.load(tmp_path / "all.npz") as tensors:
        np.savez(tmp_path / "some.npz", **{name: tensors[name] for name in ("x", "sigmoid")})
    arguments = ("bisect", models[0], "--against", tmp_path / "some.npz")
    done = cli(*arguments, "-o", tmp_path / "part.xml")
    assert done.status == 1
    assert "3 layers (1 compared, 2 not)" in done.out
    assert "first tensor that was seen to differ: of Sigmoid 'sigmoid' (id 4)" in done.out
    assert "at least one of 3 layers is at fault, between 'x' and 'sigmoid'" in done.out
    assert "not compared: it was not recorded" in done.out
    assert "first layer" not in done.out
    assert "part of all suspects, which differs: 3 layers: relu, product, sigmoid" in done.out
    part = [tmp_path / name for name in ("part.xml", "part_actual.npz", "part_input.npz")]
    assert cli("compare", part[0], "--against", part[1], "--input", part[2]).status == 1
    found = json.loads(cli(*arguments, "--json").out)
    assert [suspect["name"] for suspect in found["suspects"]] == ["relu", "product", "sigmoid"]
    assert (found["between"], found["first"]["name"]) == (["x"], "sigmoid")
    assert [layer["reason"] for layer in found["not_compared"]] == ["it was not recorded"] * 2


def test_agreement_is_claimed_for_what_was_compared_alone(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    """``relu`` differs and the layers after it do not, but the output was not recorded."""
    recorded = {"x": np.ones((2, 3)), "relu": np.zeros((2, 3)), "product": np.float32([[1, 2, 3]] * 2)}
    np.savez(tmp_path / "recorded.npz", **{name: array.astype(np.float32) for name, array in recorded.items()})
    done = cli("bisect", models[0], "--against", tmp_path / "recorded.npz")
    assert "first layer beyond tolerance: ReLU 'relu'" in done.out
    assert "agree again" not in done.out
    del recorded["relu"]
    np.savez(tmp_path / "recorded.npz", **{name: array.astype(np.float32) for name, array in recorded.items()})
    done = cli("bisect", models[0], "--against", tmp_path / "recorded.npz")
    assert done.status == 0
    assert "all tensors that were compared are within tolerance; the others are unknown" in done.out
    assert "3 layers (1 compared, 2 not)" in done.out


def test_a_second_model_may_be_given_as_the_other_side(models: tuple[Path, Path], cli: Any) -> None:
    done = cli("bisect", models[0], "--against", models[1])
    assert (done.status, "first layer beyond tolerance: Multiply 'product' (id 3)" in done.out) == (1, True)


def test_sets_of_inputs(models: tuple[Path, Path], tmp_path: Path, cli: Any) -> None:
    """The models differ only where the last column is positive."""
    for name, value in (("a", -1), ("b", -2), ("c", 3)):
        np.savez(tmp_path / name, x=np.full((2, 3), value, np.float32))
    done = cli("bisect", *models, "--inputs", tmp_path)
    assert done.status == 1
    assert "4 runs, 3 sets of inputs" in done.out
    assert "set 3 of the inputs, counted from 1, is the first for which tensors differ" in done.out
    (tmp_path / "c.npz").unlink()
    assert cli("bisect", *models, "--inputs", tmp_path).status == 0
    found = json.loads(cli("bisect", *models, "--samples", 4, "--json").out)
    assert (found["sets"], found["searched_set"], found["runs"]) == (4, 0, 2)


def test_tensors_that_were_not_recorded_are_not_said_to_agree(
    models: tuple[Path, Path], tmp_path: Path, cli: Any
) -> None:
    right = 1 / (1 + np.exp(-np.float32([[1, 2, 3]] * 2)))
    x = np.ones((2, 3), np.float32)
    np.savez(tmp_path / "recorded.npz", x=x, relu=x * 2, out=right)
    done = cli("bisect", models[0], "--against", tmp_path / "recorded.npz")
    assert "all tensors that were compared agree again" in done.out
    assert "(2 compared, 1 not)" in done.out


def test_a_quantized_model_that_differs_names_the_metric_that_fits(tmp_path: Path, cli: Any) -> None:
    paths = []
    for name, high in (("one", 1.0), ("other", 1.2)):
        net = Net()
        ends = [net.const(np.float32([end])) for end in (0, high, 0, high)]
        net.result(net.op("FakeQuantize", net.parameter("x", "2,3"), *ends, name="quantized", levels=256))
        paths.append(net.write(tmp_path, name))
    done = cli("bisect", *paths)
    assert "the model has 1 FakeQuantize layer and the other model has 1 FakeQuantize layer, so values may" in done.out
    assert "--metric sqnr_db=20 judges quantized models as a whole" in done.out
    assert "FakeQuantize layer" not in cli("bisect", *paths, "--metric", "sqnr_db=20").out


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
