"""Runs in which tensors have rounding errors: how large these are, and where there are none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ovir.diagnostics.errors import OvirError
from ovir.fuzzing.net import Net
from ovir.fuzzing.reference import Reference

UNITS = {"f64": 2.0**-22, "f32": 2.0**-22, "f16": 2.0**-11, "bf16": 2.0**-8}
X = np.float64([0, 1, -3, 1000, np.inf, np.nan])
Make = Callable[[Net, Any], Any]


def reference(make: Make, kind: str, values: Any) -> Reference:
    net = Net()
    made = make(net, net.parameter("x", str(len(values)), kind))
    net.result(net.op("Reshape", made, net.const([-1], "i64"), special_zero="false"))
    model = net.model()
    return Reference.of(model, [np.asarray(values).astype(model.inputs[0].element_type.to_dtype())])


def negated(net: Net, x: Any) -> Any:
    return net.op("Negative", x)


def subtracted(net: Net, x: Any) -> Any:
    return net.op("Subtract", net.op("Negative", x), net.op("Negative", x))


@pytest.mark.parametrize("kind", [*UNITS, "i32"])
@pytest.mark.parametrize("make", [negated, subtracted])
def test_an_error_is_a_share_of_the_number(kind: str, make: Make) -> None:
    """Three layers have errors of the number; a difference also has errors of the size of all terms."""
    values = X if kind != "i32" else np.arange(6)
    exact = reference(make, kind, values)
    runs = [np.asarray(outputs[0], np.float64) for outputs in exact.with_rounding_errors()]
    assert len(runs) == 6
    expected = np.asarray(exact.outputs[0], np.float64)
    if kind == "i32":
        assert all((run == expected).all() for run in runs)
        return
    finite = np.isfinite(values)
    for run in runs:
        np.testing.assert_array_equal(run[~finite], expected[~finite])
    error = np.abs(np.array(runs)[:, finite] - expected[finite]).max(axis=0)
    size = np.abs(values[finite])
    terms = 0 if make is negated else 1000
    assert (error <= 1.05 * UNITS[kind] * (3 * size + terms)).all()
    assert (error >= 0.1 * UNITS[kind] * (terms or size)).all() or kind in ("f16", "bf16")


def test_a_size_that_depends_on_rounding_ends_a_run() -> None:
    net = Net()
    size = net.op("Convert", net.op("Floor", net.op("Negative", net.parameter("x", "1"))), destination_type="i64")
    sizes = net.op("Concat", size, net.const([-1], "i64"), axis=0)
    net.result(net.op("Reshape", net.const(np.zeros(10, "f4")), sizes, special_zero="false"))
    found = Reference.of(net.model(), [np.float32([-5])])
    shapes = [outputs[0].shape for outputs in found.with_rounding_errors()]
    assert {*shapes} == {(5, 2)}
    assert 0 < len(shapes) < 6


def test_what_cannot_be_a_reference() -> None:
    net = Net()
    net.result(net.op("Broadcast", net.parameter("x", "1"), net.const([2**22 + 1], "i64"), opset=3, mode="numpy"))
    with pytest.raises(OvirError, match="is too large to be compared"):
        Reference.of(net.model(), [np.ones(1, "f4")])
    net = Net()
    net.result(net.op("Broadcast", net.parameter("x", "1"), net.const([2**22], "i64"), opset=3, mode="numpy"))
    assert Reference.of(net.model(), [np.ones(1, "f4")]).outputs[0].size == 2**22
