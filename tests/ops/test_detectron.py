"""Operations of Detectron's detectors: known answers, shapes, and what is refused."""

from math import log
from typing import Any

import numpy as np
import pytest
from support.tensors import assert_refused, tensor

from ovir.core.element_types import dynamic, f16, i32, nf4
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
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


def grid(priors: Any, *, points: tuple[int, int] = (2, 3), dtype: Any = np.float32, **attributes: Any) -> Any:
    op = ExperimentalDetectronPriorGridGenerator(**attributes)
    return op.run(np.array(priors, dtype), np.zeros((1, 4, *points), dtype), np.zeros((1, 3, 20, 60), dtype))


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


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_grid_types_and_nothing(dtype: Any) -> None:
    found = grid([[0.1, 0, 0, 0]], dtype=dtype)
    assert found.dtype == dtype
    assert found[0, 0] == dtype(dtype(0.1) + 10)
    assert grid(np.zeros((0, 4)), dtype=dtype).shape == (0, 4)
    assert grid([[0, 0, 0, 0]], points=(0, 3)).shape == (0, 4)


@pytest.mark.parametrize(
    ("priors", "feature_map", "flat", "apart"),
    [
        ("[2..3,?]", "[?,?,2..3,4..5]", "[16..45,4]", "[2..3,4..5,2..3,4]"),
        ("[...]", "[1,?,2,4]", "[?,4]", "[2,4,?,4]"),
        ("[...]", "[...]", "[?,4]", "[?,?,?,4]"),
    ],
)
def test_grid_shapes(priors: str, feature_map: str, flat: str, apart: str) -> None:
    for flatten, expected in ((True, flat), (False, apart)):
        op = ExperimentalDetectronPriorGridGenerator(flatten=flatten)
        assert str(op.infer(tensor(priors), tensor(feature_map), tensor("[...]")).shape) == expected


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (["[4]", "[1,2,2,3]", "[1,2,8,9]"], r"priors must have rank 2, got shape \[4\]"),
        (["[3,5]", "[1,2,2,3]", "[1,2,8,9]"], r"priors must have 4 numbers each, got shape \[3,5\]"),
        (["[3,4]", "[2,2,3]", "[1,2,8,9]"], r"feature_map must have rank 4, got shape \[2,2,3\]"),
        (["[3,4]", "[1,2,2,3]", "[2,8,9]"], r"im_data must have rank 4, got shape \[2,8,9\]"),
        (["[3,4]", "[1,2,2,3]", "[2,2,8,9]"], r"feature_map .* and im_data of shape \[2,2,8,9\] must have the same"),
        (["[3,4]", "[1,2,1,3]", "[1,2,8,9]"], r"h 2 exceeds the number of points of feature_map \[1,2,1,3\]"),
    ],
)
def test_what_the_grid_refuses(shapes: list[str], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        ExperimentalDetectronPriorGridGenerator(h=2).infer(*map(tensor, shapes))


# ----- ROIFeatureExtractor


def extractor(**attributes: Any) -> ExperimentalDetectronROIFeatureExtractor:
    given = {"output_size": 2, "sampling_ratio": 2, "pyramid_scales": (4, 8, 16), **attributes}
    return ExperimentalDetectronROIFeatureExtractor(**given)


LEVELS = [np.full((1, 1, size, size), level + 1, np.float32) for level, size in enumerate((64, 32, 16))]


@pytest.mark.parametrize(
    ("side", "level"), [(20, 0), (111, 0), (113, 1), (223, 1), (225, 2), (449, 2), (3000, 2), (0, -1), (-9, -1)]
)
def test_the_level_follows_the_area(side: float, level: int) -> None:
    """Level 2 from 224 * 224 on; what would come after the last is of the last."""
    constant = [np.full((1, 1, 800, 800), i + 1, np.float32) for i in range(3)]
    roi = array([4, 4, 4 + side, 4 + abs(side)])
    features, rois = extractor().run(roi, *constant)
    assert features.tolist() == [[[[level + 1] * 2] * 2]]
    assert (rois == roi).all()
    assert rois is not roi


def test_a_region_wide_and_low_as_its_area() -> None:
    wide = array([0, 0, 248, 50], [0, 0, 256, 50])  # 111.4 and 113.1 on an even side
    assert extractor().run(wide, *[np.full((1, 1, 99, 99), i + 1, np.float32) for i in range(3)])[0][
        :, 0, 0, 0
    ].tolist() == [1, 2]


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


def test_extractor_types_and_nothing() -> None:
    rois = np.zeros((0, 4), np.float16)
    data = [level.astype(np.float16) for level in LEVELS]
    features, same = extractor().run(rois, *data)
    assert (features.shape, same.shape) == ((0, 1, 2, 2), (0, 4))
    assert features.dtype == np.float16
    out = extractor().run(array([0, 0, 20, 20]), *LEVELS)
    assert out[0].tolist() == [[[[1, 1], [1, 1]]]]
    assert out[1].tolist() == [[0, 0, 20, 20]]


def test_extractor_shapes() -> None:
    count, channels = Dimension(2, 3, 5), Dimension(2, 4, 6)
    pyramid = [PartialShape([1, channels, 8, 8]), PartialShape.parse("[...]"), PartialShape.parse("[?,3..7,?,?]")]
    found = extractor().infer(
        TensorType(dynamic, PartialShape([count, Dimension()])), *(TensorType(f16, shape) for shape in pyramid)
    )
    assert [str(t.shape) for t in found] == ["[2..3,3..4,2,2]", "[2..3,4]"]
    assert [t.element_type for t in found] == [f16, f16]
    assert [d.symbol for d in found[0].shape.dims[:2]] == [5, 6]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (["[3,4]"], "there must be at least one feature map"),
        (["[4]", "[1,2,8,8]"], r"rois must have rank 2, got shape \[4\]"),
        (["[3,5]", "[1,2,8,8]"], r"rois must have 4 numbers for each region, got shape \[3,5\]"),
        (["[3,4]", "[1,2,8,8]", "[2,8,8]"], r"feature map 1 must have rank 4, got shape \[2,8,8\]"),
        (["[3,4]", "[2,2,8,8]"], r"feature map 0 must hold one image, got shape \[2,2,8,8\]"),
        (["[3,4]", "[1,2,8,8]", "[1,3,8,8]"], r"feature map 1 of .* \[1,3,8,8\] must have the same number of channels"),
        (["[3,4]", *["[1,2,8,8]"] * 4], r"pyramid_scales \[4,8,16\] must have one item for each of the 4 feature maps"),
    ],
)
def test_what_the_extractor_refuses(shapes: list[str], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        extractor().infer(*map(tensor, shapes))


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


def test_top_k_shapes_and_errors() -> None:
    op = ExperimentalDetectronTopKROIs(max_rois=3)
    found = op.infer(tensor("[...]", dynamic), tensor("[?]", f16))
    assert (str(found.shape), found.element_type) == ("[3,4]", f16)
    with pytest.raises(OperatorError, match=r"rois of shape \[4,4\] and .* \[5\] must have the same number of regions"):
        op.infer(tensor("[4,4]"), tensor("[5]"))
    assert_refused("rois must have 4 numbers for each region, got shape [4,5]", op, tensor("[4,5]"), tensor("[4]"))
    assert_refused("probabilities must have rank 1, got shape [4,1]", op, tensor("[4,4]"), tensor("[4,1]"))


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


def detect(op: Any, scores: Any, rois: Any = APART, deltas: Any = None, dtype: Any = np.float32) -> Any:
    moves = np.zeros((len(rois), np.shape(scores)[1] * 4)) if deltas is None else deltas
    return op.run(*(np.array(a, dtype) for a in (rois, moves, scores, IM_INFO)))


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


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_detector_types_and_nothing(dtype: Any) -> None:
    boxes, classes, scores = detect(detector(), [[0, 0.5]] * 3, dtype=dtype)
    assert (boxes.dtype, classes.dtype, scores.dtype) == (dtype, np.int32, dtype)
    boxes, classes, scores = detect(detector(), np.zeros((0, 2)), np.zeros((0, 4)), dtype=dtype)
    assert (boxes.shape, classes.tolist(), scores.tolist()) == ((3, 4), [0, 0, 0], [0, 0, 0])
    assert detect(detector(max_detections_per_image=0), [[0, 0.5]] * 3, dtype=dtype)[0].shape == (0, 4)


def test_detector_shapes() -> None:
    found = detector().infer(
        tensor("[...]", dynamic), tensor("[2..4,?]", f16), tensor("[4..6,2..3]", f16), tensor("[...]", f16)
    )
    assert [str(t.shape) for t in found] == ["[3,4]", "[3]", "[3]"]
    assert [t.element_type for t in found] == [f16, i32, f16]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (["[4]", "[4,8]", "[4,2]", "[1,3]"], r"rois must have rank 2, got shape \[4\]"),
        (["[4,5]", "[4,8]", "[4,2]", "[1,3]"], r"rois must have 4 numbers for each region, got shape \[4,5\]"),
        (["[4,4]", "[4,9]", "[4,2]", "[1,3]"], r"deltas, for num_classes 2, must have 8 numbers for each region, .*9"),
        (["[4,4]", "[4,8]", "[4,3]", "[1,3]"], r"scores, for num_classes 2, must have 2 numbers for each region, .*3"),
        (["[4,4]", "[4,8]", "[4,2]", "[1,4]"], r"im_info must have the shape \[1,3\], got \[1,4\]"),
        (["[4,4]", "[...]", "[5,2]", "[1,3]"], r"rois of shape \[4,4\] and scores of shape \[5,2\] must have the same"),
    ],
)
def test_what_the_detector_refuses(shapes: list[str], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        detector().infer(*map(tensor, shapes))


def test_detector_types_and_attributes_that_are_refused() -> None:
    unknown = tensor("[...]")
    with pytest.raises(OperatorError, match="rois is f32 and scores is f16: their element types must be equal"):
        detector().infer(unknown, unknown, tensor("[...]", f16), unknown)
    assert_refused("rois must be of a floating-point type, got i32", detector(), *[tensor("[...]", i32)] * 4)
    with pytest.raises(OperatorError, match=r"deltas_weights must be 4 numbers, got \[1\.0, 2\.0\]"):
        detector(deltas_weights=(1.0, 2.0)).infer(*[unknown] * 4)


def test_codes_are_no_numbers() -> None:
    with pytest.raises(OperatorError, match="rois must be of a floating-point type, got nf4"):
        ExperimentalDetectronTopKROIs().infer(tensor("[...]", nf4), tensor("[...]", nf4))
