"""The weights of another model: one error, and nothing that follows from it."""

from __future__ import annotations

import numpy as np
from builder import Net

import ovir


def reductions(seed: int, axes: int = 5) -> Net:
    """Several reductions, a MatMul and an Add with constants."""
    generator = np.random.default_rng(seed)
    net = Net()
    x = net.op("MatMul", net.parameter("x", "2,3,8"), net.const(generator.normal(size=(8, 8)).astype(np.float32)))
    for _ in range(axes):
        x = net.op("ReduceSum", x, net.const(np.array([1])), keep_dims="true")
        x = net.op("Add", x, net.const(generator.normal(size=(8,)).astype(np.float32)))
    net.result(x)
    return net


def other_weights(size: int) -> bytes:
    return np.random.default_rng(7).normal(0, 0.1, size // 4).astype(np.float32).tobytes()


def test_floats_in_place_of_axes() -> None:
    net = reductions(1)
    found = ovir.check(net.xml(), other_weights(len(net.blob)))
    assert [(d.code, d.severity, d.line) for d in found] == [("OVIR517", ovir.Severity.ERROR, 2)]
    message = found[0].message
    assert message.startswith(
        "weights does not belong to this .xml: 5 of 11 constants do not fit (5 hold numbers such as"
    )
    assert "diagnostics that may follow from this are left out" in message


def test_a_smaller_file_of_another_model() -> None:
    net = reductions(1)
    (found,) = ovir.check(net.xml(), other_weights(len(net.blob) - 70))
    assert found.code == "OVIR517"
    assert "(3 lie past its end, 4 hold numbers such as" in found.message


def test_faults_of_the_topology_are_still_reported() -> None:
    net = reductions(1)
    text = (
        net.xml()
        .replace('keep_dims="true"', 'keep_dims="maybe"', 1)
        .replace('name="add6" type', 'name="add6" colour="1" type')
    )
    codes = {d.code for d in ovir.check(text, other_weights(len(net.blob)))}
    assert {"OVIR302", "OVIR304", "OVIR517"} <= codes


def test_a_single_wrong_constant_is_no_other_model() -> None:
    net = reductions(1, axes=1)
    weights = bytearray(net.blob)
    weights[256:264] = np.array([4176483385040675784]).tobytes()
    codes = [d.code for d in ovir.check(net.xml(), bytes(weights))]
    assert "OVIR517" not in codes
    assert "OVIR305" in codes


def test_not_a_number_in_all_weights_is_no_other_model() -> None:
    net = reductions(1)
    weights = bytearray(net.blob)
    for start in (0, 264, 304, 344):
        weights[start : start + 4] = np.float32(np.nan).tobytes()
    assert {d.code for d in ovir.check(net.xml(), bytes(weights))} == {"OVIR510"}


def test_open_ends_are_meant() -> None:
    net = Net()
    x = net.parameter("x", "8")
    one = net.const(np.array([1]))
    for end in (2**63 - 1, -(2**63), 2**63 - 2, 2**31 - 1):
        x = net.op("Slice", x, net.const(np.array([0])), net.const(np.array([end])), one, opset=8)
    net.result(x)
    assert {"OVIR515", "OVIR517"}.isdisjoint(d.code for d in ovir.check(net.xml(), bytes(net.blob)))


def test_large_integers_that_mean_no_open_end_are_clipped() -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2", "i64"), net.const(np.array([1, -(2**62)]))))
    (found,) = ovir.check(net.xml(), bytes(net.blob))
    assert found.code == "OVIR515"
    assert found.message == f"the constant holds {-(2**62)}, which devices that compute in i32 clip"


def test_a_large_unused_share_is_a_warning() -> None:
    net = reductions(1)
    severities = {}
    for share in (0.1, 0.5):
        (found,) = ovir.check(net.xml(), bytes(net.blob) + bytes(int(len(net.blob) * share / (1 - share)) + 64))
        assert found.code == "OVIR508"
        severities[share] = found.severity
    assert severities == {0.1: ovir.Severity.INFO, 0.5: ovir.Severity.WARNING}


def summing(seed: int, axes: int) -> Net:
    """Reductions alone: a model of few constants, all of which are axes."""
    net = Net()
    x = net.parameter("x", "2,3,8")
    for _ in range(axes):
        x = net.op("ReduceSum", x, net.const(np.array([1])), keep_dims="true")
    net.result(x)
    return net


def test_a_model_of_two_constants() -> None:
    net = summing(1, 2)
    (found,) = ovir.check(net.xml(), other_weights(len(net.blob)))
    assert found.code == "OVIR517"
    assert "2 of 2 constants do not fit" in found.message


def test_a_model_of_one_constant_and_a_file_of_another_size() -> None:
    net = summing(1, 1)
    (found,) = ovir.check(net.xml(), other_weights(len(net.blob) + 400))
    assert found.code == "OVIR517"


def test_a_single_impossible_number_is_named() -> None:
    net = summing(1, 1)
    (found,) = ovir.check(net.xml(), np.array([4439296554855099675]).tobytes())
    assert found.code == "OVIR305"
    assert found.hint == (
        "layer 1 'const1' (Const, opset1) holds 4439296554855099675: its offset is wrong, or the .bin belongs to another model"
    )


def test_an_empty_file() -> None:
    net = reductions(1)
    (found,) = ovir.check(net.xml(), b"")
    assert found.code == "OVIR502"
    assert found.message.endswith("of weights, which is empty: 11 of 11 constants lie past its end")


def test_an_integer_beyond_the_exact_bounds_is_not_shown_as_another() -> None:
    net = Net()
    net.result(net.op("Reshape", net.parameter("x", "2,3"), net.const(np.array([-(2**62)])), special_zero="false"))
    (found,) = ovir.check(net.xml(), bytes(net.blob))
    assert found.message == "shape[0] must be at least -1, got -2^53 or less"
    assert found.hint is not None
    assert f"holds {-(2**62)}" in found.hint
