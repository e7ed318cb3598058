"""Pooling: geometry of windows, known answers, shapes of dynamic data, and what is refused."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from support.binding import bound_results
from support.tensors import tensor

from ovir.core.element_types import ElementType, dynamic, f32, i32
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.kernels.windows import Window
from ovir.ops.base.spatial import output_dim, padded_window
from ovir.ops.pooling import (
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    AvgPool1,
    AvgPool16,
    MaxPool1,
    MaxPool8,
    MaxPool14,
)

LOWEST = np.finfo(np.float32).min


# ----- geometry


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "begin", "end", "floor", "ceil", "torch"),
    [
        (6, 3, 2, 1, 0, 0, 2, 3, 3),
        (3, 2, 2, 1, 1, 1, 2, 3, 2),  # the third window would start in the padding
        (5, 2, 3, 1, 1, 1, 2, 3, 2),
        (7, 3, 1, 2, 0, 0, 3, 3, 3),
    ],
)
def test_number_of_windows(
    size: int, kernel: int, stride: int, dilation: int, begin: int, end: int, floor: int, ceil: int, torch: int
) -> None:
    window = Window(kernel, stride, dilation, begin, end)
    assert [window.count(size, rounding) for rounding in ("floor", "ceil", "ceil_torch")] == [floor, ceil, torch]


def test_same_pads_put_the_odd_one_where_the_name_says() -> None:
    assert padded_window("same_upper", 5, 2, 1, 1) == Window(2, 1, 1, 0, 1)
    assert padded_window("same_lower", 5, 2, 1, 1) == Window(2, 1, 1, 1, 0)
    assert padded_window("same_upper", 7, 3, 2, 2) == Window(3, 2, 2, 2, 2)
    assert padded_window("same_upper", 6, 1, 3, 1) == Window(1, 3, 1, 0, 0)


@pytest.mark.parametrize(("kernel", "stride", "dilation"), list(product((1, 2, 4), (1, 2, 3), (1, 2))))
@pytest.mark.parametrize("rounding", ["floor", "ceil", "ceil_torch"])
@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper"])
def test_interval_holds_the_windows_of_each_size(
    kernel: int, stride: int, dilation: int, rounding: str, auto_pad: str
) -> None:
    dim = output_dim(Dimension(7, 11), kernel, stride, dilation, 1, 0, rounding, auto_pad)
    for size in range(7, 12):
        window = padded_window(auto_pad, size, kernel, stride, dilation, 1, 0)
        assert dim.contains(window.count(size, rounding))


def test_a_size_that_stays_keeps_its_symbol() -> None:
    assert output_dim(Dimension(0, None, 7), 3, 1, 1, 1, 1) == Dimension(1, None)
    assert output_dim(Dimension(0, None, 7), 3, 1, 1, 1, 1).symbol == 7
    assert output_dim(Dimension(0, None, 7), 5, 1, 1, 0, 0, auto_pad="same_lower").symbol == 7
    assert output_dim(Dimension(0, None, 7), 3, 2, 1, 1, 1).symbol == 0


def test_an_unknown_kernel_leaves_an_interval() -> None:
    assert output_dim(Dimension(8, 8), Dimension(), 1, 1, 0, 0) == Dimension(1, 8)
    assert output_dim(Dimension(8, 8), Dimension(2, 3), 2, 1, 0, 0) == Dimension(3, 4)


# ----- MaxPool


@pytest.mark.parametrize(
    ("axis", "expected"), [(0, [[1, 3], [5, 7], [9, 11], [13, 15]]), (1, [[1, 3], [5, 7]] * 2), (-1, [[1, 3]] * 4)]
)
def test_places_count_from_the_axis_on(axis: int, expected: list[list[int]]) -> None:
    data = np.arange(16, dtype=np.int32).reshape(2, 2, 4)
    pool = MaxPool8(kernel=(2,), strides=(2,), axis=axis, index_element_type=i32)
    values, places = pool.run(data)
    assert values.reshape(4, 2).tolist() == [[1, 3], [5, 7], [9, 11], [13, 15]]
    assert places.reshape(4, 2).tolist() == expected
    assert places.dtype == np.int32


def test_first_of_equals_and_nan_and_empty_windows() -> None:
    data = np.array([[[2, 2, np.nan, 1, np.nan]]], np.float32)
    pool = MaxPool8(kernel=(2,), strides=(3,), pads_end=(4,), rounding_type="ceil")
    values, places = pool.run(data)
    assert values.tolist() == [[[2, 1, LOWEST, LOWEST]]]  # the last lies beyond the padding
    assert places.tolist() == [[[0, 3, 0, 0]]]
    assert np.array_equal(MaxPool1(kernel=(2,), strides=(3,), pads_end=(4,), rounding_type="ceil").run(data), values)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int64])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel": (3, 2), "strides": (2, 1), "pads_begin": (1, 1), "pads_end": (0, 1)},
        {"kernel": (5, 7), "strides": (1, 1), "auto_pad": "same_upper"},
        {"kernel": (1, 3), "strides": (3, 2), "dilations": (1, 3), "auto_pad": "same_lower"},
        {"kernel": (2, 2), "strides": (2, 3), "auto_pad": "valid", "pads_begin": (9, 9), "pads_end": (9, 9)},
    ],
)
def test_values_with_and_without_places_are_those_of_each_window(dtype: Any, attributes: dict[str, Any]) -> None:
    data = np.random.default_rng(1).integers(0, 100, (2, 3, 9, 11)).astype(dtype)
    pool = MaxPool14(**attributes)
    windows, shape = pool.geometry(data)
    assert pool.infer(TensorType(f32, PartialShape(data.shape)))[0].shape == shape
    expected = np.zeros(shape, dtype)
    mean = np.zeros(shape)
    for i, j in product(*map(range, shape[2:])):
        at = [
            [p for t in range(w.kernel) if 0 <= (p := o * w.stride - w.pad_begin + t * w.dilation) < size]
            for w, o, size in zip(windows, (i, j), data.shape[2:], strict=True)
        ]
        part = data[:, :, at[0]][:, :, :, at[1]]
        expected[:, :, i, j] = part.max(axis=(2, 3))
        mean[:, :, i, j] = part.mean(axis=(2, 3), dtype=np.float64)
    values, places = pool.run(np.asfortranarray(data))
    assert np.array_equal(values, expected)
    assert np.array_equal(data.reshape(-1)[places], expected)
    for wanted in ({0}, {0, 1}):
        bound = bound_results(pool, (data,), [expected, places], set(), wanted)
        assert bound is None or all(np.array_equal(bound[i], [expected, places][i]) for i in wanted)
    if "dilations" not in attributes:
        assert np.array_equal(MaxPool1(**attributes).run(data), expected)
    averages = AvgPool16(exclude_pad=True, **attributes).run(data)
    assert averages.dtype == dtype
    if np.issubdtype(dtype, np.integer):
        assert np.array_equal(averages, np.rint(mean))
    else:
        assert np.allclose(averages, mean, rtol=1e-3 if dtype == np.float16 else 1e-5)


# ----- AvgPool


@pytest.mark.parametrize(
    ("exclude_pad", "pads_end", "expected"),
    [(True, (0,), [1, 1]), (True, (1,), [1, 1]), (False, (0,), [1, 1]), (False, (1,), [1, 2 / 3])],
)
def test_what_a_mean_counts(exclude_pad: bool, pads_end: tuple[int], expected: list[float]) -> None:
    pool = AvgPool1(kernel=(3,), strides=(2,), pads_end=pads_end, exclude_pad=exclude_pad, rounding_type="ceil")
    assert np.allclose(pool.run(np.ones((1, 1, 4), np.float32)), [[expected]])


@pytest.mark.parametrize(("dtype", "number", "mean"), [(np.int64, 2**63 - 1, -(2**63)), (np.uint64, 2**64 - 1, 0), (np.int64, -(2**63), -(2**63))])  # fmt: skip
def test_a_mean_beyond_64_bits_is_converted_as_all_numbers_are(dtype: Any, number: int, mean: int) -> None:
    """In f64 the mean is 2^63 or 2^64; what C makes of it depends on the processor."""
    pool, data = AvgPool1(kernel=(1,), strides=(1,), exclude_pad=True), np.full((1, 1, 3), number, dtype)
    expected = pool.run(data)
    bound = bound_results(pool, (data,), [expected], set())
    assert bound is not None
    assert bound[0].tolist() == expected.tolist() == [[[mean] * 3]]


# ----- shapes and errors


@pytest.mark.parametrize("kind", [MaxPool1, AvgPool1])
@pytest.mark.parametrize(("stride", "rounding"), [(1, "floor"), (2, "ceil"), (4, "ceil"), (4, "floor")])
def test_a_window_larger_than_the_data_is_refused_at_run_time_too(kind: Any, stride: int, rounding: str) -> None:
    pool = kind(kernel=(5,), strides=(stride,), rounding_type=rounding)
    pool.infer(tensor("[2,2,?]"))
    with pytest.raises(OperatorError, match=r"covers 5 \(kernel 5, dilation 1\), but data has 3 with pads 0 and 0"):
        pool.run(np.ones((2, 2, 3), np.float32))


# ----- adaptive pooling


@pytest.mark.parametrize(
    ("shape", "count"), [((2, 3, 9), (4,)), ((2, 3, 37), (150,)), ((2, 2, 7, 9), (5, 4)), ((1, 2, 5, 6, 7), (2, 6, 3))]
)
def test_adaptive_pooling_against_each_window(shape: tuple[int, ...], count: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    data = random.integers(-3, 3, shape).astype(np.float32)
    data[random.random(shape) < 0.05] = np.nan
    values, places = AdaptiveMaxPool().run(data, np.array(count))
    means = AdaptiveAvgPool().run(data, np.array(count))
    numbers = np.arange(np.prod(shape[2:])).reshape(shape[2:])
    for lead in np.ndindex(shape[:2]):
        for window in np.ndindex(count):
            spans = (
                slice(i * size // n, -(-(i + 1) * size // n))
                for i, size, n in zip(window, shape[2:], count, strict=True)
            )
            where = tuple(spans)
            first = data[lead][where].argmax()
            np.testing.assert_equal(values[lead + window], data[lead][where].flat[first])
            assert places[lead + window] == numbers[where].flat[first]
            np.testing.assert_allclose(means[lead + window], data[lead][where].mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("element_type", [f32, dynamic])
def test_positions_are_of_an_index_type(element_type: ElementType) -> None:
    pool = MaxPool8(kernel=(2,), strides=(1,), index_element_type=element_type)
    with pytest.raises(OperatorError, match=f"index_element_type must be i32 or i64, got {element_type}"):
        pool.infer(tensor("1,2,3"))


@pytest.mark.parametrize("shape", [(0, 2, 4), (2, 0, 4), (0, 0, 4), (2, 3, 4)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_adaptive_pooling_of_no_planes_or_into_no_windows(shape: tuple[int, ...], count: int) -> None:
    data, wanted = np.zeros(shape, np.float32), np.array([count])
    assert AdaptiveAvgPool().run(data, wanted).shape == (*shape[:2], count)
    assert [a.shape for a in AdaptiveMaxPool().run(data, wanted)] == [(*shape[:2], count)] * 2


@pytest.mark.parametrize("pool", [MaxPool1(kernel=(2,), strides=(1,)), MaxPool8(kernel=(2,), strides=(1,)), AvgPool1(kernel=(2,), strides=(1,), exclude_pad=True)], ids=lambda pool: type(pool).__name__)  # fmt: skip
@pytest.mark.parametrize(("shape", "name"), [((0, 3, 4), "batch"), ((2, 0, 4), "channel")])
def test_an_empty_batch_is_refused_in_inference_and_in_a_run(pool: Any, shape: tuple[int, ...], name: str) -> None:
    message = rf"the {name} dimension of data \[{','.join(map(str, shape))}\] is 0"
    with pytest.raises(OperatorError, match=message):
        pool.infer(TensorType(f32, PartialShape(shape)))
    with pytest.raises(OperatorError, match=message):
        pool.run(np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    "options", [{}, {"strides": (2, 3), "dilations": (2, 1), "pads_begin": (4, 5), "pads_end": (3, 2)}]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8])
def test_places_are_those_of_the_first_of_equals(options: dict[str, Any], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 9, (2, 3, 14, 17)).astype(dtype)
    if dtype == np.float32:
        data[rng.random(data.shape) < 0.05] = np.nan
        data[0, 0, :8] = -np.inf
    pool = MaxPool14(**({"kernel": (5, 7), "strides": (1, 1)} | options))
    windows, shape = pool.geometry(data)
    values, places = pool.run(data)
    for n, c, *place in np.ndindex(*shape):
        axes = [w.positions(count)[p] for w, count, p in zip(windows, shape[2:], place, strict=True)]
        inside = [(y, x) for y, x in product(*axes) if 0 <= y < 14 and 0 <= x < 17]
        best, first = data.dtype.type(np.finfo(dtype).min if data.dtype.kind == "f" else 0), 0
        for y, x in inside:
            if data[n, c, y, x] > best:
                best, first = data[n, c, y, x], (n * 3 + c) * 14 * 17 + y * 17 + x
        assert values[n, c, *place] == best
        assert places[n, c, *place] == (first or (n * 3 + c) * 14 * 17)


@pytest.mark.parametrize("auto_pad", ["same_lower", "same_upper"])
@pytest.mark.parametrize("dilation", [1, 3])
def test_taps_that_meet_no_data_take_no_time(auto_pad: str, dilation: int) -> None:
    """A window may be as long as its padding makes room for: as long a one as the data gives the same result."""
    data = np.random.default_rng(0).integers(-9, 9, (2, 2, 9, 5)).astype(np.float32)
    attributes = {"strides": (2, 3), "dilations": (dilation, 1), "auto_pad": auto_pad}
    huge, large = ((size, 3) for size in (2**40 + 1, 201))
    for one, other in zip(
        MaxPool14(kernel=huge, **attributes).run(data), MaxPool14(kernel=large, **attributes).run(data), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    window = MaxPool14(kernel=huge, **attributes).geometry(data)[0][0]
    assert window.kernel <= 17


@pytest.mark.parametrize(("begin", "stride", "dilation"), [(0, 1, 1), (7, 2, 1), (9, 3, 2), (-2, 1, 3), (40, 1, 1)])
def test_a_trimmed_window_meets_the_same_data(begin: int, stride: int, dilation: int) -> None:
    size, count = 6, 4
    window = Window(30, stride, dilation, begin, 0)
    trimmed = window.trimmed(size, count)
    assert 1 <= trimmed.kernel <= window.kernel
    for one, other in zip(window.positions(count), trimmed.positions(count), strict=True):
        assert [p for p in one if 0 <= p < size] == [p for p in other if 0 <= p < size]


@pytest.mark.parametrize(
    ("auto_pad", "pads"),
    [
        ("valid", ([0, 0], [0, 0])),
        ("explicit", ([1, 2], [3, 4])),
        ("same_upper", ([0, 1], [1, 1])),
        ("same_lower", ([1, 1], [0, 1])),
    ],
)
def test_pads_by_auto_pad(auto_pad: str, pads: tuple[list[int], list[int]]) -> None:
    windows = [padded_window(auto_pad, *axis) for axis in ((6, 2, 1, 1, 1, 3), (7, 2, 1, 2, 2, 4))]
    assert ([window.pad_begin for window in windows], [window.pad_end for window in windows]) == pads
