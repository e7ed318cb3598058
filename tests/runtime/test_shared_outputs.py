"""Outputs that belong to the request, fed back to it: what recurrent users do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.core.arrays import Array

Handle = tuple[int, int]
SIZE = 4


def select(net: Net, x: Handle) -> Handle:
    return net.op("Select", net.const(np.eye(SIZE, dtype=bool)), net.op("Roll", x, *ends(net), opset=7), x)


def roll(net: Net, x: Handle) -> Handle:
    return net.op("Roll", x, *ends(net), opset=7)


def ends(net: Net) -> tuple[Handle, Handle]:
    return net.const(np.int64([1, 1])), net.const(np.int64([0, 1]))


def max_pool(net: Net, x: Handle) -> Handle:
    pooled = {"strides": "1", "pads_begin": "1", "pads_end": "1", "kernel": "3", "rounding_type": "floor"}
    image = net.op("Unsqueeze", x, net.const(np.int64([0])))
    return net.op("Squeeze", net.op("MaxPool", image, **pooled), net.const(np.int64([0])))


def fake_quantize(net: Net, x: Handle) -> Handle:
    low, high = net.const(np.float32(-1)), net.const(np.float32(1))
    return net.op("FakeQuantize", x, low, high, high, low, levels=5)


def scatter(net: Net, x: Handle) -> Handle:
    places = net.const(np.int64([[2], [0]]))
    rows = net.op("Gather", x, net.const(np.int64([0, 2])), net.const(np.int64(0)))
    return net.op("ScatterNDUpdate", x, places, rows, opset=4)


def cell(kind: str, gates: int, states: int) -> Callable[[Net, Handle], Handle]:
    def build(net: Net, x: Handle) -> Handle:
        weights = [
            net.const(np.random.default_rng(i).standard_normal((gates * SIZE, SIZE)).astype(np.float32)) for i in (0, 1)
        ]
        bias = net.const(np.zeros(gates * SIZE, np.float32))
        opset = 4 if kind == "LSTMCell" else 3
        return net.op(kind, x, *[x] * states, *weights, bias, opset=opset, outputs=states, hidden_size=SIZE)

    return build


def matmul(net: Net, x: Handle) -> Handle:
    return net.op("MatMul", x, x)


def reversed_rows(net: Net, x: Handle) -> Handle:
    bounds = [net.const(np.int64([n])) for n in (-1, -100, -1, 0)]
    return net.op("Add", net.op("Slice", x, *bounds, opset=8), x)


MODELS = {
    "Select": select,
    "Roll": roll,
    "MaxPool": max_pool,
    "FakeQuantize": fake_quantize,
    "ScatterNDUpdate": scatter,
    "RNNCell": cell("RNNCell", 1, 1),
    "GRUCell": cell("GRUCell", 3, 1),
    "LSTMCell": cell("LSTMCell", 4, 2),
    "MatMul": matmul,
    "Slice": reversed_rows,
}


@pytest.mark.parametrize("as_fed", [lambda a: a, lambda a: a[::-1][::-1], lambda a: np.asarray(memoryview(a))])
@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_an_output_of_the_last_call_is_fed(
    build: Callable[[Net, Handle], Handle], as_fed: Callable[[Array], Any]
) -> None:
    net = Net()
    net.result(build(net, net.parameter("x", f"{SIZE},{SIZE}")))
    compiled = net.compiled()
    shared, apart = compiled.create_infer_request(), compiled.create_infer_request()
    own = theirs = np.random.default_rng(2).standard_normal((SIZE, SIZE)).astype(np.float32)
    for _ in range(4):
        own = shared.infer([as_fed(own)], share_outputs=True)[0]
        theirs = apart.infer([theirs.copy()])[0]
        np.testing.assert_array_equal(own, theirs)
