"""Models with another batch compute in OpenVINO what ovir computes, which other tests compare with single calls."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.batches import PINNED

import ovir

WORKER = Path(__file__).with_name("openvino_worker.py")

pytestmark = pytest.mark.oracle


def test_openvino_agrees_on_models_with_another_batch(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    expected = {}
    for make in PINNED:
        for number in (3, -1):
            model = make(1)
            model.set_batch(number)
            feeds = list(ovir.random_inputs(make(3), 1).values())
            folder = tmp_path / f"{make.__name__}{number}"
            folder.mkdir()
            ovir.save_model(model, folder / "model.xml")
            np.savez(folder / "inputs.npz", *feeds)
            expected[folder] = list(ovir.compile_model(model)(feeds).values())
    subprocess.run([sys.executable, str(WORKER), str(tmp_path)], check=True, capture_output=True, timeout=300)
    for folder, arrays in expected.items():
        found = np.load(folder / "expected.npz")
        for own, key in zip(arrays, found.files, strict=True):
            np.testing.assert_allclose(found[key], own, rtol=1e-4, atol=1e-5, err_msg=folder.name)
