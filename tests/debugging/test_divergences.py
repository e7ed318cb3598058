"""Known divergences: the list, and how comparisons use it."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import ElementType
from ovir.debugging.divergences import CONDITIONS, Divergence, divergences, row_of
from ovir.ops.base.registry import declared_versions

X = np.float32([[1, -2, 3, 0.5]])
RECOGNIZED = [row for row in divergences() if row.effect]


def test_the_list_has_complete_rows() -> None:
    assert len({(row.section, row.case) for row in divergences()}) == len(divergences())
    assert {row.devices for row in divergences()} == {"CPU", "reference", "all"}
    for row in divergences():
        assert bool(row.effect) == bool(row.operations) == bool(row.condition), row
        assert re.fullmatch(r"(\d{4}\.\d )?to( \d{4}\.\d)?|", row.releases), row
    conditions = {row.condition for row in RECOGNIZED if not row.condition.startswith("says ")}
    assert conditions == CONDITIONS.keys()


@pytest.mark.parametrize("row", RECOGNIZED, ids=lambda row: row.case[:40])
def test_a_recognized_row_is_about_operations_that_there_are(row: Divergence) -> None:
    names = [name for version in declared_versions() for name in (version.type, f"{version.type}-{version.opset}")]
    assert any(re.fullmatch(row.operations, name) for name in names)
    assert set(row.effect.split()) <= {"values", "fails"}
    assert row.devices != "reference"


def hard(alpha: float) -> ovir.Layer:
    return ops.hard_sigmoid(ops.parameter([1, 4], "f32", name="x"), np.float32(alpha), np.float32(0.5), name="hard")


def model(alpha: float) -> ovir.Model:
    layer = hard(alpha)
    assert layer.inputs[0].source is not None
    return ovir.Model([ops.floor(layer, name="floor")], [layer.inputs[0].source.layer])


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("device", ["CPU", "HETERO:GPU,CPU", "GPU", ""])
def test_a_row_is_for_devices_and_effects(device: str, fails: bool) -> None:
    inputs = [X, np.float32(0), np.float32(0.5)]
    row = row_of(hard(0), inputs, [X], device, fails=fails)
    assert (row is not None) == ("CPU" in device and not fails)
    assert row_of(hard(0.2), [X, np.float32(0.2), np.float32(0.5)], [X], device, fails=fails) is None
    assert row_of(hard(0), [X, None, np.float32(0.5)], [X], device, fails=fails) is None


@pytest.mark.parametrize(
    ("releases", "device", "holds"),
    [
        ("to 2025.0", "OpenVINO 2026.4.1 on CPU", False),
        ("to 2025.0", "OpenVINO 2025.0.0 on CPU", True),
        ("to 2025.0", "OpenVINO 2025.1.0 on CPU", False),
        ("to 2025.0", "OpenVINO 2024.6.0 on HETERO:GPU,CPU", True),
        ("2023.0 to", "OpenVINO 2022.3.0 on CPU", False),
        ("2023.0 to", "OpenVINO 2027.11.0 on CPU", True),
        ("2023.0 to 2025.4", "OpenVINO 2025.4.1 on CPU", True),
        ("2023.0 to 2025.4", "OpenVINO 2026.0.0 on CPU", False),
        ("", "OpenVINO 2022.1.0 on CPU", True),
        ("2023.0 to 2025.4", "CPU", True),
    ],
)
def test_a_row_is_for_releases(releases: str, device: str, holds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in divergences() if row.case == "HardSigmoid-1 with alpha 0")
    monkeypatch.setattr("ovir.debugging.divergences.divergences", lambda: (replace(row, releases=releases),))
    assert (row_of(hard(0), [X, np.float32(0), np.float32(0.5)], [X], device) is not None) == holds


@pytest.mark.slow
@pytest.mark.parametrize("search", [ovir.compare, ovir.bisect])
def test_comparisons_look_at_the_release_of_the_device(search: Any, device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:HardSigmoid")
    row = next(row for row in divergences() if row.case == "HardSigmoid-1 with alpha 0")
    for releases, is_known in (("1.3 to", False), ("to 1.2", True)):
        rows = (replace(row, releases=releases),)
        device.setattr("ovir.debugging.divergences.divergences", lambda rows=rows: rows)
        assert (search(model(0), inputs=[X]).known is not None) == is_known


def test_a_row_may_be_about_a_message() -> None:
    layer = ops.convert(ops.parameter([1, 4], "f32"), "boolean")
    found = row_of(layer, [X], [X > 0], "CPU", message="Node x: Default output not supported", fails=True)
    assert found is not None
    assert found.case.startswith("Convert of one of several outputs")
    assert row_of(layer, [X], [X > 0], "CPU", message="another", fails=True) is None
    assert row_of(layer, [X], [X > 0], "CPU", fails=True) is None


@pytest.mark.slow
@pytest.mark.parametrize("search", [ovir.compare, ovir.bisect])
def test_a_known_divergence_is_called_one(search: Any, device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:HardSigmoid")
    found = search(model(0), inputs=[X])
    assert not found, "the result still says that outputs differ"
    assert found.known.case == found.to_dict()["known"]["case"] == "HardSigmoid-1 with alpha 0"
    assert search(model(0.2), inputs=[X]).known is None
    other = model(0)
    other.set_constant(other.layer("hard").inputs[2].source.layer.key, np.float32(0.75))
    assert search(model(0), other, inputs=[X * 0]).known is None, "another model is no device"


@pytest.mark.slow
def test_every_layer_that_differs_alone_must_be_known(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:HardSigmoid,wrong:Floor")
    found = ovir.compare(model(0), inputs=[X])
    assert [layer.known is None for layer in found.layers] == [False, True]
    assert (found.known, found.verdict) == (None, "beyond tolerance")
    cumulative = ovir.compare(model(0), inputs=[X], mode="cumulative")
    assert cumulative.verdict == "beyond tolerance: a known divergence"
    assert cumulative.known is not None, "errors of the first layer are in those of the second"


@pytest.mark.slow
def test_every_set_of_inputs_must_be_explained(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:Gelu")
    x = ops.parameter([1, 4], "f32", name="x")
    gelu = ovir.Model([ops.gelu(x, "ERF", name="gelu")], [x])
    infinite = np.float32([[1, np.inf, 3, 0.5]])
    known = [
        ovir.compare(gelu, inputs=[{"x": x} for x in sets]).known for sets in ([infinite], [infinite, X], [X, infinite])
    ]
    assert [row is None for row in known] == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("search", [ovir.compare, ovir.bisect])
def test_a_known_divergence_does_not_hide_a_failure(search: Any, device: pytest.MonkeyPatch) -> None:
    for fault in ("die:Floor", "refuse:Floor"):
        device.setenv("OVIR_TEST_FAULT", f"wrong:HardSigmoid,{fault}")
        assert search(model(0), inputs=[X]).known is None
    device.setenv("OVIR_TEST_FAULT", "wrong:HardSigmoid,die:Floor")
    assert ovir.compare(model(0), inputs=[X], mode="cumulative").known is None


@pytest.mark.slow
@pytest.mark.parametrize("search", [ovir.compare, ovir.bisect])
def test_a_failure_may_be_known(search: Any, device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "die:Broadcast")
    x = ops.parameter([], "f32", name="x")
    scalar = ops.broadcast(x, np.zeros(0, np.int64), name="scalar")
    found = search(ovir.Model([ops.abs(scalar)], [x]), inputs=[np.float32(1)])
    assert found.failed
    assert found.known.case.startswith("Broadcast of a scalar to an empty target shape")


@pytest.mark.parametrize(
    ("name", "kind", "values", "case"),
    [
        ("power", "u4", ([7, 15], [5, 2]), "Add, Subtract, Power of integers"),
        ("power", "u4", ([3, 15], [2, 1]), None),
        ("power", "i4", ([-8, 2], [2, 1]), "Add, Subtract, Power of integers"),
        ("divide", "i4", ([-7, 7], [2, 3]), "Divide of negative integers"),
        ("divide", "i4", ([6, 7], [2, 3]), None),
        ("divide", "f32", ([-7, 7], [2, 3]), None),
        ("squared_difference", "i4", ([1, 2], [0, 0]), "SquaredDifference of integers of 8 or 4 bits"),
        ("squared_difference", "i16", ([1, 2], [0, 0]), None),
        ("equal", "i32", ([2**24 + 1, 0], [0, 0]), "integers that f32 does not hold"),
        ("equal", "i32", ([2**24 + 2, -(2**30)], [0, 0]), None),
        ("add", "i32", ([2**24, 0], [1, 0]), None),
        ("divide", "u32", ([2**25 + 1, 0], [1, 1]), "integers that f32 does not hold"),
    ],
)
def test_rows_of_integers_look_at_their_type(name: str, kind: str, values: Any, case: str | None) -> None:
    element_type = ElementType.parse(kind)
    x, y = (ops.parameter([2], kind, name=name) for name in "xy")
    layer, arrays = getattr(ops, name)(x, y), [np.array(array).astype(element_type.to_dtype()) for array in values]
    results = ovir.compile_model(ovir.Model([layer], [x, y]))(arrays)
    row = row_of(layer, arrays, list(results.values()), "CPU")
    assert (row is None) == (case is None)
    assert row is None or row.case.startswith(str(case))


@pytest.mark.parametrize(
    ("kind", "size", "target", "is_known"),
    [("i8", -1, "f32", True), ("i8", 2, "f32", False), ("i16", -1, "f32", False), ("i8", -1, "i32", False)],
)
def test_a_row_may_be_about_the_layer_before(kind: str, size: int, target: str, is_known: bool) -> None:
    quotient = ops.divide(ops.parameter([size], kind), ops.parameter([size], kind))
    for source, holds in ((quotient, is_known), (ops.add(quotient, quotient), False)):
        row = row_of(ops.convert(source, target), [np.zeros(2, kind.replace("i", "int"))], [X], "CPU")
        assert (row is not None and row.case.startswith("Divide of i8 or u8")) == holds


def test_sums_along_an_axis_are_those_that_may_leave_the_range() -> None:
    data, axis = np.ones((100, 100), np.int8), np.array(1)
    layer = ops.cum_sum(ops.parameter([100, 100], "i8"), axis)
    assert row_of(layer, [data, axis], [data.cumsum(1).astype(np.int8)], "CPU") is None
    assert row_of(layer, [data * 2, axis], [(data * 2).cumsum(1).astype(np.int8)], "CPU") is not None


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["isolated", "cumulative"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_known_divergence_explains_only_what_comes_after_it(
    device: pytest.MonkeyPatch, mode: Any, is_known: bool
) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:HardSigmoid")
    x, y = (ops.parameter([1, 4], "f32", name=name) for name in "xy")
    known = ops.hard_sigmoid(x, np.float32(0), np.float32(0.5), name="hard")
    other = ops.floor(known, name="other") if is_known else ops.hard_sigmoid(y, np.float32(0.2), np.float32(0.5))
    inputs = [x] if is_known else [x, y]
    found = ovir.compare(ovir.Model([known, other], inputs), inputs=[X] * len(inputs), mode=mode)
    assert not found.within
    assert (found.known is not None) == is_known


@pytest.mark.slow
def test_a_dead_layer_at_which_a_device_differs_is_no_fault_of_ovir(device: pytest.MonkeyPatch) -> None:
    device.setenv("OVIR_TEST_FAULT", "wrong:Exp")
    net = Net()
    x = net.parameter("x", "1,4")
    net.op("Exp", net.op("Exp", x))
    net.result(net.op("Exp", x))
    assert not ovir.bisect(net.model(), inputs=[X]).within
