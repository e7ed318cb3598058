"""Metrics of all inputs together, which are not a mean over inputs: the mAP of boxes and the mean IoU of class maps.

``metric_of`` returns these and all other metrics by their names.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovir.analysis.metrics import ERRORS, ErrorMetric, MetricBase, Top, numbers_of, refuse
from ovir.core.arrays import Array
from ovir.diagnostics.errors import InputError, require_packages
from ovir.diagnostics.wording import did_you_mean, plural, shown


class SetMetric(MetricBase):
    """A metric of a set of inputs: it keeps data of each input, and the value follows from all of them."""

    is_share = False
    higher_is_better = True

    def item(self, output: Array, label: Array) -> Any:
        """Return the data of an input for the metric; raise InputError if the label does not match the output."""
        raise NotImplementedError

    def value(self, items: Sequence[Any]) -> float:
        """Return the value for these inputs, NaN if there is none."""
        raise NotImplementedError

    def of(self, items: Sequence[Any]) -> Callable[[Sequence[int]], float]:
        """Return the function that computes the value for the items at some positions."""
        return lambda positions: self.value([items[i] for i in positions])


# --------------------------------------------------------------------------- boxes

SIDES = ("x1", "y1", "x2", "y2")
COLUMNS = (*SIDES, "class", "score", "image", "_")
"""The possible columns of detections: sides of a box, its class and score, the number of its image, or nothing."""
_BY_WIDTH = {
    5: (*SIDES, "score"),
    6: ("class", "score", *SIDES),  # MatrixNms and MulticlassNms
    7: ("image", "class", "score", *SIDES),  # DetectionOutput
}
_MOST = 100  # detections of a class in an image, as COCO has it
_ALL_AREAS = (0.0, 1e10)
_LABEL_WIDTHS = (5, 6)


@dataclass(frozen=True)
class AveragePrecision(SetMetric):
    """The mean average precision of boxes, which pycocotools computes as the COCO challenge defines it.

    An output has a row for each box. A label has the rows x1, y1, x2, y2, class and optionally whether the box is a
    crowd, whose detections do not count.
    """

    name: str
    thresholds: tuple[float, ...]
    """The overlaps, as intersection over union, from which on a box is found; the mean over all is reported."""
    columns: tuple[str, ...] | None = None
    """The columns of the output; None: those that the operations of OpenVINO return in so many columns."""
    size: tuple[float, float] = (1.0, 1.0)
    """Width and height by which boxes of the output are divided to have the unit of the labels."""

    def item(self, output: Array, label: Array) -> dict[int, dict[str, Any] | None]:
        """Return by class the matches of an input's detections with boxes of the label."""
        found, classes, scores = self._detections(output)
        boxes = _label_rows(label)
        truths = [(_coco_box(row), int(row[4]), len(row) > _LABEL_WIDTHS[0] and bool(row[5])) for row in boxes]
        judge = self._judge()
        numbers = sorted({int(number) for number in classes} | {number for _, number, _ in truths})
        judge.params.catIds = numbers
        for number, (box, kind, crowd) in enumerate(truths, 1):
            truth = {"id": number, "bbox": box, "area": box[2] * box[3], "iscrowd": int(crowd), "ignore": int(crowd)}
            judge._gts[0, kind].append(truth)
        for number, (row, kind, score) in enumerate(zip(found, classes, scores, strict=True), 1):
            box = _coco_box(row)
            judge._dts[0, int(kind)].append({"id": number, "bbox": box, "area": box[2] * box[3], "score": float(score)})
        judge.ious = {(0, kind): judge.computeIoU(0, kind) for kind in numbers}
        return {kind: judge.evaluateImg(0, kind, list(_ALL_AREAS), _MOST) for kind in numbers}

    def value(self, items: Sequence[Any]) -> float:
        kinds = sorted({kind for item in items for kind in item})
        if not kinds:
            return np.nan
        judge = self._judge()
        judge.params.catIds = kinds
        judge.params.imgIds = list(range(len(items)))
        judge.evalImgs = [item.get(kind) for kind in kinds for item in items]
        judge._paramsEval = judge.params
        with redirect_stdout(io.StringIO()):  # it prints how far it is
            judge.accumulate()
        precision = judge.eval["precision"]
        known = precision[precision > -1]  # classes that no label has do not count
        return float(known.mean()) if known.size else np.nan

    def _judge(self) -> Any:
        """Return an evaluation of pycocotools without images."""
        from pycocotools.cocoeval import COCOeval

        with redirect_stdout(io.StringIO()):
            judge = COCOeval(iouType="bbox")
        judge.params.iouThrs = np.array(self.thresholds)
        judge.params.areaRng, judge.params.areaRngLbl = [list(_ALL_AREAS)], ["all"]
        judge.params.maxDets = [_MOST]
        judge.params.imgIds = [0]
        return judge

    def _detections(self, output: Array) -> tuple[Array, Array, Array]:
        """Return the boxes of an output as x1, y1, x2, y2, their classes and their scores."""
        width = output.shape[-1] if output.ndim else 0
        columns = self.columns or _BY_WIDTH.get(width)
        if columns is None or len(columns) != width:
            expected = f"{len(self.columns)} columns" if self.columns else "rows of 5, 6 or 7 numbers"
            refuse(
                f"the output of shape {shown(output.shape)} has no boxes: expected {expected}",
                "--columns says what each column holds, as in --columns x1,y1,x2,y2,score,class",
            )
        rows = numbers_of("output", output).reshape(-1, width)
        place = {name: index for index, name in enumerate(columns)}
        if "image" in place:
            ends = np.flatnonzero(rows[:, place["image"]] < 0)  # DetectionOutput marks the end so
            rows = rows[: ends[0]] if ends.size else rows
        classes = rows[:, place["class"]] if "class" in place else np.zeros(len(rows))
        scores = rows[:, place["score"]]
        is_box = (classes >= 0) & (scores >= 0)  # MatrixNms fills up with -1
        boxes = rows[:, [place[side] for side in SIDES]] / np.tile(self.size, 2)
        return boxes[is_box], classes[is_box], scores[is_box]


def parse_columns(text: str) -> tuple[str, ...]:
    """Return the columns that a text such as ``x1,y1,x2,y2,score,class`` lists; raise ValueError."""
    columns = tuple(part.strip() for part in text.split(","))
    wrong = [name for name in columns if name not in COLUMNS]
    if wrong:
        raise ValueError(f"'{wrong[0]}' is not one of {', '.join(COLUMNS)}")
    counts = Counter(name for name in columns if name != "_")
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"'{twice[0]}' is given twice")
    if missing := [name for name in (*SIDES, "score") if name not in counts]:
        raise ValueError(f"'{missing[0]}' is missing")
    return columns


def _label_rows(label: Array) -> Array:
    """Return the rows of a label."""
    rows = numbers_of("label", label)
    if not rows.size:
        return np.zeros((0, _LABEL_WIDTHS[0]))
    width = rows.shape[-1] if rows.ndim > 1 else _LABEL_WIDTHS[0]
    if width not in _LABEL_WIDTHS or rows.size % width:
        message = f"the label of shape {shown(label.shape)} is not a list of boxes"
        refuse(message, "a box has 5 numbers: x1, y1, x2, y2 and its class")
    return rows.reshape(-1, width)


def _coco_box(row: Array) -> list[float]:
    """Return the box of a row as x, y, width and height."""
    x1, y1, x2, y2 = (float(number) for number in row[:4])
    return [x1, y1, x2 - x1, y2 - y1]


# --------------------------------------------------------------------------- class maps

IGNORED = 255
"""The class of pixels that do not count, as datasets of class maps have it."""


class MeanIou(SetMetric):
    """The mean over classes of intersection over union of all pixels, for maps of classes.

    An output has scores [1, classes, height, width], or a class for each pixel; a label has a class for each pixel.
    Classes that neither labels nor outputs have do not count.
    """

    name = "miou"

    def item(self, output: Array, label: Array) -> Counter[tuple[int, int]]:
        """Return the number of pixels with a class in the label and a class in the output."""
        truth = _class_map("label", label)
        found = _class_map("output", output)
        if found.shape != truth.shape:
            refuse(f"the label has {_pixels(truth)}, and the output {_pixels(found)}")
        counted = truth != IGNORED
        pairs, counts = np.unique(np.stack([truth[counted], found[counted]]), axis=1, return_counts=True)
        return Counter(dict(zip(map(tuple, pairs.T.tolist()), counts.tolist(), strict=True)))

    def value(self, items: Sequence[Any]) -> float:
        pixels: Counter[tuple[int, int]] = Counter()
        for item in items:
            pixels.update(item)
        both: Counter[int] = Counter()
        either: Counter[int] = Counter()
        for (truth, found), count in pixels.items():
            for kind in {truth, found}:
                either[kind] += count
            if truth == found:
                both[truth] += count
        return float(np.mean([both[kind] / count for kind, count in either.items()])) if either else np.nan


def _class_map(what: str, array: Array) -> Array:
    """Return the class of each pixel [height, width]."""
    if array.dtype.kind in "iub":
        pixels = array.reshape(array.shape[-2:]) if array.ndim > 1 and array.size == np.prod(array.shape[-2:]) else None
    elif what == "output" and array.ndim == 4 and array.shape[0] == 1 and array.shape[1] > 1:
        pixels = numbers_of(what, array)[0].argmax(0)
    else:
        pixels = None
    if pixels is None:
        hint = "an output has scores [1,classes,height,width] or an integer for each pixel, a label integers"
        refuse(f"the {what} {array.dtype}{shown(array.shape)} is not a map of classes", hint)
    return pixels.astype(np.int64)


def _pixels(array: Array) -> str:
    return f"{plural(array.shape[0], 'row')} of {plural(array.shape[1], 'pixel')}"


# --------------------------------------------------------------------------- metrics by name

NAMES = ("top1", "top5", *ERRORS, "map", "map50", "miou")
"""The metrics; any other number of classes can stand in ``top5``."""
_OVERLAPS = {"map": tuple(np.linspace(0.5, 0.95, 10).tolist()), "map50": (0.5,)}


def metric_of(
    name: str,
    *,
    peak: float | None = None,
    columns: tuple[str, ...] | None = None,
    size: tuple[float, float] | None = None,
) -> MetricBase:
    """Return a metric by its name; raise InputError.

    ``peak`` is for ``psnr`` (``ErrorMetric``), ``columns`` and ``size`` are for boxes (``AveragePrecision``).
    """
    if match := re.fullmatch(r"top([1-9]\d*)", name):
        return Top(int(match[1]))
    if name in _OVERLAPS:
        require_packages(f"the metric {name}", "metrics", "pycocotools")
        return AveragePrecision(name, _OVERLAPS[name], columns, size or (1.0, 1.0))
    if name == MeanIou.name:
        return MeanIou()
    if name not in ERRORS:
        hint = did_you_mean(name, NAMES)
        raise InputError.usage(f"there is no metric '{name}'; expected {', '.join(NAMES)}", hint=hint)
    return ErrorMetric(name, *ERRORS[name], peak)
