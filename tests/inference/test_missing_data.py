"""Which sizes and values the data of a constant may decide that has none."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bodies import choice
from support.builder import Net

import ovir
from ovir import opset13 as ops
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
    "a long pattern that an input decides as well": (
        lambda net, x: net.op(
            "Reshape",
            x,
            net.op("Add", net.parameter("pattern", "?", "i64"), constant(net, 0)),
            special_zero="false",
        ),
        False,
        False,
    ),
    "random numbers": (
        lambda net, x: net.op(
            "RandomUniform",
            constant(net, 2),
            *(net.const(np.float32(limit)) for limit in (0, 1)),
            opset=8,
            output_type="f32",
        ),
        True,
        False,
    ),
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


def joined(is_given: bool) -> ovir.Model:
    """Return an If whose result has a size that the condition decides."""
    x, chosen = ops.parameter([2], "f32"), ops.parameter([], "boolean") if is_given else ops.constant(np.array(True))
    layer = choice(chosen, lambda x: ops.concat([x], 0), lambda x: ops.concat([x, x], 0), x)
    layer.name = "last"
    return ovir.Model([layer], [x, chosen][: 1 + is_given])


def repeated(is_given: bool) -> ovir.Model:
    """Return a Loop whose result has a size that the number of iterations and a constant of its body decide."""
    x = ops.parameter([2], "f32")
    count = ops.parameter([], "i64") if is_given else ops.constant(np.int64(3))
    loop = ops.loop(count, ops.constant(np.array(True)), name="last")
    inside = ops.parameter([2], "f32")
    step = ops.relu(inside)
    loop.set_function(ovir.Model([step, ops.constant(np.array(True))], [inside], "body"))
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(inside, x.output(0), step.output(0))
    return ovir.Model([loop.get_concatenated_slices(step.output(0), 0, 1, 1, -1, 0)], [x, count][: 1 + is_given])


@pytest.mark.parametrize(
    ("make", "is_given", "expected"), [(joined, False, True), (joined, True, False), (repeated, True, True)]
)
def test_sizes_that_conditions_decide(
    make: Callable[[bool], ovir.Model], is_given: bool, expected: bool, tmp_path: Path
) -> None:
    ovir.save_model(make(is_given), tmp_path / "model.xml")
    text = re.sub("<dim>.*?</dim>", "", (tmp_path / "model.xml").read_text())
    model = read_recovering(text, need_weights=False).model
    assert (model.layer("last").outputs[0] in undecided(model).sizes) == expected
