"""`ovir run`: inputs, outputs, taps, JSON, profile."""

import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.builder import Net, unary_net

import ovir
from ovir import opset13 as ops

DATA = np.arange(15, dtype=np.float32).reshape(5, 3)
INDICES = np.array([4, 0, 1, 0], np.int64)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    np.savez(tmp_path / "inputs.npz", data=DATA, indices=INDICES)
    return tmp_path / "inputs.npz"


@pytest.mark.parametrize("form", ["npz", "one by one", "key", "position"])
def test_ways_to_give_inputs(cli: Any, model: Path, inputs: Path, tmp_path: Path, form: str) -> None:
    np.save(tmp_path / "d.npy", DATA)
    given = {
        "npz": [f"{inputs}"],
        "one by one": [f"data={tmp_path / 'd.npy'}", f"indices={inputs}"],
        "key": [f"data={inputs}:data", f"indices={inputs}:indices"],
        "position": [f"0={tmp_path / 'd.npy'}", f"1={inputs}:indices"],
    }[form]
    result = cli("run", model, *(part for text in given for part in ("--input", text)), "--json")
    assert result.status == 0, result.err
    assert json.loads(result.out)["outputs"][1]["values"] == DATA[INDICES].tolist()
    assert "random" not in result.err


def test_json_has_all_there_is(cli: Any, model: Path, inputs: Path) -> None:
    result = cli("run", model, "--input", inputs, "--json", "--tap", "^pro", "--profile")
    document = json.loads(result.out)
    probabilities, rows = document["outputs"]
    assert (rows["name"], rows["shape"], rows["type"]) == ("rows", [4, 3], "f32")
    assert (rows["min"], rows["max"], rows["mean"], rows["nonfinite"]) == (0.0, 14.0, DATA[INDICES].mean(), 0)
    assert np.allclose(np.sum(probabilities["values"], axis=1), 1)
    assert list(document["taps"]) == ["product", "probabilities"]
    assert document["taps"]["product"][0]["values"] == DATA[INDICES][:, :2].tolist()
    assert [i["random"] for i in document["inputs"]] == [False, False]
    assert {t["type"] for t in document["profile"]["types"]} == {"Gather", "MatMul", "SoftMax"}
    assert len(document["profile"]["layers"]) == 3


def test_output_file(cli: Any, model: Path, inputs: Path, tmp_path: Path) -> None:
    target = tmp_path / "result"
    assert cli("run", model, "--input", inputs, "--output", target, "--tap", "product").status == 0
    with np.load(target) as saved:
        assert saved.files == ["probabilities", "rows", "tap:product"]
        np.testing.assert_array_equal(saved["rows"], DATA[INDICES])
        np.testing.assert_array_equal(saved["tap:product"], DATA[INDICES][:, :2])


def test_tables(cli: Any, model: Path, inputs: Path) -> None:
    out = cli("run", model, "--input", inputs, "--tap", "rows", "--profile").out
    assert out.startswith("output         type  shape ")
    assert "12 13 14 0 1 2 ..." in out
    assert "probabilities: the most probable class by row: 1 (0.731), 1 (0.731)" in out
    assert "\ntap " in out
    assert "time in layers" in out


def test_bf16_goes_in_and_out_as_bits(cli: Any, tmp_path: Path) -> None:
    path = unary_net("ReLU", "3", "bf16", name="y").write(tmp_path)
    values = np.array([-1, 0.5, 2], ml_dtypes.bfloat16)
    np.savez(tmp_path / "in.npz", x__bf16=values.view(np.uint16))
    np.save(tmp_path / "in.npy", values)
    for source in (tmp_path / "in.npz", f"x={tmp_path / 'in.npy'}", tmp_path / "in.npy"):
        result = cli("run", path, "--input", source, "--output", tmp_path / "out.npz")
        assert result.status == 0, result.err
        with np.load(tmp_path / "out.npz") as saved:
            np.testing.assert_array_equal(saved["y__bf16"].view(ml_dtypes.bfloat16), [0, 0.5, 2])


def test_some_inputs_given_needs_a_seed_for_the_rest(cli: Any, model: Path, inputs: Path) -> None:
    given = ("--input", f"indices={inputs}:indices", "--shape", "data=5,3")
    refused = cli("run", model, *given)
    assert refused.status == 1
    assert "no value is given for 'data' f32[5,3]" in refused.err
    assert "--seed" in refused.err
    filled = cli("run", model, *given, "--seed", 3)
    assert filled.status == 0
    assert "random input: data f32[5,3]" in filled.err
    assert "random input: indices" not in filled.err


def test_nonfinite_values_are_counted_and_json_stays_json(cli: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.array([-1, 0, 1], np.float32))
    path = unary_net("Log", "3").write(tmp_path)
    text = cli("run", path, "--input", tmp_path / "in.npz", "--json").out
    output = json.loads(text, parse_constant=pytest.fail)["outputs"][0]
    assert output["nonfinite"] == 2
    assert output["values"] == ["nan", "-inf", 0.0]


def test_a_failing_run_says_that_sizes_were_chosen(cli: Any, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "?,?")
    pattern = net.parameter("pattern", "2", "i64")
    net.result(net.op("Reshape", x, net.op("Abs", pattern), special_zero="false"))
    result = cli("run", net.write(tmp_path))
    assert result.status == 1
    assert "Reshape" in result.err
    assert "hint: sizes were chosen for this run; give others as in: --shape x=1,8 --shape pattern=2" in result.err


def test_runtime_warnings_and_strict(cli: Any, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", data=DATA, indices=np.array([0, 99, 0, 0]))
    lax = cli("run", model, "--input", tmp_path / "in.npz")
    assert lax.status == 0
    assert "warning[OVIR803]" in lax.err
    strict = cli("run", model, "--input", tmp_path / "in.npz", "--strict")
    assert strict.status == 1
    assert "error[OVIR803]" in strict.err
    assert strict.out == ""


def test_classes_have_the_names_of_labels(cli: Any, tmp_path: Path) -> None:
    x = ops.parameter([2, 3], np.float32, name="x")
    one = ops.parameter([4], np.float32, name="one")
    path = str(tmp_path / "model.xml")
    ovir.save_model(ovir.Model([ops.relu(x), ops.relu(one)], [x, one]), path)
    (tmp_path / "names.txt").write_text("cat\ndog\nowl\n")
    arguments = ("run", path, "--input", "x=[[1,3,2],[9,8,7]]", "--input", "one=[4,3,2,1]", "--top", 2)
    named = (*arguments, "--labels", tmp_path / "names.txt")
    rows = re.findall(r"^  (\d) +(\d) +(\d) *(\w*)$", cli(*named).out, re.MULTILINE)
    expected = [("0", "1", "3", "dog"), ("0", "2", "2", "owl"), ("1", "0", "9", "cat"), ("1", "1", "8", "dog")]
    assert rows == [*expected, ("0", "0", "4", ""), ("0", "1", "3", "")]
    first, second = json.loads(cli(*named, "--json").out)["outputs"]
    assert first["top"][0] == [{"number": 1, "value": 3.0, "label": "dog"}, {"number": 2, "value": 2.0, "label": "owl"}]
    assert second["top"] == [[{"number": 0, "value": 4.0}, {"number": 1, "value": 3.0}]]
    (tmp_path / "names.txt").write_text("cat\ndog")
    refused = cli(*named)
    assert refused.status == 2
    assert "it has 2 names, which fit no output" in refused.err
    assert "--labels names the classes that --top N shows" in cli(*named[:-4], *named[-2:]).err
