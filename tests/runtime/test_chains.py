"""Chains as long as no stack is deep: nothing may recurse over the length of a graph."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.cli.main import main

pytestmark = pytest.mark.slow

LENGTH = 1_100
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

# By name: the inputs beside the data, the opset and the attributes of two layers that follow each other.
VIEWS: dict[str, list[tuple[str, list[object], int, dict[str, str]]]] = {
    "Reshape": [
        ("Reshape", [[6, 4]], 1, {"special_zero": "false"}),
        ("Reshape", [[2, 3, 4]], 1, {"special_zero": "false"}),
    ],
    "Squeeze": [("Unsqueeze", [[0]], 1, {}), ("Squeeze", [[0]], 1, {})],
    "Transpose": [("Transpose", [[1, 0, 2]], 1, {})] * 2,
    "Slice": [("Slice", [[0], [9], [1], [0]], 8, {})] * 2,
    "StridedSlice": [("StridedSlice", [[0], [9], [1]], 1, {"begin_mask": "0", "end_mask": "0"})] * 2,
    "Split": [("Split", [0], 1, {"num_splits": "1"})] * 2,
    "Identity": [("Identity", [], 16, {})] * 2,
    "Broadcast": [("Broadcast", [[2, 3, 4]], 3, {"mode": "numpy"})] * 2,
}


def chain(folder: Path, name: str, length: int) -> Path:
    net = Net()
    x = net.parameter("x", "2,3,4")
    layers = [(kind, [net.const(np.int64(c)) for c in more], opset, given) for kind, more, opset, given in VIEWS[name]]
    for i in range(length):
        kind, more, opset, given = layers[i % 2]
        x = net.op(kind, x, *more, opset=opset, **given)
    net.result(x)
    return net.write(folder)


@pytest.mark.parametrize("name", VIEWS)
def test_a_long_chain_of_views(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain(tmp_path, name, LENGTH)
    np.testing.assert_array_equal(ovir.compile_model(path)(DATA)[0], DATA)
    for command in ("check", "infer", "run", "show") if name == "Identity" else ("check",):
        assert main([command, str(path)]) == 0, capsys.readouterr().err
    assert name != "Identity" or re.search(r"\[2,3,4\]", capsys.readouterr().out)


def test_a_long_chain_of_decompressed_weights() -> None:
    net = Net()
    codes = net.op("Convert", net.const(np.full((200, 200), 3, np.uint8)), destination_type="f16")
    one = net.const(np.full((1, 1), 2, np.float16))
    weights = net.op("Multiply", codes, one)
    shapes = [net.const(np.int64(s)) for s in ([100, 400], [200, 200])]
    for i in range(LENGTH):
        weights = net.op("Reshape", weights, shapes[i % 2], special_zero="false")
    x = net.parameter("x", "1,200")
    net.result(net.op("MatMul", x, net.op("Convert", weights, destination_type="f32")))
    for keep in (False, True):
        assert net.compiled(keep_compressed=keep)(np.ones((1, 200), np.float32))[0].tolist() == [[1200.0] * 200]


def test_weights_that_are_added_to_themselves_again_and_again() -> None:
    net = Net()
    weights = net.op("Convert", net.const(np.ones((200, 200), np.uint8)), destination_type="f16")
    for _ in range(15):
        weights = net.op("Add", weights, weights)
    x = net.parameter("x", "1,200")
    net.result(net.op("MatMul", x, net.op("Convert", weights, destination_type="f32")))
    for keep in (False, True):
        expected = [[200.0 * 2**15] * 200]
        assert net.compiled(keep_compressed=keep)(np.ones((1, 200), np.float32))[0].tolist() == expected
