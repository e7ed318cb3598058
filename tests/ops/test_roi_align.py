"""ROIAlign and ROIAlignRotated: known answers, a plain computation to compare with, and what is refused."""

from itertools import product
from math import ceil, floor, pi
from typing import Any

import numpy as np
import pytest

from ovir.diagnostics.errors import OperatorError
from ovir.ops.roi_align import ROIAlign3, ROIAlign9, ROIAlignRotated

rng = np.random.default_rng(5)

# Interpolation gives of a plane 10 y + x the number itself.
PLANE = (10 * np.arange(8)[:, np.newaxis] + np.arange(8)).astype(np.float32)[np.newaxis, np.newaxis]


def boxes(*rows: Any) -> Any:
    return np.array(rows, np.float32)


def images(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


def align(rois: Any, data: Any = PLANE, *, pooled: int = 1, ratio: int = 2, scale: float = 1, **attributes: str) -> Any:
    op = ROIAlign9(pooled_h=pooled, pooled_w=pooled, sampling_ratio=ratio, spatial_scale=scale, **attributes)
    return op.run(data, rois, images(*[0] * len(rois)))


# ----- known answers


@pytest.mark.parametrize(("mode", "center"), [("asymmetric", 1.5), ("half_pixel_for_nn", 1.0), ("half_pixel", 1.25)])
def test_where_scaled_regions_lie(mode: str, center: float) -> None:
    found = align(boxes([1, 1, 5, 5]), scale=0.5, aligned_mode=mode)
    np.testing.assert_allclose(found.reshape(-1), [11 * center], rtol=1e-6)


def test_a_side_shorter_than_a_pixel() -> None:
    point = boxes([2, 2, 2, 2])
    assert align(point).item() == 27.5  # as if it were a pixel long
    assert align(point, aligned_mode="half_pixel").item() == 22
    assert align(point, aligned_mode="half_pixel", ratio=0).item() == 0  # no samples
    assert align(boxes([5, 5, 1, 1]), aligned_mode="half_pixel", ratio=0).item() == 0


def test_what_is_no_number_is_outside() -> None:
    assert align(boxes([np.nan, 0, np.inf, 2])).item() == 0
    assert align(boxes([np.nan, 0, np.nan, 2]), ratio=0, aligned_mode="half_pixel").item() == 0


def test_an_infinite_pixel_is_seen_only_where_it_is_touched() -> None:
    data = PLANE.copy()
    data[0, 0, 7, 7] = np.inf
    assert np.isfinite(align(boxes([0, 0, 5, 5], [0, 0, 6, 6]), data, pooled=3)).all()
    assert not np.isfinite(align(boxes([6, 6, 8, 8]), data)).any()


def test_each_region_has_its_image_and_minus_one_ends_the_list() -> None:
    data = np.stack([np.full((3, 4, 4), number, np.float32) for number in (1, 2)])
    op = ROIAlign3(pooled_h=1, pooled_w=2, sampling_ratio=1, spatial_scale=1.0)
    found = op.run(data, boxes(*[[0, 0, 2, 2]] * 4), np.array([1, 0, -1, 1]))
    assert found.shape == (4, 3, 1, 2)
    assert found[:, 2, 0, 1].tolist() == [2, 1, 0, 0]


@pytest.mark.parametrize(("angle", "clockwise", "turns"), [(0, False, 0), (pi / 2, False, -1), (pi / 2, True, 1)])
def test_rotation_by_right_angles(angle: float, clockwise: bool, turns: int) -> None:
    """A region that is turned one way shows its content turned the other way."""
    op = ROIAlignRotated(pooled_h=2, pooled_w=2, sampling_ratio=2, spatial_scale=1.0, clockwise_mode=clockwise)
    found = op.run(PLANE, boxes([3.5, 3.5, 4, 4, angle]), images(0))
    upright = align(boxes([1.5, 1.5, 5.5, 5.5]), pooled=2, aligned_mode="half_pixel_for_nn")
    np.testing.assert_allclose(found[0, 0], np.rot90(upright[0, 0], turns), rtol=1e-5)


# ----- against a plain computation


def plainly(data: Any, region: list[float], bins: tuple[int, int], ratio: int, largest: bool, turn: float) -> Any:
    """One region [y, x, height, width] with the center moved by ``turn`` radians, in Python numbers."""
    _, height, width = data.shape
    y0, x0, *sides = region
    counts = [ratio or max(ceil(side / count), 0) for side, count in zip(sides, bins, strict=True)]
    out = np.zeros((len(data), *bins))
    for row, column in product(range(bins[0]), range(bins[1])):
        samples = []
        for i, j in product(range(counts[0]), range(counts[1])):
            y = y0 + sides[0] / bins[0] * (row + (i + 0.5) / counts[0])
            x = x0 + sides[1] / bins[1] * (column + (j + 0.5) / counts[1])
            if turn:
                cy, cx = y0 + sides[0] / 2, x0 + sides[1] / 2
                point = complex(x - cx, y - cy) * np.exp(-1j * turn)
                y, x = point.imag + cy, point.real + cx
            if not (-1 <= y <= height and -1 <= x <= width):
                samples.append(np.zeros(len(data)))
                continue
            y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
            top, left = floor(y), floor(x)
            bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
            upper = data[:, top, left] * (1 - x + left) + data[:, top, right] * (x - left)
            lower = data[:, bottom, left] * (1 - x + left) + data[:, bottom, right] * (x - left)
            samples.append(upper * (1 - y + top) + lower * (y - top))
        if samples:
            out[:, row, column] = np.max([*samples, 0 * samples[0]], 0) if largest else np.mean(samples, 0)
    return out


@pytest.mark.parametrize(("mode", "ratio", "dtype"), list(product(("avg", "max"), (0, 1, 3), (np.float32, np.float64))))
def test_against_a_plain_computation(mode: str, ratio: int, dtype: Any) -> None:
    data = rng.normal(size=(2, 3, 7, 5)).astype(dtype)
    rois = np.sort(rng.uniform(-4, 12, (9, 2, 2)), axis=1).reshape(9, 4).astype(dtype)
    numbers = np.arange(9) % 2
    op = ROIAlign9(
        pooled_h=3, pooled_w=2, sampling_ratio=ratio, spatial_scale=0.75, mode=mode, aligned_mode="half_pixel"
    )
    found = op.run(data, rois, numbers)
    assert found.dtype == dtype
    for roi, number, bins in zip(rois.tolist(), numbers, found, strict=True):
        x0, y0, x1, y1 = ((c + 0.5) * 0.75 - 0.5 for c in roi)
        region = [y0, x0, y1 - y0, x1 - x0]
        np.testing.assert_allclose(bins, plainly(data[number], region, (3, 2), ratio, mode == "max", 0), 1e-4, 1e-5)


@pytest.mark.parametrize("ratio", [0, 2])
def test_rotated_against_a_plain_computation(ratio: int) -> None:
    data = rng.normal(size=(1, 2, 6, 8)).astype(np.float32)
    rois = np.concatenate([rng.uniform(0, 8, (6, 4)), rng.uniform(-4, 4, (6, 1))], axis=1).astype(np.float32)
    op = ROIAlignRotated(pooled_h=2, pooled_w=3, sampling_ratio=ratio, spatial_scale=1.0)
    for (x, y, width, height, angle), bins in zip(rois.tolist(), op.run(data, rois, images(*[0] * 6)), strict=True):
        region = [y - 0.5 - height / 2, x - 0.5 - width / 2, height, width]
        np.testing.assert_allclose(bins, plainly(data[0], region, (2, 3), ratio, False, angle), 1e-4, 1e-5)


@pytest.mark.parametrize(("shape", "count"), [((1, 2, 4, 4), 0), ((1, 0, 4, 4), 2), ((1, 2, 0, 4), 2)])
def test_nothing_to_pool(shape: tuple[int, ...], count: int) -> None:
    found = align(np.ones((count, 4), np.float32), np.ones(shape, np.float32))
    assert found.shape == (count, shape[1], 1, 1)
    assert not found.any()


# ----- inference


def test_what_a_run_refuses() -> None:
    op = ROIAlign3(pooled_h=1, pooled_w=1, sampling_ratio=0, spatial_scale=1.0)
    with pytest.raises(OperatorError, match=r"region 1 refers to image 3, outside \[0, 0\]"):
        op.run(PLANE, boxes([0, 0, 1, 1], [0, 0, 1, 1]), images(0, 3))
    with pytest.raises(OperatorError, match=r"region 0 of size \[1000000.0, 100.0\] needs 1e\+08 samples"):
        op.run(PLANE, boxes([0, 0, 100, 1e6]), images(0))


@pytest.mark.parametrize(("ratio", "most", "needed"), [(2, 24, "24"), (2, 23, "24"), (0, 24, "24"), (0, 23, "24")])
def test_the_most_samples_of_a_region(ratio: int, most: int, needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.ops.base.regions._MAX_SAMPLES", most)
    op = ROIAlign3(pooled_h=3, pooled_w=2, sampling_ratio=ratio, spatial_scale=1.0)
    rois = boxes([0, 0, 2, 2], [0, 0, 4, 6])  # with bins of 2 by 2 pixels
    if most == 24:
        assert op.run(PLANE, rois, images(0, 0)).shape == (2, 1, 3, 2)
    else:
        with pytest.raises(
            OperatorError, match=f"region {int(not ratio)} of size .* needs {needed} samples, but at most 23"
        ):
            op.run(PLANE, rois, images(0, 0))
