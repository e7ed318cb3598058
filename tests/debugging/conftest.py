"""A device for comparisons: a stand-in for OpenVINO that has the faults of devices."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let ``openvino`` be the stand-in; ``device.setenv("OVIR_TEST_FAULT", ...)`` gives it a fault."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests' / 'debugging' / 'engines' / 'stand_in'}:{ROOT}")
    return monkeypatch
