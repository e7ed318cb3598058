"""Batches: the axis along which inputs are stacked, and their parts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.workers.batches import Batched, differs, find_batch_axis, join_batch


def model(*shapes: str, outputs: Callable[..., list[ovir.Layer]]) -> ovir.Model:
    given = [ops.parameter(shape, "f32", name=name) for name, shape in zip("abc", shapes, strict=False)]
    return ovir.Model(outputs(*given), given, "model")


def same(*inputs: ovir.Layer) -> list[ovir.Layer]:
    return [ops.relu(given) for given in inputs]


@pytest.mark.parametrize(
    ("shapes", "outputs", "found"),
    [
        (["?,3"], same, (0, (0,))),
        (["2,?"], same, (1, (1,))),
        (["?,?"], same, (0, (0,))),
        (["?,?", "3,?"], same, (1, (1, 1))),
        (["2..9,3"], same, (0, (0,))),
        (["?,3"], lambda a: [ops.transpose(a, [1, 0]), a], (0, (1, 0))),
        (["?,3"], lambda a: [ops.concat([a, a], 1)], (0, (0,))),
    ],
)
def test_the_axis_of_batches(shapes: list[str], outputs: Any, found: tuple[int, tuple[int, ...]]) -> None:
    assert find_batch_axis(model(*shapes, outputs=outputs)) == Batched(*found)


@pytest.mark.parametrize(
    ("shapes", "outputs", "message"),
    [
        (["?,3", "3,?"], same, "a batch needs an axis that all inputs leave open; the inputs are 'a' f32[?,3], 'b' f32[3,?]"),
        (["..."], same, "the inputs are 'a' f32[...]"),
        ([], lambda: [ops.constant(np.float32(1))], "the inputs are none"),
        (["?,3"], lambda a: [ops.reduce_sum(a, [0], False)], "has no axis that is as long as the batch"),
        (["?,3"], lambda a: [ops.concat([a, a], 0)], "has no axis that is as long as the batch"),
        (["?,3"], lambda a: [ops.matmul(a, a, False, True)], "has more than one axis that is as long as the batch"),
        (["?,3"], lambda a: [ops.add(a, np.ones((5, 3), "f4"))], "cannot have batches along axis 0 of its inputs: "),
        (["?,7"], lambda a: [ops.reduce_sum(a, [0], False)], "has no axis that is as long as the batch"),
    ],
)  # fmt: skip
def test_models_without_batches(shapes: list[str], outputs: Any, message: str) -> None:
    with pytest.raises(ovir.InputError) as caught:
        find_batch_axis(model(*shapes, outputs=outputs))
    assert message in str(caught.value)


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_joined_is_split_again(axis: int) -> None:
    shapes = ("?,3", "?,2") if axis == 0 else ("3,?", "2,?")
    stacked = model(*shapes, outputs=same)
    sizes = [1, 3, 2]
    rng = np.random.default_rng(0)
    feeds = [
        [rng.random((size, width) if axis == 0 else (width, size)).astype("f4") for width in (3, 2)] for size in sizes
    ]
    found = find_batch_axis(stacked)
    joined, lengths = join_batch(stacked, feeds, found)
    assert (lengths, [array.shape[axis] for array in joined]) == (sizes, [6, 6])
    parts = found.split(joined, lengths)
    for one, other in zip(parts, feeds, strict=True):
        assert [array.tolist() for array in one] == [array.tolist() for array in other]
        assert not any(np.shares_memory(array, whole) for array in one for whole in joined)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ([[(1, 3), (2, 2)]], r"the arrays have \[1, 2\] entries along axis 0: expected the same number"),
        ([[(1, 3), (1, 2)], [(1, 4), (1, 2)]], "the inputs of a batch have different shapes"),
    ],
)
def test_inputs_that_do_not_fit_each_other(feeds: list[list[tuple[int, int]]], message: str) -> None:
    stacked = model("?,?", "?,?", outputs=same)
    arrays = [[np.zeros(shape, "f4") for shape in one] for one in feeds]
    with pytest.raises(ovir.InputError, match=message):
        join_batch(stacked, arrays, Batched(0, (0, 0)))


@pytest.mark.parametrize(
    ("alone", "batched", "expected"),
    [
        ([1, -100], [1, -105.3], False),  # 2% of the number, of the largest one and of their root mean square
        ([1, -100], [1, -105.6], True),
        ([0, 100], [3.3, 100], False),
        ([0, 100], [3.5, 100], True),
        ([0, -100], [3.5, -100], True),
        ([1, np.nan], [1, np.nan], False),
        ([1, np.nan], [1, 2], True),
        (np.array([1, 2]), np.array([1, 3]), False),  # an index
        (np.array([1, 2]), np.array([1]), True),
        (np.array([True]), np.array([False]), False),
    ],
)
def test_results_of_batches_and_single_runs(alone: Any, batched: Any, expected: bool) -> None:
    one, other = (x if isinstance(x, np.ndarray) else np.float32(x) for x in (alone, batched))
    same_too = np.float32([1, 2])
    assert differs([same_too, one], [same_too, other]) == expected
