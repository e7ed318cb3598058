"""The fast forms of operations that move elements: few copies, and the elements that ``run`` moves."""

from typing import Any

import numpy as np
import pytest
from support.binding import LoneBinder

from ovir.fast.base.coalesce import memory_order
from ovir.fast.registry import bind
from ovir.ops.base.operator import Operator
from ovir.ops.broadcast import Tile
from ovir.ops.movement import Concat, Pad12
from ovir.ops.rearrange import DepthToSpace, Reverse, Roll, ShuffleChannels, SpaceToDepth

Array = np.ndarray[Any, Any]


def vector(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def bound(op: Operator, *inputs: Array) -> LoneBinder:
    expected = op.run(*inputs)
    assert isinstance(expected, np.ndarray)
    binder = LoneBinder(inputs, [(expected.shape, expected.dtype)], set(range(1, len(inputs))), {0})
    assert bind(op, binder, *inputs)
    (result,) = binder.run()
    np.testing.assert_array_equal(result, expected)
    return binder


def image(*shape: int, channels_last: bool = False) -> Array:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return np.moveaxis(np.moveaxis(array, 1, -1).copy(), -1, 1) if channels_last else array


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("op", "constants", "calls"),
    [
        (Roll(), (vector(3, 2), vector(2, 3)), 4),
        (Pad12(pad_mode="constant"), (vector(0, 0, 1, 2), vector(0, 0, 2, 0), np.float32(7).reshape(())), 4),
        (Pad12(pad_mode="reflect"), (vector(0, 0, 1, 2), vector(0, 0, 2, 0)), 12),
        (Pad12(pad_mode="edge"), (vector(0, 0, 5, 0), vector(0, 0, 5, 0)), 3),
        (Tile(), (vector(1, 1, 2, 3),), 1),
        (DepthToSpace(block_size=2), (), 2),
        (SpaceToDepth(block_size=2), (), 2),
        (ShuffleChannels(group=2), (), 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Operator) else None,
)
def test_moves_are_few_copies(op: Operator, constants: tuple[Array, ...], calls: int, channels_last: bool) -> None:
    data = image(2, 8, 6, 10, channels_last=channels_last)
    binder = bound(op, data, *constants)
    assert len(binder.calls) <= calls
    assert memory_order(binder.results[0]) == memory_order(data)


def test_moves_without_a_copy_are_views() -> None:
    data = image(2, 3, 4)
    for op, constants in ((Pad12(pad_mode="constant"), (vector(0, 0, -1), vector(0, 0, 0))), (Reverse(), (vector(2),))):
        binder = bound(op, data, *constants)
        assert not binder.calls
        assert np.shares_memory(binder.results[0], data)


def test_irregular_moves_take_elements_by_a_table() -> None:
    order = np.random.default_rng(0).permutation(60)

    class Shuffled(Operator):
        moves_elements = (0,)

        def run(self, data: Array) -> Array:
            return data.reshape(-1)[order].reshape(4, 15)

    assert len(bound(Shuffled(), image(3, 4, 5)).calls) == 1


def test_concat_copies_each_input_into_its_place() -> None:
    inputs = [image(2, size, 4, 5, channels_last=True) for size in (3, 1, 2)]
    binder = bound(Concat(axis=1), *inputs)
    assert len(binder.calls) == 3
    assert memory_order(binder.results[0]) == memory_order(inputs[0])
