"""OpenVINO in a process of its own, as ovir starts it: odd input takes the whole process down."""

from collections.abc import Iterator

import pytest

from ovir.debugging.engines.process import EngineProcess

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


@pytest.fixture(scope="module")
def openvino() -> Iterator[EngineProcess]:
    pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
    with EngineProcess("openvino:CPU", EXACT, timeout=240) as engine:
        yield engine
