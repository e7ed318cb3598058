"""ROIPooling, PSROIPooling and DeformablePSROIPooling: known answers and what is refused."""

from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np
import pytest
from support.tensors import reports

from ovir.diagnostics.errors import OperatorError
from ovir.ops.roi_pooling import DeformablePSROIPooling, PSROIPooling, ROIPooling

rng = np.random.default_rng(6)

PLANE = (10 * np.arange(6)[:, np.newaxis] + np.arange(6)).astype(np.float32)[np.newaxis, np.newaxis]


def rois(*rows: list[float]) -> Any:
    return np.array(rows, np.float32)


# ----- ROIPooling


def pooling(height: int, width: int, method: str = "max", scale: float = 1) -> ROIPooling:
    return ROIPooling(pooled_h=height, pooled_w=width, spatial_scale=scale, method=method)


def test_both_corners_belong_to_the_region_and_bins_overlap() -> None:
    found = pooling(2, 2).run(PLANE, rois([0, 1, 1, 3, 3]))  # bins of 1 to 2 and 2 to 3
    assert found.tolist() == [[[[22, 23], [32, 33]]]]


@pytest.mark.parametrize(
    ("roi", "expected"),
    [
        ([0, 3, 3, 1, 1], [[33, 33], [33, 33]]),  # of negative length: one pixel
        ([0, 2.5, 1.5, 2.5, 1.5], [[23, 23], [23, 23]]),  # halves are rounded up
        ([0, -2, 4, 1, 9], [[0, 51], [0, 0]]),  # outside of data
        ([0, 1e30, 0, np.nan, 0], [[0, 0], [0, 0]]),
    ],
)
def test_largest_pixel_of_a_bin(roi: list[float], expected: list[list[float]]) -> None:
    assert pooling(2, 2).run(PLANE, rois(roi))[0, 0].tolist() == expected


def test_negative_data_and_scale() -> None:
    assert pooling(1, 1, scale=0.5).run(-1 - PLANE, rois([0, 2, 4, 6, 8])).item() == -22


def test_places_between_corners() -> None:
    found = pooling(2, 3, "bilinear").run(PLANE, rois([0, 0.2, 0.4, 0.8, 1], [0, 0.2, 0, 1.2, 0]))
    np.testing.assert_allclose(found[0, 0], [[21, 22.5, 24], [51, 52.5, 54]], rtol=1e-6)
    np.testing.assert_allclose(found[1, 0], [[1, 3.5, 0]] * 2, rtol=1e-6)  # the last is outside
    assert pooling(1, 1, "bilinear").run(PLANE, rois([0, 0, 0.2, 1, 0.4])).item() == 17.5


def test_the_last_place_is_the_corner_itself() -> None:
    data = np.ones((1, 1, 8, 8), np.float32)
    corner = np.nextafter(np.float32(1), np.float32(0))
    for count in range(2, 30):
        assert pooling(count, count, "bilinear").run(data, rois([0, 0.1, 0.3, corner, 1]))[0, 0, -1, -1] == 1


def test_images_are_truncated_and_minus_one_ends_the_list() -> None:
    data = np.stack([np.full((2, 3, 3), number, np.float32) for number in (1, 2)])
    found = pooling(1, 1).run(data, rois([1.7, 0, 0, 2, 2], [-0.5, 0, 0, 2, 2], [-1, 0, 0, 2, 2], [0, 0, 0, 2, 2]))
    assert found[:, 1, 0, 0].tolist() == [2, 1, 0, 0]
    with pytest.raises(OperatorError, match=r"region 0 refers to image 2, outside \[0, 1\]"):
        pooling(1, 1).run(data, rois([2, 0, 0, 2, 2]))


# ----- PSROIPooling


@pytest.mark.parametrize("group", [1, 3])
def test_average_of_the_pixels_that_a_bin_touches(group: int) -> None:
    count, height, width, outputs = 2, 7, 5, 2
    data = rng.normal(size=(count, outputs * group**2, height, width)).astype(np.float32)
    regions = rois([0, 0, 1, 6, 9], [1, -3, -2, 2.5, 4], [1, 8, 8, 3, 3], [0, 20, 20, 30, 30])
    op = PSROIPooling(output_dim=outputs, group_size=group, spatial_scale=0.5, mode="average")
    found = op.run(data, regions)
    for (image, *roi), bins in zip(regions.tolist(), found, strict=True):
        x0, y0, x1, y1 = (floor(c + 0.5 + end) * 0.5 for c, end in zip(roi, (0, 0, 1, 1), strict=True))
        steps = max(y1 - y0, 0.1) / group, max(x1 - x0, 0.1) / group
        for channel, i, j in product(range(outputs), range(group), range(group)):
            rows = slice(max(floor(y0 + i * steps[0]), 0), max(ceil(y0 + (i + 1) * steps[0]), 0))
            columns = slice(max(floor(x0 + j * steps[1]), 0), max(ceil(x0 + (j + 1) * steps[1]), 0))
            pixels = data[int(image), (channel * group + i) * group + j, rows, columns]
            np.testing.assert_allclose(bins[channel, i, j], pixels.mean() if pixels.size else 0, 1e-5, 1e-6)


def test_bilinear_is_the_mean_over_the_parts() -> None:
    planes = [PLANE[0, 0] + 100 * channel for channel in range(4)]
    data = np.stack(planes)[np.newaxis]
    op = PSROIPooling(output_dim=2, group_size=2, spatial_scale=0.1, mode="bilinear", spatial_bins_x=2)
    found = op.run(data, rois([0, 0, 2, 8, 4]))
    # Columns 0 to 2 of the first part, in channels 0 and 1, and 2 to 4 of the second, in 2 and 3; rows 1 to 2.
    np.testing.assert_allclose(found[0], [[[111, 113], [121, 123]], [[211, 213], [221, 223]]], rtol=1e-6)
    assert not op.run(data, rois([0, 20, 20, 30, 30])).any()
    single = PSROIPooling(output_dim=4, group_size=1, spatial_scale=1.0, mode="bilinear")
    assert single.run(data, rois([0, 0, 0.2, 0.4, 0.6])).reshape(-1).tolist() == [21, 121, 221, 321]


# ----- DeformablePSROIPooling


def deformable(**attributes: Any) -> DeformablePSROIPooling:
    return DeformablePSROIPooling(spatial_scale=1.0, **attributes)


def test_the_mean_of_places_from_the_start_of_each_bin() -> None:
    data = np.concatenate([PLANE + 100 * channel for channel in range(4)], axis=1)
    op = deformable(output_dim=1, group_size=2, spatial_bins_x=2, spatial_bins_y=2)
    # The region is from 0.5 to 4.5, so a bin is 2 long, and its places are 1 apart.
    found = op.run(data, rois([0, 1, 1, 4, 4]))
    np.testing.assert_allclose(found[0, 0], [[11, 113], [231, 333]], rtol=1e-6)


def test_offsets_move_the_bins_of_their_channels() -> None:
    data = np.concatenate([PLANE, PLANE], axis=1)
    offsets = np.zeros((1, 4, 1, 1), np.float32)
    offsets[0, :, 0, 0] = [0, 0, 1, 2]  # the second class by one width and two heights, halved
    op = deformable(output_dim=2, trans_std=0.5)
    found = op.run(data, rois([0, 1, 1, 2, 2]), offsets)
    np.testing.assert_allclose(found.reshape(-1), [5.5, 26.5], rtol=1e-6)


def test_places_outside_do_not_count() -> None:
    op = deformable(output_dim=1, spatial_bins_x=2)
    # At -1.5 the first is outside, at 0.5 the second is not; then one just outside, which counts as on the edge.
    assert op.run(PLANE, rois([0, -1, 0, 2, 1])).item() == 0.5
    assert deformable(output_dim=1).run(PLANE, rois([0, 0, 0, 2, 1])).item() == 0
    assert op.run(PLANE, rois([0, 40, 0, 42, 1])).item() == 0


def test_offsets_of_another_part_size_are_read_in_order() -> None:
    offsets = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2) / 10
    op, regions = deformable(output_dim=1), rois([0, 1, 1, 2, 2], [0, 1, 1, 2, 2])
    with reports() as told:
        found = op.run(PLANE, regions, offsets)
    wanted = op.run(PLANE, regions, offsets.reshape(-1)[:4].reshape(2, 2, 1, 1))
    assert (found == wanted).all()
    assert told == ["offsets have shape [2,2,2,2]; their first numbers are read as [2,2,1,1]"]
    with pytest.raises(OperatorError, match=r"offsets \[1,2,1,1\] do not match 2 regions with output_dim 1"):
        op.run(PLANE, regions, offsets[:1, :, :1, :1])
    with pytest.raises(OperatorError, match=r"offsets \[2,4,1,1\] do not match 2 regions with output_dim 1"):
        op.run(PLANE, regions, np.zeros((2, 4, 1, 1), np.float32))


# ----- all of them


POOLINGS: dict[str, tuple[Any, int, int]] = {
    "ROIPooling": (pooling(2, 2), 8, 8),
    "average": (PSROIPooling(output_dim=2, group_size=2, spatial_scale=1.0, mode="average"), 8, 2),
    "bilinear": (PSROIPooling(output_dim=4, group_size=2, spatial_scale=1.0, mode="bilinear", spatial_bins_x=2), 8, 4),
    "deformable": (deformable(output_dim=2, group_size=2), 8, 2),
}


@pytest.mark.parametrize("name", POOLINGS)
def test_nothing_to_pool(name: str) -> None:
    op, channels, outputs = POOLINGS[name]
    found = op.run(np.ones((1, channels, 3, 3), np.float32), np.zeros((0, 5), np.float32))
    assert found.shape == (0, outputs, 2, 2)
    found = op.run(np.ones((1, channels, 0, 3), np.float32), np.zeros((2, 5), np.float32))
    assert found.shape == (2, outputs, 2, 2)
    assert not found.any()


@pytest.mark.parametrize("name", POOLINGS)
def test_many_regions_in_blocks(name: str) -> None:
    op, channels, outputs = POOLINGS[name]
    data = rng.normal(size=(3, channels, 9, 11)).astype(np.float32)
    regions = np.concatenate([rng.integers(0, 3, (900, 1)), rng.uniform(0, 9, (900, 4))], axis=1).astype(np.float32)
    out = op.run(data, regions)
    assert out.shape == (900, outputs, 2, 2)
    alone = [op.run(data, regions[i : i + 1]) for i in (0, 500, 899)]
    np.testing.assert_allclose(out[[0, 500, 899]], np.concatenate(alone), 1e-5, 1e-6)


@pytest.mark.parametrize(("corner", "expected"), [(0, 2.75), (4, 44), (6, 55), (7, 0)])
def test_samples_up_to_half_a_pixel_outside_count(corner: int, expected: float) -> None:
    """A region of 2 by 2 pixels has samples half a pixel before and half a pixel behind the center of the first."""
    op = deformable(output_dim=1, group_size=1, spatial_bins_x=2, spatial_bins_y=2)
    found = op.run(PLANE, rois([0, corner, corner, corner + 1, corner + 1]))
    np.testing.assert_allclose(found.ravel(), [expected], rtol=1e-6)
