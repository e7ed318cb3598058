"""SegmentMax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensors import const

from ovir.core.element_types import ElementType, bf16, boolean, f16, f32, f64, i8, i32, i64, u8
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.ops.segments import SegmentMax


def tensor(shape: str, element_type: ElementType = i64) -> TensorType:
    return TensorType(element_type, PartialShape.parse(shape))


@pytest.mark.parametrize(
    ("fill_mode", "segments", "empty", "expected"),
    [
        ("zero", None, 0, [[1, 4], None, [2, -7]]),
        ("LOWEST", None, np.finfo(np.float32).min, [[1, 4], None, [2, -7]]),
        ("zero", 5, 0, [[1, 4], None, [2, -7], None, None]),
        ("lowest", 2, np.finfo(np.float32).min, [[1, 4], None]),
        ("zero", 0, 0, []),
    ],
)
def test_maxima(fill_mode: str, segments: int | None, empty: float, expected: list[Any]) -> None:
    data = np.array([[1, -5], [-3, 4], [2, -7]], np.float32)
    found = SegmentMax(fill_mode=fill_mode).run(
        data, np.array([0, 0, 2]), *([] if segments is None else [np.array(segments)])
    )
    assert found.tolist() == [[empty, empty] if row is None else row for row in expected]


@pytest.mark.parametrize("element_type", [f16, bf16, f32, f64, i8, u8, i32, i64])
@pytest.mark.parametrize("shape", [(9000,), (9000, 3, 2)])
def test_long_and_short_segments(element_type: ElementType, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 100, shape).astype(element_type.to_dtype())
    ids = np.sort(np.r_[rng.integers(0, 40, 300), np.full(8700, 45)])
    op = SegmentMax(fill_mode="lowest")
    out = op.run(data, ids)
    lowest = op.run(data, ids + 1)[0]  # an empty segment
    for segment in range(46):
        rows = data[ids == segment]
        assert np.array_equal(out[segment], rows.max(axis=0) if len(rows) else lowest)
    assert np.isfinite(lowest.astype(np.float64)).all()
    assert (lowest <= data.min(axis=0)).all()


def test_not_a_number_and_infinities() -> None:
    data = np.array([np.nan, 1, -np.inf, -np.inf, np.nan], np.float32)
    found = SegmentMax().run(data, np.array([0, 0, 1, 1, 2]))
    np.testing.assert_array_equal(found, [1, -np.inf, np.nan])


def test_nothing() -> None:
    assert SegmentMax().run(np.zeros((0, 3), np.float32), np.array([], np.int64)).shape == (0, 3)
    assert SegmentMax().run(np.zeros((0, 2), np.float32), np.array([], np.int64), np.array(1)).tolist() == [[0, 0]]


def test_ids_beyond_the_segments_are_reported() -> None:
    found: list[str] = []
    with reporting_to(lambda code, message: found.append(message)):
        SegmentMax().run(np.arange(3), np.array([0, 1, 4]), np.array(2))
    assert found == ["segment_ids go up to 4, but num_segments is 2; rows of the other ids are ignored"]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ((tensor("?,2..4", f32), tensor("?")), "f32[?,2..4]"),
        ((tensor("4,2", f32), const([0, 0, 3, 3])), "f32[4,2]"),
        ((tensor("4,2", f32), const([0, 0, 3, 3]), const(9)), "f32[9,2]"),
        ((tensor("4,2", f32), const([0, 0, 3, 3]), tensor("[]")), "f32[?,2]"),
        ((tensor("...", i8), tensor("?"), const(3)), "i8[...]"),
        ((tensor("0,2", f32), const([])), "f32[0,2]"),
    ],
)
def test_shapes(inputs: tuple[TensorType, ...], expected: str) -> None:
    assert str(SegmentMax().infer(*inputs)) == expected


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((tensor("[]", f32), tensor("1")), "data must have rank 1 or more, got shape"),
        ((tensor("4", boolean), tensor("4")), "data must be of a numeric type, got boolean"),
        (
            (tensor("4,2", f32), tensor("3")),
            r"data of shape \[4,2\] and segment_ids of shape \[3\] must have the same number of rows",
        ),
        ((tensor("4", f32), tensor("4,1")), r"segment_ids must have rank 1, got shape \[4,1\]"),
        ((tensor("4", f32), tensor("4", f32)), "segment_ids must be i32 or i64, got f32"),
        ((tensor("4", f32), tensor("4"), tensor("1")), r"num_segments must have rank 0, got shape \[1\]"),
        ((tensor("3", f32), const([0, 2, 1])), "segment_ids must be sorted, got 2 at 1 and then 1"),
        ((tensor("3", f32), const([-1, 2, 2])), r"segment_ids\[0\] = -1 must not be negative"),
        ((tensor("3", f32), tensor("3"), const(-1)), "num_segments must not be negative, got -1"),
    ],
)
def test_errors(inputs: tuple[TensorType, ...], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        SegmentMax().infer(*inputs)


def test_values_are_checked_in_the_run() -> None:
    with pytest.raises(OperatorError, match="segment_ids must be sorted, got 1 at 0 and then 0"):
        SegmentMax().run(np.arange(2), np.array([1, 0]))
    with pytest.raises(OperatorError, match="num_segments must not be negative, got -3"):
        SegmentMax().run(np.arange(2), np.array([0, 0]), np.array(-3))
