"""How much boxes overlap: known areas, and boxes that share corners, edges or everything."""

from math import pi, sqrt

import numpy as np
import pytest

from ovir.kernels.boxes import clipped, edges_of_centered, edges_of_corners, moved, rotated_overlaps, upright_overlaps


def test_corners_come_least_first_whichever_diagonal_is_given() -> None:
    boxes = np.array([[0, 1, 2, 3], [2, 1, 0, 3], [2, 3, 0, 1]], np.float32)
    assert edges_of_corners(boxes).T.tolist() == [[0, 1, 2, 3]] * 3


def test_centered_boxes_have_x_before_y() -> None:
    assert edges_of_centered(np.array([[10, 20, 4, 6]], np.float32)).T.tolist() == [[8, 17, 12, 23]]


@pytest.mark.parametrize(("margin", "expected"), [(0, [-1, -2, 7, 8]), (1, [-1.25, -3.5, 7.75, 10.5])])
def test_moved(margin: float, expected: list[float]) -> None:
    """By (1/4, 1/4) of the size, and made twice as wide, but not more than 5 times as high."""
    boxes, deltas = np.array([[0, 1, 4, 3]], np.float32), np.array([[0.25, 0.5, np.log(2), 9]], np.float32)
    np.testing.assert_allclose(moved(boxes, deltas, margin, np.log(5)), [expected], rtol=1e-6)


def test_clipped() -> None:
    assert clipped(np.array([[-1, 2, 9], [3, 4, 5]]), np.array([1, 3, -2])).tolist() == [[0, 2, 0], [1, 3, 0]]


def planes(*boxes: list[float]) -> np.ndarray:
    return np.array(boxes, np.float32).reshape(-1, 4).T


def iou(first: np.ndarray, second: np.ndarray, margin: float = 0, *, bridged: bool = True) -> np.ndarray:
    """Of boxes with edges [4, n] and [4, m], each with each."""
    count = first.shape[1]
    overlaps = upright_overlaps(np.concatenate([first, second], axis=1), margin, bridged=bridged)
    return overlaps(np.arange(count), np.arange(count, count + second.shape[1]))


def test_iou_of_each_with_each() -> None:
    first = planes([0, 0, 2, 2], [5, 5, 6, 6])
    second = planes([0, 0, 2, 2], [1, 0, 3, 2], [1, 1, 3, 3], [2, 0, 4, 2])
    np.testing.assert_allclose(iou(first, second), [[1, 1 / 3, 1 / 7, 0], [0, 0, 0, 0]], rtol=1e-6)
    assert iou(first, planes()).shape == (2, 0)


@pytest.mark.parametrize("box", [[0, 0, 0, 2], [2, 0, 1, 2], [0, 0, 0, 0]])
def test_a_box_without_area_overlaps_nothing(box: list[float]) -> None:
    assert iou(planes(box, [0, 0, 2, 2]), planes(box)).tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("gap", "bridged", "expected"),
    [(0, True, 2 / 6), (0.5, True, 1 / 7), (0.5, False, 0), (0, False, 2 / 6), (1.5, True, 0)],
)
def test_pixels_have_a_width(gap: float, bridged: bool, expected: float) -> None:
    """Two boxes of 2 by 2 pixels, the gap between their coordinates less than a pixel or more."""
    second = planes([0, 1 + gap, 1, 2 + gap])
    np.testing.assert_allclose(iou(planes([0, 0, 1, 1]), second, 1, bridged=bridged), [[expected]], rtol=1e-6)


def rotated_iou(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    overlaps = rotated_overlaps(np.concatenate([first, second]))
    return overlaps(np.arange(len(first)), np.arange(len(first), len(first) + len(second)))


OCTAGON = 2 * (sqrt(2) - 1)


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ([0, 0, 1, 1, 0], [0, 0, 1, 1, 0], 1),
        ([0, 0, 1, 1, 0.3], [0, 0, 1, 1, 0.3], 1),
        ([0, 0, 1, 1, 0], [0, 0, 1, 1, pi / 2], 1),
        ([0, 0, 1, 1, 0], [0, 0, 1, 1, pi / 4], OCTAGON),
        ([0, 0, 4, 1, 0], [0, 0, 4, 1, pi / 2], 1),
        ([0, 0, 4, 4, 0.7], [0.1, 0.1, 1, 1, -0.4], 1),  # one within the other
        ([0, 0, 2, 2, 0], [1, 1, 2, 2, 0], 1),
        ([0, 0, 2, 2, 0], [1, 0, 2, 2, 0], 2),  # edges lie on each other
        ([0, 0, 2, 2, 0], [2, 0, 2, 2, 0], 0),  # an edge is shared
        ([0, 0, 2, 2, 0], [9, 9, 2, 2, 1], 0),
        ([0, 0, 2, 2, 0], [1, 1, sqrt(2), sqrt(2), pi / 4], 1 / 2),
        ([1000, -500, 1, 1, 0], [1000, -500, 1, 1, pi / 4], OCTAGON),
        ([0, 0, 0, 2, 0], [0, 0, 2, 2, 0], 0),
        ([0, 0, -1, -1, 0], [0, 0, 2, 2, 0], 1),
    ],
)
def test_rotated_iou(first: list[float], second: list[float], common: float) -> None:
    a, b = np.array([first], np.float32), np.array([second], np.float32)
    expected = common / (first[2] * first[3] + second[2] * second[3] - common)
    np.testing.assert_allclose(rotated_iou(a, b), [[expected]], atol=1e-6)
    np.testing.assert_allclose(rotated_iou(b, a), [[expected]], atol=1e-6)


def test_rotated_iou_of_many_boxes_is_that_of_upright_ones_at_angle_0() -> None:
    rng = np.random.default_rng(0)
    boxes = rng.uniform(0.1, 5, (90, 4)).astype(np.float32)
    upright = edges_of_centered(boxes)
    rotated = np.concatenate([boxes, rng.integers(0, 2, (90, 1)) * pi], axis=1).astype(np.float32)
    np.testing.assert_allclose(rotated_iou(rotated[:60], rotated), iou(upright[:, :60], upright), atol=1e-5)


def test_rotated_boxes_without_area_overlap_nothing() -> None:
    boxes = np.float32([[0, 0, 0, 2, 0], [0, 0, 0, 0, 0], [0, 0, 2, 0, 1], [0, 0, 2, 2, 0]])
    assert not rotated_iou(boxes[:3], boxes).any()
