"""GridSample."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from ovir.diagnostics.errors import OperatorError
from ovir.ops.grid_sample import GridSample


def sampled(data: Any, xs: list[float], dtype: Any = np.float32, **attributes: Any) -> list[Any]:
    """Samples of one row of pixels at these x."""
    row = np.array(data, dtype).reshape(1, 1, 1, -1)
    grid = np.array([[[[x, 0] for x in xs]]], np.float32)
    result = GridSample(**attributes).run(row, grid)
    assert (result.shape, result.dtype) == ((1, 1, 1, len(xs)), dtype)
    return list(result.ravel().tolist())


ROW = [10, 20, 40, 80]


def test_what_minus_one_and_one_are() -> None:
    corners = {"align_corners": True}
    assert sampled(ROW, [-1, -1 / 3, 0, 1 / 3, 1], **corners) == pytest.approx([10, 20, 30, 40, 80], rel=1e-5)
    # Without it they are edges of pixels: half of what is there is padding.
    assert sampled(ROW, [-1, -0.75, -0.5, 0, 0.75, 1]) == [5, 10, 15, 30, 80, 40]
    assert sampled(ROW, [-1, 1], padding_mode="border") == [10, 80]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize(
    ("padding_mode", "aligned", "edged"),
    [
        ("zeros", [0, 0, 10, 80, 0, 0], [0, 0, 10, 80, 0, 0]),
        ("border", [10, 10, 10, 80, 80, 80], [10, 10, 10, 80, 80, 80]),
        # aligned: ... 40 20 [10 20 40 80] 40 20 ...; at the edges: ... 20 10 [10 20 40 80] 80 40 ...
        ("reflection", [40, 20, 10, 80, 40, 20], [20, 10, 10, 80, 80, 40]),
    ],
)
def test_padding(mode: str, padding_mode: str, aligned: list[int], edged: list[int], align_corners: bool) -> None:
    positions = np.array([-2, -1, 0, 3, 4, 5])
    xs = positions * 2 / 3 - 1 if align_corners else (positions + 0.5) / 2 - 1
    result = sampled(ROW, xs.tolist(), mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    assert result == pytest.approx(aligned if align_corners else edged, abs=1e-4)


@pytest.mark.parametrize(("size", "align_corners"), [(1, False), *product((2, 3, 4), (False, True))])
def test_reflection_goes_back_and_forth(size: int, align_corners: bool) -> None:
    pixels = [10.0, 20, 30, 40][:size]
    back = pixels[-2:0:-1] if align_corners else pixels[::-1]  # the pixels at the ends come once, or twice
    positions = np.arange(-9, 10)
    xs = positions * 2 / (size - 1) - 1 if align_corners else (2 * positions + 1) / size - 1
    found = sampled(pixels, xs.tolist(), mode="nearest", padding_mode="reflection", align_corners=align_corners)
    period = pixels + back
    assert found == [period[position % len(period)] for position in positions]


def test_a_single_pixel_is_its_reflection() -> None:
    settings = {"mode": "nearest", "padding_mode": "reflection", "align_corners": True}
    assert sampled([10], [-3, 0, 2], **settings) == [10, 10, 10]


def test_nearest_takes_the_even_pixel_of_two() -> None:
    positions = np.array([-0.5, 0.5, 1.5, 2.5, 3.5, 0.49, 0.51])
    xs = ((positions + 0.5) / 2 - 1).tolist()
    assert sampled(ROW, xs, mode="nearest") == [10, 10, 40, 40, 0, 10, 20]


def test_bicubic_follows_keys() -> None:
    # Half-way the weights are -3/32, 19/32, 19/32, -3/32.
    assert sampled(ROW, [0], mode="bicubic") == [(-3 * 10 + 19 * 20 + 19 * 40 - 3 * 80) / 32]
    assert sampled(ROW, [-0.5], mode="bicubic", padding_mode="border") == [(-3 * 10 + 19 * 10 + 19 * 20 - 3 * 40) / 32]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_rows_and_columns(mode: str, align_corners: bool) -> None:
    """Both axes are sampled in the same way; x is the last one."""
    rng = np.random.default_rng(0)
    rows, columns = rng.standard_normal(9), rng.standard_normal(12)
    places = rng.uniform(-1.2, 1.2, (5, 2))
    attributes = {"mode": mode, "align_corners": align_corners, "padding_mode": "reflection"}
    grid = places.reshape(1, 1, 5, 2)
    result = GridSample(**attributes).run(np.outer(rows, columns).reshape(1, 1, 9, 12), grid)
    along_x = GridSample(**attributes).run(columns.reshape(1, 1, 1, 12), grid * [1, 0])
    along_y = GridSample(**attributes).run(rows.reshape(1, 1, 1, 9), grid[..., ::-1] * [1, 0])
    np.testing.assert_allclose(result, along_x * along_y, rtol=1e-12)


def test_batches_and_channels_in_blocks() -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((3, 70, 9, 11)).astype(np.float32)
    grid = rng.uniform(-1.2, 1.2, (3, 60, 50, 2)).astype(np.float32)
    for attributes in ({}, {"mode": "nearest"}, {"padding_mode": "reflection"}):
        op = GridSample(**attributes)
        whole = op.run(data, grid)
        for image, row in ((0, 0), (1, 31), (2, 59)):
            part = op.run(data[image : image + 1], grid[image : image + 1, row : row + 1])
            np.testing.assert_array_equal(whole[image, :, row], part[0, :, 0])
        flipped = np.ascontiguousarray(data[:, :, :, ::-1])[:, :, :, ::-1]
        np.testing.assert_array_equal(op.run(flipped, grid), whole)


def test_integers_saturate_and_booleans_are_rounded() -> None:
    assert sampled([0, 0, 255, 255, 0, 0], [0, 0.5 / 3], np.uint8, mode="bicubic") == [255, 255]
    assert sampled([0, 255, 0, 0, 255, 0], [0], np.uint8, mode="bicubic") == [0]
    assert sampled([True, False], [-0.5, -0.1, 0.1, 0.5], np.bool_) == [True, True, False, False]


def test_strings_have_a_nearest_one() -> None:
    row = np.array([["a", "b"]], np.dtypes.StringDType()).reshape(1, 1, 1, 2)
    grid = np.array([[[[-0.5, 0], [0.4, 0], [3, 0]]]], np.float32)
    assert GridSample(mode="nearest").run(row, grid).ravel().tolist() == ["a", "b", ""]
    with pytest.raises(OperatorError, match="mode bilinear with string data and padding_mode zeros is not supported"):
        GridSample().run(row, grid)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_a_grid_without_places(mode: str) -> None:
    result = GridSample(mode=mode).run(np.ones((1, 2, 3, 3), np.float32), np.ones((1, 0, 4, 2), np.float32))
    assert result.shape == (1, 2, 0, 4)


def test_empty_data() -> None:
    grid = np.zeros((1, 2, 3, 2), np.float32)
    assert GridSample().run(np.ones((1, 0, 4, 4), np.float32), grid).shape == (1, 0, 2, 3)
    for size in ((0, 4), (4, 0)):
        result = GridSample().run(np.ones((1, 2, *size), np.float32), grid)
        assert result.tolist() == np.zeros((1, 2, 2, 3)).tolist()
    with pytest.raises(OperatorError, match="has no pixels to sample"):
        GridSample(padding_mode="border").run(np.ones((1, 2, 0, 4), np.float32), grid)
