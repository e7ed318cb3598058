"""OpenVINO's CPU plugin computes the layers in f32 that ovir has marked, with INFERENCE_PRECISION_HINT=bf16."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_transformers import data, encoder

import ovir
from ovir import opset13 as ops
from ovir.debugging.f32_layers import with_f32_layers

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
PARTS = ("norm1", "query", "key", "value", "out", "norm2", "up", "gelu", "down")
MARKED = [f"layer1/{part}" for part in PARTS]


REPLACED = ("subtract", "divide")


def replaced(name: str) -> ovir.Model:
    """Return a model with a layer that OpenVINO replaces by others, between two products."""
    x = ops.parameter([1, 8, 32], "f32", name="x")
    weights = np.random.default_rng(1).standard_normal((2, 32, 32)).astype(np.float32) / 6
    y = ops.matmul(x, weights[0], False, False)
    kept = getattr(ops, name)(y, ops.reduce_max(ops.abs(y), [2], True), name="kept")
    return ovir.Model([ops.matmul(kept, weights[1], False, False)], [x])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("precise")
    model = encoder(3)
    ovir.save_model(model, folder / "plain.xml")
    ovir.save_model(with_f32_layers(model, MARKED), folder / "marked.xml")
    for name in REPLACED:
        ovir.save_model(replaced(name), folder / f"{name}.xml")
        ovir.save_model(with_f32_layers(replaced(name), ["kept"]), folder / f"{name}_marked.xml")
    np.savez(folder / "inputs.npz", x=data())
    worker = Path(__file__).parent / "precise_worker.py"
    subprocess.run([sys.executable, worker, folder], check=True)
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    if not found:
        pytest.skip("this CPU does not compute in bf16")
    return found


@pytest.mark.parametrize("part", PARTS)
def test_marked_layers_run_in_f32(report: dict[str, Any], part: str) -> None:
    assert report["plain"]["precisions"][f"layer1/{part}"] == "bf16"
    assert report["marked"]["precisions"][f"layer1/{part}"] == "f32"
    assert report["marked"]["precisions"][f"layer0/{part}"] == "bf16"


@pytest.mark.parametrize("name", REPLACED)
def test_equal_forms_run_in_f32(report: dict[str, Any], name: str) -> None:
    assert report[name]["precisions"]["kept"] == "bf16"
    assert report[f"{name}_marked"]["precisions"]["kept"] == "f32"
    np.testing.assert_allclose(report[f"{name}_marked"]["f32"], report[name]["f32"], rtol=1e-4, atol=1e-5)


def test_the_outputs_come_nearer_to_those_of_f32(report: dict[str, Any]) -> None:
    errors = {
        name: np.sqrt(np.mean((np.array(entry["bf16"]) - np.array(entry["f32"])) ** 2))
        for name, entry in report.items()
        if name in ("plain", "marked")
    }
    assert errors["marked"] < errors["plain"]
    np.testing.assert_allclose(report["marked"]["f32"], report["plain"]["f32"], rtol=1e-3, atol=1e-4)
