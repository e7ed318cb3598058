"""Suppressions of a few boxes, which Python computes, against those of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import i32, i64
from ovir.kernels import few_boxes
from ovir.ops.base.operator import Operator
from ovir.ops.multiclass_nms import MulticlassNms8
from ovir.ops.nms import NonMaxSuppression9

Array = np.ndarray[Any, Any]


def both_ways(op: Operator, *inputs: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Array], list[Array]]:
    """Return the outputs as they are computed for a few boxes, and as for many."""
    with monkeypatch.context() as patch:
        patch.setattr(few_boxes, "_MOST_SCORES", 1000)
        assert few_boxes.are_few(inputs[1])
        few = list(op.run(*inputs))
        patch.setattr(few_boxes, "_MOST_SCORES", 0)
        return few, list(op.run(*inputs))


def sample(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return boxes and scores, some of which are equal or not numbers."""
    images, classes, count = (int(n) for n in rng.integers(1, (4, 4, 13)))
    boxes = rng.integers(0, 9, (images, count, 4)).astype(np.float32)
    if rng.random() < 0.7:
        boxes = np.sort(boxes.reshape(images, count, 2, 2), axis=2).reshape(images, count, 4)
    scores = rng.integers(0, 7, (images, classes, count)).astype(np.float32) / 6
    odd = rng.random(scores.shape) < 0.05
    scores[odd] = rng.choice([np.nan, np.inf, -np.inf], np.count_nonzero(odd))
    boxes[rng.random(boxes.shape) < 0.01] = np.nan
    return boxes, scores


def assert_same(few: list[Array], many: list[Array]) -> None:
    for a, b in zip(few, many, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(60))
def test_each_class(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    op = NonMaxSuppression9(
        box_encoding=str(rng.choice(["corner", "center"])),
        sort_result_descending=bool(rng.integers(2)),
        output_type=i32 if rng.integers(2) else i64,
    )
    limit, overlap, least = np.array(rng.integers(-1, 5)), *rng.choice([0, 0.3, 0.6], 2).astype(np.float32)
    with np.errstate(all="ignore"):
        assert_same(*both_ways(op, *sample(rng), limit, np.array(overlap), np.array(least), monkeypatch=monkeypatch))


@pytest.mark.parametrize("seed", range(60))
def test_each_image(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with np.errstate(all="ignore"):
        assert_same(*both_ways(op, *sample(rng), monkeypatch=monkeypatch))
