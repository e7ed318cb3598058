"""`ovir run`: random inputs, types of the model and all that JSON has; transcripts/run.md shows the rest."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net, unary_net

import ovir


def test_random_inputs_are_public(cli: Any, model: Path, tmp_path: Path) -> None:
    read = ovir.read_model(model)
    made = ovir.random_inputs(read, seed=3)
    assert list(made) == ["data", "indices"]
    assert str(read.inputs[0].shape) == "[?,3]"  # as it was
    ovir.compile_model(read)(made)
    saved = tmp_path / "in.npz"
    cli("run", model, "--save-inputs", saved, "--seed", "3")
    with np.load(saved) as arrays:
        np.testing.assert_array_equal(arrays["data"], made["data"])
    np.testing.assert_array_equal(ovir.random_inputs(str(model), 3)["data"], made["data"])
    assert (ovir.random_inputs(model, 4)["data"] != made["data"]).any()


def test_each_random_input_has_a_name_of_its_own() -> None:
    net = Net()
    a, b = (net.op("Parameter", name=name, names=["same"], shape="2", element_type="f32") for name in ("a", "b"))
    net.result(net.op("Add", a, b))
    assert list(ovir.random_inputs(net.model())) == ["a", "b"]


@pytest.mark.parametrize("kind", ["nf4", "u1", "bf16", "f32"])
def test_json_and_tables_name_the_types_of_the_model(kind: str, cli: Any, tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Unsqueeze", net.parameter("x", "2", kind), net.const(np.int64(0))))
    options = "run", net.write(tmp_path), "--seed", 1, "--tap", "x"
    found = json.loads(cli(*options, "--json").out)
    assert [item["type"] for item in (*found["inputs"], *found["outputs"], *found["taps"]["x"])] == [kind] * 3
    rows = [line.split() for line in cli(*options).out.splitlines() if "[" in line]
    assert [row[1] for row in rows] == [kind, kind]


@pytest.mark.parametrize(
    "command", ["bisect", "compare", "eval", "export", "infer", "precision", "reduce", "run", "show", "view"]
)
def test_commands_for_which_types_of_inputs_matter(command: str, cli: Any) -> None:
    assert "--legacy-io" in cli(command, "--help").out


def test_legacy_inputs(cli: Any, tmp_path: Path) -> None:
    path, target = unary_net("ReLU", "2", "f16", version=10).write(tmp_path), tmp_path / "x.onnx"
    for command in ("show", "run"):
        ways = (cli(command, path, "--json", *option).out for option in ([], ["--legacy-io"]))
        assert [json.loads(printed)["inputs"][0]["type"] for printed in ways] == ["f16", "f32"]
    for command in ("compare", "bisect"):
        assert cli(command, path, path, "--legacy-io").status == 0
    onnx = pytest.importorskip("onnx")
    for option, kind in (([], onnx.TensorProto.FLOAT16), (["--legacy-io"], onnx.TensorProto.FLOAT)):
        assert cli("export", path, "-o", target, *option).status == 0
        assert onnx.load(target).graph.input[0].type.tensor_type.elem_type == kind


def test_without_pillow_there_is_a_hint(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    result = cli("run", unary_net("ReLU", "1,3,2,2").write(tmp_path), "--input", "x=photo.jpg")
    assert result.status == 2
    assert "images are read with Pillow, which is not installed" in result.err
    assert 'pip install "ovir[image]"' in result.err


def test_json_has_all_there_is(cli: Any, model: Path, tmp_path: Path) -> None:
    data, indices = np.arange(15, dtype=np.float32).reshape(5, 3), np.array([4, 0, 1, 0], np.int64)
    np.savez(tmp_path / "inputs.npz", data=data, indices=indices)
    result = cli("run", model, "--input", tmp_path / "inputs.npz", "--json", "--tap", "^pro", "--profile")
    document = json.loads(result.out)
    probabilities, rows = document["outputs"]
    assert (rows["name"], rows["shape"], rows["type"], rows["values"]) == (
        "rows",
        [4, 3],
        "f32",
        data[indices].tolist(),
    )
    assert (rows["min"], rows["max"], rows["mean"], rows["nonfinite"]) == (0.0, 14.0, data[indices].mean(), 0)
    assert np.allclose(np.sum(probabilities["values"], axis=1), 1)
    assert list(document["taps"]) == ["product", "probabilities"]
    assert document["taps"]["product"][0]["values"] == data[indices][:, :2].tolist()
    assert [i["random"] for i in document["inputs"]] == [False, False]
    assert {t["type"] for t in document["profile"]["types"]} == {"Gather", "MatMul", "SoftMax"}
    assert len(document["profile"]["layers"]) == 3
