"""Models to compare, and a stand-in for OpenVINO that has the faults of devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let ``openvino`` be the stand-in; ``device.setenv("OVIR_TEST_FAULT", ...)`` gives it a fault."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests' / 'engines' / 'stand_in'}:{ROOT}")
    return monkeypatch


def small_net(*, scale: float = 1.0, axis: int = 1) -> ovir.Model:
    """x [?,4] -> product -> tanh -> soft; soft and the position of its largest element are outputs."""
    x = ops.parameter([-1, 4], "f32", name="x", tensor_names="x")
    weights = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    product = ops.matmul(x, ops.constant(weights * scale, name="weights"), name="product", tensor_names="product")
    tanh = ops.tanh(product, name="tanh", tensor_names="tanh")
    soft = ops.softmax(tanh, axis, name="soft", tensor_names="soft")
    rows = ops.shape_of(tanh, name="rows", tensor_names="rows")
    return ovir.Model([soft, rows], [x], "small")
