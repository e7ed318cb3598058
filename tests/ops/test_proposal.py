"""Proposal: known answers, shapes, and what is refused."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import i32
from ovir.ops.proposal import ExperimentalDetectronGenerateProposalsSingleImage, GenerateProposals, Proposal1, Proposal4

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
    attributes = ONE_ANCHOR | {"post_nms_topn": scores[0].size} | attributes
    inputs = np.concatenate([1 - scores, scores], axis=1), deltas, np.array(image, np.float32)
    rows, best = Proposal4(**attributes).run(*inputs)
    np.testing.assert_array_equal(Proposal1(**attributes).run(*inputs), rows)
    return rows, best


def test_anchors_stand_at_each_point_and_are_ordered_by_score() -> None:
    rows, scores = proposed([[[[0.5, 0.9], [0.7, 0.6]]]])
    assert rows.tolist() == [[0, 10, 0, 20, 10], [0, 0, 10, 10, 20], [0, 10, 10, 20, 20], [0, 0, 0, 10, 10]]
    assert np.allclose(scores, [0.9, 0.7, 0.6, 0.5])


def test_anchors_of_all_ratios_and_scales() -> None:
    rows, _ = proposed(
        np.linspace(0.9, 0.5, 4).reshape(1, 4, 1, 1), ratio=(1, 4), scale=(1, 2), clip_before_nms=False, nms_thresh=1
    )
    assert rows[:, 1:].tolist() == [[0, 0, 10, 10], [-5, -5, 15, 15], [2.5, -5, 7.5, 15], [0, -15, 10, 25]]


@pytest.mark.parametrize(("framework", "side"), [("", 17), ("tensorflow", 16)])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("scales", [(1,), (2,), (1, 2)])
def test_the_score_of_a_short_box_is_0(framework: str, side: int, clip: bool, scales: tuple[int, ...]) -> None:
    """Of the middle of nine boxes, which lies within the image; one of its sides is stretched, or none."""
    scores, deltas = np.zeros((1, 1, 3, 3)), np.zeros((1, 4, 3, 3))
    scores[0, 0, 1, 1] = 0.9
    for stretched, scale in ((3, scales[-1]), (2, scales[0]), (None, max(scales))):
        deltas[:] = 0
        deltas[0, [] if stretched is None else stretched] = np.log(4)
        for least in (side // scale, side // scale + 1):
            settings = {"base_size": 16, "feat_stride": 50, "min_size": least, "clip_before_nms": clip}
            image = (300, 400, *scales)
            _, best = proposed(scores, deltas, image, framework=framework, post_nms_topn=1, **settings)
            assert (best[0] > 0) == (least * scale <= side), (stretched, least)


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
    # Neighbors share 8 of 14 columns, the next but one 5 of 17.
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


def test_of_equal_scores_the_first_point_is_first() -> None:
    rows, _ = proposed(np.full((1, 1, 2, 2), 0.5))
    assert rows[:, 1:3].tolist() == [[0, 0], [10, 0], [0, 10], [10, 10]]


@pytest.mark.parametrize(("n", "height", "expected"), [(0, 3, []), (2, 0, [-1, 0, -1, 0])])
def test_nothing_to_propose(n: int, height: int, expected: list[float]) -> None:
    rows, scores = Proposal4(**ONE_ANCHOR, post_nms_topn=2).run(
        np.zeros((n, 2, height, 4), np.float32), np.zeros((n, 4, height, 4), np.float32), np.ones(3, np.float32)
    )
    assert rows[:, 0].tolist() == expected
    assert scores.shape == (2 * n,)


IMAGE = [100, 200, 1]


def single(**attributes: Any) -> ExperimentalDetectronGenerateProposalsSingleImage:
    given = {"min_size": 0.0, "nms_threshold": 0.5, "post_nms_count": 3, "pre_nms_count": 10, **attributes}
    return ExperimentalDetectronGenerateProposalsSingleImage(**given)


def proposals(**attributes: Any) -> GenerateProposals:
    given = {"min_size": 0.0, "nms_threshold": 0.5, "post_nms_count": 3, "pre_nms_count": 10, **attributes}
    return GenerateProposals(**given)


def run_single(
    op: Any, anchors: Any, scores: Any, deltas: Any = None, image: Any = IMAGE, dtype: Any = np.float32
) -> Any:
    """One row of points with one anchor each; deltas have a row for each point."""
    count = len(scores)
    moves = np.zeros((count, 4)) if deltas is None else np.array(deltas)
    inputs = image, anchors, moves.T.reshape(4, 1, count), np.reshape(scores, (1, 1, count))
    return op.run(*(np.array(array, dtype) for array in inputs))


def run_images(op: Any, anchors: Any, *images: tuple[Any, Any, Any], dtype: Any = np.float32) -> Any:
    """Of each image its information, scores and deltas, as above."""
    information, scores, deltas = zip(*images, strict=True)
    count = len(anchors)
    inputs = (
        information,
        np.reshape(anchors, (1, count, 1, 4)),
        np.stack([np.transpose(d).reshape(4, 1, count) for d in deltas]),
        np.reshape(scores, (len(images), 1, 1, count)),
    )
    return op.run(*(np.array(array, dtype) for array in inputs))


APART = [[0, 0, 9, 9], [20, 20, 39, 29], [60, 60, 69, 69]]
STILL = np.zeros((3, 4))


def test_boxes_by_descending_score_filled_up_with_zeros() -> None:
    boxes, scores = run_single(single(post_nms_count=4), APART, [0.2, 0.9, 0.5])
    assert boxes.tolist() == [APART[1], APART[2], APART[0], [0, 0, 0, 0]]
    assert scores.tolist() == np.array([0.9, 0.5, 0.2, 0], np.float32).tolist()


def test_deltas_move_and_resize() -> None:
    deltas = [[0.1, -0.5, 0, log(2)], [0, 0, 100, 0], [0, 0, 0, 0]]
    boxes, _ = run_single(single(), APART, [0.9, 0.8, 0.7], deltas)
    # From 10 x 10 around (5, 5) to 10 x 20 around (6, 0), clipped; the second grows by a factor of 62.5 at most.
    np.testing.assert_allclose(boxes[0], [1, 0, 10, 9], atol=1e-5)
    np.testing.assert_allclose(boxes[1], [0, 20, 199, 29], atol=1e-4)
    narrow = [[100, 0, 100, 9]]
    boxes, _ = run_single(single(), narrow, [0.9], [[0, 0, 100, 0]])
    np.testing.assert_allclose(boxes[0, :3:2], [100.5 - 31.25, 100.5 + 31.25 - 1], atol=1e-4)


def test_the_last_pixel_counts_unless_normalized() -> None:
    image = (IMAGE, [0.9, 0.8, 0.7], [[0, 0, log(3), log(3)], *STILL[1:]])
    assert run_images(proposals(normalized=False), APART, image)[0][0].tolist() == pytest.approx(
        [0, 0, 19, 19], abs=1e-4
    )
    assert run_images(proposals(), APART, image)[0][0].tolist() == pytest.approx([0, 0, 18, 18], abs=1e-4)
    clipped = (IMAGE, [0.9], [[0, 0, 9, 9]])
    assert run_images(proposals(normalized=False), [[0, 0, 99, 99]], clipped)[0][0].tolist() == [0, 0, 199, 99]
    assert run_images(proposals(), [[0, 0, 99, 99]], clipped)[0][0].tolist() == [0, 0, 200, 100]


OVERLAPPING = [[0, 0, 9, 9], [0, 1, 9, 9], [0, 4, 9, 9], [0, 9, 9, 19]]


@pytest.mark.parametrize(("threshold", "kept"), [(0.95, [0, 1, 2, 3]), (0.8, [0, 2, 3]), (0.5, [0, 3]), (0.0, [0, 3])])
def test_boxes_that_overlap_a_better_one(threshold: float, kept: list[int]) -> None:
    """With a last pixel that does not count: 72 / 81, 45 / 81, and only an edge in common."""
    op = single(nms_threshold=threshold, post_nms_count=4)
    boxes, _ = run_single(op, OVERLAPPING, [0.9, 0.8, 0.7, 0.6])
    assert boxes.tolist() == [OVERLAPPING[i] for i in kept] + [[0, 0, 0, 0]] * (4 - len(kept))


def test_the_last_pixel_counts_in_overlaps_unless_normalized() -> None:
    image = (IMAGE, [0.9, 0.8, 0.7, 0.6], np.zeros((4, 4)))
    assert run_images(proposals(nms_threshold=0.04, normalized=False), OVERLAPPING, image)[2].tolist() == [
        1
    ]  # 10 / 200
    assert run_images(proposals(nms_threshold=0.06, normalized=False), OVERLAPPING, image)[2].tolist() == [2]
    assert run_images(proposals(nms_threshold=0.04), OVERLAPPING, image)[2].tolist() == [2]


def test_counts_before_and_after_suppression() -> None:
    boxes, scores = run_single(single(pre_nms_count=2), APART, [0.2, 0.9, 0.5])
    assert scores.tolist() == np.array([0.9, 0.5, 0], np.float32).tolist()
    boxes, scores = run_single(single(post_nms_count=1), APART, [0.2, 0.9, 0.5])
    assert boxes.tolist() == [APART[1]]
    assert run_single(single(post_nms_count=0), APART, [0.2, 0.9, 0.5])[0].shape == (0, 4)
    assert not run_single(single(pre_nms_count=0), APART, [0.2, 0.9, 0.5])[1].any()


def test_short_boxes_are_left_out_before_the_choice_of_one_image() -> None:
    sides = [[0, 0, 19, 3], [40, 0, 59, 19], [80, 0, 99, 19]]  # the first is 4 high
    boxes, _ = run_single(single(min_size=5.0, pre_nms_count=2), sides, [0.9, 0.8, 0.7])
    assert boxes.tolist() == [*sides[1:], [0, 0, 0, 0]]
    assert run_single(single(min_size=4.0, pre_nms_count=2), sides, [0.9, 0.8, 0.7])[0].tolist()[0] == sides[0]


def test_short_boxes_are_left_out_after_the_choice_of_many() -> None:
    sides = [[0, 0, 19, 4], [40, 0, 44, 19], [80, 0, 99, 19]]
    scores = [0.9, 0.8, 0.7]
    images = [([100, 200, *scale], scores, STILL) for scale in ((1, 1), (1.5, 1), (1, 1.5))]
    assert run_images(proposals(min_size=4.0), sides, *images)[2].tolist() == [3, 2, 2]
    assert run_images(proposals(min_size=4.0, pre_nms_count=2), sides, *images)[2].tolist() == [2, 1, 1]
    assert run_images(proposals(min_size=4.0), sides, ([100, 200, 1.5], scores, STILL))[2].tolist() == [1]


def test_images_one_after_the_other() -> None:
    images = [(IMAGE, [0.2, 0.9, 0.5], STILL), (IMAGE, [0.1, 0.3, 0.2], STILL), ([100, 25, 1], [0.9, 0.8, 0.7], STILL)]
    boxes, scores, counts = run_images(proposals(post_nms_count=2, roi_num_type=i32), APART, *images)
    assert boxes.tolist() == [APART[1], APART[2], APART[1], APART[2], APART[0], [20, 20, 25, 29]]
    assert scores.tolist() == np.array([0.9, 0.5, 0.3, 0.2, 0.9, 0.8], np.float32).tolist()
    assert (counts.tolist(), counts.dtype) == ([2, 2, 2], np.int32)


def test_size_of_the_image_and_exp() -> None:
    boxes, _ = run_single(single(), [[10, 10, 19, 19]], [0.9], [[0, 0, 1, 0]], image=[15, 25, 1])
    assert boxes[0].tolist() == pytest.approx([15 - 5 * exp(1), 10, 24, 14], abs=1e-4)


# ----- inference


@pytest.mark.parametrize("left_out", ["pre_nms_count", "post_nms_count"])
def test_a_count_of_0_proposes_nothing(left_out: str) -> None:
    images = [(IMAGE, [0.2, 0.9, 0.5], STILL)] * 2
    boxes, scores, counts = run_images(proposals(**{left_out: 0}), APART, *images)
    assert (boxes.shape, scores.shape, counts.tolist()) == ((0, 4), (0,), [0, 0])
