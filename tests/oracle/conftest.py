"""OpenVINO in a process of its own, as ovir starts it: odd input takes the whole process down."""

from collections.abc import Iterator

import pytest

from ovir.debugging.device_properties import PROPERTIES
from ovir.debugging.engines.process import EngineProcess

EXACT = {row.name: row.exact for row in PROPERTIES if "CPU" in row.devices and row.is_shown}


@pytest.fixture(scope="session")
def openvino() -> Iterator[EngineProcess]:
    """Run models in one process, which starts again after a crash."""
    pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
    with EngineProcess("openvino:CPU", EXACT, timeout=240) as engine:
        yield engine
