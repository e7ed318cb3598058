"""A record of a run: the results of all layers, each under a key of its own."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from support.bodies import looped
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.record import Recorder, record_keys


def recorded(
    model: ovir.Model, inputs: list[Any], only: Collection[str] | None = None
) -> tuple[dict[str, Any], Recorder]:
    written: dict[str, Any] = {}
    recorder = Recorder(model, lambda key, array: written.update({key: array.tolist()}), only)
    ovir.compile_model(model)(inputs, listeners=[recorder])
    return written, recorder


def test_the_last_result_of_a_layer_in_a_body_counts() -> None:
    model = looped(lambda state: ops.add(state, np.float32(1), name="raised"))
    written, recorder = recorded(model, [np.float32([0, 5])])
    assert written["loop/body/raised"] == written["out"] == [3, 8]
    assert recorder.count == len(written)


def several() -> ovir.Model:
    net = Net()
    x = net.parameter("x", "2")
    one = net.op("Relu", x, name="same", names=["tensor"])
    two = net.op("Relu", one, name="other", names=["tensor"])
    net.result(net.op("Split", two, net.const(np.int64(0)), name="parts", outputs=2, names=["", "x"], num_splits=2))
    net.op("Abs", x, name="dead")
    net.op("Abs", x, name="tensor")
    return net.model()


def test_tensors_of_the_same_name_have_keys_of_their_own() -> None:
    model = several()
    keys = record_keys(model)
    assert list(keys) == ["x", "tensor", "other", "parts", "parts:1", "dead", "tensor_2"]
    assert keys["x"] is model.inputs[0].layer.outputs[0]


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (None, {"tensor": [0, 3], "other": [0, 3], "parts": [0], "parts:1": [3]}),
        (["other", "dead"], {"other": [0, 3], "dead": [2, 3]}),
    ],
)
def test_layers_that_nothing_needs_are_recorded_only_if_they_are_named(only: Any, expected: dict[str, Any]) -> None:
    written, recorder = recorded(several(), [np.float32([-2, 3])], only)
    assert written == {"x": [-2, 3], **expected}
    assert recorder.count == len(written)
