"""SegmentMax, the embedding bags and SparseFillEmptyRows."""

from typing import Any

import numpy as np
import pytest
from support.tensors import const

from ovir.core.element_types import ElementType, bf16, boolean, f16, f32, f64, i8, i32, i64, string, u8
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_dimensions
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
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
    with reporting_to(lambda code, message, effect: found.append(f"{message}; {effect}")):
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
        ((tensor("4,2", f32), tensor("3")), r"data of shape \[4,2\] and segment_ids of shape \[3\] must have the same"),
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


# --------------------------------------------------------------------------- bags


Array = np.ndarray[Any, Any]

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


def test_offsets_at_both_ends() -> None:
    ones = np.ones((2, 3, 2), np.float32)
    op = EmbeddingBagOffsetsSum()
    assert op.run(ones, np.array([0, 1, 1]), np.array([1, 3]))[:, 0, 0].tolist() == [2, 0]  # the first index in no bag
    assert op.run(ones, np.array([0, 1]), np.array([], np.int64)).shape == (0, 3, 2)
    assert op.run(ones, np.array([], np.int64), np.array([0, 0])).tolist() == np.zeros((2, 3, 2)).tolist()
    assert op.run(ones[:0], np.array([], np.int64), np.array([0])).tolist() == np.zeros((1, 3, 2)).tolist()


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
    found: list[str] = []
    with reporting_to(lambda code, message, effect: found.append(f"{message}; {effect}")):
        sums = EmbeddingSegmentsSum().run(TABLE, INDICES, np.array([2, 0, 0, 5]), np.array(3))
    close(sums, [[-2.9, -0.3], [0, 0], [-0.2, -0.6]])
    assert found == [
        "segment_ids[3] = 5 is outside [0, 2]; it is ignored",
        "segment_ids are not sorted; each index is added to its segment nevertheless",
    ]


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (EmbeddingBagOffsetsSum(), [[0, 5], [0]], r"indices\[1\] = 5 is outside \[0, 4\]"),
        (EmbeddingBagOffsetsSum(), [[0, -1], [0]], r"indices\[1\] = -1 is outside \[0, 4\]"),
        (EmbeddingBagOffsetsSum(), [[0, 1], [0, 3]], r"offsets\[1\] = 3 is outside \[0, 2\]"),
        (EmbeddingBagOffsetsSum(), [[0, 1], [2, 1]], "offsets must not decrease, got 2 and then 1"),
        (EmbeddingBagOffsetsSum(), [[0, 1], [0], -2], r"default_index = -2 is outside \[0, 4\]"),
        (EmbeddingBagPackedSum(), [[[0, 1], [2, 9]]], r"indices\[1,1\] = 9 is outside \[0, 4\]"),
        (EmbeddingSegmentsSum(), [[0], [0], 2, -1], r"default_index = -1 is outside \[0, 4\]"),
        (EmbeddingSegmentsSum(), [[0], [0], -2], "num_segments must not be negative, got -2"),
    ],
)
def test_values_outside(op: Operator, inputs: list[Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        op.run(TABLE, *(np.array(values) for values in inputs))


# ----- inference


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        (EmbeddingBagOffsets(), ["?,3,4", "?", "2..5"], "f32[2..5,3,4]"),
        (EmbeddingBagOffsets(), ["?,3", "...", "..."], "f32[?,3]"),
        (EmbeddingBagOffsetsSum(), ["...", "?", "5", "[]"], "f32[...]"),
        (EmbeddingBagPackedSum(), ["5,3", "?,4"], "f32[?,3]"),
        (EmbeddingSegmentsSum(), ["5,3", "4", "4", "[]"], "f32[?,3]"),
        (EmbeddingSegmentsSum(), ["...", "4", "4", "[]"], "f32[...]"),
    ],
)
def test_shapes_of_bags(op: Operator, inputs: list[str], expected: str) -> None:
    table, *others = inputs
    assert str(op.infer(tensor(table, f32), *map(tensor, others))) == expected


def test_shapes_from_weights_and_counts() -> None:
    packed = EmbeddingBagPackedSum().infer(tensor("5,3", f32), tensor("?,4"), tensor("2..3,?", f32))
    assert str(packed) == "f32[2..3,3]"
    segments = EmbeddingSegmentsSum().infer(
        tensor("?,3", f16), tensor("?", i32), tensor("4", i32), constant_type(np.array(7, np.int32))
    )
    assert str(segments) == "f16[7,3]"


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (EmbeddingBagOffsets(reduction="mean"), [tensor("5,3", f32), tensor("4"), tensor("2"), tensor("[]"), tensor("4", f32)], "reduction mean does not allow per_sample_weights"),
        (EmbeddingBagOffsets(), [tensor("5,3", f32), tensor("4"), tensor("2"), tensor("[]"), tensor("3", f32)], r"indices of shape \[4\] and per_sample_weights of shape \[3\] must have the same number of elements"),
        (EmbeddingBagOffsets(), [tensor("5,3", f32), tensor("4"), tensor("2", i32)], "indices is i64 and offsets is i32"),
        (EmbeddingBagOffsets(), [tensor("5,3", f32), tensor("4,1"), tensor("2")], r"indices must have rank 1, got shape \[4,1\]"),
        (EmbeddingBagOffsets(), [tensor("5,3", f32), tensor("4"), tensor("2"), tensor("1")], r"default_index must have rank 0, got shape \[1\]"),
        (EmbeddingBagOffsets(), [tensor("[]", f32), tensor("4"), tensor("2")], "emb_table must have rank 1 or more, got shape"),
        (EmbeddingBagOffsets(), [tensor("5,3", boolean), tensor("4"), tensor("2")], "emb_table must be of a numeric type, got boolean"),
        (EmbeddingBagPacked(), [tensor("5,3", f32), tensor("4")], r"indices must have rank 2, got shape \[4\]"),
        (EmbeddingBagPacked(), [tensor("5,3", f32), tensor("4,2", i8)], "indices must be i32 or i64, got i8"),
        (EmbeddingBagPacked(), [tensor("5,3", f32), tensor("4,2"), tensor("4,2", f16)], "emb_table is f32 and per_sample_weights is f16"),
        (EmbeddingSegmentsSum(), [tensor("5,3", f32), tensor("4"), tensor("3"), tensor("[]")], r"indices of shape \[4\] and segment_ids of shape \[3\] must have the same number of elements"),
        (EmbeddingSegmentsSum(), [tensor("5,3", f32), tensor("4"), tensor("4"), tensor("1")], r"num_segments must have rank 0, got shape \[1\]"),
    ],
)  # fmt: skip
def test_errors_of_bags(op: Operator, inputs: list[TensorType], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        op.infer(*inputs)


# --------------------------------------------------------------------------- sparse matrices


Array = np.ndarray[Any, Any]


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


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0, 1], [5, 0]], r"indices\[1\] has the row 5, which is outside \[0, 4\]"),
        ([[-1, 1], [2, 0]], r"indices\[0\] has the row -1, which is outside"),
        ([[0, 1], [2, 6]], r"indices\[1\] has the column 6, which is outside \[0, 5\]"),
    ],
)
def test_an_entry_outside(indices: list[list[int]], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        filled([1, 2], [5, 6], indices, 0)
    with pytest.raises(OperatorError, match=message):
        SparseFillEmptyRows().infer(tensor("2", f32), const([5, 6]), const(indices), tensor("[]", f32))


@pytest.mark.parametrize(
    ("values", "dense_shape", "indices", "expected"),
    [
        ("?", const([4, 6]), const([[0, 1], [2, 0]]), "i64[4,2] f32[4] boolean[4]"),
        ("3", const([4, 6]), tensor("?,2"), "i64[4..7,2] f32[4..7] boolean[4]"),
        ("2..3", tensor("2"), tensor("?,?"), "i64[2..,2] f32[2..] boolean[?]"),
        ("...", tensor("..."), tensor("..."), "i64[?,2] f32[?] boolean[?]"),
        (
            "1",
            tensor("2").with_value(from_dimensions(i64, PartialShape.parse("2..5,3"))),
            tensor("1,2"),
            "i64[2..6,2] f32[2..6] boolean[2..5]",
        ),
    ],
)
def test_shapes_of_sparse_matrices(values: str, dense_shape: TensorType, indices: TensorType, expected: str) -> None:
    found = SparseFillEmptyRows().infer(tensor(values, f32), dense_shape, indices, tensor("[]", f32))
    assert " ".join(map(str, found)) == expected


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((tensor("3,1", f32), tensor("2"), tensor("3,2"), tensor("[]", f32)), r"values must have rank 1, got shape \[3,1\]"),
        ((tensor("3", f32), tensor("3"), tensor("3,2"), tensor("[]", f32)), r"dense_shape must have shape \[2\], because only matrices are supported, got \[3\]"),
        ((tensor("3", f32), tensor("2"), tensor("2,2"), tensor("[]", f32)), r"values of shape \[3\] and indices of shape \[2,2\] must have the same number of entries"),
        ((tensor("3", string), tensor("2"), tensor("3,2"), tensor("[]", string)), "values must be of a numeric type, got string"),
        ((tensor("3", f32), tensor("2"), tensor("3,3"), tensor("[]", f32)), "indices must hold a pair for each value"),
        ((tensor("3", f32), tensor("2"), tensor("3,2"), tensor("1", f32)), r"default_value must have rank 0, got shape \[1\]"),
        ((tensor("3", f32), tensor("2", i32), tensor("3,2"), tensor("[]", f32)), "dense_shape is i32 and indices is i64"),
        ((tensor("3", f32), tensor("2"), tensor("3,2"), tensor("[]", f16)), "values is f32 and default_value is f16"),
        ((tensor("3", f32), tensor("2", f32), tensor("3,2"), tensor("[]", f32)), "dense_shape must be i32 or i64, got f32"),
        ((tensor("3", f32), const([-1, 2]), tensor("3,2"), tensor("[]", f32)), r"dense_shape\[0\] must not be negative, got -1"),
    ],
)  # fmt: skip
def test_errors_of_sparse_matrices(inputs: tuple[TensorType, ...], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        SparseFillEmptyRows().infer(*inputs)
