"""The example that exports a model runs."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the example needs {package}")

EXAMPLE = Path(__file__).parents[2] / "examples" / "export_to_onnx.py"


def test_onnxruntime_classifies_the_digits_as_ovir_does(tmp_path: Path) -> None:
    assert runpy.run_path(str(EXAMPLE))["main"](tmp_path) == 1.0
    assert (tmp_path / "digits.onnx").stat().st_size > 20_000
