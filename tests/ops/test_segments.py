"""SegmentMax, the embedding bags and SparseFillEmptyRows."""

from typing import Any

import numpy as np
import pytest
from support.tensors import reports

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, f32, f64, i8, i32, i64, string, u8
from ovir.ops.base.operator import Operator
from ovir.ops.segments import (
    EmbeddingBagOffsets,
    EmbeddingBagOffsetsSum,
    EmbeddingBagPacked,
    EmbeddingBagPackedSum,
    EmbeddingSegmentsSum,
    SegmentMax,
    SparseFillEmptyRows,
)


@pytest.mark.parametrize(
    ("fill_mode", "segments", "empty", "expected"),
    [
        ("zero", None, 0, [[1, 4], None, [2, -7]]),
        ("LOWEST", None, np.finfo(np.float32).min, [[1, 4], None, [2, -7]]),
        ("zero", 5, 0, [[1, 4], None, [2, -7], None, None]),
        ("lowest", 2, np.finfo(np.float32).min, [[1, 4], None]),
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
    with reports() as found:
        SegmentMax().run(np.arange(3), np.array([0, 1, 4]), np.array(2))
    assert found == ["segment_ids go up to 4, but num_segments is 2; rows of the other ids are ignored"]


# --------------------------------------------------------------------------- bags


TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)
INDICES = np.array([0, 2, 3, 4])


def close(found: Array, expected: Any) -> None:
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-6)


# ----- the examples of the specifications


@pytest.mark.parametrize("op", [EmbeddingBagOffsetsSum(), EmbeddingBagOffsets()])
def test_sums_between_offsets(op: Operator) -> None:
    offsets = np.array([0, 2, 2])
    half = np.full(4, 0.5, np.float32)
    close(op.run(TABLE, INDICES, offsets, np.array(0), half), [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]])
    weights = np.array([0.5, 0.2, -2, 1], np.float32)
    close(op.run(TABLE, INDICES, offsets, np.array(-1), weights), [[-0.48, -0.66], [0, 0], [2.8, -3.7]])
    close(op.run(TABLE, INDICES, offsets), [[-2.1, -2.4], [0, 0], [-0.2, 0.8]])


@pytest.mark.parametrize("op", [EmbeddingBagPackedSum(), EmbeddingBagPacked()])
def test_packed_sums(op: Operator) -> None:
    indices = np.array([[0, 2], [1, 2], [3, 4]], np.int32)
    expected = np.array([[-2.1, -2.4], [-2, -2.2], [-0.2, 0.8]])
    close(op.run(TABLE, indices), expected)
    close(op.run(TABLE, indices, np.full((3, 2), 0.5, np.float32)), expected / 2)
    if isinstance(op, EmbeddingBagPacked):
        close(EmbeddingBagPacked(reduction="mean").run(TABLE, indices), expected / 2)


def test_sums_of_segments() -> None:
    op = EmbeddingSegmentsSum()
    ids, half = np.array([0, 0, 2, 2]), np.full(4, 0.5, np.float32)
    expected = [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]]
    close(op.run(TABLE, INDICES, ids, np.array(3), np.array(0), half), expected)
    close(op.run(TABLE, INDICES, ids, np.array(4)), [[-2.1, -2.4], [0, 0], [-0.2, 0.8], [0, 0]])


# ----- what they leave open


def test_an_empty_packed_bag_is_0() -> None:
    for reduction in ("sum", "mean"):
        op = EmbeddingBagPacked(reduction=reduction)
        assert op.run(TABLE, np.zeros((2, 0), np.int64)).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("element_type", [f16, bf16, f32, f64, i8, u8, i32, i64])
@pytest.mark.parametrize(("reduction", "weighted"), [("sum", False), ("sum", True), ("mean", False)])
def test_long_and_short_bags(element_type: ElementType, reduction: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (50, 3, 2)).astype(element_type.to_dtype())
    indices = rng.integers(0, 50, 9000)
    offsets = np.sort(np.r_[0, 0, rng.integers(0, 300, 100), 3000])
    weights = rng.integers(0, 2, 9000).astype(table.dtype) if weighted else None
    op = EmbeddingBagOffsets(reduction=reduction)
    found = op.run(table, indices, offsets, np.array(7), weights)
    exact = table.astype(np.int64)
    for row, (start, stop) in enumerate(zip(offsets, [*offsets[1:], 9000], strict=True)):
        bag = exact[indices[start:stop]]
        if weights is not None:
            bag = bag * weights[start:stop, None, None].astype(np.int64)
        expected = bag.sum(axis=0) if stop > start else exact[7]
        if element_type in (i8, u8):
            expected = expected.astype(found.dtype)
        count = max(stop - start, 1) if reduction == "mean" else 1
        if element_type.is_real:
            tolerance = {f16: 1e-3, bf16: 8e-3}.get(element_type, 1e-5)
            np.testing.assert_allclose(found[row].astype(np.float64), expected / count, rtol=tolerance)
        else:
            assert np.array_equal(found[row], np.trunc(expected / count))


def test_segments_outside_the_specification_are_reported() -> None:
    with reports() as found:
        sums = EmbeddingSegmentsSum().run(TABLE, INDICES, np.array([2, 0, 0, 5]), np.array(3))
    close(sums, [[-2.9, -0.3], [0, 0], [-0.2, -0.6]])
    assert found == [
        "segment_ids[3] = 5 is outside [0, 2]; it is ignored",
        "segment_ids are not sorted; each index is added to its segment nevertheless",
    ]


# --------------------------------------------------------------------------- sparse matrices


def filled(values: Any, dense_shape: Any, indices: Any, default: Any, dtype: Any = np.float32) -> tuple[Any, ...]:
    places = np.array(indices, np.int32).reshape(-1, 2)
    arrays = np.array(values, dtype), np.array(dense_shape, np.int32), places, np.array(default, dtype)
    found = SparseFillEmptyRows().run(*arrays)
    assert [array.dtype for array in found] == [np.int32, arrays[0].dtype, np.bool_]
    return tuple(array.tolist() for array in found)


def test_empty_rows_are_filled() -> None:
    indices, values, empty = filled([1, 2, 3, 4], [5, 6], [[0, 1], [0, 3], [2, 0], [3, 1]], 42)
    assert indices == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert values == [1, 2, 42, 3, 4, 42]
    assert empty == [False, True, False, False, True]


def test_entries_are_put_in_order_and_equal_places_keep_theirs() -> None:
    indices, values, empty = filled([1, 2, 3, 4], [3, 9], [[2, 8], [0, 5], [2, 8], [2, 1]], 0)
    assert indices == [[0, 5], [1, 0], [2, 1], [2, 8], [2, 8]]
    assert values == [2, 0, 4, 1, 3]
    assert empty == [False, True, False]


@pytest.mark.parametrize(
    ("dense_shape", "indices", "values"), [([2, 0], [[0, 0], [1, 0]], [7, 7]), ([0, 5], [], []), ([0, 0], [], [])]
)
def test_no_entries(dense_shape: list[int], indices: list[Any], values: list[Any]) -> None:
    assert filled([], dense_shape, [], 7)[:2] == (indices, values)


def test_strings() -> None:
    values = filled(["a", "bc"], [3, 1], [[0, 0], [2, 0]], "none", string.to_dtype())[1]
    assert values == ["a", "none", "bc"]
