"""A check without weights finds nothing that it would not find with them: what data decides counts as unknown."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.checks.checker import DEVICES
from ovir.fuzzing.cases import make_case
from ovir.fuzzing.graphs import make_graph
from ovir.fuzzing.making import VERSIONS

NEEDS_DATA = {("Unique-10", "axis must be a constant")}
"""Errors of inference that name a constant without data; an input is reported in the same way."""


def findings(text: Any, blob: bytes, **options: Any) -> set[tuple[str, str | None, str]]:
    """Return code, layer and message of each finding, without the number of layers that have it as well."""
    found = ovir.check(text, blob, **options)
    return {(d.code, d.layer, re.sub("; the same applies to .*", "", d.message)) for d in found}


def unfounded(
    text: Any, blob: bytes, shapes: Iterable[Sequence[int]], devices: Sequence[str] = DEVICES
) -> set[tuple[str, str | None, str]]:
    """Return what is found without weights alone, in the shapes of the file and in the given ones."""
    extra: set[tuple[str, str | None, str]] = set()
    for given in (None, dict(enumerate(shapes))):
        for device in devices:
            known = findings(text, blob, shapes=given, device=device)
            if not any(code.startswith(("OVIR3", "OVIR4")) for code, _, _ in known):  # the file is valid
                extra |= findings(text, blob, shapes=given, device=device, need_weights=False) - known
    return extra


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_operations(part: int) -> None:
    for index in range(part, len(VERSIONS), 4):
        case, device = make_case(index), DEVICES[index % len(DEVICES)]
        extra = unfounded(case.text, case.weights, [array.shape for array in case.feeds], [device])
        assert not {found for found in extra if (case.name, found[2]) not in NEEDS_DATA}, case.name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_graphs(seed: int) -> None:
    graph = make_graph(seed)
    shapes = [array.shape for array in graph.feeds.values()]
    assert unfounded(graph.net.xml(), bytes(graph.net.blob), shapes) == set()


def reordered(net: Net, x: Any) -> Any:
    return net.op("Transpose", x, net.const(np.array([0, 2, 1])))


def flattened(net: Net, x: Any) -> Any:
    return net.op("ReLU", net.op("Reshape", x, net.const(np.array([0, -1])), special_zero="true"))


def by_computed_sizes(net: Net, x: Any) -> Any:
    """The sizes of the input times constants, so that integers are computed as well."""
    sizes = net.op("ShapeOf", x, opset=3, output_type="i64")
    pattern = net.op("Multiply", sizes, net.const(np.array([1, 2, 1])))
    return net.op("Broadcast", net.const(np.float32(1)), pattern, opset=3, mode="numpy")


def state(net: Net, x: Any) -> Any:
    """A state that begins as zeros of a shape that is partly constant."""
    sizes = net.op("ShapeOf", x, opset=3, output_type="i64")
    batch = net.op("Gather", sizes, net.const(np.array([0])), net.const(np.int64(0)), opset=8)
    shape = net.op("Concat", batch, net.const(np.array([2])), axis=0)
    zeros = net.op("Broadcast", net.const(np.float32(0)), shape, opset=3, mode="numpy")
    read = net.op("ReadValue", zeros, opset=6, variable_id="v", variable_type="f32", variable_shape="?,2")
    net.op("Assign", read, opset=6, variable_id="v")
    return read


@pytest.mark.parametrize("make", [reordered, flattened, by_computed_sizes, state])
@pytest.mark.parametrize("declared", ["?,?,?", "2,3,4"])
def test_sizes_that_constants_decide(make: Callable[[Net, Any], Any], declared: str) -> None:
    net = Net()
    net.result(make(net, net.parameter("x", declared)))
    assert unfounded(net.xml(), bytes(net.blob), [(2, 3, 4)]) == set()


def scaled(net: Net, x: Any) -> Any:
    return net.op("Multiply", x, net.const(np.full((1000, 1, 1), 2, np.float32)))


def nonzero(net: Net, x: Any) -> Any:
    return net.op("NonZero", x, opset=3, output_type="i64")


@pytest.mark.parametrize("make", [nonzero, lambda net, x: nonzero(net, scaled(net, x))])
def test_sizes_that_inputs_decide_are_reported_without_weights(make: Callable[[Net, Any], Any]) -> None:
    net = Net()
    net.result(net.op("ReLU", make(net, net.parameter("x", "?,3,4"))))
    check = partial(findings, net.xml(), bytes(net.blob), shapes={0: (1, 3, 4)}, device="NPU")
    for need_weights in (True, False):
        assert any("outputs of NonZero" in message for _, _, message in check(need_weights=need_weights))
