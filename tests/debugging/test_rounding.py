"""A difference between a model and its export is called rounding only where that is proven."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.analysis.tensor_comparison import Criterion, Tolerance
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.graph.layers import Layer

for package in ("onnx", "onnx_ir", "onnxruntime"):
    pytest.importorskip(package, reason=f"the comparison of exported models needs {package}")

from ovir.debugging import export_check, rounding  # noqa: E402  # they import these packages
from ovir.export.model_exporter import export_model  # noqa: E402
from ovir.export.session import OnnxRuntimeSession  # noqa: E402

RANDOM = np.random.default_rng(3)
SCALE = np.float32(0.1)


def quantized(x: Layer) -> Layer:
    ends = np.float32(-25.5), np.float32(25.5)
    return ops.fake_quantize(ops.multiply(x, SCALE), *ends, *ends, 511)


def of_image(x: Layer, mode: str = "linear") -> Layer:
    return ovir.opset11.interpolate(x, np.int64([33, 47]), mode, "sizes", axes=np.int64([2, 3]))


def of_camera(x: Layer) -> Layer:
    return of_image(ops.transpose(ops.nv12_to_rgb(x), [0, 3, 1, 2]), "cubic")


FLOATS = (RANDOM.integers(-600, 600, (64, 64)) * 0.5).astype(np.float32)
IMAGE = RANDOM.integers(0, 256, (1, 3, 20, 30), dtype=np.uint8)
ROUNDING: dict[str, tuple[Callable[[Layer], Layer], Array]] = {
    "FakeQuantize": (quantized, FLOATS),
    "FakeQuantize twice": (lambda x: quantized(ops.multiply(quantized(x), np.float32(7))), FLOATS),
    "FakeQuantize before a product": (
        lambda x: ops.matmul(quantized(x), RANDOM.standard_normal((64, 8)).astype(np.float32), False, False),
        FLOATS,
    ),
    "Round": (lambda x: ops.round(ops.multiply(x, SCALE * 10), "half_to_even"), FLOATS),
    "Convert": (lambda x: ops.convert(ops.multiply(x, SCALE * 2), "i32"), FLOATS),
    "Interpolate": (of_image, IMAGE),
    **{f"Interpolate, {mode}": (partial(of_image, mode=mode), IMAGE) for mode in ("linear_onnx", "cubic")},
    **{
        f"NV12 and Interpolate, {i}": (of_camera, np.random.default_rng(i).integers(0, 256, (1, 36, 32, 1), np.uint8))
        for i in range(6)
    },
    "Interpolate before arithmetic": (
        lambda x: ops.multiply(ops.subtract(ops.convert(of_image(x), "f32"), np.float32(120)), np.float32(1 / 58)),
        IMAGE,
    ),
}


def verified(make: Callable[[Layer], Layer], array: Array) -> export_check.Verification:
    x = ops.parameter(list(array.shape), str(ElementType.from_dtype(array.dtype)), name="x")
    model = ovir.Model([make(x)], [x])
    return export_check.verify_export(model, export_model(model, 21), [array])


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDING)
def test_differences_at_ties_are_proven(name: str) -> None:
    found = verified(*ROUNDING[name])
    assert found.agrees
    assert found.within == (found.rounding is None)


NEAR_AND_FAR: dict[str, tuple[Callable[[Layer], Layer], float, float, float]] = {
    "FakeQuantize": (lambda x: ops.fake_quantize(x, *map(np.float32, (0, 20, 0, 20)), 21), 2.5, 2.3, 1.0),
    "Round": (lambda x: ops.round(x, "half_to_even"), 2.5, 2.3, 1.0),
    "Floor": (ops.floor, 3.0, 2.5, -1.0),
    "Convert": (lambda x: ops.convert(x, "i32"), 3.0, 2.5, -1.0),
}


@pytest.mark.parametrize("is_near", [True, False])
@pytest.mark.parametrize("name", NEAR_AND_FAR)
def test_only_differences_at_ties_are_proven(name: str, is_near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    make, near, far, step = NEAR_AND_FAR[name]
    _shift_first_element(monkeypatch, step)
    found = verified(make, np.full((2, 3), near if is_near else far, np.float32))
    assert not found.within
    assert found.agrees == is_near


def with_variable(x: Layer, *, grows: bool) -> ovir.Model:
    """Return a model whose variable keeps what it has rounded, or the sum of it."""
    rows = 0 if grows else 2
    before = ops.read_value(ops.constant(np.zeros((rows, 3), np.float32)), "seen", "f32", [-1 if grows else rows, 3])
    rounded = ops.round(x, "half_to_even")
    after = ops.concat([before, rounded], 0) if grows else ops.add(before, rounded)
    return ovir.Model([ops.relu(after)], [x], sinks=[ops.assign(after, "seen")])


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("is_near", [True, False])
def test_differences_with_variables(grows: bool, is_near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    _shift_first_element(monkeypatch, 1.0)
    x = ops.parameter([2, 3], "f32", name="x")
    model = with_variable(x, grows=grows)
    array = np.full((2, 3), 2.5 if is_near else 2.3, np.float32)
    found = export_check.verify_export(model, export_model(model, 21), [array])
    assert not found.within
    assert found.agrees == is_near
    assert {output.call for output in found.outputs} == ({0} if grows else {0, 1})


def test_a_variable_has_what_the_first_call_left(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[Any] = []
    run = OnnxRuntimeSession.run

    def recorded(self: Any, feeds: Any, outputs: Sequence[str]) -> list[Array]:
        fed.append([array.tolist() for array in feeds.values()])
        return run(self, feeds, outputs)

    monkeypatch.setattr(OnnxRuntimeSession, "run", recorded)
    x = ops.parameter([2, 3], "f32", name="x")
    model = with_variable(x, grows=False)
    assert export_check.verify_export(model, export_model(model, 21), [np.full((2, 3), 2.3, np.float32)]).within
    assert [state for _, state in fed] == [np.zeros((2, 3)).tolist(), np.full((2, 3), 2).tolist()]


@pytest.mark.parametrize(
    ("mode", "step"),
    [("linear", 1), ("linear", -1), ("linear_onnx", 1), ("linear_onnx", -2), ("cubic", 1), ("cubic", -2)],
)  # 99 may be a truncated 100
def test_other_numbers_in_an_image_are_not_proven(step: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _shift_first_element(monkeypatch, step)
    assert not verified(partial(of_image, mode=mode), np.full((1, 3, 20, 30), 100, np.uint8)).agrees


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_what_follows_a_rounding_layer_must_agree(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    run = OnnxRuntimeSession.run

    def scaled(self: Any, arrays: Any, outputs: Sequence[str]) -> list[Array]:
        first, *rest = run(self, arrays, outputs)
        return [first * np.float32(factor), *rest]

    monkeypatch.setattr(OnnxRuntimeSession, "run", scaled)
    assert verified(*ROUNDING["FakeQuantize before a product"]).agrees == (factor == 1.0)


def _shift_first_element(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    """Let onnxruntime round the first element of each tensor to the next number."""
    run = OnnxRuntimeSession.run

    def shifted(self: Any, arrays: Any, outputs: Sequence[str]) -> list[Array]:
        found = [array.copy() for array in run(self, arrays, outputs)]
        for array in found:
            array.flat[0] = array.flat[0].item() + step
        return found

    monkeypatch.setattr(OnnxRuntimeSession, "run", shifted)


def test_nothing_is_proven_if_a_piece_cannot_be_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ops.parameter([2], "f32")
    model, refused = ovir.Model([ops.round(x)], [x]), Mock(side_effect=ovir.ModelError(diagnose(ENGINE, "refused")))
    monkeypatch.setattr(rounding, "_rounded_by_export", refused)
    assert rounding.differ_by_rounding(model, Mock(), [], [], Criterion()) is False
    refused.assert_called_once()


@pytest.mark.parametrize(
    ("place", "values"),
    [((0, 1), {10, 11}), ((0, 2), {11, 12}), ((1, 1), {10}), ((1, 2), {11}), ((1, 3), {11}), ((2, 1), {255})],
)
def test_which_integers_of_an_image_rounding_explains(place: tuple[int, int], values: set[int]) -> None:
    """The second row shows that numbers are rounded to the nearest integer: 10.25 and 10.75 become 10 and 11."""
    image = np.uint8([[[[10, 12], [10, 11], [255, 255]]]])
    x = ops.parameter([1, 1, 3, 2], "u8", name="x")
    sizes, axes = np.int64([3, 4]), np.int64([2, 3])
    layer = ovir.opset11.interpolate(x, sizes, "linear", "sizes", axes=axes)
    (own,) = ovir.compile_model(ovir.Model([layer], [x]))([image]).values()
    accepted = set()
    for value in (9, 10, 11, 12, 13, 254, 255):
        changed = own.copy()
        changed[0, 0][place] = value
        if rounding._rounds_near_ties(layer, [image, sizes, axes], changed, Tolerance(1e-5)):
            accepted.add(value)
    assert accepted == values
