"""Models whose states have become inputs, and states again, give the same results in OpenVINO, call after call."""

from collections.abc import Callable

import numpy as np
import pytest

import ovir
from benchmarks.real_models import Weights, decoder, decoder_inputs
from ovir import opset13 as ops
from ovir.debugging.engines.process import EngineProcess

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
CALLS = 5
Inputs = dict[str, np.ndarray]


def _lstm() -> tuple[ovir.Model, list[Inputs]]:
    """Return a cell whose two states hand on what it has seen, and inputs of calls in a row."""
    rng = np.random.default_rng(2)
    x = ops.parameter([1, 3], "f32", name="x", tensor_names={"x"})
    h, c = (ops.read_value(np.zeros((1, 4), np.float32), name) for name in ("h", "c"))
    weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 3), (16, 4), (16,)))
    cell = ops.lstm_cell(x, h, c, *weights, hidden_size=4)
    y = ops.relu(cell.output(0), name="y", tensor_names={"y"})
    sinks = [ops.assign(cell.output(0), "h"), ops.assign(cell.output(1), "c")]
    calls = [{"x": rng.standard_normal((1, 3)).astype(np.float32)} for _ in range(CALLS)]
    return ovir.Model([y], [x], "lstm", sinks=sinks), calls


def _decoder() -> tuple[ovir.Model, list[Inputs]]:
    """Return a decoder with a cache of keys and values, which beam_idx orders."""
    model, _ = decoder(Weights("f32"), width=128, wide=256, layers=2, heads=8, groups=2, vocabulary=96)
    tokens = np.random.default_rng(4).integers(0, 96, (1, 3 + CALLS))
    return model, [
        decoder_inputs(tokens[:, :4]),
        *(decoder_inputs(tokens[:, i : i + 1], i) for i in range(4, 3 + CALLS)),
    ]


@pytest.mark.parametrize("make", [_lstm, _decoder])
def test_the_same_results_in_openvino(
    make: Callable[[], tuple[ovir.Model, list[Inputs]]], openvino: EngineProcess
) -> None:
    model, calls = make()
    stateful = model.clone()
    edit = model.states_to_inputs()
    assert edit.verdict.startswith(f"proven: the results agree for {CALLS} calls")
    opened = model.clone()
    assert model.inputs_to_states().verdict.startswith(f"proven: the results agree for {CALLS} calls")
    request = ovir.compile_model(stateful).create_infer_request()
    expected = [request.infer(feeds)[0].copy() for feeds in calls]
    assert np.abs(expected[0][:, -1:] - expected[-1][:, -1:]).max() > 0.01
    pairs = dict(edit.relation["states"].values())
    held = {}
    for port in opened.inputs:
        if port.any_name in pairs:
            sizes = [dim.length if dim.is_static else int(axis == 0) for axis, dim in enumerate(port.shape)]
            held[port.any_name] = np.zeros(sizes, np.float32)
    names = [port.any_name for port in opened.outputs]
    for each, states in ((stateful, {}), (model, {}), (opened, held)):
        with openvino.compiled(each) as loaded:
            for number, feeds in enumerate(calls):
                inputs = [(feeds | states)[port.any_name] for port in each.inputs]
                found = loaded.infer(inputs, keeps_state=number > 0)
                np.testing.assert_allclose(found[0], expected[number], rtol=1e-3, atol=1e-4)
                states = {past: found[names.index(pairs[past])] for past in states}
