"""Known values are computed when an operation asks for them, at any depth, and never at a great cost."""

from typing import Any

import numpy as np
import pytest
from builder import Net

import ovir
from ovir.core.values import MAX_ELEMENTS
from ovir.ops.arithmetic import Add
from ovir.ops.base.operator import Operator

DEPTH = 20_000


def count_calls(monkeypatch: pytest.MonkeyPatch, cls: type[Operator], method: str) -> list[str]:
    calls: list[str] = []
    original = getattr(cls, method)

    def counted(self: Operator, *arguments: Any, **keywords: Any) -> Any:
        calls.append(method)
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(cls, method, counted)
    return calls


def test_no_kernel_runs_for_a_chain_of_reals(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch, Add, "run")
    net = Net()
    x = net.parameter("x", "1,64")
    for i in range(20):
        x = net.op("Add", x, net.const(np.full((1, 64), i, np.float32)))
    net.result(x)
    model = net.model()
    assert not calls
    assert model.outputs[0].type.value is None  # now it is asked for
    assert calls


def test_a_value_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch, Add, "run")
    net = Net()
    total = net.op("Add", net.const(np.int64([2, 3])), net.const(np.int64([1, 1])))
    for name in ("a", "b"):
        net.result(net.op("Reshape", net.parameter(name, "12"), total, special_zero="false"))
    model = net.model()
    assert [str(port.shape) for port in model.outputs] == ["[3,4]", "[3,4]"]
    assert len(calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Add", "Reshape", "Slice"])
def test_chains_longer_than_the_stack_is_deep(kind: str) -> None:
    net = Net()
    shape = net.op("ShapeOf", net.parameter("x", "?,4"), opset=3, output_type="i64")
    others = {
        "Add": [np.int64([0, 0])],
        "Reshape": [np.int64([2])],
        "Slice": [np.int64([0]), np.int64([2]), np.int64([1])],
    }[kind]
    constants = [net.const(array) for array in others]
    attributes = {"special_zero": "false"} if kind == "Reshape" else {}
    for _ in range(DEPTH):
        shape = net.op(kind, shape, *constants, opset=8 if kind == "Slice" else 1, **attributes)
    net.result(net.op("Reshape", net.parameter("data", "?"), shape, special_zero="false"))
    assert str(net.model().outputs[0].shape) == "[?,4]"


@pytest.mark.parametrize(
    ("kind", "opset", "attributes"),
    [
        ("Convolution", 1, {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}),
        (
            "GroupConvolutionBackpropData",
            1,
            {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"},
        ),
    ],
)
def test_kernels_that_may_take_long_are_not_run(
    monkeypatch: pytest.MonkeyPatch, kind: str, opset: int, attributes: dict[str, str]
) -> None:
    cls = ovir.ops.find(kind, opset)
    assert cls is not None
    calls = count_calls(monkeypatch, cls, "run")
    net = Net()
    filters = np.ones((1, 1, 1, 1, 1) if kind.startswith("Group") else (1, 1, 1, 1), np.float32)
    net.result(
        net.op(kind, net.const(np.ones((1, 1, 2, 2), np.float32)), net.const(filters), opset=opset, **attributes)
    )
    assert net.model().outputs[0].type.value is None
    assert not calls


def test_values_of_large_tensors_are_not_computed() -> None:
    net = Net()
    large = net.const(np.zeros(17 * MAX_ELEMENTS, np.int64))
    net.result(net.op("Gather", large, net.const(np.int64([0, 1])), net.const(np.int64(0)), opset=8))
    assert net.model().outputs[0].type.value is None
