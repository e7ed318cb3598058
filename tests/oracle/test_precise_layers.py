"""OpenVINO's CPU plugin computes the layers in f32 that ovir has marked, with INFERENCE_PRECISION_HINT=bf16."""

from typing import Any

import numpy as np
import pytest
from support.small_transformers import data, encoder

import ovir
from ovir import opset13 as ops
from ovir.debugging.engines.process import EngineProcess
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
def report() -> dict[str, Any]:
    model = encoder(3)
    models = {"plain": model, "marked": with_f32_layers(model, MARKED)}
    for name in REPLACED:
        models |= {name: replaced(name), f"{name}_marked": with_f32_layers(replaced(name), ["kept"])}
    found: dict[str, Any] = {name: {} for name in models}
    for kind in ("bf16", "f32"):
        with EngineProcess("openvino:CPU", {"INFERENCE_PRECISION_HINT": kind}) as engine:
            for name, each in models.items():
                with engine.compiled(each) as loaded:
                    if loaded.precision != kind:
                        pytest.skip("this CPU does not compute in bf16")
                    found[name][kind] = loaded.infer([data()])[0]
                    executed = loaded.executed().of(each)
                    precisions = {layer.name: str(item.by.precision) for layer, item in executed.items()}
                    found[name].setdefault("precisions", precisions)
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
        name: np.sqrt(np.mean((entry["bf16"] - entry["f32"]) ** 2))
        for name, entry in report.items()
        if name in ("plain", "marked")
    }
    assert errors["marked"] < errors["plain"]
    np.testing.assert_allclose(report["marked"]["f32"], report["plain"]["f32"], rtol=1e-3, atol=1e-4)
