"""The kernels of Gather and GatherElements against plain NumPy, over random shapes, types and layouts."""

from functools import partial
from itertools import product
from math import prod

import ml_dtypes
import numpy as np
import pytest

from ovir.kernels import gather as kernels
from ovir.kernels import gather_blocks, parallel
from ovir.kernels.gather import (
    IndexOutsideError,
    find_outside,
    gather,
    gather_elements,
    prepare_gather,
    prepare_gather_elements,
)

STRING = np.dtypes.StringDType()
DATA_TYPES = [
    *map(np.dtype, "?bBhHiIlLefdFD"),
    *(np.dtype(getattr(ml_dtypes, name)) for name in ("int4", "uint4", "bfloat16", "float8_e4m3fn", "float8_e5m2")),
    np.dtype(">f4"),
    STRING,
    np.dtype(object),
]
INDEX_TYPES = [np.dtype(code) for code in "bBhHiIlL"]


@pytest.fixture(params=["default", "tiny blocks", "tiny blocks, 3 threads"])
def blocks(request, monkeypatch):
    """With tiny blocks, small arrays meet every way of splitting."""
    if request.param == "default":
        yield
        return
    monkeypatch.setattr(gather_blocks, "_BLOCK_ENTRIES", 7)
    monkeypatch.setattr(kernels, "_SMALL_BYTES", 0)
    monkeypatch.setattr(kernels, "_LONG_RUN", 4)
    monkeypatch.setattr(gather_blocks, "_CACHE_BYTES", 64)
    monkeypatch.setattr(gather_blocks, "_MIN_COLUMNS", 2)
    monkeypatch.setattr(kernels, "BYTES_PER_THREAD", 64)
    monkeypatch.setattr(gather_blocks, "BYTES_PER_THREAD", 64)
    monkeypatch.setattr(kernels, "_REDUCED_BYTES_PER_THREAD", 16)
    gather_blocks.layout_of.cache_clear()
    with parallel.limit(3 if "threads" in request.param else 1):
        yield
    gather_blocks.layout_of.cache_clear()


def random_data(rng, shape, dtype):
    values = rng.integers(0, 100, shape)
    if dtype == STRING or dtype.kind == "O":
        return values.astype(str).astype(dtype)
    return values.astype(np.int8).astype(dtype)


def random_indices(rng, shape, dtype, low, high):
    info = np.iinfo(dtype)
    return np.array(rng.integers(max(low, int(info.min)), min(high, int(info.max)), shape, endpoint=True), dtype)


def random_layout(rng, array):
    """The same values, in memory in another way."""
    if array.ndim == 0:
        return array
    match rng.integers(4):
        case 0:
            return array
        case 1:
            return np.asfortranarray(array)
        case 2:
            return np.repeat(array, 2, axis=-1)[..., ::2]
        case _:
            return np.flip(np.flip(array).copy())


def reference_gather(data, indices, axis, batch_dims):
    zero = "" if data.dtype in (STRING, object) else 0
    size = data.shape[axis]
    result = np.empty(data.shape[:axis] + indices.shape[batch_dims:] + data.shape[axis + 1 :], data.dtype)
    for batch in np.ndindex(data.shape[:batch_dims]):
        for position in np.ndindex(indices.shape[batch_dims:]):
            index = int(indices[batch + position])
            for outer in np.ndindex(data.shape[batch_dims:axis]):
                row = data[batch + outer + (index,)] if -size <= index < size else zero
                result[batch + outer + position] = row
    return result


def reference_gather_elements(data, indices, axis):
    return np.take_along_axis(data, indices.astype(np.int64), axis)


def assert_same(actual, expected):
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


def check_out(function, expected):
    """`function(out)` gives what is expected, in `out` where that is usable."""
    assert_same(function(None), expected)
    out = np.empty_like(expected, order="C")
    assert function(out) is out
    assert_same(out, expected)
    for other in (
        np.empty((*expected.shape, 1), expected.dtype),
        np.empty(expected.shape, "c16" if expected.dtype != "c16" else "f8"),
        np.empty((*expected.shape, 2), expected.dtype)[..., 0],
    ):
        result = function(other)
        assert_same(result, expected)
        assert result is not other or other.flags.c_contiguous


@pytest.mark.parametrize("seed", range(60))
def test_gather(seed, blocks):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        rank = rng.integers(1, 5)
        shape = tuple(int(d) for d in rng.integers(1, 6, rank))
        axis = int(rng.integers(rank))
        batch_dims = int(rng.integers(axis + 1))
        indices_shape = shape[:batch_dims] + tuple(int(d) for d in rng.integers(1, 5, rng.integers(0, 3)))
        data = random_layout(rng, random_data(rng, shape, DATA_TYPES[rng.integers(len(DATA_TYPES))]))
        dtype = INDEX_TYPES[rng.integers(len(INDEX_TYPES))]
        size = shape[axis]
        low, high = [(0, size - 1), (-size, size - 1), (-2 * size - 1, 2 * size)][rng.integers(3)]
        indices = random_layout(rng, random_indices(rng, indices_shape, dtype, low, high))
        expected = reference_gather(data, indices, axis, batch_dims)
        check_out(partial(gather, data, indices, axis, batch_dims), expected)
        check_out(partial(prepare_gather(indices, shape, axis, batch_dims), data), expected)


@pytest.mark.parametrize("seed", range(60))
def test_gather_elements(seed, blocks):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        rank = rng.integers(1, 5)
        shape = tuple(int(d) for d in rng.integers(1, 6, rank))
        axis = int(rng.integers(rank))
        indices_shape = (*shape[:axis], int(rng.integers(1, 9)), *shape[axis + 1 :])
        data = random_layout(rng, random_data(rng, shape, DATA_TYPES[rng.integers(len(DATA_TYPES))]))
        dtype = INDEX_TYPES[rng.integers(len(INDEX_TYPES))]
        low = -shape[axis] if rng.integers(2) else 0
        indices = random_layout(rng, random_indices(rng, indices_shape, dtype, low, shape[axis] - 1))
        expected = reference_gather_elements(data, indices, axis)
        check_out(partial(gather_elements, data, indices, axis), expected)
        check_out(partial(prepare_gather_elements(indices, shape, axis), data), expected)


@pytest.mark.parametrize("dtype", DATA_TYPES, ids=str)
@pytest.mark.parametrize("index_type", INDEX_TYPES, ids=str)
def test_all_types(dtype, index_type, blocks):
    rng = np.random.default_rng(0)
    data = random_data(rng, (3, 5, 2), dtype)
    indices = random_indices(rng, (3, 4), index_type, -7, 7)
    for axis, batch_dims in ((0, 0), (1, 0), (2, 0), (1, 1)):
        expected = reference_gather(data, indices, axis, batch_dims)
        assert_same(gather(data, indices, axis, batch_dims), expected)
        assert_same(prepare_gather(indices, data.shape, axis, batch_dims)(data), expected)
    indices = random_indices(rng, (3, 4, 2), index_type, -5, 4)
    assert_same(gather_elements(data, indices, 1), reference_gather_elements(data, indices, 1))
    assert_same(prepare_gather_elements(indices, data.shape, 1)(data), reference_gather_elements(data, indices, 1))


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize(
    ("shape", "axis", "batch_dims", "indices_shape"),
    [
        ((300_000,), 0, 0, (500_000,)),
        ((2000, 768), 0, 0, (8, 400)),
        ((16, 50, 3000), 2, 0, (700,)),
        ((2, 900, 3), 1, 0, (90_000,)),
        ((2, 300, 4000), 1, 0, (1, 1)),
        ((6, 700, 30), 1, 1, (6, 40_000)),
        ((3000, 20, 9), 1, 1, (3000, 25)),
        ((40, 7, 90, 5), 2, 1, (40, 300)),
    ],
)
def test_gather_of_many(shape, axis, batch_dims, indices_shape, low, index_type):
    rng = np.random.default_rng(1)
    data = rng.integers(0, 1 << 30, shape).astype(np.int32)
    indices = rng.integers(low, shape[axis], indices_shape).astype(index_type)
    batches = prod(shape[:batch_dims])
    expected = np.stack(
        [
            batch.take(index, axis - batch_dims)
            for batch, index in zip(
                data.reshape(batches, *shape[batch_dims:]),
                indices.reshape(batches, *indices_shape[batch_dims:]),
                strict=True,
            )
        ]
    ).reshape(shape[:axis] + indices_shape[batch_dims:] + shape[axis + 1 :])
    with parallel.limit(3):
        assert_same(gather(data, indices, axis, batch_dims), expected)
        assert_same(prepare_gather(indices, shape, axis, batch_dims)(data), expected)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize(
    "shape", [(70, 80, 90), (3, 4, 100_000), (300_000, 3, 1), (2, 200_000, 2), (1, 1, 700_000), (2, 9, 70_000)]
)
def test_gather_elements_of_many(shape, axis, low, index_type):
    rng = np.random.default_rng(1)
    data = rng.integers(0, 1 << 30, shape).astype(np.int32)
    indices_shape = (*shape[:axis], shape[axis] + 3, *shape[axis + 1 :])
    indices = rng.integers(low, shape[axis], indices_shape).astype(index_type)
    expected = reference_gather_elements(data, indices, axis)
    with parallel.limit(3):
        assert_same(gather_elements(data, indices, axis), expected)
        assert_same(prepare_gather_elements(indices, shape, axis)(data), expected)


@pytest.mark.parametrize(
    ("value", "index_type"),
    [
        (2**32 + 1, np.int64),
        (-(2**32) + 1, np.int64),
        (2**63 - 1, np.int64),
        (-(2**63), np.int64),
        (2**31 - 1, np.int32),
        (-(2**31), np.int32),
        (2**32 - 1, np.uint32),
        (2**63 + 1, np.uint64),
        (2**64 - 1, np.uint64),
        (255, np.uint8),
        (-128, np.int8),
    ],
)
def test_range_is_checked_before_narrowing(value, index_type, blocks):
    data = np.arange(1, 6)
    indices = np.array([[1, value, 2]], index_type)
    assert_same(gather(data, indices, 0), np.array([[2, 0, 3]]))
    assert_same(gather(data, indices[:, 1], 0), np.array([0]))
    assert_same(gather(data[None], indices, 1, 1), np.array([[2, 0, 3]]))
    assert_same(gather(np.stack([data, data]), indices[0], 1), np.array([[2, 0, 3]] * 2))
    assert_same(prepare_gather(indices, (5,), 0)(data), np.array([[2, 0, 3]]))
    assert find_outside(indices, 5) == ((0, 1), value)
    for call in (
        lambda: gather_elements(data[None], indices, 1),
        lambda: prepare_gather_elements(indices, (1, 5), 1),
    ):
        with pytest.raises(IndexOutsideError) as caught:
            call()
        assert (caught.value.position, caught.value.value, caught.value.size) == ((0, 1), value, 5)
        assert str(caught.value) == f"indices[0,1] = {value} is outside [-5, 4]"


def test_narrow_index_types_on_long_axes():
    data = np.arange(1000)
    for dtype in (np.int8, np.uint8, np.int16):
        indices = np.array([100, 0, 1], dtype)
        assert_same(gather(data, indices, 0), data[[100, 0, 1]])
        assert_same(gather_elements(data, indices, 0), data[[100, 0, 1]])
    assert_same(gather(data, np.array([-1, -128], np.int8), 0), data[[-1, -128]])
    assert find_outside(np.array([-128, 127], np.int8), 1000) is None


def test_first_outside_index_is_reported_whatever_thread_meets_one(blocks):
    data, indices = np.zeros((50, 4)), np.zeros((60, 4), np.int32)
    indices[17, 2], indices[17, 3], indices[44, 0] = 50, 51, -51
    with pytest.raises(IndexOutsideError, match=r"indices\[17,2\] = 50 is outside \[-50, 49\]"):
        gather_elements(data, indices, 0)
    assert find_outside(indices, 50) == ((17, 2), 50)
    assert find_outside(np.int64(7).reshape(()), 5) == ((), 7)
    assert find_outside(np.empty((0, 3), np.int64), 5) is None


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("?"), STRING, np.dtype(object)], ids=str)
def test_axis_of_size_0_gives_zeros(dtype, blocks):
    data = np.empty((2, 0, 3), dtype)
    expected = np.full((2, 4, 3), "" if dtype in (STRING, object) else 0, dtype)
    indices = np.array([0, 1, -1, 5])
    assert_same(gather(data, indices, 1), expected)
    assert_same(prepare_gather(indices, data.shape, 1)(data), expected)
    assert_same(gather(data, np.array([indices] * 2), 1, 1), expected)
    assert_same(prepare_gather(np.array([indices] * 2), data.shape, 1, 1)(data), expected)
    assert_same(gather(data, np.array(0), 1), expected[:, 0])
    with pytest.raises(IndexOutsideError, match=r"indices\[0,0,0\] = 0 is outside \[0, -1\]"):
        gather_elements(data, np.zeros((2, 1, 3), int), 1)


@pytest.mark.parametrize(
    ("shape", "indices_shape"),
    [((2, 0, 3), (2, 0, 3)), ((2, 5, 0), (2, 4, 0)), ((0, 5, 3), (0, 4, 3)), ((2, 5), (2, 0))],
)
def test_empty_results(shape, indices_shape, blocks):
    data, indices = np.empty(shape, np.float32), np.empty(indices_shape, np.int64)
    assert_same(gather_elements(data, indices, 1), np.empty(indices_shape, np.float32))
    assert_same(prepare_gather_elements(indices, shape, 1)(data), np.empty(indices_shape, np.float32))
    for axis, batch_dims in product(range(len(shape)), (0, 1)):
        if batch_dims > axis:
            continue
        picked = np.zeros(indices.shape[: 1 + batch_dims], np.int64)
        expected = reference_gather(data, picked, axis, batch_dims)
        assert_same(gather(data, picked, axis, batch_dims), expected)
        assert_same(prepare_gather(picked, shape, axis, batch_dims)(data), expected)


def test_foreign_byte_order(blocks):
    data = np.arange(12).reshape(3, 4)
    indices = np.array([2, -1, 9, 0], ">i4")
    assert_same(gather(data, indices, 0), reference_gather(data, indices, 0, 0))
    assert_same(gather(data, indices[:3, None], 1, 1), np.array([[2], [7], [0]])[..., :1])
    elements = np.array([[2, -1, 1, 0]], ">i8")
    assert_same(gather_elements(data, elements, 0), reference_gather_elements(data, elements, 0))


@pytest.mark.parametrize("indices", [[3], [1, 2, 3], [4, 2, 0], [5, 4, 3, 2, 1, 0], [0, 0], [-1, 0], [1, 3, 4], 2])
def test_prepared_runs_of_indices(indices):
    data, indices = np.arange(18 * 20_000).reshape(3, 6, 1, -1), np.array(indices)
    expected = data.take(indices, 1)
    check_out(partial(prepare_gather(indices, data.shape, 1), data), expected)


def test_large_data_that_is_not_contiguous():
    data = np.arange(600_000).reshape(100, 2000, 3).transpose(2, 1, 0)
    indices = np.array([[3, -1], [99, 500]])
    expected = np.where(indices == 500, 0, data.take(np.where(indices == 500, 0, indices), 2))
    assert_same(gather(data, indices, 2), expected)
    assert_same(gather(data, np.array(7), 1), data[:, 7])
    assert_same(gather(data[0, :, 0], np.arange(1500), 0), data[0, :1500, 0])


def test_no_index_is_read_as_a_shorter_one_and_nothing_is_written_before_all_are_checked():
    data, indices = np.arange(400_000), np.zeros(900_000, np.int64)
    indices[-1] = 2**32
    out = np.full(900_000, -1)
    with pytest.raises(IndexOutsideError, match=r"indices\[899999\] = 4294967296 is outside"):
        gather_elements(data, indices, 0, out)
    assert (out == -1).all()
    assert gather(data, indices, 0, 0, out)[-1] == 0
