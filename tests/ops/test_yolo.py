"""RegionYolo and ReorgYolo: known answers, shapes, and what is refused."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ovir.ops.yolo import RegionYolo, ReorgYolo

REGION = {"axis": 1, "end_axis": 3, "coords": 4, "classes": 3, "num": 2, "mask": (0, 1, 2)}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# ----- RegionYolo


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("do_softmax", [True, False])
def test_each_region_has_its_sigmoids_and_its_softmax(do_softmax: bool, dtype: Any) -> None:
    op = RegionYolo(**REGION | {"mask": (0, 2)}, do_softmax=do_softmax)
    data = np.random.default_rng(0).normal(0, 3, (2, 16, 2, 3)).astype(dtype)
    regions = data.astype(np.float64).reshape(2, 2, 8, 2, 3)
    expected = regions.copy()
    expected[:, :, [0, 1, 4]] = sigmoid(regions[:, :, [0, 1, 4]])
    powers = np.exp(regions[:, :, 5:])
    expected[:, :, 5:] = powers / powers.sum(axis=2, keepdims=True) if do_softmax else sigmoid(regions[:, :, 5:])
    result = op.run(data)
    assert result.dtype == dtype
    assert result.shape == ((2, 96) if do_softmax else (2, 16, 2, 3))
    tolerance = 1e-6 if dtype in (np.float32, np.float64) else 5e-3
    assert np.allclose(result.reshape(expected.shape).astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def test_channels_beyond_the_regions_are_copied_or_left_out() -> None:
    data = np.arange(12, dtype=np.float32).reshape(1, 6, 1, 2) - 6
    softmax = RegionYolo(axis=1, end_axis=3, coords=2, classes=1, num=1).run(data)
    assert softmax[0, 8:].tolist() == [2, 3, 4, 5]
    sigmoids = RegionYolo(do_softmax=False, coords=2, classes=1, mask=(7,)).run(data)
    assert np.allclose(sigmoids, sigmoid(data[:, :4]))


def test_a_part_that_is_a_coordinate_and_the_objectness_has_two_sigmoids() -> None:
    data = np.full((1, 2, 1, 1), 2, np.float32)
    result = RegionYolo(axis=1, end_axis=3, coords=0, classes=1, num=1).run(data)
    assert np.allclose(result, [[sigmoid(sigmoid(2.0)), 1]])


# ----- ReorgYolo


def test_reorg_moves_blocks_into_channels() -> None:
    # Read as one channel of 4 by 4 points; the result has the upper left points of all blocks first.
    data = np.arange(16).reshape(1, 4, 2, 2)
    result = ReorgYolo(stride=(2,)).run(data)
    assert result.shape == (1, 16, 1, 1)
    assert result.reshape(4, 4).tolist() == [[0, 2, 8, 10], [1, 3, 9, 11], [4, 6, 12, 14], [5, 7, 13, 15]]


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.bool_, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("shape", "stride"), [((2, 4, 4, 6), 2), ((1, 18, 3, 6), 3), ((2, 7, 4, 2), 2), ((2, 3, 5, 4), 1)]
)
def test_reorg_is_as_darknet_counts(shape: tuple[int, ...], stride: int, dtype: Any) -> None:
    data = np.random.default_rng(1).integers(0, 200, shape).astype(dtype)
    n, channels, height, width = shape
    planes = channels // stride**2
    expected = np.empty(shape, dtype)
    for i, c, h, w in np.ndindex(shape):
        row, column = h * stride + c // planes // stride, w * stride + c // planes % stride
        place = ((i * planes + c % planes) * height * stride + row) * width * stride + column
        expected[i, c, h, w] = data.flat[place]
    result = ReorgYolo(stride=(stride,)).run(data)
    assert result.shape == (n, channels * stride**2, height // stride, width // stride)
    assert np.array_equal(result.reshape(shape), expected)
