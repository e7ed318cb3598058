"""Which sizes and values the data of a constant may decide that has none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.checks.recovering import read_recovering
from ovir.inference.missing_data import undecided

Make = Callable[[Net, Any], Any]


def constant(net: Net, *values: int) -> Any:
    return net.const(np.int64(values))


def by_both(net: Net, x: Any) -> Any:
    """A size that follows from the data of an input and from that of a constant."""
    total = net.op("Convert", net.op("ReduceSum", x, net.const(np.int64(0)), keep_dims="true"), destination_type="i64")
    return net.op("Broadcast", x, net.op("Add", total, constant(net, 1)), opset=3, mode="bidirectional")


CASES: dict[str, tuple[Make, bool, bool]] = {
    "the sizes of an input": (lambda net, x: net.op("ShapeOf", x, opset=3), False, False),
    "the data of an input": (lambda net, x: net.op("Multiply", x, net.const(np.float32(2))), False, False),
    "data alone": (lambda net, x: net.op("Negative", constant(net, 1, 2)), False, True),
    "data and sizes": (lambda net, x: net.op("Add", net.op("ShapeOf", x, opset=3), constant(net, 1)), False, True),
    "the sizes of data": (lambda net, x: net.op("ShapeOf", constant(net, 1, 2), opset=3), False, False),
    "a pattern": (lambda net, x: net.op("Reshape", x, constant(net, 2, 3), special_zero="false"), True, False),
    "a pattern of data": (
        lambda net, x: net.op("Reshape", constant(net, 1), constant(net, 1, 1), special_zero="false"),
        True,
        True,
    ),
    "axes": (lambda net, x: net.op("ReduceSum", x, constant(net, 0), keep_dims="true"), True, False),
    "a pattern that an input decides as well": (by_both, True, False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_missing_data_decides(name: str) -> None:
    make, sizes, values = CASES[name]
    net = Net()
    net.result(make(net, net.parameter("x", "6")), "end")
    model = read_recovering(net.xml(), need_weights=False).model
    found, port = undecided(model), model.outputs[0].source
    assert (port in found.sizes, port in found.values) == (sizes, values)
    assert not undecided(net.model()).sizes | undecided(net.model()).values
