"""Gather and GatherElements against OpenVINO's CPU plugin, on random shapes, axes, types and indices."""

import pytest

import ovir

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("kind", ["Gather", "GatherElements"])
def test_same_as_openvino(kind: str) -> None:
    found = ovir.fuzz("openvino:CPU", ops=f"^{kind}-", types=["f32", "f16", "i32", "i64", "u8", "i8"], models=60)
    assert found.findings == []
    assert found.compared > 30
