"""Rewrites of a plan give what the operations give, in every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builder import Net

INDICES = [[0, 1, 2], [2, 0], [4, 3, 2, 1, 0], [-1, -2], [3], 4, -1, [1, 1], [[0, 2]], [-1, 0], 9, [3, 4, 5]]


@pytest.mark.parametrize("indices", INDICES, ids=str)
@pytest.mark.parametrize("shape", ["2,5,3", "?,5,?", "?,?,?"])
def test_gather_with_constant_indices(indices: Any, shape: str) -> None:
    net = Net()
    net.result(
        net.op("Gather", net.parameter("x", shape), net.const(np.int64(indices)), net.const(np.int64(1)), opset=8)
    )
    request = net.compiled().create_infer_request()
    wanted = np.array(indices)
    outside = ((wanted >= 5) | (wanted < -5)).reshape(1, *wanted.shape, 1)
    for seed in (0, 1, 0, 2):
        x = np.random.default_rng(seed).standard_normal((2, 5, 3)).astype(np.float32)
        expected = np.where(outside, 0, np.take(x, np.clip(wanted, -5, 4), 1))
        np.testing.assert_array_equal(request.infer([x])[0], expected)


def test_evenly_spaced_indices_cost_no_call() -> None:
    net = Net()
    data = net.op("ReLU", net.parameter("x", "2,5"))
    net.result(net.op("Gather", data, net.const(np.int64([4, 2, 0])), net.const(np.int64(1)), opset=8))
    request = net.compiled().create_infer_request()
    request.infer([np.ones((2, 5), np.float32)])
    (executor,) = request._bindings._bound.values()
    assert executor._counts == [(1, 0), (0, 0)]
