"""DetectionOutput: known answers."""

from math import log, prod
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.ops.detection_output import DetectionOutput8

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
        ({"nms_threshold": 0.8}, [(0, 1, 0.6), (0, 1, 0.5), (0, 1, 0.3), (0, 2, 0.8), (0, 2, 0.2), (0, 2, 0.1)]),
        ({"top_k": 0}, []),
        ({"background_label_id": -1, "keep_top_k": (3,)}, [(0, 0, 0.9), (0, 0, 0.9), (0, 2, 0.8)]),
        ({"decrease_label_id": True, "confidence_threshold": 0.6}, [(0, 0, 0.6), (0, 1, 0.8)]),
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
    assert found(np.zeros((2, 0, 2)), decrease_label_id=decrease).shape == (0, 7)
    assert heads(found(np.full((1, 3, 1), 0.5), decrease_label_id=decrease)) == []


# ----- shapes


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
