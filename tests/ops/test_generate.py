"""Range, Eye, OneHot."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.tensors import const, inferred, ran, tensor

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import ElementType, f16, f32, i8, i32, i64, u8
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_bounds
from ovir.ops.generate import Eye, OneHot1, OneHot16, Range4

# ----- Range


@pytest.mark.parametrize(
    ("element_type", "numbers", "result"),
    [
        (i32, (23, 2, -3), [23, 20, 17, 14, 11, 8, 5]),
        (f32, (1, 2.5, 0.5), [1.0, 1.5, 2.0]),
        (i64, (0.5, 5.9, 1.9), [0, 1, 2, 3, 4]),
        (i8, (-3, 3, 2), [-3, -1, 1]),
        (u8, (250, 255, 2), [250, 252, 254]),
        (f16, (-1, 1, 0.75), [-1.0, -0.25, 0.5]),
    ],
)
def test_range(element_type: ElementType, numbers: tuple[float, ...], result: list[float]) -> None:
    op = Range4(output_type=element_type)
    array = ran(op, *numbers)
    assert array.dtype == element_type.to_dtype()
    assert array.tolist() == result


def test_range_of_large_integers() -> None:
    assert ran(Range4(output_type=i64), 2**62, 2**62 + 3, 2).tolist() == [2**62, 2**62 + 2]


def test_ranges_that_runs_determine() -> None:
    start, stop, step = (ops.parameter([], "i64", name=name) for name in ("start", "stop", "step"))
    model = ovir.Model([ops.range(start, stop, step, "i32")], [start, stop, step])
    request = ovir.compile_model(model).create_infer_request()
    for numbers in ((0, 5, 1), (7, -4, -3), (3, 3, 1), (5, 0, 2), (2**31, 2**31 + 3, 2), (-(2**31), 2**31, 2**31 - 1)):
        expected = np.array(range(*numbers), np.int64).astype(np.int32)
        result = request.infer([np.int64(number) for number in numbers])[0]
        np.testing.assert_array_equal(result, expected, strict=True)
    with pytest.raises(ovir.OvirError, match="step must not be 0"):
        request.infer([np.int64(0), np.int64(5), np.int64(0)])


def test_range_by_bounds() -> None:
    def between(low: float, high: float, symbol: int = 0) -> TensorType:
        value = from_bounds(i64, np.array(low), np.array(high), np.array(symbol), sizes=True)
        return TensorType(i64, PartialShape([]), value)

    op = Range4(output_type=i64)
    assert inferred(op, const(0), between(2, 9), const(2)) == "[1..5]"
    assert inferred(op, between(0, 3), between(2, 9), const(1)) == "[..9]"
    assert inferred(op, between(2, 9), const(0), const(-3)) == "[1..3]"
    assert inferred(op, const(0), between(4, np.inf), const(1)) == "[4..]"
    assert inferred(op, const(0), between(2, 9), between(-1, 1)) == "[?]"
    assert inferred(op, const(0), tensor("", i64), const(1)) == "[?]"
    assert op.infer(const(0), between(0, np.inf, symbol=6), const(1)).shape[0].symbol == 6


def test_range_over_a_dimension_has_its_size() -> None:
    net = Net()
    data = net.parameter("data", "?,8")
    shape = net.op("ShapeOf", data, opset=3, output_type="i64")
    rows = net.op("Squeeze", net.op("Split", shape, net.const(np.int64(0)), num_splits=2, outputs=2))
    numbers = [net.const(np.int64(v)) for v in (0, 1)]
    net.result(net.op("Range", numbers[0], rows, numbers[1], opset=4, output_type="i32", name="range"))
    net.result(net.op("Concat", data, axis=0))
    model = net.model()
    assert model.layer("range").outputs[0].shape[0].symbol == model.inputs[0].shape[0].symbol != 0


# ----- Eye


@pytest.mark.parametrize(
    ("rows", "columns", "diagonal", "batch"),
    [
        (3, 4, 2, None),
        (4, 2, -3, [2]),
        (2, 2, 5, [1, 2]),
        (3, 3, 0, [0]),
    ],
)
def test_eye(rows: int, columns: int, diagonal: int, batch: list[int] | None) -> None:
    op = Eye(output_type=i32)
    inputs: list[Any] = [rows, [columns], diagonal, *([] if batch is None else [np.array(batch, np.int64)])]
    expected = np.broadcast_to(np.eye(rows, columns, diagonal, np.int32), (*(batch or []), rows, columns))
    found = ran(op, *inputs)
    assert found.dtype == np.int32
    assert np.array_equal(found, expected)


# ----- OneHot


def test_one_hot() -> None:
    on, off = np.array(1.0), np.array(2.0)
    rows = OneHot1(axis=-1).run(np.array([0, 3, 1, -1]), np.array(3), on, off)
    assert rows.tolist() == [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 2]]
    columns = OneHot1(axis=0).run(np.array([2, 0], np.uint8), np.array(3), on, off)
    assert columns.tolist() == [[2, 1], [2, 2], [1, 2]]
    assert OneHot1(axis=0).run(np.array(1), np.array(2), on, off).tolist() == [2, 1]


def test_one_hot_counts_negative_indices_from_the_end() -> None:
    indices, depth, on, off = np.array([0, -5, -2, 2], np.int8), np.array(3), np.array(1), np.array(0)
    normalized = OneHot16(axis=-1, negative_indices_mode="normalize").run(indices, depth, on, off)
    assert normalized.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert OneHot16(axis=-1).run(indices, depth, on, off).tolist() == [[1, 0, 0], [0] * 3, [0] * 3, [0, 0, 1]]


def test_one_hot_shape() -> None:
    value = const(1.0, f32)
    bounds = from_bounds(i64, np.array(2), np.array(5), np.array(9))
    depth = TensorType(i64, PartialShape([]), bounds)
    assert inferred(OneHot1(axis=1), tensor("2,?", i64), const(4), value, value) == "[2,4,?]"
    assert inferred(OneHot1(axis=-3), tensor("2,?", i64), depth, value, value) == "[2..5,2,?]"
    assert OneHot1().infer(tensor("2", i64), depth, value, value).shape[0] == Dimension(2, 5)
    assert inferred(OneHot1(), tensor("2", i64), tensor("", i64), value, value) == "[?,2]"
    assert inferred(OneHot1(), tensor("...", i64), const(4), value, value) == "[...]"
