"""NonMaxSuppression of all versions and NMSRotated: what is selected, in which order, shapes, and what is refused."""

from typing import Any

import numpy as np
import pytest
from support.tensors import tensor

from ovir.core.arrays import Array
from ovir.core.element_types import i32, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import Value
from ovir.fast.registry import kernel_of
from ovir.ops.base.operator import Operator
from ovir.ops.multiclass_nms import MulticlassNms8
from ovir.ops.nms import (
    NMSRotated,
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
)

# Three boxes along x: the second overlaps the first by 2/3 and the third by 1/3.
BOXES = np.array([[[0, 0, 1, 5], [0, 1, 1, 6], [0, 3.5, 1, 8.5]]], np.float32)
SCORES = np.array([[[0.7, 0.9, 0.8]]], np.float32)


def number(value: float | None, dtype: Any = np.float32) -> Array | None:
    return None if value is None else np.array(value, dtype)


def selected(
    scores: Any = SCORES,
    boxes: Any = BOXES,
    most: int | None = 9,
    iou: float | None = 0.5,
    score: float | None = 0,
    sigma: float | None = None,
    cls: Any = NonMaxSuppression9,
    **attributes: Any,
) -> tuple[list[list[int]], list[float]]:
    """The indices of the boxes selected, and their scores."""
    inputs = [np.asarray(boxes, np.float32), np.asarray(scores, np.float32)]
    inputs += [number(most, np.int64), number(iou), number(score), number(sigma)]
    indices, found, count = cls(**attributes).run(*inputs)
    assert indices.dtype == count.dtype == np.int64
    assert found.dtype == np.float32
    assert count.tolist() == [len(indices)]
    assert found[:, :2].tolist() == indices[:, :2].tolist()
    return indices.tolist(), [round(score, 4) for score in found[:, 2].tolist()]


@pytest.mark.parametrize("cls", [NonMaxSuppression5, NonMaxSuppression9])
@pytest.mark.parametrize(
    ("inputs", "boxes", "scores"),
    [
        ({"most": None, "iou": None, "score": None}, [], []),
        ({"score": 0.85}, [1], [0.9]),
        ({"score": 0.9}, [], []),  # the score must be above the threshold
        ({"score": -1}, [1, 2], [0.9, 0.8]),
    ],
)
def test_selection(cls: Any, inputs: dict[str, Any], boxes: list[int], scores: list[float]) -> None:
    assert selected(cls=cls, **inputs) == ([[0, 0, box] for box in boxes], scores)


def test_an_overlap_that_equals_the_threshold_is_allowed() -> None:
    boxes = [[[0, 0, 1, 1], [0, 0.5, 1, 1.5], [0, 2, 1, 3]]]
    assert [box for _, _, box in selected(boxes=boxes, iou=np.float32(1) / 3)[0]] == [1, 2, 0]
    assert [box for _, _, box in selected(boxes=boxes, iou=0)[0]] == [1, 2]
    assert [box for _, _, box in selected(boxes=np.zeros((1, 3, 4)), iou=0)[0]] == [1, 2, 0]  # of no area


def test_equal_scores_are_taken_in_order() -> None:
    boxes = np.tile(BOXES[:, :1], (1, 4, 1))
    assert selected(np.full((1, 1, 4), 0.5), boxes) == ([[0, 0, 0]], [0.5])
    assert selected(np.full((1, 1, 4), 0.5), boxes, iou=1)[0] == [[0, 0, box] for box in range(4)]


@pytest.mark.parametrize(
    ("encoding", "box"), [("corner", [0, 0, 1, 4]), ("corner", [1, 4, 0, 0]), ("center", [2, 0.5, 4, 1])]
)
def test_box_encoding(encoding: str, box: list[float]) -> None:
    boxes = {"corner": [[0, 1, 1, 5], [2, 0, 3, 4]], "center": [[3, 0.5, 4, 1], [2, 2.5, 4, 1]]}[encoding]
    found = selected([[[0.9, 0.8, 0.7]]], [[box, *boxes]], box_encoding=encoding)
    assert [box for _, _, box in found[0]] == [0, 2]
    assert len(selected([[[0.9, 0.8, 0.7]]], [[box, *boxes]], iou=0.61, box_encoding=encoding)[0]) == 3


def test_order() -> None:
    scores = [[[0.5, 0.1, 0.9], [0.9, 0.1, 0.6]], [[0.2, 0.1, 0.9], [0.5, 0.1, 0.3]]]
    boxes = np.repeat(BOXES, 2, axis=0)
    by_class = [[0, 0, 2], [0, 0, 0], [0, 1, 0], [0, 1, 2], [1, 0, 2], [1, 0, 0], [1, 1, 0], [1, 1, 2]]
    by_score = [[0, 0, 2], [0, 1, 0], [1, 0, 2], [0, 1, 2], [0, 0, 0], [1, 1, 0], [1, 1, 2], [1, 0, 0]]
    assert selected(scores, boxes, sort_result_descending=False)[0] == by_class
    assert selected(scores, boxes)[0] == by_score
    assert selected(scores, boxes, most=1)[0] == [[0, 0, 2], [0, 1, 0], [1, 0, 2], [1, 1, 0]]


def test_soft_nms_lowers_scores() -> None:
    """1 is taken first: 2 overlaps it by 1/3, 0 by 2/3, and then 2 by 3/17; each overlap costs exp(-iou**2)."""
    assert selected(sigma=0.5) == ([[0, 0, 1], [0, 0, 2], [0, 0, 0]], [0.9, 0.7159, 0.4351])
    assert selected(sigma=0.5, score=0.5)[0] == [[0, 0, 1], [0, 0, 2]]
    assert selected(sigma=0.5, most=2)[0] == [[0, 0, 1], [0, 0, 2]]
    assert selected(sigma=0) == selected(sigma=-1) == selected()


def test_only_version_5_removes_boxes_in_soft_nms() -> None:
    assert selected(sigma=0.5, cls=NonMaxSuppression5) == ([[0, 0, 1], [0, 0, 2]], [0.9, 0.7159])
    assert selected(sigma=0.5, iou=0.7, cls=NonMaxSuppression5) == selected(sigma=0.5, iou=0.7)


# ----- versions of one output

WIDE_SCORES = np.array([[[0.9, 0.1, 0.8], [0.2, 0.6, 0.3]], [[0.4, 0.5, 0.1], [0.9, 0.8, 0.7]]], np.float32)


@pytest.mark.parametrize(
    ("cls", "most", "rows"),
    [
        (NonMaxSuppression1, 1, [[0, 0, 0], [1, 1, 0]]),
        (NonMaxSuppression3, 1, [[0, 0, 0], [1, 1, 0]]),
        (NonMaxSuppression4, 1, [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]),
        (NonMaxSuppression3, 0, []),
    ],
)
def test_the_first_versions_have_a_fixed_number_of_rows(cls: Any, most: int, rows: list[list[int]]) -> None:
    inputs = np.repeat(BOXES, 2, axis=0), WIDE_SCORES, np.array(most), np.array(0.5, np.float32), np.array(0)
    assert cls().run(*inputs).tolist() == rows


def test_rows_that_are_left_over_are_filled_with_minus_one() -> None:
    inputs = BOXES, SCORES, np.array(7), np.array(0.5, np.float32), np.array(0, np.float32)
    for cls in (NonMaxSuppression1, NonMaxSuppression3, NonMaxSuppression4):
        found = cls().run(*inputs)
        assert (found.dtype, found.tolist()) == (np.int64, [[0, 0, 1], [0, 0, 2], [-1, -1, -1]])
    assert NonMaxSuppression4(output_type=i32).run(*inputs).dtype == np.int32
    assert NonMaxSuppression1().run(BOXES, SCORES).shape == (0, 3)


# ----- NMSRotated


def test_rotated_boxes() -> None:
    """A cross of two bars, and a bar turned by 0.6 either way on another of angle 0.6."""
    quarter = np.pi / 2
    cross = [[0, 0, 8, 2, 0], [0, 0, 8, 2, quarter], [0, 0, 2, 8, quarter]]
    boxes = np.array(
        [[*cross, [50, 50, 8, 2, 0.6], [50, 50, 8, 2, -0.6], [50, 50, 8, 2, 0.6 + 2 * quarter]]], np.float32
    )
    scores = np.array([[[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]]], np.float32)
    inputs = boxes, scores, np.array(9), np.array([0.5], np.float32), np.array([0], np.float32)
    for clockwise in (True, False):
        indices, found, count = NMSRotated(clockwise=clockwise).run(*inputs)
        assert indices.tolist() == [[0, 0, box] for box in (0, 1, 3, 4)]
        np.testing.assert_allclose(found[:, 2], [0.9, 0.8, 0.6, 0.5])
        assert count.tolist() == [4]


def test_clockwise_is_from_x_to_y() -> None:
    """A bar from the origin to the lower right (y grows downwards) and one that lies on its far end."""
    boxes = np.array([[[5, 5, 15, 2, np.pi / 4], [8, 8, 6, 2, np.pi / 4]]], np.float32)
    inputs = boxes, np.array([[[0.9, 0.8]]], np.float32), np.array(9), np.array(0.3, np.float32), np.array(0)
    assert len(NMSRotated().run(*inputs)[0]) == 1
    assert len(NMSRotated(clockwise=False).run(*inputs)[0]) == 2


# ----- inference


def constant(value: Any, dtype: Any = np.int64) -> TensorType:
    return constant_type(np.array(value, dtype))


HALF = constant(0.5, np.float32)


@pytest.mark.parametrize(
    ("boxes", "scores", "most", "versions"),
    [
        ("[2,6,4]", "[2,3,6]", 1, ("[3,3]", "[6,3]", "[..6,3]")),
        ("[2,6,4]", "[2,3,6]", 0, ("[0,3]", "[0,3]", "[0,3]")),
        ("[?,6,4]", "[?,3,6]", 2, ("[6,3]", "[?,3]", "[?,3]")),
        ("[2,2..4,4]", "[2..3,1,?]", 3, ("[2..3,3]", "[4..6,3]", "[..6,3]")),
    ],
)
def test_shapes(boxes: str, scores: str, most: int, versions: tuple[str, str, str]) -> None:
    inputs = tensor(boxes), tensor(scores), constant(most), HALF, HALF
    for cls, expected in zip((NonMaxSuppression1, NonMaxSuppression4), versions, strict=False):
        assert str(cls().infer(*inputs)) == f"i64{expected}"
    for cls in (NonMaxSuppression5, NonMaxSuppression9):
        found = cls(output_type=i32).infer(*inputs)
        assert [str(t) for t in found] == [f"i32{versions[2]}", f"f32{versions[2]}", "i32[1]"]


def test_the_maximum_may_be_known_in_part_or_left_out() -> None:
    inputs = tensor("[1,9,4]"), tensor("[1,2,9]")
    unknown = tensor("[1]", i64)
    bounded = TensorType(i64, PartialShape([1]), Value(None, np.array([1.0]), np.array([3.0])))
    negative = TensorType(i64, PartialShape([1]), Value(None, np.array([-1.0]), np.array([3.0])))
    for most, expected in ((unknown, "[..18,3]"), (bounded, "[..6,3]"), (negative, "[..18,3]")):
        assert str(NonMaxSuppression9().infer(*inputs, most)[0].shape) == expected
    assert str(NonMaxSuppression9().infer(*inputs)[0].shape) == "[0,3]"
    assert str(NonMaxSuppression4().infer(*inputs).shape) == "[0,3]"


def test_of_constants_the_number_of_rows_is_known() -> None:
    inputs = (constant(a, np.float32) for a in (BOXES, SCORES))
    found = NonMaxSuppression9().infer(*inputs, constant(9), HALF, HALF)
    assert [str(t.shape) for t in found] == ["[2,3]", "[2,3]", "[1]"]


def assert_same_from_fast_kernel(op: Operator, *inputs: Any) -> None:
    expected, found = op.run(*inputs), kernel_of(op)(*inputs)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def sample(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return boxes and scores, some of which are equal or not numbers."""
    images, classes, count = (int(n) for n in rng.integers(1, (4, 4, rng.choice([13, 300]))))
    boxes = rng.integers(0, 9, (images, count, 4)).astype(np.float32)
    if rng.random() < 0.7:
        boxes = np.sort(boxes.reshape(images, count, 2, 2), axis=2).reshape(images, count, 4)
    scores = rng.integers(0, 7, (images, classes, count)).astype(np.float32) / 6
    odd = rng.random(scores.shape) < 0.05
    scores[odd] = rng.choice([np.nan, np.inf, -np.inf], np.count_nonzero(odd))
    boxes[rng.random(boxes.shape) < 0.01] = np.nan
    return boxes, scores


@pytest.mark.parametrize("seed", range(60))
def test_each_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    op = NonMaxSuppression9(
        box_encoding=str(rng.choice(["corner", "center"])),
        sort_result_descending=bool(rng.integers(2)),
        output_type=i32 if rng.integers(2) else i64,
    )
    limit, overlap, least = np.array(rng.integers(-1, 5)), *rng.choice([0, 0.3, 0.6], 2).astype(np.float32)
    assert_same_from_fast_kernel(op, *sample(rng), limit, np.array(overlap), np.array(least))


@pytest.mark.parametrize("seed", range(60))
def test_each_image(seed: int) -> None:
    rng = np.random.default_rng(seed)
    op = MulticlassNms8(
        iou_threshold=float(rng.choice([0, 0.4])),
        nms_eta=float(rng.choice([1.0, 0.9])),
        sort_result_type=str(rng.choice(["classid", "score", "none"])),
        sort_result_across_batch=bool(rng.integers(2)),
        score_threshold=float(rng.choice([0, 0.3])),
        nms_top_k=int(rng.integers(-1, 8)),
        keep_top_k=int(rng.integers(-1, 8)),
        background_class=int(rng.integers(-1, 2)),
        normalized=bool(rng.integers(2)),
    )
    assert_same_from_fast_kernel(op, *sample(rng))
