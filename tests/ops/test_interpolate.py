"""Interpolate in its three versions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.tensors import const, reports, tensor

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import bf16, f16, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_bounds
from ovir.fast.base import resamples
from ovir.kernels.resample import Method, taps
from ovir.ops.interpolate import Interpolate1, Interpolate4, Interpolate11


def floats(values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def resized(data: Any, sizes: list[int], axes: list[int] | None = None, **attributes: Any) -> np.ndarray[Any, Any]:
    inputs = [np.asarray(data), np.array(sizes)]
    if axes is not None:
        inputs.append(np.array(axes))
    return Interpolate11(**attributes).run(*inputs)


# --------------------------------------------------------------------------- kernels


@pytest.mark.parametrize(
    ("nearest", "up", "down"),
    [  # positions 0, 0.5, ... 3.5 and 0, 1.33, 2.67
        ("round_prefer_floor", [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 3]),
        ("round_prefer_ceil", [0, 1, 1, 2, 2, 3, 3, 3], [0, 1, 3]),
        ("floor", [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 2]),
        ("ceil", [0, 1, 1, 2, 2, 3, 3, 3], [0, 2, 3]),
        ("simple", [0, 0, 1, 1, 2, 2, 3, 3], [0, 2, 3]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, f16.to_dtype(), bf16.to_dtype()])
def test_nearest(nearest: str, up: list[int], down: list[int], dtype: Any) -> None:
    data = np.arange(4).astype(dtype)
    how: dict[str, Any] = {"mode": "nearest", "nearest_mode": nearest, "coordinate_transformation_mode": "asymmetric"}
    for expected in (up, down):
        result = resized(data, [len(expected)], **how)
        assert result.dtype == dtype
        assert result.astype(int).tolist() == expected


@pytest.mark.parametrize(
    ("coordinates", "expected", "single"),
    [
        ("half_pixel", [0, 2.5, 7.5, 10], 5),
        ("pytorch_half_pixel", [0, 2.5, 7.5, 10], 0),
        ("asymmetric", [0, 5, 10, 10], 0),
        ("tf_half_pixel_for_nn", [2.5, 7.5, 10, 10], 10),
        ("align_corners", [0, 10 / 3, 20 / 3, 10], 0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_coordinates(coordinates: str, expected: list[float], single: float, dtype: Any) -> None:
    data = np.array([0, 10], dtype)
    how: dict[str, Any] = {"mode": "linear_onnx", "coordinate_transformation_mode": coordinates}
    np.testing.assert_allclose(resized(data, [4], **how), np.array(expected, dtype), rtol=1e-6)
    np.testing.assert_allclose(resized(data, [1], **how), np.array([single]))
    np.testing.assert_allclose(resized(data, [2], **how), data)  # what keeps its length is not moved


def test_linear_weighs_what_lies_inside() -> None:
    # At the ends `linear` has one neighbor only, and far outside none at all.
    assert resized(floats([0, 10]), [4], mode="linear").tolist() == [0, 2.5, 7.5, 10]
    outside: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    assert resized(floats([1, 2, 3, 4, 5, 6]), [1], **outside).tolist() == [4]
    assert resized(floats([1, 2]), [1], **outside).tolist() == [2]
    assert resized(floats([5]), [2], **outside).tolist() == [5, 5]


def test_antialias_widens_the_triangle() -> None:
    data = np.arange(1, 7, dtype=np.float32)
    np.testing.assert_allclose(resized(data, [2], mode="linear", antialias=True), [2.25, 4.75], rtol=1e-6)
    assert resized(data, [2], mode="linear").tolist() == [2, 5]
    for other in ("linear_onnx", "cubic", "nearest"):
        np.testing.assert_array_equal(
            resized(data, [2], mode=other, antialias=True), resized(data, [2], mode=other, antialias=False)
        )


def test_antialias_narrows_the_triangle_of_an_axis_that_grows() -> None:
    # By the specification its width follows the scale of each axis, so that a growing one has holes.
    result = resized(np.ones((4, 2), np.float32), [2, 8], mode="linear", antialias=True)
    assert result[0].tolist() == [0, 1, 1, 0, 0, 1, 1, 0]


def test_cubic() -> None:
    data = np.arange(6, dtype=np.float32)
    result = resized(data, [12], mode="cubic", cube_coeff=-0.5)
    np.testing.assert_allclose(result[3:-3], (np.arange(12) / 2 - 0.25)[3:-3], atol=1e-6)
    step = resized(floats([0, 0, 1, 1]), [8], mode="cubic")
    expected = [0, -0.03515625, -0.10546875, 0.2265625, 0.7734375, 1.10546875, 1.03515625, 1]
    np.testing.assert_allclose(step, expected, atol=1e-6)


@pytest.mark.parametrize("sizes", [(5, 3), (4, 9), (7, 7), (1, 4), (3, 1)])
@pytest.mark.parametrize(("mode", "reach"), [("bilinear_pillow", 1), ("bicubic_pillow", 2)])
def test_the_filters_of_pillow(mode: str, reach: int, sizes: tuple[int, int]) -> None:
    """By their definition: a triangle and Keys' kernel, as wide as the pixels that are merged, over pixel centers."""
    (size, length), a = sizes, -0.6

    def weight(x: float) -> float:
        x = abs(x)
        if reach == 1:
            return max(1 - x, 0)
        if x < 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0

    step, data = size / length, np.random.default_rng(size).normal(size=size)
    width, expected = max(step, 1), []
    for i in range(length):
        weights = np.array([weight((j + 0.5 - (i + 0.5) * step) / width) for j in range(size)])
        expected.append(weights @ data / weights.sum())
    found = resized(data[np.newaxis], [1, length], mode=mode, cube_coeff=a)
    np.testing.assert_allclose(found, [expected], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("mode", ["linear", "linear_onnx"])
def test_integers_of_an_axis_that_keeps_its_length_by_a_scale(mode: str) -> None:
    op = Interpolate11(mode=mode, shape_calculation_mode="scales")
    assert op.run(np.array([0, 30, 10, 50]), floats([1.2])).tolist() == [0, 30, 10, 50]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("linear", [0, 64, 191, 255]),
        ("linear_onnx", [0, 63, 191, 255]),
        ("bilinear_pillow", [0, 64, 191, 255]),
        ("cubic", [0, 57, 197, 255]),
    ],
)
def test_integers_are_rounded_or_cut(mode: str, expected: list[int]) -> None:
    result = resized(np.array([[0, 255]], np.uint8), [1, 4], mode=mode)
    assert result.dtype == np.uint8
    assert result.tolist() == [expected]
    wide = resized(np.array([[0, 2**40]]), [1, 4], mode="linear")
    assert wide.tolist() == [[0, 2**38, 3 * 2**38, 2**40]]


@pytest.mark.parametrize("mode", ["bilinear_pillow", "bicubic_pillow"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_the_modes_of_pillow_round_halves_away_from_zero_after_each_axis(dtype: Any, mode: str) -> None:
    def mean(pixels: list[list[int]]) -> Any:
        return resized(np.array(pixels, dtype), [1, 1], mode=mode, cube_coeff=-0.5).tolist()

    assert mean([[1, 2]]) == [[2]]
    assert mean([[0, 1], [0, 0]]) == [[1]]
    if dtype != np.uint8:
        assert mean([[-1, -2]]) == [[-2]]
        assert mean([[0, -1], [0, 0]]) == [[-1]]


def test_integers_saturate() -> None:
    wave = np.array([-128, -128, 127, 127], np.int8)
    result = resized(wave, [16], mode="cubic")
    assert (result.min(), result.max()) == (-128, 127)
    assert np.all(np.diff(result.astype(int)) >= 0)
    huge = np.array([[2**63 - 1, 2**63 - 1]])
    assert resized(huge, [1, 3], mode="linear")[0, 0] > 2**62


@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("axes", [[2, 3], [1, 2], [0, 1]])
def test_blocks_and_axes_do_not_show(mode: str, dtype: Any, axes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(3).integers(0, 255, (3, 5, 6, 4)).astype(dtype)
    whole = resized(data, [9, 3], axes, mode=mode)
    order = [axis for axis in range(4) if axis not in axes] + axes
    moved = resized(data.transpose(order), [9, 3], [2, 3], mode=mode)
    monkeypatch.setattr(resamples, "_MOST_ELEMENTS", 0)
    monkeypatch.setattr(resamples, "_BLOCK_ELEMENTS", 8)
    x = ops.parameter(data.shape, data.dtype)
    layer = ops.interpolate(x, np.array([9, 3]), mode, "sizes", axes=np.array(axes))
    parts = ovir.compile_model(ovir.Model([layer], [x]))([data])[0]
    if dtype == np.uint8:
        np.testing.assert_array_equal(parts, whole)
        np.testing.assert_array_equal(moved, whole.transpose(order))
    else:
        np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(moved, whole.transpose(order), rtol=1e-5, atol=1e-4)


def test_pads_are_zeros_around_the_data() -> None:
    how: dict[str, Any] = {"pads_begin": (1,), "pads_end": (0, 1, 9), "nearest_mode": "floor"}
    result = resized(np.array([[1, 2]], np.int32), [4, 3], coordinate_transformation_mode="asymmetric", **how)
    assert result.tolist() == [[0, 0, 0], [0, 0, 0], [1, 2, 0], [1, 2, 0]]


def test_scales() -> None:
    data = np.arange(4, dtype=np.float32)
    op = Interpolate11(shape_calculation_mode="scales", coordinate_transformation_mode="asymmetric")
    assert op.run(data, floats([1.3])).tolist() == [0, 1, 2, 2, 3]
    assert op.run(data, np.array([0.5], np.float16)).tolist() == [0, 2]
    assert op.run(data[:3], floats([1 / 3])).tolist() == [0]  # f32's 1/3 makes 1 of 3
    assert op.run(data, floats([1.2])).tolist() == data.tolist()


def test_version_4_reads_one_of_its_inputs() -> None:
    data, sizes, scales = floats([[1, 2]]), np.array([4]), floats([3])
    axes = np.array([1])
    assert Interpolate4(mode="nearest").run(data, sizes, scales, axes).tolist() == [[1, 1, 2, 2]]
    by_scales = Interpolate4(mode="nearest", shape_calculation_mode="scales")
    assert by_scales.run(data, sizes, scales, axes).tolist() == [[1, 1, 1, 2, 2, 2]]
    assert by_scales.run(data, sizes, floats([2, 1])).tolist() == [[1, 2], [1, 2]]


# --------------------------------------------------------------------------- version 1


def test_version_1_modes() -> None:
    image = floats([[[[0, 10]]]])
    size = np.array([4])
    assert Interpolate1(axes=(3,), mode="linear").run(image, size).ravel().tolist() == pytest.approx(
        [0, 10 / 3, 20 / 3, 10]
    )
    plain = {"mode": "linear", "align_corners": False}
    assert Interpolate1(axes=(3,), **plain).run(image, size).ravel().tolist() == [0, 2.5, 7.5, 10]
    both = np.array([1, 4])
    assert Interpolate1(axes=(2, 3), **plain).run(image, both).ravel().tolist() == [0, 5, 10, 10]
    assert Interpolate1(axes=(3,), mode="nearest", align_corners=False).run(image, np.array([3])).ravel().tolist() == [
        0,
        0,
        10,
    ]
    padded = Interpolate1(axes=(3,), pads_begin=(1,), pads_end=(1,), mode="nearest", align_corners=False)
    assert padded.run(image, size).ravel().tolist() == [0, 0, 10, 0]


def test_version_1_takes_axes_in_ascending_order() -> None:
    op = Interpolate1(axes=(1, 0), mode="nearest")
    assert str(op.infer(tensor("2,2"), const([3, 4])).shape) == "[3,4]"
    with reports() as seen:
        assert op.run(np.zeros((2, 2), np.float32), np.array([3, 4])).shape == (3, 4)
    assert seen == ["axes [1, 0] are resized in ascending order; the specification says in the given order"]


# --------------------------------------------------------------------------- inference


def test_scales_between_bounds() -> None:
    between = from_bounds(f32, np.array([0.5, 2.0]), np.array([1.0, np.inf]))
    scales = TensorType(f32, PartialShape([2]), between)
    result = Interpolate11(shape_calculation_mode="scales").infer(tensor("8..10,4"), scales)
    assert str(result.shape) == "[4..10,8..]"


def test_sizes_of_another_tensor_keep_their_symbols(tmp_path: Path) -> None:
    net = Net()
    small, large = net.parameter("small", "1,8,?,2..5"), net.parameter("large", "1,?,?,?")
    shape = net.op("ShapeOf", large, opset=3, output_type="i64")
    sizes = net.op("Gather", shape, net.const([2, 3]), net.const(0), opset=8)
    resize = net.op("Interpolate", small, sizes, net.const([2, 3]), opset=11, mode="linear_onnx")
    double = net.op("Multiply", net.op("ShapeOf", small, opset=3, output_type="i64"), net.const([1, 1, 2, 2]))
    twice = net.op("Interpolate", small, double, opset=11, mode="nearest")
    net.op("Result", net.op("Concat", resize, large, axis=1))
    net.op("Result", twice)
    model = ovir.read_model(net.write(tmp_path))
    joined, doubled = model.outputs
    assert str(doubled.shape) == "[1,8,?,4..10]"
    given = next(port for port in model.inputs if "large" in port.layer.name)
    assert [dim.symbol for dim in joined.shape][2:] == [dim.symbol for dim in given.shape][2:]


def test_taps_that_are_shared_cannot_be_changed() -> None:
    for mode in ("nearest", "linear", "cubic", "bilinear_pillow"):
        found = taps(Method(mode), 4, 8, 2.0)
        assert not any(array.flags.writeable for array in (found.index, found.weight, found.unit))
