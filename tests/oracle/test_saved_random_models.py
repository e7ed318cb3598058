"""OpenVINO reads saved random models with the names, types and shapes that they have, and computes the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from support.random_models import models

import ovir

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
COUNT = int(os.environ.get("OVIR_RANDOM_MODELS", "40"))


def _models() -> list[ovir.Model]:
    found = []
    options = settings(
        max_examples=COUNT,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    options(given(models())(lambda model: found.append(model)))()
    return found


def test_openvino_reads_and_computes_the_same(tmp_path: Path) -> None:
    expected = {}
    for number, model in enumerate(_models()):
        feeds = dict(ovir.random_inputs(model, seed=number))
        try:
            results = list(ovir.compile_model(model)(feeds).values())
        except ovir.RunError:
            continue  # for these inputs an operation is not defined
        folder = tmp_path / f"{number:04}"
        folder.mkdir()
        ovir.save_model(model, folder / "saved.xml")
        np.savez(folder / "inputs.npz", **feeds)
        expected[folder] = model, results
    assert len(expected) >= COUNT // 2
    worker = Path(__file__).with_name("save_worker.py")
    subprocess.run([sys.executable, str(worker), str(tmp_path)], check=True, timeout=60 + COUNT)
    for folder, (model, results) in expected.items():
        report = json.loads((folder / "report.json").read_text())["saved"]
        ports = [[sorted(port.names), port.layer.name] for port in (*model.inputs, *model.outputs)]
        assert [[names, name] for names, _, _, name in report["model"][0]] == ports
        if isinstance(report["results"], str):
            continue  # the CPU plugin does not run this model
        for (dtype, values), array in zip(report["results"], results, strict=True):
            if array.dtype.isbuiltin != 1:
                continue  # NumPy lacks the type, and OpenVINO returns its bits
            assert dtype == str(array.dtype)
            np.testing.assert_allclose(np.array(values, array.dtype).reshape(array.shape), array, rtol=1e-3, atol=1e-4)
