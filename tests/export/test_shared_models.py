"""Real models are exported, or refused for a reason that ovir knows: none meets an error of its own (OVIR999)."""

from __future__ import annotations

from pathlib import Path

import pytest

import ovir
from ovir.diagnostics.codes import INTERNAL

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the export and its engine need {package}")

from ovir.export.session import OnnxRuntimeSession  # noqa: E402
from ovir.export.support import OLDEST_OPSET, default_opset  # noqa: E402  (it imports these packages)

SHARED = Path(__file__).parents[3] / "shared"
FILES = sorted(path for kind in ("models", "irs") for path in SHARED.glob(f"{kind}/*/model.xml"))
pytestmark = pytest.mark.skipif(not FILES, reason=f"there are no models in {SHARED}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_model_is_exported_or_refused(path: Path, tmp_path: Path) -> None:
    weights = next((p for name in ("model", "model.synth") if (p := path.with_name(f"{name}.bin")).exists()), None)
    try:
        model = ovir.read_model(path, weights)
    except ovir.OvirError:
        pytest.skip("the file is refused")
    codes: list[str] = []
    for opset in (OLDEST_OPSET, default_opset()):
        try:
            exported = ovir.export_onnx(model, tmp_path / "model.onnx", opset)
        except ovir.ExportError as error:
            codes += [found.code for found in error.diagnostics]
        else:
            OnnxRuntimeSession(exported, threads=1)
    assert INTERNAL.id not in codes
