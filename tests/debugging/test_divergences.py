"""Known divergences: the list, and how comparisons use it."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset9, opset16, opset17
from ovir import opset13 as ops
from ovir.core.element_types import ElementType
from ovir.debugging.divergences import (
    CONDITIONS,
    Divergence,
    Seen,
    divergences,
    reason_of_failure,
    reason_of_value,
    row_of,
)
from ovir.debugging.layerwise_run import Walk, WalkPlan
from ovir.ops.base.registry import declared_versions

X = np.float32([[1, -2, 3, 0.5]])
Build = Callable[..., ovir.Layer]
RECOGNIZED = [row for row in divergences() if row.effect]


def test_the_list_has_complete_rows() -> None:
    lines = (Path(ovir.__file__).parent / "debugging" / "divergences.tsv").read_text(encoding="utf-8").splitlines()
    assert [row.case for row in divergences()] == [line.split("\t")[1] for line in lines if "\tdevices\t" not in line]
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
    return ovir.Model([ops.floor(layer, name="floor")], [layer.inputs[0].source.layer])


@pytest.mark.parametrize("failure", [None, ""])
@pytest.mark.parametrize("device", ["CPU", "HETERO:GPU,CPU", "GPU", ""])
def test_a_row_is_for_devices_and_effects(device: str, failure: str | None) -> None:
    inputs = [X, np.float32(0), np.float32(0.5)]
    row = row_of(hard(0), inputs, [X], device, failure)
    assert (row is not None) == ("CPU" in device and failure is None)
    assert row_of(hard(0.2), [X, np.float32(0.2), np.float32(0.5)], [X], device, failure) is None
    assert row_of(hard(0), [X, None, np.float32(0.5)], [X], device, failure) is None


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
    found = row_of(layer, [X], [X > 0], "CPU", "Node x: Default output not supported")
    assert found.case.startswith("Convert of one of several outputs")
    assert row_of(layer, [X], [X > 0], "CPU", "another") is None
    assert row_of(layer, [X], [X > 0], "CPU", "") is None


def test_reasons_are_looked_for_in_the_layers_before_a_result() -> None:
    x = ops.parameter([], "f32", name="x")
    known = ops.hard_sigmoid(ops.broadcast(x, np.zeros(0, np.int64)), np.float32(0), np.float32(0.5), name="hard")
    both = ovir.Model([ops.floor(known), ops.floor(x)], [x])
    arrays: dict[ovir.Port, Any] = {}
    for step in Walk(WalkPlan(both, with_constants=True), [np.array(1, np.float32)]):
        arrays |= {port.source: array for port, array in zip(step.layer.inputs, step.inputs, strict=True)}
        arrays |= dict(zip(step.layer.outputs, step.outputs, strict=True))
    found = reason_of_value(both, 0, arrays, "CPU")
    assert found.case == "HardSigmoid-1 with alpha 0"
    assert reason_of_value(both, 1, arrays, "CPU") is None
    failure = reason_of_failure(both, None, arrays, "CPU")
    assert failure.case.startswith("Broadcast of a scalar to an empty target shape")
    del arrays[known.outputs[0]]
    assert reason_of_value(both, 0, arrays, "CPU") is None, "the layer has not run"


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


def last_step(build: Build, *arrays: Any, known: bool) -> Seen:
    """Run layers on arrays, and return the last one with its arrays; sizes are unknown before the run unless ``known``."""
    types = [ElementType.from_dtype(array.dtype) for array in arrays]
    shapes = [array.shape if known else [-1] * array.ndim for array in arrays]
    inputs = [ops.parameter(shape, kind) for shape, kind in zip(shapes, types, strict=True)]
    *_, step = Walk(WalkPlan(ovir.Model([build(*inputs)], inputs), with_constants=True), arrays)
    return Seen(step.layer, step.inputs, step.outputs)


def row(condition: str, holds: bool, build: Build, *arrays: Any, known: bool = True) -> Any:
    return pytest.param(condition, holds, build, arrays, known, id=condition)


def of(kind: str, *values: Any) -> Any:
    return np.array(values).astype(ElementType.parse(kind).to_dtype())


def convolved(sizes: tuple[int, int], strides: list[int], pads: list[int], before: Build = ops.abs) -> Build:
    return lambda x: ops.convolution(
        before(x), ops.constant(np.ones((2, 3, *sizes), np.float32)), strides, pads[:2], pads[2:], [1, 1]
    )


def topk(axis: int, sort: str) -> Build:
    return lambda x: ops.topk(x, 1, axis, "max", sort)


def product(shape: list[int], other: list[int], slope: Any, before: Build | None = None) -> tuple[Build, Any, Any]:
    build = before or (lambda x, y: ops.matmul(x, y, False, False))
    return (
        (lambda x, y: ops.prelu(build(x, y), np.float32(slope))),
        np.ones(shape, np.float32),
        np.ones(other, np.float32),
    )


def normalized(place: int) -> Build:
    """Compare a GroupNormalization with its data."""

    def build(x: ovir.Layer) -> ovir.Layer:
        scale = ops.constant(np.ones(2, x.outputs[0].element_type.to_dtype()))
        y = ops.group_normalization(x, scale, scale, 1, 1e-3)
        return ops.greater(*((y, x) if place == 0 else (x, y)))

    return build


def to(kind: str, after: Build = lambda x: x) -> Build:
    return lambda *inputs: ops.convert(after(*inputs), kind)


def turned(before: Build) -> Build:
    return lambda x: ops.transpose(before(x), np.int64([]))


def largest(fill_mode: str) -> Build:
    return lambda x: opset16.segment_max(x, np.int64([0, 0, 2]), np.int64(3), fill_mode)


def sequence(x: ovir.Layer, lengths: ovir.Layer) -> ovir.Layer:
    """Return a sequence of a RNN with one number in its state."""
    weights = [ops.constant(np.ones(shape, np.float32)) for shape in ((1, 1, 2), (1, 1, 1), (1, 1))]
    return ops.rnn_sequence(x, np.zeros((1, 1, 1), np.float32), lengths, *weights, 1, "forward")


def pooled(kind: str, pad: int) -> Build:
    """Return a pool of four numbers, whose third window lies in the padding if this is 1."""
    if kind == "max":
        return lambda x: ops.max_pool(x, [1, 2], [1, 1], [0, 0], [0, pad], [1, 2], rounding_type="ceil")
    return lambda x: ops.avg_pool(x, [1, 2], [0, 0], [0, pad], [1, 2], True, "ceil")


def resized(mode: str, cube_coeff: float = -0.75) -> Build:
    return lambda x: ops.interpolate(x, [2, 2], mode, "sizes", cube_coeff=cube_coeff, axes=[2, 3])


COUNTS = np.arange(6).reshape(2, 3, 1)
LIMITS = "integers beyond the range"
OF_16_BITS = "a window of 16 bits without data"
EMPTY = "rounding ceil, an empty window"
FOUR = np.ones((1, 1, 1, 4), np.float32)
ENDED = "unknown sizes, ended sequences"
DIVIDE = "a Divide of 8-bit integers of unknown sizes before it"
REDUCE = "a Reduce before it without a dimension of size 1"
IMAGE = np.ones((1, 3, 4, 4), np.float32)


def aligned(data: Any, boxes: Any) -> Any:
    return opset9.roi_align(data, boxes, np.int32([0]), 2, 2, 2, 1.0, "avg", "asymmetric")


@pytest.mark.parametrize(
    ("condition", "holds", "build", "arrays", "known"),
    [
        row(EMPTY, True, pooled("avg", 1), FOUR),
        row(EMPTY, False, pooled("avg", 0), FOUR),
        row(OF_16_BITS, True, pooled("max", 1), FOUR.astype(np.float16)),
        row(OF_16_BITS, True, pooled("max", 1), of("bf16", FOUR)[0]),
        row(OF_16_BITS, False, pooled("max", 0), FOUR.astype(np.float16)),
        row(OF_16_BITS, False, pooled("max", 1), FOUR),
        row("mode bicubic_pillow, not -0.5", True, resized("bicubic_pillow"), FOUR),
        row("mode bicubic_pillow, not -0.5", False, resized("bicubic_pillow", -0.5), FOUR),
        row("8-bit integers, cubic or linear", True, resized("cubic"), FOUR.astype(np.uint8)),
        row("8-bit integers, cubic or linear", True, resized("linear_onnx"), FOUR.astype(np.uint8)),
        row("8-bit integers, cubic or linear", False, resized("nearest"), FOUR.astype(np.uint8)),
        row("8-bit integers, cubic or linear", False, resized("cubic"), FOUR),
        row(ENDED, True, sequence, np.ones((1, 3, 2), np.float32), of("i32", 2), known=False),
        row(ENDED, False, sequence, np.ones((1, 3, 2), np.float32), of("i32", 3), known=False),
        row(ENDED, False, sequence, np.ones((1, 3, 2), np.float32), of("i32", 2)),
        row("a magnitude above 0.99", True, opset17.erfinv, of("f32", 0.5, -0.995)),
        row("a magnitude above 0.99", False, opset17.erfinv, of("f32", 0.5, -0.98)),
        row("fill_mode lowest", True, largest("lowest"), of("u32", 1, 2, 3)),
        row("fill_mode lowest", False, largest("lowest"), of("i32", 1, 2, 3)),
        row("fill_mode lowest", False, largest("zero"), of("u32", 1, 2, 3)),
        row(LIMITS, True, ops.power, of("u4", 7, 15), of("u4", 5, 2)),
        row(LIMITS, False, ops.power, of("u4", 3, 15), of("u4", 2, 1)),
        row(LIMITS, True, ops.power, of("i4", -8, 2), of("i4", 2, 1)),
        row(LIMITS, True, ops.add, of("i16", 32767), of("i16", 1)),
        row(LIMITS, False, ops.add, of("i16", 32766), of("i16", 1)),
        row(LIMITS, True, ops.subtract, of("i16", -32768), of("i16", 1)),
        row(LIMITS, False, ops.subtract, of("i16", -32767), of("i16", 1)),
        row(LIMITS, True, ops.add, of("i64", 2**31 - 1), of("i64", 1)),
        row(LIMITS, False, ops.add, of("i64", 2**31 - 2), of("i64", 1)),
        row(LIMITS, False, ops.subtract, of("u32", 2**32 - 1), of("u32", 1)),
        row(LIMITS, False, ops.add, of("f16", 65504), of("f16", 65504)),
        row(LIMITS, True, ops.squared_difference, of("i16", 200), of("i16", 18)),
        row(LIMITS, False, ops.squared_difference, of("i16", 200), of("i16", 19)),
        row(LIMITS, True, ops.negative, of("i16", -32768)),
        row(LIMITS, True, ops.cum_sum, np.full((100, 100), 2, np.int8), np.array(1)),
        row(LIMITS, False, ops.cum_sum, np.ones((100, 100), np.int8), np.array(1)),
        row(LIMITS, True, lambda x, y: ops.add(x, y, "pdpd", axis=0), np.full((2, 3), 127, np.int8), of("i8", 0, 1)),
        row(LIMITS, False, lambda x, y: ops.add(x, y, "pdpd", axis=0), np.full((2, 3), 127, np.int8), of("i8", 0, 0)),
        row("8-bit integers", True, ops.squared_difference, of("i4", 1), of("i4", 0)),
        row("8-bit integers", False, ops.squared_difference, of("i16", 1), of("i16", 0)),
        row("a coordinate that is not finite", True, aligned, IMAGE, of("f32", 0, 0, np.inf, 2).reshape(1, 4)),
        row("a coordinate that is not finite", False, aligned, IMAGE, of("f32", 0, 0, 9, 2).reshape(1, 4)),
        row("an integer divided by 0", True, ops.mod, of("i32", 5, 7), of("i32", 2, 0)),
        row("an integer divided by 0", False, ops.mod, of("i32", 5, 0), of("i32", 2, 3)),
        row("an integer divided by 0", False, ops.divide, of("f32", 5, 7), of("f32", 2, 0)),
        row("NaN", True, ops.abs, of("bf16", 1, np.nan)),
        row("NaN", False, ops.abs, of("f32", 1, np.inf)),
        row("NaN", False, ops.sqrt, of("f32", 1, -1)),
        row("f16 beyond its range", True, ops.exp, of("f16", 1, 12)),
        row("f16 beyond its range", False, ops.exp, of("f16", 1, 11)),
        row("negative integers, m_pythondiv", True, ops.divide, of("i4", 0, 7), of("i4", 2, -3)),
        row("negative integers, m_pythondiv", False, ops.divide, of("i4", 0, 7), of("i4", 2, 3)),
        row("negative integers, m_pythondiv", False, ops.divide, of("f32", -7, 7), of("f32", 2, 3)),
        row("negative integers, m_pythondiv", False, partial(ops.divide, m_pythondiv=False), of("i4", -7), of("i4", 2)),
        row("integers that f32 does not hold", True, ops.equal, of("i32", 2**24 + 1), of("i32", 0)),
        row("integers that f32 does not hold", False, ops.equal, of("i32", 2**24 + 2), of("i32", -(2**30))),
        row("integers that f32 does not hold", True, ops.add, of("i32", 2**24), of("i32", 1)),
        row("integers that f32 does not hold", True, ops.divide, of("u32", 2**25 + 1), of("u32", 1)),
        row("integers that f32 does not hold", False, ops.abs, of("f64", 0.1)),
        row("integers beyond 32 bits", True, ops.abs, of("i64", 0, -(2**31) - 1)),
        row("integers beyond 32 bits", False, ops.floor, of("i64", 0, -(2**31), 2**31 - 1)),
        row("integers beyond 32 bits", True, ops.abs, of("u32", 0, 2**31)),
        row("integers beyond 32 bits", True, ops.add, of("u64", 2**30), of("u64", 2**30)),
        row("integers beyond 32 bits", False, ops.abs, of("f64", 0.5)),
        row("f64 beyond f32", True, ops.abs, of("f64", 1, -1e39)),
        row("f64 beyond f32", False, ops.abs, of("f64", 1e38, np.inf, np.nan)),
        row("f64 beyond f32", False, ops.abs, of("i64", 2**62)),
        row("numbers beyond the integer type", False, to("i8"), of("f32", 0, 127.9)),
        row("numbers beyond the integer type", True, to("i8"), of("f32", 0, 128)),
        row("numbers beyond the integer type", False, to("i8"), of("f32", 0, -128.9)),
        row("numbers beyond the integer type", True, to("i8"), of("f32", 0, -129)),
        row("numbers beyond the integer type", True, to("i8"), of("f32", 0, np.nan)),
        row("numbers beyond the integer type", True, to("i8"), of("i16", 0, 128)),
        row("numbers beyond the integer type", False, to("i8"), of("u8", 0, 200)),
        row("numbers beyond the integer type", False, to("f16"), of("f32", 1e6)),
        row("equal elements", True, topk(0, "index"), COUNTS // 3 * 0),
        row("equal elements", False, topk(0, "value"), COUNTS // 3 * 0),
        row("equal elements", True, topk(0, "value"), COUNTS // 3 * 0, known=False),
        row("equal elements", False, topk(0, "index"), COUNTS // 3),
        row("equal elements", True, topk(1, "index"), COUNTS // 3),
        row("equal elements", True, topk(0, "index"), of("i32", 1, 0, 1)),
        row("slopes for the rows of a product", True, *product([2, 3, 4], [2, 4, 3], [1, 2, 3])),
        row("slopes for the rows of a product", True, *product([2, 3, 5, 4], [2, 3, 4, 3], [1, 2, 3])),
        row("slopes for the rows of a product", False, *product([3, 4], [4, 3], [1, 2, 3])),
        row("slopes for the rows of a product", False, *product([2, 3, 4], [2, 4, 5], [1, 2, 3])),
        row("slopes for the rows of a product", False, *product([2, 3, 4], [2, 4, 3], [2])),
        row("slopes for the rows of a product", False, *product([2, 1, 4], [2, 4, 1], [2])),
        row("slopes for the rows of a product", False, *product([2, 3, 4], [2, 4, 3], np.ones((3, 1)))),
        row("slopes for the rows of a product", False, *product([2, 3, 3], [2, 3, 3], [1, 2, 3], ops.add)),
        row("a 1x1 kernel, strides and pads", True, convolved((1, 1), [1, 2], [0, 1, 0, 0]), IMAGE),
        row("a 1x1 kernel, strides and pads", True, convolved((1, 1), [2, 1], [0, 0, 1, 0]), IMAGE),
        row("a 1x1 kernel, strides and pads", False, convolved((1, 1), [1, 1], [0, 1, 1, 0]), IMAGE),
        row("a 1x1 kernel, strides and pads", False, convolved((1, 1), [2, 2], [0, 0, 0, 0]), IMAGE),
        row("a 1x1 kernel, strides and pads", False, convolved((2, 1), [2, 2], [1, 1, 1, 1]), IMAGE),
        row("a 1x1 kernel, strides and pads", False, convolved((1, 1), [2, 2], [1, 1, 1, 1], lambda x: x), IMAGE),
        row(DIVIDE, True, to("f32", after=ops.divide), of("i8", 1, 4), of("i8", 1, 2), known=False),
        row(DIVIDE, False, to("f32", after=ops.divide), of("i8", 1, 4), of("i8", 1, 2), known=True),
        row(DIVIDE, False, to("f32", after=ops.divide), of("i16", 1, 4), of("i16", 1, 2), known=False),
        row(DIVIDE, False, to("i32", after=ops.divide), of("i8", 1, 4), of("i8", 1, 2), known=False),
        row(DIVIDE, False, to("f32", after=ops.add), of("i8", 1, 4), of("i8", 1, 2), known=False),
        row("a Convert to integers before it", True, lambda x: ops.non_zero(to("i32")(x)), of("f32", 1)),
        row("a Convert to integers before it", False, lambda x: ops.non_zero(to("i32")(x)), of("i8", 1)),
        row("a Convert to integers before it", False, lambda x: ops.non_zero(to("f16")(x)), of("f32", 1)),
        row("a Convert to integers before it", False, lambda x: ops.non_zero(ops.floor(x)), of("i32", 1)),
        row(REDUCE, True, turned(partial(ops.reduce_sum, reduction_axes=[0])), np.ones([2, 1, 3], np.float32)),
        row(
            REDUCE,
            False,
            turned(partial(ops.reduce_sum, reduction_axes=[0], keep_dims=True)),
            np.ones([2, 1, 3], np.float32),
        ),
        row(REDUCE, False, turned(partial(ops.reduce_sum, reduction_axes=[0])), np.ones([2, 2, 3], np.float32)),
        row(REDUCE, False, turned(ops.abs), np.ones([1, 2], np.float32)),
        row("a GroupNormalization of f16 before it", True, normalized(0), np.ones((1, 2), "float16")),
        row("a GroupNormalization of f16 before it", True, normalized(1), np.ones((1, 2), "float16")),
        row("a GroupNormalization of f16 before it", False, normalized(1), np.ones((1, 2), "float32")),
        row(
            "a GroupNormalization of f16 before it",
            False,
            lambda x: ops.greater(x, ops.abs(x)),
            np.ones((1, 2), "float16"),
        ),
        row("unused rows", True, ops.floor, np.float32([[1, 2], [0, -1]])),
        row("unused rows", True, ops.floor, np.float32([[0, -1]])),
        row("unused rows", False, ops.floor, np.float32([[0, -1], [0, 1]])),
        row("unused rows", False, ops.floor, np.float32([[0, 0], [-2, 0]])),
        row("unused rows", False, ops.floor, np.ones((0, 2), np.float32)),
        row("unused rows", False, ops.floor, np.float32(0)),
    ],
)
def test_conditions_look_at_a_layer_and_its_arrays(
    condition: str, holds: bool, build: Build, arrays: Any, known: bool
) -> None:
    assert bool(CONDITIONS[condition](last_step(build, *arrays, known=known))) == holds


def test_a_layer_of_a_file_may_lack_attributes() -> None:
    patches = np.ones((1, 4, 4), np.float32)
    for dilations, holds in ({"dilations": "1,1"}, False), ({}, True):
        net = Net()
        sizes = [net.const(np.array([side, side])) for side in (3, 2)]
        given = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", **dilations}
        net.result(net.op("Col2Im", net.parameter("x", "1,4,4"), *sizes, opset=15, **given))
        layer = next(layer for layer in net.model().layers if layer.type == "Col2Im")
        assert CONDITIONS["an attribute left out"](Seen(layer, [patches], [])) == holds


def test_a_layer_may_read_a_constant() -> None:
    for data, holds in (ops.constant(X), True), (ops.parameter([1, 4], "f32"), False):
        assert CONDITIONS["a constant"](Seen(ops.grn(data, 1.0), [X], [X])) == holds


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
