"""Whatever array is given - lent, read-only, repeated, a view, a result of the request itself - its numbers count."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

ZERO, ONE = np.int64([0]), np.int64([1])
MODELS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "elementwise": lambda x, y: [ops.add(x, y), ops.subtract(x, y)],
    "one call": lambda x, y: [ops.relu(x), ops.abs(y)],
    "crosswise": lambda x, y: [ops.negative(y), x],
    "the same twice": lambda x, y: [x, x, ops.maximum(y, x)],
    "views": lambda x, y: [
        ops.reshape(x, ops.constant(np.int64([-1, 4])), False),
        ops.squeeze(ops.unsqueeze(y, ZERO), ZERO),
    ],
    "reversed": lambda x, y: [backwards(x), ops.add(backwards(y), x)],
    "rows": lambda x, y: [ops.gather(x, ops.constant(np.int64([1, 0])), ops.constant(np.int64(0))), ops.add(y, y)],
    "sums": lambda x, y: [ops.cum_sum(x, ops.constant(np.int64(0))), ops.multiply(y, ops.reduce_max(x, ONE, True))],
}


def backwards(x: Any) -> Any:
    return ops.slice(x, *(ops.constant(np.int64([n])) for n in (-1, -(1 << 40), -1, 1)))


def ways(array: Any) -> dict[str, Callable[[], Any]]:
    """Return ways to give the numbers of an array."""

    def read_only() -> Any:
        copy = array.copy()
        copy.flags.writeable = False
        return copy

    def unaligned() -> Any:
        memory = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        memory[...] = array
        return memory

    return {
        "itself": lambda: array,
        "copied": array.copy,
        "read-only": read_only,
        "a view": lambda: array.reshape(-1)[:].reshape(array.shape),
        "backwards": lambda: array[:, ::-1].copy()[:, ::-1],
        "by columns": lambda: np.asfortranarray(array),
        "every second": lambda: np.repeat(array, 2, 1)[:, ::2],
        "of other bytes": lambda: array.astype(array.dtype.newbyteorder()),
        "unaligned": unaligned,
        "memory": lambda: memoryview(array),
        "of 64 bits": lambda: array.astype(np.float64),
    }


@pytest.mark.slow
@pytest.mark.parametrize("columns", [4, 1 << 15, 1 << 18], ids=["copied", "lent", "lent and large"])
@pytest.mark.parametrize("shape", ["static", "dynamic"])
@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_of_every_array_count(name: str, shape: str, columns: int) -> None:
    sizes = [2, columns] if shape == "static" else [-1, -1]
    x, y = (ops.parameter(sizes, "f32", name=n) for n in "xy")
    model = ovir.Model(MODELS[name](x, y), [x, y], name)
    request, other = (ovir.compile_model(model).create_infer_request() for _ in range(2))
    rng, numbers = random.Random(f"{name} {shape} {columns}"), np.random.default_rng(columns)
    own = [numbers.integers(-9, 9, (2, columns)).astype(np.float32) for _ in range(2)]
    results = own
    for call in range(16):
        known = [array for array in results if array.shape == (2, columns)] + own
        first = rng.choice(known)
        chosen = [first, first if rng.random() < 0.4 else rng.choice(known)]
        if call % 5 == 4:
            own[0] += 1  # in place
        names = [rng.choice(["itself"] * 6 + list(ways(array))) for array in chosen]
        given = [ways(array)[way]() for array, way in zip(chosen, names, strict=True)]
        before = [np.array(array, np.float32) for array in given]
        kept = [array.copy() for array in own]
        expected = list(other.infer([array.copy() for array in before]).values())
        share = rng.random() < 0.7
        results = list(request.infer(given, share_outputs=share).values())
        for found, right in zip(results, expected, strict=True):
            np.testing.assert_array_equal(found, right, f"call {call}: {names}, {share}")
        for array, copy in zip(own, kept, strict=True):
            np.testing.assert_array_equal(array, copy, f"call {call} writes to an input")
        if not share:
            results = [array % 100 for array in results]


@pytest.mark.parametrize("share", [False, True])
def test_a_large_result_is_fed_back(share: bool) -> None:
    """Copying it would take longer than binding its one step again, but the run overwrites it."""
    x = ops.parameter([2, 1 << 18], "f32", name="x")
    model = ovir.Model([ops.add(x, ops.constant(np.float32(1)))], [x], "counted")
    request = ovir.compile_model(model).create_infer_request()
    fed = np.zeros((2, 1 << 18), np.float32)
    for call in range(1, 5):
        fed = request.infer([fed], share_outputs=share)[0]
        np.testing.assert_array_equal(fed, np.full(fed.shape, call, np.float32))


def test_a_result_is_fed_back_where_no_shapes_are_bound() -> None:
    x = ops.parameter([-1, -1], "f32", name="x")
    twice = ops.reshape(ops.add(x, x), np.int64([12]), False)
    rest = ops.subtract(x, ops.reduce_max(twice, np.int64([0]), False))  # reads x when the first result is there
    outputs = [twice, ops.reshape(rest, np.int64([12]), False)]
    request = ovir.compile_model(ovir.Model(outputs, [x], "parts")).create_infer_request()
    fed = np.arange(12, dtype=np.float32)
    for shape in ((12, 1), (1, 12), (2, 6), (6, 2), (3, 4), (4, 3)):  # only the first is bound
        before = fed.copy()
        results = request.infer([fed.reshape(shape)], share_outputs=True)
        np.testing.assert_array_equal(results[0], before + before)
        np.testing.assert_array_equal(results[1], before - 2 * before.max())
        fed = results[0]
