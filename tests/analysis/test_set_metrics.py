"""Metrics of all inputs together: the mAP of boxes, as pycocotools computes it for whole files, and the mean IoU."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.detections import random_detections

from ovir.analysis.evaluation import ModelEvaluation, jackknife, jackknife_interval, mean_interval
from ovir.analysis.set_metrics import AveragePrecision, MeanIou, metric_of, parse_columns
from ovir.core.arrays import Array
from ovir.diagnostics.errors import InputError, ReadError
from ovir.io.coco import read_boxes
from ovir.io.input_files import read_labels


def _whole(images: list[tuple[Array, Array]], threshold: float | None) -> float:
    """Return the mAP that pycocotools computes for all images at once."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truths, found = [], []
    for number, (output, label) in enumerate(images):
        for x1, y1, x2, y2, kind, crowd in label.tolist():
            box = [x1, y1, x2 - x1, y2 - y1]
            area = box[2] * box[3]
            truths.append(
                {"id": len(truths) + 1, "image_id": number, "category_id": int(kind), "bbox": box}
                | {"area": area, "iscrowd": int(crowd)}
            )
        for kind, score, x1, y1, x2, y2 in output.tolist():
            box = [x1, y1, x2 - x1, y2 - y1]
            found.append({"image_id": number, "category_id": int(kind), "bbox": box, "score": score})
    labels = COCO()
    kinds = sorted({truth["category_id"] for truth in truths} | {item["category_id"] for item in found})
    labels.dataset = {
        "images": [{"id": number} for number in range(len(images))],
        "annotations": truths,
        "categories": [{"id": kind} for kind in kinds],
    }
    labels.createIndex()
    judge = COCOeval(labels, labels.loadRes(found), "bbox")
    judge.evaluate()
    judge.accumulate()
    precision = judge.eval["precision"][:, :, :, 0, 2]
    precision = precision if threshold is None else precision[judge.params.iouThrs == threshold]
    return float(precision[precision > -1].mean())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "threshold"), [("map", None), ("map50", 0.5)])
def test_the_map_is_that_of_pycocotools(seed: int, name: str, threshold: float | None) -> None:
    pytest.importorskip("pycocotools")
    images = random_detections(seed, 12)
    found = ModelEvaluation(metric_of(name))
    for number, (output, label) in enumerate(images):
        found.add(str(number), output.astype(np.float32), label)
    assert found.value == pytest.approx(_whole(images, threshold), abs=1e-6)
    assert 0.1 < found.value < 1
    assert found.interval.low < found.value < found.interval.high
    assert (found.inputs, found.samples, found.interval.method) == (12, 12, "jackknife, 12 groups")


def test_forms_of_detections() -> None:
    pytest.importorskip("pycocotools")
    label = np.array([[0.1, 0.2, 0.5, 0.6, 3], [0.6, 0.6, 0.9, 0.9, 1]])
    first, second = label[0, :4], label[1, :4]
    yolo = np.array([[[*(first * 640), 0.9, 0, 3], [*(second * 640), 0.8, 0, 1]]])
    found = ModelEvaluation(metric_of("map", columns=parse_columns("x1,y1,x2,y2,score,_,class"), size=(640, 640)))
    found.add("image", yolo, label)
    assert found.value == pytest.approx(1)
    one_class = ModelEvaluation(metric_of("map"))
    one_class.add("image", np.array([[*first, 0.9]]), np.array([*first, 0]))
    assert one_class.value == pytest.approx(1)


BOX = [0.5, 0.25, 0.75, 1]


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        ([[0, 3, 0.5, *BOX], [-1, 2, 0.5, *BOX], [0, 2, 0.5, *BOX]], None, [(3, 0.5)]),
        ([[0, 3, 0.5, *BOX], [1, 0, 0, *BOX]], None, [(3, 0.5), (0, 0)]),
        ([[3, 0.5, *BOX], [-1, 0.5, *BOX], [3, -1, *BOX], [0, 0.25, *BOX]], None, [(3, 0.5), (0, 0.25)]),
        ([[*BOX, 0.5], [*BOX, 0.25]], None, [(0, 0.5), (0, 0.25)]),
        ([[0.5, *BOX, 7, 2]], ("score", "x1", "y1", "x2", "y2", "_", "class"), [(2, 0.5)]),
    ],
)
def test_rows_that_are_no_boxes_are_left_out(rows: Any, columns: Any, expected: list[tuple[float, float]]) -> None:
    """Rows end at a negative image; a negative class or score fills up."""
    metric = AveragePrecision("map50", (0.5,), columns, (2.0, 4.0))
    boxes, classes, scores = metric._detections(np.array(rows))
    assert list(zip(classes.tolist(), scores.tolist(), strict=True)) == expected
    assert boxes.tolist() == [[0.25, 0.0625, 0.375, 0.25]] * len(expected)


@pytest.mark.parametrize(
    ("output", "label", "expected"),
    [
        (np.zeros((2, 4)), np.zeros((1, 5)), "the output of shape [2,4] has no boxes: expected rows of 5, 6 or 7"),
        (np.zeros((2, 6)), np.zeros((1, 4)), "the label of shape [1,4] is not a list of boxes"),
    ],
)
def test_what_is_no_box(output: Array, label: Array, expected: str) -> None:
    pytest.importorskip("pycocotools")
    with pytest.raises(InputError) as caught:
        ModelEvaluation(metric_of("map")).add("image", output, label)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x1,y1,x2,y2,scores", "'scores' is not one of x1"),
        ("x1,y1,x2,score", "'y2' is missing"),
        ("x1,y1,x2,y2,x1,score", "'x1' is given twice"),
    ],
)
def test_columns_that_mean_nothing(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_columns(text)


def test_the_mean_iou_counts_pixels_of_all_inputs() -> None:
    found = ModelEvaluation(MeanIou())
    scores = np.zeros((1, 3, 1, 4), np.float32)
    scores[0, [0, 1, 1, 2], 0, range(4)] = 1
    found.add("a", scores, np.array([[0, 1, 0, 255]]))
    found.add("b", np.array([[[1, 1, 1, 1]]]), np.array([[1, 1, 0, 0]], np.uint8))
    both, either = np.array([1, 3]), np.array([4, 6])
    assert found.value == pytest.approx((both / either).mean())
    with pytest.raises(InputError, match="the label has 1 row of 3 pixels, and the output 1 row of 4 pixels"):
        found.add("c", scores, np.array([[0, 1, 0]]))
    with pytest.raises(InputError, match="the label float64\\[1,4\\] is not a map of classes"):
        found.add("c", scores, np.zeros((1, 4)))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32([[[[0, 1]], [[1, 0]]]]), [[1, 0]]),
        (np.array([[[[2, 3]]]]), [[2, 3]]),
        (np.zeros((1, 1, 1, 2)), None),
        (np.zeros((2, 3, 1, 2)), None),
        (np.zeros((3, 1, 2)), None),
        (np.zeros((2, 1, 2), np.int32), None),
        (np.zeros(2, np.int32), None),
    ],
)
def test_maps_of_classes(array: Array, expected: Any) -> None:
    metric = MeanIou()
    if expected is None:
        with pytest.raises(InputError, match=r"the output .* is not a map of classes"):
            metric.item(array, np.array([[0, 0]]))
    else:
        assert metric.item(array, np.array(expected)) == {(kind, kind): 1 for kind in expected[0]}
        with pytest.raises(InputError, match=r"the label .* is not a map of classes"):
            metric.item(np.array(expected), array.astype(np.float32))


def test_the_jackknife_of_a_mean_is_the_interval_of_the_mean() -> None:
    values = np.random.default_rng(0).random(20)

    def mean(chosen: Any) -> float:
        return float(values[list(chosen)].mean())

    expected = mean_interval(values)
    found = jackknife_interval(mean(range(20)), jackknife(mean, 20), 0, 1)
    assert found[:2] == pytest.approx(expected[:2])


def test_a_difference_on_common_inputs() -> None:
    random = np.random.default_rng(1)
    good, bad = ModelEvaluation(MeanIou()), ModelEvaluation(MeanIou())
    for number in range(30):
        label = random.integers(0, 3, (8, 8))
        for side, share in ((good, 0.1), (bad, 0.3)):
            wrong = random.random(label.shape) < share
            side.add(str(number), np.where(wrong, random.integers(0, 3, label.shape), label), label)
    found = good.difference(bad)
    assert found.value == pytest.approx((good.value or 0) - (bad.value or 0))
    assert (found.samples, found.is_shown, found.test) == (30, True, "t, jackknife")
    assert good.difference(good).p_value == 1


COCO = {
    "images": [{"id": 7, "file_name": "a.jpg", "width": 200, "height": 100}, {"id": 8, "file_name": "b.jpg"}],
    "annotations": [{"image_id": 7, "bbox": [20, 10, 100, 50], "category_id": 3}],
}


def test_labels_of_coco(tmp_path: Path) -> None:
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(COCO))
    found = read_boxes(str(path))
    assert found["a.jpg"].tolist() == pytest.approx(np.array([[0.1, 0.1, 0.6, 0.6, 3, 0]]))
    assert found["b.jpg"].shape == (0, 6)
    path.write_text(json.dumps({"images": []}))
    with pytest.raises(ReadError, match="not boxes of COCO: KeyError: 'annotations'"):
        read_boxes(str(path))


def test_labels_in_a_table_have_a_row_for_each_box(tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text("image,x1,y1,x2,y2,class\na.jpg,0,0,1,1,2\nb.jpg\na.jpg,0,0,2,2,1\n")
    labels = read_labels(str(path), ["a.jpg", "b.jpg"], "out", boxes=True)
    assert labels["a.jpg"]().reshape(-1, 5).tolist() == [[0, 0, 1, 1, 2], [0, 0, 2, 2, 1]]
    assert labels["b.jpg"]().size == 0
