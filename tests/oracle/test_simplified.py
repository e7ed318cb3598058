"""Simplified models compute in OpenVINO what the models before compute there, call after call."""

from collections.abc import Callable

import numpy as np
import pytest
from support.simplifiable import around, loop, mixed, unassigned, vad

import ovir
from ovir import opset16 as ops
from ovir.debugging.engines.process import EngineProcess

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
CALLS = 3
MODELS: dict[str, Callable[[], ovir.Model]] = {
    "vad": vad,
    "once": lambda: loop(1),
    "stops": lambda: loop(5, again=False),
    "never": lambda: loop(0),
    "unassigned": unassigned,
    "mixed": mixed,
    "equal": lambda: around(lambda t: ops.add(ops.exp(t), ops.exp(t))),
    "pads": lambda: around(lambda t: ops.pad(t, [0] * 3, [0] * 3, "edge")),
    "slices": lambda: around(lambda t: ops.slice(t, [0], [9], [1], [1])),
    "reshapes": lambda: around(lambda t: ops.reshape(ops.reshape(t, [0, 0, 2, 2], True), [0, -1], True)),
}


NOT_RUN = {"never", "unassigned"}
"""Originals that OpenVINO cannot run: the CPU plugin divides by zero, or wants an Assign."""


@pytest.mark.parametrize(("name", "rate"), [("vad", 8000), *((name, 16000) for name in MODELS)])
def test_openvino_agrees(name: str, rate: int, openvino: EngineProcess) -> None:
    before, after = MODELS[name](), MODELS[name]()
    given = {"sr": np.int64(rate)} if name == "vad" else {}
    for key, value in given.items():
        after.fix_input(key, value)
    assert after.simplify().changes
    calls = [ovir.random_inputs(before, call) | given for call in range(CALLS)]
    request = ovir.compile_model(before).create_infer_request()
    expected = [[array.copy() for array in request.infer(inputs).values()] for inputs in calls]
    for model in (after, *([] if name in NOT_RUN else [before])):
        with openvino.compiled(model) as loaded:
            for call, inputs in enumerate(calls):
                found = loaded.infer([inputs[port.any_name] for port in model.inputs], keeps_state=call > 0)
                for array, own in zip(found, expected[call], strict=True):
                    np.testing.assert_allclose(array, own, rtol=1e-5, atol=1e-6)
