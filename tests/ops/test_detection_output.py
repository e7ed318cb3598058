"""DetectionOutput: known answers, shapes, and what is refused."""

from math import log, prod
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.tensors import assert_refused, tensor

from ovir.core.element_types import ElementType, f16, f32, f64, i32, nf4
from ovir.diagnostics.errors import OperatorError
from ovir.ops.detection_output import DetectionOutput1, DetectionOutput8

CENTER_SIZE = "caffe.PriorBoxParameter.CENTER_SIZE"
LEFT, RIGHT, NEAR_LEFT = [0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0], [0.0, 0.0, 0.5, 0.375]
PRIORS = np.array([LEFT, RIGHT, NEAR_LEFT])  # the first and the last overlap by 3/4


def found(scores: Any, deltas: Any = 0.0, priors: Any = PRIORS, aux: Any = (), **attributes: Any) -> Any:
    """The rows, for scores [images, priors, classes] and boxes whose variances are in the logits."""
    scores = np.asarray(scores, np.float32)
    op = DetectionOutput8(
        **{"keep_top_k": (-1,), "normalized": True, "variance_encoded_in_target": True, "nms_threshold": 0.5}
        | attributes
    )
    images, count, classes = scores.shape
    locations = 1 if op.share_location else classes
    logits = np.zeros((images, count, locations, 4), np.float32) + deltas
    inputs = [logits, scores, *(np.asarray(a) for a in aux)]
    flat = [a.reshape(images, prod(a.shape[1:])).astype(np.float32) for a in inputs]
    boxes = np.asarray(priors, np.float32)
    boxes = boxes.reshape(*(boxes.shape[:-2] or (1,)), 1, -1) if op.variance_encoded_in_target else boxes
    return op.run(flat[0], flat[1], boxes, *flat[2:])[0, 0]


def heads(rows: Any) -> list[tuple[int, int, float]]:
    """Image, class and confidence of what was found."""
    end = np.flatnonzero(rows[:, 0] == -1)
    return [(int(i), int(c), round(float(s), 3)) for i, c, s in rows[: end[0] if end.size else None, :3]]


# Scores of background, class 1 and class 2 for each prior.
SCORES = [[[0.9, 0.6, 0.1], [0.9, 0.3, 0.2], [0.9, 0.5, 0.8]]]


def test_rows_end_mark_and_zeros() -> None:
    rows = found(SCORES, confidence_threshold=0.25)
    assert rows.shape == (9, 7)
    expected = [[0, 1, 0.6, *LEFT], [0, 1, 0.3, *RIGHT], [0, 2, 0.8, *NEAR_LEFT], [-1, 0, 0, 0, 0, 0, 0]]
    assert np.allclose(rows[:4], expected)
    assert not rows[4:].any()


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [(0, 1, 0.6), (0, 1, 0.3), (0, 2, 0.8), (0, 2, 0.2)]),
        ({"nms_threshold": 0.8}, [(0, 1, 0.6), (0, 1, 0.5), (0, 1, 0.3), (0, 2, 0.8), (0, 2, 0.2), (0, 2, 0.1)]),
        ({"confidence_threshold": 0.6}, [(0, 2, 0.8)]),
        ({"confidence_threshold": 0.95}, []),
        ({"top_k": 2}, [(0, 1, 0.6), (0, 2, 0.8), (0, 2, 0.2)]),
        ({"top_k": 0}, []),
        ({"keep_top_k": (2,)}, [(0, 1, 0.6), (0, 2, 0.8)]),
        ({"keep_top_k": (3, 9)}, [(0, 1, 0.6), (0, 1, 0.3), (0, 2, 0.8)]),
        ({"keep_top_k": (0,)}, []),
        ({"background_label_id": 1}, [(0, 0, 0.9), (0, 0, 0.9), (0, 2, 0.8), (0, 2, 0.2)]),
        ({"background_label_id": -1, "keep_top_k": (3,)}, [(0, 0, 0.9), (0, 0, 0.9), (0, 2, 0.8)]),
        ({"decrease_label_id": True}, [(0, 0, 0.6), (0, 0, 0.3), (0, 1, 0.8)]),
        ({"decrease_label_id": True, "confidence_threshold": 0.6}, [(0, 0, 0.6), (0, 1, 0.8)]),
        ({"decrease_label_id": True, "top_k": 1}, [(0, 1, 0.8)]),
        ({"decrease_label_id": True, "background_label_id": 2}, [(0, 0, 0.6), (0, 0, 0.3)]),
    ],
)
def test_what_is_found(attributes: dict[str, Any], expected: list[tuple[int, int, float]]) -> None:
    assert heads(found(SCORES, **attributes)) == expected


def test_each_image_has_its_own() -> None:
    scores = np.array([SCORES[0], [[0, 0.1, 0], [0, 0.9, 0], [0, 0, 0.4]]])
    expected = [(0, 1, 0.6), (0, 2, 0.8), (1, 1, 0.9), (1, 2, 0.4)]
    assert heads(found(scores, keep_top_k=(2,))) == expected
    both = found(scores, keep_top_k=(2,), priors=np.stack([PRIORS, PRIORS[::-1]]))
    assert heads(both) == expected
    assert both[3, 3:].tolist() == LEFT


def test_of_equal_confidences_the_first_prior_is_first() -> None:
    rows = found(np.full((1, 3, 2), 0.5), keep_top_k=(1,))
    assert rows[0, 3:].tolist() == LEFT


def test_nan_is_no_confidence() -> None:
    scores = np.array([[[0, np.nan], [0, 0.5], [0, np.nan]]])
    for decrease in (False, True):
        assert heads(found(scores, decrease_label_id=decrease)) == [(0, 1 - decrease, 0.5)]


@pytest.mark.parametrize(
    ("attributes", "deltas", "expected"),
    [
        ({}, [0.1, 0.2, 0.3, 0.4], [0.3, 0.5, 0.9, 1.4]),
        ({"clip_before_nms": True}, [0.1, 0.2, 0.3, 0.4], [0.3, 0.5, 0.9, 1.0]),
        ({"clip_after_nms": True}, [-0.4, 0.2, 0.3, 0.4], [0.0, 0.5, 0.9, 1.0]),
        ({"code_type": CENTER_SIZE}, [0.5, -0.25, 0, log(0.5)], [0.6 - 0.2, 0.475 - 0.175, 0.6 + 0.2, 0.475 + 0.175]),
    ],
)
def test_decoding(attributes: dict[str, Any], deltas: list[float], expected: list[float]) -> None:
    # The prior is [0.2, 0.3, 0.6, 1.0]: center (0.4, 0.65), size (0.4, 0.7).
    rows = found([[[0, 1]]], np.array(deltas), [[0.2, 0.3, 0.6, 1.0]], **attributes)
    assert np.allclose(rows[0, 3:], expected)


def test_variances_scale_the_logits() -> None:
    priors = np.array([[[0.2, 0.2, 0.6, 0.6], [0.1, 0.2, 0.5, 1]]])
    rows = found([[[0, 1]]], np.ones(4), priors, variance_encoded_in_target=False)
    assert np.allclose(rows[0, 3:], [0.3, 0.4, 1.1, 1.6])


def test_priors_in_pixels() -> None:
    priors = np.array([[0, *LEFT], [0, *RIGHT], [-1, *RIGHT], [0, *LEFT]]) * [1, 20, 10, 20, 10]
    rows = found(np.full((1, 4, 2), 0.5), 0.0, priors, normalized=False, input_width=20, input_height=10)
    assert rows[0, 3:].tolist() == LEFT
    assert rows[1, 3:].tolist() == RIGHT
    assert rows[2, 0] == -1  # the third prior's image id ends the list
    variances = np.array([[priors[:2].ravel(), [1, 1, 1, 1, 2, 2, 2, 2, 7, 7]]])
    attributes = {"normalized": False, "input_width": 20, "input_height": 10, "variance_encoded_in_target": False}
    rows = found([[[0, 0.4], [0, 0.3]]], 0.125, variances, **attributes)
    assert np.allclose(rows[:2, 3:], [np.add(LEFT, 0.125), np.add(RIGHT, 0.25)])


def test_boxes_of_each_class() -> None:
    deltas = np.zeros((1, 1, 3, 4))
    deltas[0, 0, :, 0] = [9, 0.125, 0.25]
    rows = found([[[0.9, 0.6, 0.1]]], deltas, [LEFT], share_location=False)
    assert rows[:2, 3].tolist() == [0.125, 0.25]
    assert heads(rows) == [(0, 1, 0.6), (0, 2, 0.1)]
    assert found([[[0.9, 0.6, 0.1]]], deltas, [LEFT], share_location=False, decrease_label_id=True)[0, 3] == 0.125


def test_five_inputs_move_the_priors_and_filter_them() -> None:
    aux_scores = [[[0.5, 0.5], [0.9, 0.1], [0.5, 0.5]]]
    aux_deltas = np.full((1, 3, 4), 0.25)
    rows = found([[[0, 0.6], [0, 0.8], [0, 0.1]]], 0.5, aux=(aux_scores, aux_deltas), objectness_score=0.4)
    assert heads(rows) == [(0, 1, 0.6)]
    assert np.allclose(rows[0, 3:], np.add(LEFT, 0.75))


@pytest.mark.parametrize("decrease", [False, True])
def test_no_images_and_no_classes(decrease: bool) -> None:
    assert found(np.zeros((0, 3, 2)), decrease_label_id=decrease).shape == (0, 7)
    assert found(np.zeros((2, 3, 0)), decrease_label_id=decrease).shape == (0, 7)
    assert heads(found(np.full((1, 3, 1), 0.5), decrease_label_id=decrease)) == []


# ----- shapes

SHARED = "[2,16]", "[2,12]", "[1,2,16]"


@pytest.mark.parametrize(
    ("attributes", "shapes", "rows"),
    [
        ({"keep_top_k": (6,)}, SHARED, "12"),
        ({"keep_top_k": (-1,), "top_k": 5}, SHARED, "30"),
        ({"keep_top_k": (-1,)}, SHARED, "24"),
        ({"keep_top_k": (0,), "top_k": 5}, SHARED, "24"),
        ({"keep_top_k": (-2,), "top_k": 5}, SHARED, "24"),
        ({"keep_top_k": (6,)}, ("[...]", "[...]", "[...]"), "?"),
        ({"keep_top_k": (6,)}, ("[2..4,16]", "[3..5,?]", "[?,?,?]"), "18..24"),
        ({"keep_top_k": (6,)}, ("[?,16]", "[?,12]", "[3..4,2,?]"), "18..24"),
        ({"keep_top_k": (-1,)}, ("[2,16]", "[2,12]", "[?,?,?]"), "24"),
        ({"keep_top_k": (-1,)}, ("[2,?]", "[2,11..14]", "[1,2,15..18]"), "24"),
        ({"keep_top_k": (-1,)}, ("[2,?]", "[2,?]", "[1,2,?]", "[2,8]", "[2,16]"), "?"),
        ({"keep_top_k": (-1,), "share_location": False}, ("[2,48]", "[2,?]", "[1,2,16]"), "24"),
        ({"keep_top_k": (-1,), "normalized": False}, ("[2,?]", "[2,12]", "[1,2,20]"), "24"),
    ],
)
def test_shapes(attributes: dict[str, Any], shapes: tuple[str, ...], rows: str) -> None:
    inputs = [tensor(shape, f16 if i != 2 else f64) for i, shape in enumerate(shapes)]
    result = DetectionOutput8(**{"normalized": True} | attributes).infer(*inputs)
    assert str(result) == f"f16[1,1,{rows},7]"


@pytest.mark.parametrize(
    ("shapes", "rows"),
    [
        (("[2,16]", "[2,?]", "[?,?,?]"), "24"),
        (("[2,?]", "[2,12]", "[?,?,?]"), "24"),
        (("[2,?]", "[2,?]", "[?,?,?]", "[2,8]", "[2,?]"), "24"),
        (("[...]", "[?,12]", "[...]"), "?"),
    ],
)
def test_shapes_where_the_classes_are_stated(shapes: tuple[str, ...], rows: str) -> None:
    op = DetectionOutput1(num_classes=3, keep_top_k=(-1,), normalized=True)
    assert str(op.infer(*map(tensor, shapes))) == f"f32[1,1,{rows},7]"


@pytest.mark.parametrize(
    ("attributes", "inputs", "message"),
    [
        ({}, ("[2,16,1]", "[2,12]", "[1,2,16]"), "box_logits must have rank 2, got shape [2,16,1]"),
        ({}, ("[2,16]", "[2]", "[1,2,16]"), "class_preds must have rank 2, got shape [2]"),
        ({}, ("[2,16]", "[2,12]", "[2,16]"), "proposals must have rank 3, got shape [2,16]"),
        ({}, ("[2,16]", "[3,12]", "[1,2,16]"), "box_logits of shape [2,16] and class_preds of shape [3,12] must have"),
        ({}, ("[2,16]", "[2,12]", "[3,2,16]"), "dimension 0 of proposals [3,2,16] must be 1 or the number of images"),
        ({}, ("[2,16]", "[2,12]", "[1,1,16]"), "dimension 1 of proposals [1,1,16] must be 2, because"),
        ({}, ("[2,16]", "[2,12]", "[1,2,17]"), "last dimension of proposals [1,2,17] must be a multiple of 4,"),
        ({}, ("[2,20]", "[2,12]", "[1,2,16]"), "box_logits [2,20] with 4 elements per prior gives a count of 5,"),
        ({}, ("[2,16]", "[2,13]", "[1,2,16]"), "last dimension of class_preds [2,13] must be a multiple of 4,"),
        ({}, ("[2,0]", "[2,0]", "[1,2,0]"), "proposals [1,2,0] contain no prior boxes"),
        ({}, (*SHARED, "[2,8]"), "expected 3 or 5 inputs, got 4"),
        ({}, (*SHARED, "[3,8]", "[2,16]"), "box_logits of shape [2,16] and aux_class_preds of shape [3,8] must have"),
        ({}, (*SHARED, "[2,9]", "[2,16]"), "last dimension of aux_class_preds [2,9] must be a multiple of 2,"),
        ({}, (*SHARED, "[2,8]", "[2,20]"), "aux_box_preds [2,20] and box_logits [2,16] must have equal shapes"),
        ({"share_location": False}, ("[2,32]", "[2,12]", "[1,2,16]"), "box_logits [2,32] with 16 elements per class"),
        ({"code_type": "CORNER"}, SHARED, "code_type must be caffe.PriorBoxParameter.CORNER or"),
        ({"keep_top_k": ()}, SHARED, "keep_top_k must be a number, got an empty list"),
        ({"normalized": False, "input_width": 0}, SHARED, "input_height 1 and input_width 0 must be positive, because"),
    ],
)
def test_refuses(attributes: dict[str, Any], inputs: tuple[str, ...], message: str) -> None:
    assert_refused(
        message, DetectionOutput8(**{"keep_top_k": (6,), "normalized": True} | attributes), *map(tensor, inputs)
    )


def test_proposals_may_have_a_type_of_their_own() -> None:
    """Those of PriorBox are f32, whatever the predictions are."""
    inputs = [tensor(shape, element_type) for shape, element_type in zip(SHARED, (f16, f16, f32), strict=True)]
    assert DetectionOutput8(keep_top_k=(6,), normalized=True).infer(*inputs).element_type == f16


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ((f32, f16, f32), "box_logits is f32 and class_preds is f16: their element types must be equal"),
        ((i32, i32, f32), "box_logits must be of a floating-point type, got i32"),
        ((f32, f32, i32), "proposals must be of a floating-point type, got i32"),
        ((nf4, nf4, f32), "box_logits must be of a floating-point type, got nf4"),
    ],
)
def test_refuses_types(types: tuple[ElementType, ...], message: str) -> None:
    inputs = [tensor(shape, element_type) for shape, element_type in zip(SHARED, types, strict=True)]
    assert_refused(message, DetectionOutput8(keep_top_k=(6,), normalized=True), *inputs)


def test_classes_that_are_stated_must_fit() -> None:
    message = r"class_preds \[2,12\] with 4 elements per class gives a count of 3, but the other inputs give 4"
    with pytest.raises(OperatorError, match=message):
        DetectionOutput1(num_classes=4, keep_top_k=(6,), normalized=True).infer(*map(tensor, SHARED))


def test_sizes_that_only_a_run_knows() -> None:
    net = Net()
    inputs = [net.parameter("logits", "?,?"), net.parameter("scores", "?,?"), net.parameter("priors", "?,?,?")]
    net.result(
        net.op(
            "DetectionOutput",
            *inputs,
            opset=8,
            keep_top_k="3",
            normalized="true",
            variance_encoded_in_target="true",
            nms_threshold="0.5",
        )
    )
    priors = PRIORS.reshape(1, 1, 12).astype(np.float32)
    rows = net.compiled()([np.zeros((1, 12), np.float32), np.array(SCORES, np.float32).reshape(1, 9), priors])[0]
    assert heads(rows[0, 0]) == [(0, 1, 0.6), (0, 1, 0.3), (0, 2, 0.8)]
