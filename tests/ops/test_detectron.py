"""Operations of Detectron's detectors: known answers and shapes."""

from math import log
from typing import Any

import numpy as np
import pytest

from ovir.ops.detectron import (
    ExperimentalDetectronDetectionOutput,
    ExperimentalDetectronPriorGridGenerator,
    ExperimentalDetectronROIFeatureExtractor,
    ExperimentalDetectronTopKROIs,
)
from ovir.ops.roi_align import ROIAlign9

rng = np.random.default_rng(7)


def array(*rows: Any) -> Any:
    return np.array(rows, np.float32)


# ----- PriorGridGenerator


def grid(priors: Any, **attributes: Any) -> Any:
    op = ExperimentalDetectronPriorGridGenerator(**attributes)
    return op.run(array(*priors), np.zeros((1, 4, 2, 3), np.float32), np.zeros((1, 3, 20, 60), np.float32))


def test_priors_stand_in_the_middle_of_every_cell() -> None:
    found = grid([[-1, -2, 1, 2], [0, 0, 0, 0]])
    assert found.shape == (12, 4)
    assert found[:4].tolist() == [[9, 3, 11, 7], [10, 5, 10, 5], [29, 3, 31, 7], [30, 5, 30, 5]]
    assert found[-1].tolist() == [50, 15, 50, 15]
    assert (grid([[-1, -2, 1, 2], [0, 0, 0, 0]], flatten=False) == found.reshape(2, 3, 2, 4)).all()


def test_strides_of_their_own() -> None:
    assert grid([[0, 0, 0, 0]], stride_x=4.0, stride_y=0.5)[-1].tolist() == [10, 0.75, 10, 0.75]


@pytest.mark.parametrize("flatten", [True, False])
def test_a_smaller_grid_fills_the_beginning(flatten: bool) -> None:
    found = grid([[0, 0, 0, 0]], h=1, w=2, flatten=flatten).reshape(-1, 4)
    assert found.tolist() == [[15, 10, 15, 10], [45, 10, 45, 10]] + [[0, 0, 0, 0]] * 4


# ----- ROIFeatureExtractor


def extractor(**attributes: Any) -> ExperimentalDetectronROIFeatureExtractor:
    given = {"output_size": 2, "sampling_ratio": 2, "pyramid_scales": (4, 8, 16), **attributes}
    return ExperimentalDetectronROIFeatureExtractor(**given)


@pytest.mark.parametrize(
    ("side", "level"),
    [(-9, None), (0, None), (1, 0), (111, 0), (112, 1), (223, 1), (224, 2), (447, 2), (448, 3), (5000, 3)],
)
def test_the_level_of_a_region_follows_from_its_area(side: float, level: int | None) -> None:
    """Each level of this pyramid holds its own number, counted from 1."""
    features = [np.full((1, 1, 8, 8), number, np.float32) for number in (1, 2, 3, 4)]
    op = extractor(pyramid_scales=(1e4, 1e4, 1e4, 1e4))
    roi = array([0, 0, side / 2, abs(side) * 2])
    (found,), rois = op.run(roi, *features)
    assert np.unique(found).tolist() == [0 if level is None else level + 1]
    assert (rois == roi).all()
    assert rois is not roi


def test_a_level_without_pixels_gives_0() -> None:
    op = extractor(pyramid_scales=(4, 8))
    rois = array([0, 0, 8, 8], [0, 0, 300, 300])
    found, _ = op.run(rois, np.ones((1, 2, 0, 9), np.float32), np.ones((1, 2, 90, 90), np.float32))
    assert found[:, 1, 0, 0].tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0, 1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_features_are_those_of_roi_align(ratio: int, aligned: bool) -> None:
    data = [rng.normal(size=(1, 3, 20, 30)).astype(np.float32) for _ in range(2)]
    rois = array([8, 8, 60, 70], [4, 12, 260, 100], [50, 40, 70, 80], [0, 0, 200, 160])
    found, _ = extractor(pyramid_scales=(4, 16), sampling_ratio=ratio, aligned=aligned).run(rois, *data)
    for i, level in enumerate((0, 1, 0, 1)):
        align = ROIAlign9(
            pooled_h=2,
            pooled_w=2,
            sampling_ratio=ratio,
            spatial_scale=(0.25, 0.0625)[level],
            aligned_mode="half_pixel_for_nn" if aligned else "asymmetric",
        )
        wanted = align.run(data[level], rois[i : i + 1], np.array([0]))
        np.testing.assert_allclose(found[i], wanted[0], 1e-5, 1e-6)


def test_aligned_regions_are_at_least_a_pixel_long() -> None:
    ramp = np.broadcast_to(np.arange(8, dtype=np.float32), (1, 1, 8, 8)).copy()
    op = extractor(output_size=1, pyramid_scales=(4,), aligned=True)
    assert op.run(array([8, 8, 9, 9]), ramp)[0].item() == 2  # from 1.5 to 2.5


# ----- TopKROIs


def test_regions_of_the_highest_probabilities() -> None:
    rois = np.arange(20, dtype=np.float32).reshape(5, 4)
    probabilities = array(0.5, 0.9, 0.5, np.nan, 0.7)[()]
    found = ExperimentalDetectronTopKROIs(max_rois=3).run(rois, probabilities)
    assert found[:, 0].tolist() == [4, 16, 0]
    found = ExperimentalDetectronTopKROIs(max_rois=6).run(rois.astype(np.float16), probabilities.astype(np.float16))
    assert found.dtype == np.float16
    assert found[:, 0].tolist() == [4, 16, 0, 8, 12, 0]
    assert not found[5].any()
    assert ExperimentalDetectronTopKROIs().run(rois, probabilities).shape == (0, 4)
    rois, probabilities = rois.astype(np.float64), np.array([0.5, 0.5 + 1e-12, np.nan, -np.nan, np.inf])
    found = ExperimentalDetectronTopKROIs(max_rois=5).run(rois, probabilities)
    assert found[:, 0].tolist() == [16, 4, 0, 8, 12]


# ----- DetectionOutput


def detector(**attributes: Any) -> ExperimentalDetectronDetectionOutput:
    given = {
        "num_classes": 2,
        "score_threshold": 0.1,
        "nms_threshold": 0.5,
        "max_delta_log_wh": 4.0,
        "post_nms_count": 10,
        "max_detections_per_image": 3,
        "deltas_weights": (1.0, 1.0, 1.0, 1.0),
        **attributes,
    }
    return ExperimentalDetectronDetectionOutput(**given)


IM_INFO = array([50, 50, 1])
APART = array([0, 0, 9, 9], [20, 20, 29, 29], [40, 40, 59, 49])


def detect(op: Any, scores: Any, rois: Any = APART, deltas: Any = None) -> Any:
    moves = np.zeros((len(rois), np.shape(scores)[1] * 4)) if deltas is None else deltas
    return op.run(*(np.array(a, np.float32) for a in (rois, moves, scores, IM_INFO)))


def test_detections_of_a_class_by_score_but_none_of_the_background() -> None:
    boxes, classes, scores = detect(detector(), [[0.9, 0.3], [0.9, 0.1], [0.9, 0.8]])
    assert boxes.tolist() == [[40, 40, 59, 49], [0, 0, 9, 9], [0, 0, 0, 0]]  # 0.1 is not above the threshold
    assert classes.tolist() == [1, 1, 0]
    assert scores.tolist() == np.array([0.8, 0.3, 0], np.float32).tolist()


def test_classes_one_after_the_other_unless_there_are_too_many() -> None:
    scores = [[0, 0.3, 0.9], [0, 0.7, 0], [0, 0, 0.5]]
    _, classes, found = detect(detector(num_classes=3, max_detections_per_image=4), scores)
    assert (classes.tolist(), found.tolist()) == ([1, 1, 2, 2], np.array([0.7, 0.3, 0.9, 0.5], np.float32).tolist())
    _, classes, found = detect(detector(num_classes=3), scores)
    assert (classes.tolist(), found.tolist()) == ([2, 1, 2], np.array([0.9, 0.7, 0.5], np.float32).tolist())


def test_the_first_region_is_first_among_equal_scores() -> None:
    boxes, classes, _ = detect(detector(num_classes=3, max_detections_per_image=4), [[0, 0.5, 0.5]] * 3)
    assert classes.tolist() == [1, 2, 1, 2]
    assert boxes[:, 0].tolist() == [0, 0, 20, 20]


def test_deltas_of_each_class() -> None:
    deltas = np.zeros((1, 12), np.float32)
    deltas[0, 4:] = [1, -2, 2 * log(2), 9, 0, 0, 0, 0]
    op = detector(num_classes=3, deltas_weights=(10.0, 10.0, 2.0, 2.0), max_delta_log_wh=log(4))
    boxes, _, _ = detect(op, [[0, 0.9, 0.8]], array([20, 20, 29, 29]), deltas)
    # From 10 x 10 around (25, 25) to 20 x 40 around (26, 23): above the image it is cut off, below it is not.
    np.testing.assert_allclose(boxes[:2], [[16, 3, 35, 42], [20, 20, 29, 29]], atol=1e-4)
    far = detect(detector(), [[0, 0.9]], array([-9, -9, 60, 70]))[0]
    assert far[0].tolist() == [0, 0, 60, 70]


def test_suppression_within_a_class() -> None:
    rois = array([0, 0, 9, 9], [0, 5, 9, 14], [0, 9, 9, 18], [0, 19.5, 9, 29])
    scores = [[0, 0.9, 0.1], [0, 0.8, 0.9], [0, 0.7, 0], [0, 0.6, 0]]
    # Pixels in common: 50 of 150, 10 of 190; the last is less than a pixel apart from the third, which is not an overlap.
    op = detector(num_classes=3, nms_threshold=0.33, max_detections_per_image=9)
    assert detect(op, scores, rois)[2].tolist() == np.array([0.9, 0.7, 0.6, 0.9, 0, 0, 0, 0, 0], np.float32).tolist()
    op = detector(num_classes=3, nms_threshold=0.34, max_detections_per_image=9)
    # The third has 60 of 140 pixels in common with the second, which is kept now.
    assert detect(op, scores, rois)[2][:3].tolist() == np.array([0.9, 0.8, 0.6], np.float32).tolist()


@pytest.mark.parametrize(("most", "found"), [(0, 0), (2, 2), (-1, 3)])
def test_most_detections_of_a_class(most: int, found: int) -> None:
    _, classes, _ = detect(detector(post_nms_count=most), [[0, 0.9], [0, 0.8], [0, 0.7]])
    assert classes.tolist() == [1] * found + [0] * (3 - found)


def test_a_region_without_area_is_not_detected() -> None:
    rois = array([5, 5, 5, 9], [9, 9, 5, 12], [0, 0, 4, 4])
    assert detect(detector(), [[0, 0.9]] * 3, rois)[0].tolist() == [[0, 0, 4, 4], [0, 0, 0, 0], [0, 0, 0, 0]]
