"""A constant of a wrong element type: one diagnostic, with what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from builder import Net

import ovir


def gathering(copied: bool = False) -> tuple[str, bytes]:
    net = Net()
    x = net.parameter("x", "2,3")
    axes = net.const(np.array([1, 0]), name="order")
    if copied:
        axes = net.op("Reshape", axes, net.const(np.array([2])), name="copied", special_zero="false")
    net.result(net.op("Transpose", x, axes, name="turned"))
    return net.declared_xml(), bytes(net.blob)


def with_type(text: str, name: str, element_type: str) -> str:
    before, after = text.split(f'name="{name}"', 1)
    return before + f'name="{name}"' + after.replace('element_type="i64"', f'element_type="{element_type}"', 1)


@pytest.mark.parametrize("copied", [False, True])
def test_the_first_layer_that_cannot_read_it(copied: bool) -> None:
    text, weights = gathering(copied)
    (found,) = (d for d in ovir.check(with_type(text, "order", "f64"), weights) if d.code != "OVIR702")
    assert (found.code, found.severity) == ("OVIR409", ovir.Severity.ERROR)
    assert found.layer is not None
    assert "'turned'" in found.layer
    assert "must be of an integer type, got f64; layer 1 'order' (Const, opset1) on line " in found.message
    assert found.message.endswith("declares type i64, but the Const itself has f64")
    assert (
        found.hint == "its size fits i64: change the attribute element_type of layer 1 'order' (Const, opset1) from f64"
    )


def test_a_type_of_another_size() -> None:
    net = Net()
    net.result(
        net.op(
            "Gather",
            net.parameter("x", "2,3"),
            net.const(np.array([1, 0]), name="rows"),
            net.const(np.int64(0)),
            opset=8,
        )
    )
    (found,) = ovir.check(with_type(net.declared_xml(), "rows", "i32"), bytes(net.blob))
    assert (found.code, found.severity) == ("OVIR405", ovir.Severity.WARNING)
    assert "but the Const itself has i32; attribute 'size' is 16, but i32[2] needs 8 bytes" in found.message
    assert found.hint is not None
    assert found.hint.startswith("its size fits i64")


def test_other_faults_of_the_file_remain() -> None:
    text, weights = gathering()
    text = with_type(text, "order", "f64").replace('name="x" type="Parameter"', 'name="x" colour="1" type="Parameter"')
    assert {d.code for d in ovir.check(text, weights)} == {"OVIR304", "OVIR409"}


def test_without_weights() -> None:
    text, _ = gathering()
    assert [d.code for d in ovir.check(with_type(text, "order", "f64"), need_weights=False)] == ["OVIR409"]
