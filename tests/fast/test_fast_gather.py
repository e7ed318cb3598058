"""Gather and GatherElements in all their fast forms, against the operations, over random shapes."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.binding import LoneBinder

from ovir.core import parallel
from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError
from ovir.fast import gather as fast
from ovir.fast.base import gather_blocks
from ovir.fast.registry import bind
from ovir.ops.base.operator import Operator
from ovir.ops.gather import Gather8, GatherElements

STRING = np.dtypes.StringDType()
DATA_TYPES = [
    *map(np.dtype, "?bBhHiIlLefd"),
    *(np.dtype(getattr(ml_dtypes, name)) for name in ("int4", "uint4", "bfloat16", "float8_e4m3fn", "float8_e5m2")),
]
INDEX_TYPES = [np.dtype(code) for code in "bBhHiIlL"]


@pytest.fixture(params=["default", "large", "large in tiny blocks", "large in tiny blocks, 3 threads"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With tiny blocks, small arrays meet every way of splitting."""
    if "large" in request.param:
        monkeypatch.setattr(fast, "_MOST_BYTES", 0)
    if "tiny" in request.param:
        monkeypatch.setattr(gather_blocks, "_BLOCK_ENTRIES", 7)
        monkeypatch.setattr(gather_blocks, "_CACHE_BYTES", 64)
        monkeypatch.setattr(gather_blocks, "_MIN_COLUMNS", 2)
        monkeypatch.setattr(gather_blocks, "_BYTES_PER_THREAD", 64)
        monkeypatch.setattr(gather_blocks, "_REDUCED_BYTES_PER_THREAD", 16)
    gather_blocks.layout_of.cache_clear()
    with parallel.limit(3 if "threads" in request.param else 1):
        yield
    gather_blocks.layout_of.cache_clear()


def random_indices(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, low: int, high: int) -> Array:
    info = np.iinfo(dtype)
    return np.array(rng.integers(max(low, int(info.min)), min(high, int(info.max)), shape, endpoint=True), dtype)


def in_another_layout(rng: np.random.Generator, array: Array) -> Array:
    match rng.integers(4) if array.ndim else 0:
        case 0:
            return array
        case 1:
            return np.asfortranarray(array)
        case 2:
            return np.repeat(array, 2, axis=-1)[..., ::2]
        case _:
            return np.flip(np.flip(array).copy())


def results(op: Operator, inputs: tuple[Array, ...], expected: Array, constants: set[int]) -> Iterator[Array]:
    """Yield what the fast form returns in the second of two runs with other indices, if there is one."""
    given = (inputs[0], inputs[1] if 1 in constants else np.zeros_like(inputs[1]), *inputs[2:])
    binder = LoneBinder(given, [(expected.shape, expected.dtype)], constants)
    if bind(op, binder, *given):
        binder.run()
        if 1 not in constants:
            np.copyto(given[1], inputs[1])
        yield binder.run()[0]


def check(op: Operator, *inputs: Array) -> None:
    expected = np.asarray(op.run(*inputs))
    for constants in ({2}, {1, 2}):
        for result in results(op, inputs, expected, constants):
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(result, expected)


@pytest.mark.slow
@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("low", [0, -1, -2], ids=["plain", "negative", "outside"])
def test_gather(seed: int, low: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    shape = tuple(map(int, rng.integers(1, 6, rank)))
    axis = int(rng.integers(rank))
    batch_dims = int(rng.integers(0, axis + 1))
    others = tuple(map(int, rng.integers(0 if seed % 7 == 0 else 1, 6, rng.integers(0, 3))))
    size = shape[axis]
    high = size + 3 if low == -2 else size - 1
    indices = random_indices(rng, shape[:batch_dims] + others, rng.choice(INDEX_TYPES), low * size, high)
    data = rng.integers(0, 100, shape).astype(np.int8).astype(rng.choice(DATA_TYPES))
    at = np.array(axis - rank * (seed % 2))
    check(Gather8(batch_dims=batch_dims), in_another_layout(rng, data), in_another_layout(rng, indices), at)


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0), (0, 2, 3)])
@pytest.mark.parametrize("indices", [np.int64([1, -1]), np.int32([[0], [9]])], ids=["inside", "outside"])
def test_gather_of_data_without_elements(shape: tuple[int, ...], indices: Array) -> None:
    axis = next(axis for axis, size in enumerate(shape) if size)
    inputs = np.zeros(shape, np.float32), indices, np.array(axis)
    check(Gather8(), *inputs)
    binder = LoneBinder(inputs, [(Gather8().run(*inputs).shape, inputs[0].dtype)], {2})
    assert bind(Gather8(), binder, *inputs)


@pytest.mark.slow
@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("low", [0, -1], ids=["plain", "negative"])
def test_gather_elements(seed: int, low: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    shape = tuple(map(int, rng.integers(1, 6, rank)))
    axis = int(rng.integers(rank))
    picked = (*shape[:axis], int(rng.integers(0 if seed % 7 == 0 else 1, 8)), *shape[axis + 1 :])
    indices = random_indices(rng, picked, rng.choice(INDEX_TYPES), low * shape[axis], shape[axis] - 1)
    data = rng.integers(0, 100, shape).astype(np.int8).astype(rng.choice(DATA_TYPES))
    op = GatherElements(axis=axis - rank * (seed % 2))
    check(op, in_another_layout(rng, data), in_another_layout(rng, indices))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("value", [4, -5, 2**40])
def test_an_element_outside_is_refused(value: int) -> None:
    data, indices = np.arange(8.0).reshape(4, 2), np.int64([[0, 1], [2, value], [value, 0]])
    binder = LoneBinder((data, indices), [((3, 2), data.dtype)], set())
    assert bind(GatherElements(axis=0), binder, data, indices)
    for run in (lambda: GatherElements(axis=0).run(data, indices), binder.run):
        with pytest.raises(OperatorError, match=rf"indices\[1,1\] = {value} is outside \[-4, 3\] along axis 0"):
            run()


def test_strings() -> None:
    data, indices = np.array(["a", "żółw", "c"], STRING), np.int64([[2, -1], [7, 1]])
    assert np.asarray(Gather8().run(data, indices, np.array(0))).tolist() == [["c", "c"], ["", "żółw"]]


@pytest.mark.parametrize(
    ("sizes", "index_type", "block", "position_type", "count"),
    [
        ((1, 50000, 200000, 1, 4), "i4", (1, 131072, 1), "i4", 2),
        ((40, 500, 90, 80, 4), "i4", (18, 90, 80), "i4", 3),
        ((40, 500, 90, 80, 4), "i8", (18, 90, 80), "i8", 3),
        ((3, 1000, 7, 70000, 4), "i4", (1, 1, 70000), "i4", 21),
        ((3, 100, 7, 70000, 4), "i4", (1, 7, 655), "i4", 321),  # narrow blocks keep their data in a cache
        ((3, 100, 1, 70000, 4), "i4", (1, 1, 70000), "i4", 3),
        ((3, 1, 7, 300000, 4), "i8", (1, 2, 60000), "i8", 60),
        ((1, 2**31 - 1, 3, 1, 1), "i4", (1, 3, 1), "i4", 1),
        ((2, 2**30, 3, 1, 1), "i4", (2, 3, 1), "i8", 1),
        ((5, 9, 1, 1, 1 << 21), "i8", (1, 1, 1), "i8", 5),
        ((1, 256, 3, 256, 4), "i8", (1, 3, 256), "i8", 1),
        ((1, 256, 3, 257, 4), "i8", (1, 3, 129), "i8", 2),
    ],
)
def test_blocks(
    sizes: tuple[int, ...], index_type: str, block: tuple[int, ...], position_type: str, count: int
) -> None:
    """Blocks have at most 2^17 entries and 1 MiB; positions are narrow where they fit and indices are."""
    layout = gather_blocks.layout_of(*sizes, np.dtype(index_type))
    assert (layout.slabs, layout.rows, layout.columns) == block
    assert (layout.position_type, layout.blocks) == (np.dtype(position_type), count)
    assert (layout.offsets is None) == (layout.slabs == layout.columns == 1)


def test_only_long_indices_are_checked_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather_blocks, "_REDUCED_BYTES_PER_THREAD", 16)
    shared, run_blocks = [], gather_blocks.run_blocks
    monkeypatch.setattr(gather_blocks, "run_blocks", lambda *given: shared.append(given[1:]) or run_blocks(*given))
    for count in (7, 8):
        assert gather_blocks._reduced(np.minimum, np.arange(-3, count - 3, dtype=np.int32)) == -3
    assert shared == [(8, 4)]  # two threads with four each
