"""PriorBox and PriorBoxClustered: known answers, how many boxes there are, shapes, and what is refused."""

from typing import Any

import numpy as np
import pytest
from support.tensors import reports

from ovir.ops.prior_box import PriorBox1, PriorBox8, PriorBoxClustered

Size = tuple[int, int]


def boxes(op: Any, grid: Size = (1, 1), image: Size = (100, 100)) -> Any:
    return op.run(np.array(grid), np.array(image))[0].reshape(*grid, -1, 4)


def sides(op: Any, image: Size = (100, 100)) -> Any:
    """Width and height in pixels of the boxes of one point."""
    found = boxes(op, image=image)[0, 0]
    return (found[:, 2:] - found[:, :2]) * image[::-1]


# ----- PriorBox


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [[10, 10], [20, 20], [20, 5], [5, 20]]),
        ({"flip": False}, [[10, 10], [20, 20], [20, 5]]),
        ({"max_size": ()}, [[10, 10], [20, 5], [5, 20]]),
        ({"aspect_ratio": (1, 4, 0.25)}, [[10, 10], [20, 20], [20, 5], [5, 20]]),
        ({"min_max_aspect_ratios_order": False}, [[10, 10], [20, 5], [5, 20], [20, 20]]),
        ({"min_size": (10, 20), "max_size": (), "flip": False}, [[10, 10], [20, 5], [20, 20], [40, 10]]),
        (
            {"min_size": (0.1, 0.2), "max_size": (), "flip": False, "scale_all_sizes": False},
            [[10, 10], [20, 20], [20, 5]],
        ),
        ({"min_size": (), "max_size": (), "fixed_size": (8,), "density": (1,)}, [[8, 8], [16, 4], [4, 16]]),
        (
            {"min_size": (), "fixed_size": (8, 4), "fixed_ratio": (4,), "density": (1, 1), "aspect_ratio": ()},
            [[16, 4], [8, 2]],
        ),
    ],
)
def test_sizes_of_a_point(attributes: dict[str, Any], expected: list[list[float]]) -> None:
    op = PriorBox8(**{"min_size": (10,), "max_size": (40,), "aspect_ratio": (4,), "flip": True} | attributes)
    assert np.allclose(sides(op), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "x", "y"),
    [
        ({}, [10, 30, 50], [15, 45]),
        ({"step": 8, "offset": 0.25}, [2, 10, 18], [2, 10]),
        ({"step": -1, "scale_all_sizes": False}, [0, 30, 60], [0, 30]),
        ({"step": 0.5, "scale_all_sizes": False, "offset": 1}, [30, 60, 90], [30, 60]),
    ],
)
def test_centers(attributes: dict[str, Any], x: list[float], y: list[float]) -> None:
    found = boxes(PriorBox1(min_size=(0.25,), **attributes), (2, 3), (60, 60))
    centers = (found[..., 0, :2] + found[..., 0, 2:]) / 2 * 60
    assert np.allclose(centers[0, :, 0], x)
    assert np.allclose(centers[:, 0, 1], y)


def test_dense_boxes_fill_the_square_and_end_at_the_image() -> None:
    found = boxes(PriorBox1(fixed_size=(8,), density=(2,)), image=(16, 16))[0, 0] * 16
    assert np.allclose(found, [[2, 2, 10, 10], [6, 2, 14, 10], [2, 6, 10, 14], [6, 6, 14, 14]])
    bounded = boxes(PriorBox1(fixed_size=(8,), density=(2,)), image=(10, 10))[0, 0] * 10
    assert np.allclose(bounded, [[0, 0, 7, 7], [3, 0, 10, 7], [0, 3, 7, 10], [3, 3, 10, 10]])


@pytest.mark.parametrize(("clip", "expected"), [(False, [-0.5, -0.5, 1.5, 1.5]), (True, [0, 0, 1, 1])])
def test_clip(clip: bool, expected: list[float]) -> None:
    assert boxes(PriorBox1(min_size=(20,), clip=clip), image=(10, 10)).tolist() == [[[expected]]]


@pytest.mark.parametrize(
    ("variance", "expected"),
    [((), [0.1] * 4), ((0.5,), [0.5] * 4), ((1, 2, 3, 4), [1, 2, 3, 4])],
)
@pytest.mark.parametrize("kind", [PriorBox1, PriorBoxClustered])
def test_variances(kind: Any, variance: tuple[float, ...], expected: list[float]) -> None:
    attributes = {"min_size": (2,)} if kind is PriorBox1 else {}
    result = kind(variance=variance, **attributes).run(np.array([1, 2]), np.array([9, 9]))
    assert np.allclose(result[1].reshape(-1, 4), [expected] * 2)


def test_boxes_that_are_not_counted_push_the_others_back() -> None:
    # Without scale_all_sizes the box between min and max is drawn and not counted.
    op = PriorBox1(min_size=(0.1,), max_size=(40,), scale_all_sizes=False)
    found = boxes(op, (1, 2))
    assert found.shape == (1, 2, 1, 4)
    assert np.allclose((found[..., 2] - found[..., 0]).ravel() * 100, [10, 20])


def test_boxes_that_are_counted_and_not_there_are_zero_and_reported() -> None:
    with reports() as told:
        boxes(PriorBox1(min_size=(10,), max_size=(20,)), (1, 2))
        boxes(PriorBox1(min_size=(0.1,), max_size=(40,), scale_all_sizes=False), (1, 2))
        assert not told
        found = boxes(PriorBox1(min_size=(10,), max_size=(20, 30)), (1, 2))
    assert found.shape == (1, 2, 3, 4)
    assert not found.reshape(-1, 4)[4:].any()
    assert told == ["the output has 3 boxes per point, but the attributes describe 2; the remaining boxes are 0"]


@pytest.mark.parametrize(
    ("attributes", "count"),
    [
        ({}, 0),
        ({"min_size": (1, 2), "max_size": (3, 4), "aspect_ratio": (2, 3), "flip": True}, 12),
        ({"min_size": (1, 2), "aspect_ratio": (2,), "scale_all_sizes": False}, 3),
        ({"fixed_size": (8,), "density": (3,), "fixed_ratio": (1, 2)}, 17),
    ],
)
def test_how_many_boxes(attributes: dict[str, Any], count: int) -> None:
    assert PriorBox1(**attributes).boxes_per_point() == count


# ----- PriorBoxClustered


def test_clustered() -> None:
    op = PriorBoxClustered(width=(4, 8), height=(6, 2), offset=0.5, clip=False)
    found = boxes(op, (1, 2), (20, 40))[0]
    assert np.allclose(found * [40, 20, 40, 20], [[[8, 7, 12, 13], [6, 9, 14, 11]], [[28, 7, 32, 13], [26, 9, 34, 11]]])


@pytest.mark.parametrize(
    ("attributes", "x", "y"),
    [
        ({}, [0, 30], [0, 40]),
        ({"step": 5}, [0, 5], [0, 5]),
        ({"step": 5, "step_w": 7}, [0, 7], [0, 5]),
        ({"step_h": 3, "offset": 1}, [0, 0], [3, 6]),
    ],
)
def test_clustered_steps(attributes: dict[str, Any], x: list[float], y: list[float]) -> None:
    found = boxes(PriorBoxClustered(clip=False, **attributes), (2, 2), (80, 60))
    centers = (found[..., 0, :2] + found[..., 0, 2:]) / 2 * [60, 80]
    assert np.allclose(centers[0, :, 0], x, atol=1e-5)
    assert np.allclose(centers[:, 0, 1], y, atol=1e-5)


def test_clustered_is_clipped_by_default() -> None:
    assert boxes(PriorBoxClustered(width=(9,), height=(9,)), image=(4, 4)).tolist() == [[[[0, 0, 1, 1]]]]


# ----- both


@pytest.mark.parametrize("op", [PriorBox1(min_size=(3,)), PriorBoxClustered()])
def test_no_points_and_no_image(op: Any) -> None:
    assert op.run(np.array([0, 3]), np.array([0, 0])).shape == (2, 0)
    assert not np.isfinite(op.run(np.array([1, 1]), np.array([0, 0]))[0, 0]) or op.clip
