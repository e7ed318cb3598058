"""`ovir precision`: tables, JSON, the saved model and wrong usage."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_transformers import data, encoder

import ovir
from ovir.inference.layer_weights import weights_of


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    ovir.save_model(encoder(2, factor=300), tmp_path / "model.xml")
    np.save(tmp_path / "x.npy", data())
    return tmp_path / "model.xml"


def test_the_table_names_the_layers_to_keep(cli: Any, planted: Path) -> None:
    result = cli("precision", planted, "--to", "f16", "--input", planted.parent / "x.npy")
    assert result.status == 0
    lines = result.out.splitlines()
    assert lines[2].split() == ["layer1/scores", "MatMul", "inf", "inf", "f32"]
    assert "all in f16: error inf, tolerance 0.01, 1 set of inputs" in lines
    assert lines[-1] == "nncf.IgnoredScope(names=['layer1/scores', 'layer1/scaled'])"


def test_json_and_the_saved_model(cli: Any, planted: Path, tmp_path: Path) -> None:
    out = tmp_path / "mixed.xml"
    result = cli("precision", planted, "--to", "f16", "--samples", 2, "-o", out, "--json")
    assert result.status == 0
    assert "2 layers marked to stay in f32" in result.err
    lost = "warning: OpenVINO's CPU plugin ignores the marks of 'layer1/scores', 'layer1/scaled': attention is computed"
    assert lost in result.err
    document = json.loads(result.out)
    assert (document["to"], document["samples"], document["keep"]) == ("f16", 2, ["layer1/scores", "layer1/scaled"])
    assert [entry["layer"] for entry in document["lost_marks"]] == document["keep"]
    assert {"layer", "id", "type", "error", "own_error", "keep"} == set(document["layers"][0])
    model = ovir.read_model(out)
    assert [layer.name for layer in model.layers if "precise" in layer.rt_info and layer.type != "Const"] == [
        "layer1/scores",
        "layer1/scaled",
    ]


def test_a_model_that_needs_nothing(cli: Any, tmp_path: Path) -> None:
    ovir.save_model(encoder(1), tmp_path / "model.xml")
    result = cli("precision", tmp_path / "model.xml", "--to", "int8")
    assert result.status == 0
    assert "no layer needs f32" in result.out


def test_sets_of_inputs_in_a_folder(cli: Any, planted: Path, tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    for number in range(3):
        np.savez(tmp_path / "sets" / f"{number}.npz", x=data(number))
    result = cli("precision", planted, "--to", "f16", "--inputs", tmp_path / "sets")
    assert result.status == 0
    assert "3 sets of inputs" in result.out


def test_weights_of_4_bits(cli: Any, planted: Path, tmp_path: Path) -> None:
    out = tmp_path / "int4.xml"
    result = cli("precision", planted, "--to", "int4:asym:32", "--tolerance", "0.05", "-o", out)
    assert result.status == 0
    assert "error of the outputs if the layer alone has weights in int4:asym:32:" in result.out
    assert result.err.endswith("of 10 layers in int8, and those of operations other than MatMul in int8\n")
    rows = result.out.partition("if the most sensitive layers have weights in int8:\n")[2].splitlines()
    assert rows[0].split() == ["in", "int8", "error", "weights"]
    assert [row.split()[0] for row in rows[1:7]] == ["0", "1", "2", "4", "8", "10"]
    assert "10 layers in int8: error" in result.out
    stored = {str(weights.stored_type) for weights in weights_of(ovir.read_model(out))}
    assert stored == {"u4", "u8"}
    result = cli("precision", planted, "--to", "int4", "--tolerance", "1e-9", "-o", out)
    assert (result.status, "no choice of layers keeps the outputs within the tolerance" in result.out) == (1, True)
    assert "warning: the outputs of the saved model are beyond the tolerance" in result.err
    result = cli("precision", planted, "--to", "int3")
    assert (result.status, "expected f16, bf16, int8, int4[:sym|asym][:GROUP]" in result.err) == (2, True)
