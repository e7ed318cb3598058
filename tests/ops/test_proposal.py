"""Proposal: known answers, shapes, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tensors import tensor

from ovir.core.element_types import f16, i32
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.ops.proposal import Proposal1, Proposal4

ONE_ANCHOR = {
    "ratio": (1.0,),
    "scale": (1.0,),
    "base_size": 10,
    "feat_stride": 10,
    "pre_nms_topn": 100,
    "nms_thresh": 0.5,
    "min_size": 0,
}


def proposed(scores: Any, deltas: Any = None, image: Any = (100, 100, 1), **attributes: Any) -> tuple[Any, Any]:
    """The rows and scores for a map [images, K, H, W] of foreground scores."""
    scores = np.asarray(scores, np.float32)
    n, k, *area = scores.shape
    deltas = np.zeros((n, 4 * k, *area), np.float32) if deltas is None else np.asarray(deltas, np.float32)
    op = Proposal4(**ONE_ANCHOR | {"post_nms_topn": scores[0].size} | attributes)
    return op.run(np.concatenate([1 - scores, scores], axis=1), deltas, np.array(image, np.float32))


def test_anchors_stand_at_each_point_and_are_ordered_by_score() -> None:
    rows, scores = proposed([[[[0.5, 0.9], [0.7, 0.6]]]])
    assert rows.tolist() == [[0, 10, 0, 20, 10], [0, 0, 10, 10, 20], [0, 10, 10, 20, 20], [0, 0, 0, 10, 10]]
    assert np.allclose(scores, [0.9, 0.7, 0.6, 0.5])


def test_anchors_of_all_ratios_and_scales() -> None:
    rows, _ = proposed(
        np.linspace(0.9, 0.5, 4).reshape(1, 4, 1, 1), ratio=(1, 4), scale=(1, 2), clip_before_nms=False, nms_thresh=1
    )
    assert rows[:, 1:].tolist() == [[0, 0, 10, 10], [-5, -5, 15, 15], [2.5, -5, 7.5, 15], [0, -15, 10, 25]]


def test_sides_of_anchors_are_whole_but_in_tensorflow() -> None:
    scores = np.full((1, 1, 1, 1), 0.9)
    # In tensorflow the anchor of the first point is clipped: its center is the corner of the image.
    for framework, sides in (("", [7, 14]), ("tensorflow", [np.sqrt(50) / 2, np.sqrt(200) / 2])):
        rows, _ = proposed(scores, ratio=(2,), clip_before_nms=False, framework=framework)
        assert np.allclose(rows[0, 3:] - rows[0, 1:3], sides)


def test_deltas_move_and_stretch() -> None:
    deltas = np.array([2, -3, np.log(2) * 5, 0]).reshape(1, 4, 1, 1)
    rows, _ = proposed([[[[0.9]]]], deltas, box_coordinate_scale=10, box_size_scale=5, clip_before_nms=False)
    # Center (5, 5) and size (10, 10) become (5 + 0.2 * 10, 5 - 0.3 * 10) and (20, 10).
    assert np.allclose(rows, [[0, 7 - 10, 2 - 5, 7 + 10, 2 + 5]])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [0, 0, 4, 5]),
        ({"clip_before_nms": False}, [-5, -5, 15, 15]),
        ({"clip_before_nms": False, "clip_after_nms": True}, [0, 0, 5, 6]),
        ({"normalize": True}, [0, 0, 4 / 5, 5 / 6]),
        ({"clip_before_nms": False, "normalize": True}, [-1, -5 / 6, 3, 15 / 6]),
    ],
)
def test_clipping_and_normalization(attributes: dict[str, Any], expected: list[float]) -> None:
    deltas = np.array([0, 0, np.log(2), np.log(2)]).reshape(1, 4, 1, 1)
    rows, _ = proposed([[[[0.9]]]], deltas, image=(6, 5, 1), **attributes)
    assert np.allclose(rows, [[0, *expected]])


def test_x_runs_down_the_map_in_tensorflow() -> None:
    scores = np.linspace(0.9, 0.5, 3).reshape(1, 1, 1, 3)
    rows, _ = proposed(scores, image=(7, 100, 1), framework="tensorflow", nms_thresh=1)
    # The image is 7 wide and 100 high, and anchors are centered on their points.
    assert rows[:, 1:].tolist() == [[0, 0, 5, 5], [0, 5, 5, 15], [0, 15, 5, 25]]


def test_overlapping_boxes_are_suppressed_and_the_end_is_marked() -> None:
    rows, scores = proposed([[[[0.9, 0.8, 0.7, 0.6]]], [[[0.1, 0.2, 0.3, 0.4]]]], feat_stride=3, nms_thresh=0.35)
    # Neighbours share 8 of 14 columns, the next but one 5 of 17.
    assert rows[:, :3].tolist() == [
        [0, 0, 0],
        [0, 6, 0],
        [-1, 0, 0],
        [0, 0, 0],
        [1, 9, 0],
        [1, 3, 0],
        [-1, 0, 0],
        [0, 0, 0],
    ]
    assert np.allclose(scores, [0.9, 0.7, 0, 0, 0.4, 0.2, 0, 0])


def test_only_so_many_pass_before_and_after() -> None:
    scores = np.linspace(0.9, 0.5, 5).reshape(1, 1, 1, 5)
    assert proposed(scores, pre_nms_topn=3)[0][:, 0].tolist() == [0, 0, 0, -1, 0]
    assert proposed(scores, post_nms_topn=2)[0][:, 1].tolist() == [0, 10]
    assert proposed(scores, pre_nms_topn=0)[0][:, 0].tolist() == [-1, 0, 0, 0, 0]
    assert [a.shape for a in proposed(scores, post_nms_topn=0)] == [(0, 5), (0,)]


@pytest.mark.parametrize(
    ("image", "expected"), [((100, 15, 1), [0.9, 0.0]), ((15, 100, 1, 1.5), [0.9, 0.8]), ((100, 15, 2, 1), [0.0, 0.0])]
)
def test_small_boxes_have_no_score(image: tuple[float, ...], expected: list[float]) -> None:
    # Boxes are 11 pixels wide, the second one 5 where the image is 15 wide.
    assert np.allclose(proposed([[[[0.9, 0.8]]]], image=image, min_size=6)[1], expected)


def test_of_equal_scores_the_first_point_is_first() -> None:
    rows, _ = proposed(np.full((1, 1, 2, 2), 0.5))
    assert rows[:, 1:3].tolist() == [[0, 0], [10, 0], [0, 10], [10, 10]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_types(dtype: Any) -> None:
    op = Proposal1(**ONE_ANCHOR, post_nms_topn=2)
    inputs = np.array([[[[0.25]], [[0.75]]]]), np.zeros((1, 4, 1, 1)), np.array([50, 50, 1])
    rows = op.run(*(a.astype(dtype) for a in inputs))
    assert rows.dtype == dtype
    assert rows.tolist() == [[0, 0, 0, 10, 10], [-1, 0, 0, 0, 0]]


@pytest.mark.parametrize(("n", "height", "expected"), [(0, 3, []), (2, 0, [-1, 0, -1, 0])])
def test_nothing_to_propose(n: int, height: int, expected: list[float]) -> None:
    rows, scores = Proposal4(**ONE_ANCHOR, post_nms_topn=2).run(
        np.zeros((n, 2, height, 4), np.float32), np.zeros((n, 4, height, 4), np.float32), np.ones(3, np.float32)
    )
    assert rows[:, 0].tolist() == expected
    assert scores.shape == (2 * n,)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (("[1,2,3,3]", "[1,4,3,3]", "[3]"), "6"),
        (("[?,2,3,3]", "[?,4,3,3]", "[?]"), "?"),
        (("[1..3,?,?,3]", "[2..5,4,3,?]", "[2..4]"), "12..18"),
        (("[...]", "[2,4,3,3]", "[4]"), "12"),
        (("[...]", "[...]", "[...]"), "?"),
    ],
)
def test_shapes(shapes: tuple[str, ...], expected: str) -> None:
    inputs = [tensor(shape, f16) for shape in shapes]
    boxes, scores = Proposal4(**ONE_ANCHOR, post_nms_topn=6).infer(*inputs)
    assert (str(boxes), str(scores)) == (f"f16[{expected},5]", f"f16[{expected}]")
    assert Proposal1(**ONE_ANCHOR, post_nms_topn=6).infer(*inputs) == boxes


GOOD = (tensor("[1,2,3,3]"), tensor("[1,4,3,3]"), tensor("[3]"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {0: tensor("[1,2,3,3]", i32), 1: tensor("[1,4,3,3]", i32), 2: tensor("[3]", i32)},
            "class_probs must be of a floating-point type, got i32",
        ),
        ({2: tensor("[3]", i32)}, "class_probs is f32 and image_shape is i32: their element types must be equal"),
        ({0: tensor("[1,2,3]")}, "class_probs must have rank 4, got shape [1,2,3]"),
        ({1: tensor("[1,4,3]")}, "bbox_deltas must have rank 4, got shape [1,4,3]"),
        ({2: tensor("[1,3]")}, "image_shape must have rank 1, got shape [1,3]"),
        ({2: tensor("[5]")}, "image_shape must hold 3 or 4 numbers, got 5"),
        (
            {0: tensor("[1,4,3,3]")},
            "dimension 1 of class_probs [1,4,3,3] must be 2: 2 for each of 1 anchors (1 ratios by 1 scales)",
        ),
        (
            {1: tensor("[2,4,3,3]")},
            "class_probs of shape [1,2,3,3] and bbox_deltas of shape [2,4,3,3] must have the same number of images (dimensions 0 and 0)",
        ),
        (
            {1: tensor("[1,4,3,5]")},
            "class_probs of shape [1,2,3,3] and bbox_deltas of shape [1,4,3,5] must have the same number of columns (dimensions 3 and 3)",
        ),
    ],
)
def test_refuses(changed: dict[int, TensorType], message: str) -> None:
    with pytest.raises(OperatorError) as error:
        Proposal4(**ONE_ANCHOR).infer(*(changed.get(i, good) for i, good in enumerate(GOOD)))
    assert error.value.message == message


def test_refuses_without_anchors_too() -> None:
    with pytest.raises(OperatorError, match=r"\[1,2,3,3\] and bbox_deltas \[1,6,3,3\] must have 2 and 4 channels"):
        Proposal1().infer(GOOD[0], tensor("[1,6,3,3]"), GOOD[2])


def test_refuses_another_framework() -> None:
    with pytest.raises(OperatorError, match="framework must be empty or 'tensorflow', got 'caffe'"):
        Proposal1(framework="caffe").infer(*GOOD)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ((0, 5, 1), "the image's height and width must be positive, got 0.0 and 5.0"),
        ((4, np.inf, 1), "the image's height and width must be positive, got 4.0 and inf"),
        ((4, 5, 1, -1), "the image's scale must not be negative, got [1.0, -1.0]"),
    ],
)
def test_refuses_an_image(image: tuple[float, ...], message: str) -> None:
    with pytest.raises(OperatorError) as error:
        proposed([[[[0.9]]]], image=image)
    assert error.value.message == message
