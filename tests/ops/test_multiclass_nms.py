"""MulticlassNms and MatrixNms: what each image keeps, in which order, shapes, and what is refused."""

from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import i32
from ovir.core.tensor_types import constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.ops.multiclass_nms import MatrixNms, MulticlassNms8, MulticlassNms9

# Three boxes along x: the second overlaps the first by 2/3 and the third by 1/3.
BOXES = np.array([[[0, 0, 5, 1], [1, 0, 6, 1], [3.5, 0, 8.5, 1]]], np.float32)
SCORES = np.array([[[0.7, 0.9, 0.8]]], np.float32)
TWO_IMAGES = np.repeat(BOXES, 2, axis=0)
TWO_CLASSES = np.array([[[0.7, 0.2, 0.5], [0.3, 0.6, 0.5]], [[0.9, 0.4, 0.8], [0.2, 0.5, 0.4]]], np.float32)


def kept(op: Any, boxes: Any = BOXES, scores: Any = SCORES, *more: Any) -> list[tuple[int, float, int]]:
    """Class, score and place of the boxes kept."""
    rows, places, counts = op.run(np.asarray(boxes, np.float32), np.asarray(scores, np.float32), *more)
    assert rows.dtype == np.float32
    assert places.dtype == counts.dtype == np.int64
    assert counts.sum() == len(rows) == len(places)
    return [(int(row[0]), round(float(row[1]), 4), int(place)) for row, (place,) in zip(rows, places, strict=True)]


def places(op: Any, *inputs: Any) -> list[int]:
    return [place for _, _, place in kept(op, *inputs)]


# ----- MulticlassNms


def test_rows_hold_class_score_and_box() -> None:
    rows, index, counts = MulticlassNms8(iou_threshold=0.5, output_type=i32).run(TWO_IMAGES, TWO_CLASSES)
    assert rows.shape == (8, 6)
    assert [row.tolist() for row in rows[:, 2:]] == [TWO_IMAGES.reshape(6, 4)[i].tolist() for i in index[:, 0]]
    assert (index.dtype, counts.dtype, counts.tolist()) == (np.int32, np.int32, [4, 4])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [1]),
        ({"iou_threshold": 0.4}, [1, 2]),
        ({"iou_threshold": 0.7}, [1, 2, 0]),
        ({"iou_threshold": 0.7, "score_threshold": 0.8}, [1, 2]),  # the threshold itself is admitted
        ({"iou_threshold": 0.7, "score_threshold": 0.81}, [1]),
        ({"iou_threshold": 0.7, "nms_top_k": 2}, [1, 2]),
        ({"iou_threshold": 0.4, "nms_top_k": 1}, [1]),
        ({"iou_threshold": 0.7, "keep_top_k": 2}, [1, 2]),
        ({"iou_threshold": 0.7, "keep_top_k": 0}, []),
        ({"iou_threshold": 0.7, "nms_top_k": 0}, []),
        ({"iou_threshold": 0.7, "background_class": 0}, []),
        ({"iou_threshold": 0.7, "background_class": 1}, [1, 2, 0]),
        ({"iou_threshold": 0.8, "nms_eta": 0.5}, [1, 2]),  # 0.4 for the first and all that follow
        ({"iou_threshold": 0.8, "nms_eta": 0.9}, [1, 2, 0]),
        ({"iou_threshold": 0.5, "nms_eta": 0.1}, [1, 2]),
    ],
)
@pytest.mark.parametrize("cls", [MulticlassNms8, MulticlassNms9])
def test_multiclass(cls: Any, attributes: dict[str, Any], expected: list[int]) -> None:
    assert places(cls(**attributes)) == expected


def test_a_candidate_is_compared_by_the_threshold_that_a_selected_box_had() -> None:
    """0.9 * 0.8 is 0.72 for the first box, which the third overlaps by 0.6; then 0.576, which nothing overlaps."""
    boxes = [[[0, 0, 8, 1], [50, 0, 58, 1], [2, 0, 10, 1]]]
    assert places(MulticlassNms8(iou_threshold=0.9, nms_eta=0.8), boxes, [[[0.9, 0.8, 0.7]]]) == [0, 1, 2]


def test_an_overlap_that_equals_the_threshold_is_allowed() -> None:
    boxes = [[[0, 0, 1, 1], [1, 0, 2, 1], [0, 0, 1, 1]]]
    assert places(MulticlassNms8(), boxes, SCORES) == [1, 2]
    assert places(MulticlassNms8(iou_threshold=1), boxes, SCORES) == [1, 2, 0]


def test_coordinates_of_pixels() -> None:
    """Two boxes of 2 by 2 pixels have 2 of 6 in common; as numbers they only touch."""
    boxes = [[[0, 0, 1, 1], [1, 0, 2, 1]]]
    for threshold, expected in ((0.3, [1]), (0.34, [1, 0])):
        op = MulticlassNms8(normalized=False, iou_threshold=threshold)
        assert places(op, boxes, [[[0.1, 0.2]]]) == expected
    assert places(MulticlassNms8(), boxes, [[[0.1, 0.2]]]) == [1, 0]


@pytest.mark.parametrize(
    ("kind", "across", "expected"),
    [
        ("none", False, "0.7/0 0.6/1 0.5/2 0.5/2 0.9/3 0.8/5 0.5/4 0.4/5"),
        ("none", True, "0.7/0 0.6/1 0.5/2 0.5/2 0.9/3 0.8/5 0.5/4 0.4/5"),
        ("score", False, "0.7/0 0.6/1 0.5/2 0.5/2 0.9/3 0.8/5 0.5/4 0.4/5"),
        ("score", True, "0.9/3 0.8/5 0.7/0 0.6/1 0.5/2 0.5/2 0.5/4 0.4/5"),
        ("classid", False, "0.7/0 0.5/2 0.6/1 0.5/2 0.9/3 0.8/5 0.5/4 0.4/5"),
        ("classid", True, "0.7/0 0.5/2 0.9/3 0.8/5 0.6/1 0.5/2 0.5/4 0.4/5"),
    ],
)
@pytest.mark.parametrize("cls", [MulticlassNms8, MulticlassNms9, MatrixNms])
def test_order(cls: Any, kind: str, across: bool, expected: str) -> None:
    boxes = TWO_IMAGES.copy()
    attributes: dict[str, Any] = {"iou_threshold": 0.5}
    scores = TWO_CLASSES
    if cls is MatrixNms:  # nothing overlaps here, and low scores are left out
        boxes[..., 1::2] += np.arange(3)[:, np.newaxis] * 9
        attributes = {"score_threshold": 0.45}
        expected = expected.replace(" 0.4/5", "")
    op = cls(sort_result_type=kind, sort_result_across_batch=across, **attributes)
    assert " ".join(f"{score:g}/{place}" for _, score, place in kept(op, boxes, scores)) == expected


def test_each_image_keeps_its_best_of_all_classes() -> None:
    op = MulticlassNms8(iou_threshold=0.5, keep_top_k=2, sort_result_type="classid", sort_result_across_batch=True)
    assert kept(op, TWO_IMAGES, TWO_CLASSES) == [(0, 0.7, 0), (0, 0.9, 3), (0, 0.8, 5), (1, 0.6, 1)]
    assert op.run(TWO_IMAGES, TWO_CLASSES)[2].tolist() == [2, 2]


def test_equal_scores_stand_by_class_and_place() -> None:
    boxes = [[[0, 0, 1, 1], [5, 0, 6, 1], [0, 0, 1, 1]]]
    scores = np.full((1, 2, 3), 0.5)
    assert kept(MulticlassNms8(iou_threshold=0.5), boxes, scores) == [(c, 0.5, box) for c in (0, 1) for box in (0, 1)]


def test_boxes_of_one_class_each() -> None:
    """Two classes with three boxes each; the first image has the first box of each class, the third the others."""
    boxes = np.stack([BOXES[0], BOXES[0] + 100])
    scores = [[0.7, 0.9, 0.8], [0.4, 0.5, 0.6]]
    op = MulticlassNms9(iou_threshold=0.5)
    found = kept(op, boxes, scores, np.array([1, 0, 2]))
    assert found == [(0, 0.7, 0), (1, 0.4, 1), (0, 0.9, 2), (0, 0.8, 4), (1, 0.6, 5), (1, 0.5, 3)]
    assert op.run(boxes, np.array(scores, np.float32), np.array([1, 0, 2]))[2].tolist() == [2, 0, 4]
    assert op.run(boxes, np.array(scores, np.float32), np.array([-1, 1], np.int32))[2].tolist() == [0, 2]
    with pytest.raises(OperatorError, match=r"roisnum \[2,2\] counts 4 boxes, but there are 3"):
        op.run(boxes, np.array(scores, np.float32), np.array([2, 2]))


# ----- MatrixNms


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [1, 2, 0]),
        ({"score_threshold": 0.7}, [1, 2]),  # the threshold itself is not admitted
        ({"post_threshold": 0.3}, [1, 2]),
        ({"post_threshold": 0.9}, []),
        ({"nms_top_k": 2}, [1, 2]),
        ({"keep_top_k": 1}, [1]),
        ({"background_class": 0}, []),
        ({"score_threshold": 2.0}, []),
    ],
)
def test_matrix(attributes: dict[str, Any], expected: list[int]) -> None:
    assert places(MatrixNms(**attributes)) == expected


def test_identical_boxes_vanish() -> None:
    boxes = np.repeat(BOXES[:, :1], 3, axis=1)
    assert kept(MatrixNms(), boxes) == [(0, 0.9, 1)]
    assert places(MatrixNms(post_threshold=-1), boxes) == [1, 0, 2]


def test_pixels_with_a_gap_between_them_do_not_overlap() -> None:
    for gap, expected in ((0, 0.8 * 2 / 3), (0.5, 0.8)):
        boxes = [[[0, 0, 1, 1], [1 + gap, 0, 2 + gap, 1]]]
        assert kept(MatrixNms(normalized=False), boxes, [[[0.9, 0.8]]])[1][1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("decay", ["linear", "gaussian"])
def test_many_candidates(decay: str) -> None:
    """By the formulas, on whole matrices; the kernel goes block by block."""
    rng = np.random.default_rng(2)
    corner = rng.uniform(0, 9, (300, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 4, (300, 2))], axis=1).astype(np.float32)
    scores = np.sort(rng.uniform(0, 1, 300))[::-1].astype(np.float32)
    low, high = np.maximum(boxes[:, None, :2], boxes[:, :2]), np.minimum(boxes[:, None, 2:], boxes[:, 2:])
    common = np.maximum(high - low, 0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    overlap = np.triu(common / (area[:, None] + area - common), 1).astype(np.float64)
    greatest = overlap.max(axis=0)[:, None]
    factor = (1 - overlap) / (1 - greatest) if decay == "linear" else np.exp(2 * (greatest**2 - overlap**2))
    final = scores * np.where(np.triu(np.ones((300, 300)), 1), factor, 1).min(axis=0).clip(max=1)
    found = kept(MatrixNms(decay_function=decay), boxes[None], scores[None, None])
    assert [place for _, _, place in found] == np.argsort(-final).tolist()
    np.testing.assert_allclose([score for _, score, _ in found], -np.sort(-final), atol=1e-4)


# ----- both

ALL = [MulticlassNms8, MulticlassNms9, MatrixNms]


@pytest.mark.parametrize("cls", ALL)
def test_of_constants_the_number_of_rows_is_known(cls: Any) -> None:
    found = cls().infer(constant_type(BOXES), constant_type(np.zeros_like(SCORES) - 1))
    assert [str(t.shape) for t in found] == ["[0,6]", "[0,1]", "[1]"]


@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("cls", [MulticlassNms8, MatrixNms])
def test_images_of_one_class_keep_up_to_a_number_of_boxes(cls: Any, images: int) -> None:
    boxes = np.arange(images * 8, dtype=np.float32).reshape(images, 2, 4)
    scores = np.float32([[[0.9, 0.8]], [[0.8, 0.9]]])[:images]
    for most, kept in ((0, [[], []]), (1, [[0], [3]]), (-1, [[0, 1], [3, 2]])):
        expected = [place for places in kept[:images] for place in places]
        rows, indices, counts = cls(keep_top_k=most, sort_result_type="score").run(boxes, scores)
        assert indices.ravel().tolist() == expected
        np.testing.assert_array_equal(rows[:, 2:], boxes.reshape(-1, 4)[expected])
        assert counts.tolist() == [len(places) for places in kept[:images]]
