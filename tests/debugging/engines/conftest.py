from pathlib import Path

import pytest

import ovir
from ovir import opset13 as ops


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a model that computes the tanh and the magnitude of its input."""
    x = ops.parameter([2, 3], "f32", name="x")
    ovir.save_model(ovir.Model([ops.tanh(x), ops.abs(x)], [x]), tmp_path / "model.xml")
    return tmp_path / "model.xml"
