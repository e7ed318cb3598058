"""Reversing, rolling, shuffling and moving blocks: known answers and what is refused."""

from typing import Any

import numpy as np
import pytest

from ovir.diagnostics.errors import OperatorError
from ovir.ops.rearrange import (
    BatchToSpace,
    DepthToSpace,
    Reverse,
    ReverseSequence,
    Roll,
    ShuffleChannels,
    SpaceToBatch,
    SpaceToDepth,
)

GRID = np.arange(1, 13).reshape(4, 3)


def ran(op: Any, *inputs: Any) -> Any:
    return op.run(*(np.asarray(x) for x in inputs))


def test_reverse() -> None:
    assert np.array_equal(ran(Reverse(), GRID, [-1]), GRID[:, ::-1])
    assert np.array_equal(ran(Reverse(), GRID, [0, -2, 1]), GRID[::-1, ::-1])  # twice named, once reversed
    assert np.array_equal(ran(Reverse(), GRID, np.array([], np.int64)), GRID)
    assert np.array_equal(ran(Reverse(mode="mask"), GRID, [True, False]), GRID[::-1])


@pytest.mark.parametrize(
    ("shift", "axes", "expected"),
    [
        (1, 0, [[10, 11, 12], [1, 2, 3], [4, 5, 6], [7, 8, 9]]),
        ([-1, 2], [0, 1], [[5, 6, 4], [8, 9, 7], [11, 12, 10], [2, 3, 1]]),
        ([1, 2, 1], [0, 1, 0], [[8, 9, 7], [11, 12, 10], [2, 3, 1], [5, 6, 4]]),
        (4, [0, -2], GRID.tolist()),
    ],
)
def test_roll(shift: Any, axes: Any, expected: Any) -> None:
    assert ran(Roll(), GRID, shift, axes).tolist() == expected
    assert ran(Roll(), GRID[:0], shift, axes).shape == (0, 3)


def test_reverse_sequence_of_more_elements_than_the_type_of_lengths_holds() -> None:
    data = np.arange(200).reshape(1, 200)
    assert ran(ReverseSequence(), data, np.array([3], np.int8))[0, :4].tolist() == [2, 1, 0, 3]


def test_reverse_sequence() -> None:
    data = np.arange(1, 9).reshape(2, 4)
    assert ran(ReverseSequence(), data, [2, 4]).tolist() == [[2, 1, 3, 4], [8, 7, 6, 5]]
    assert ran(ReverseSequence(batch_axis=1, seq_axis=-2), data, [1.0, 2.0, 1.0, 2.0]).tolist() == [
        [1, 6, 3, 8],
        [5, 2, 7, 4],
    ]
    with pytest.raises(OperatorError, match=r"seq_lengths \[2,5\] must be in \[0, 4\]"):
        ReverseSequence().run(data, np.array([2, 5]))
    with pytest.raises(OperatorError, match=r"seq_lengths \[2.0, nan\] must be in \[0, 4\]"):
        ReverseSequence().run(data, np.array([2, np.nan]))


def test_shuffle_channels() -> None:
    data = np.arange(6).reshape(1, 6, 1)
    assert ran(ShuffleChannels(group=2), data).ravel().tolist() == [0, 3, 1, 4, 2, 5]
    assert ran(ShuffleChannels(group=3, axis=-2), data).ravel().tolist() == [0, 2, 4, 1, 3, 5]


@pytest.mark.parametrize("mode", ["blocks_first", "depth_first"])
@pytest.mark.parametrize("space", [(3,), (3, 2), (2, 1, 3)])
def test_depth_and_space_are_inverse(mode: str, space: tuple[int, ...]) -> None:
    data = np.arange(2 * 16 * np.prod(space)).reshape(2, 16, *space)
    spread = ran(DepthToSpace(block_size=2, mode=mode), data)
    assert spread.shape == (2, 16 // 2 ** len(space), *(2 * size for size in space))
    assert np.array_equal(ran(SpaceToDepth(block_size=2, mode=mode), spread), data)


def test_where_depth_goes() -> None:
    data = np.arange(8).reshape(1, 8, 1, 1)
    assert DepthToSpace(block_size=2, mode="blocks_first").run(data).tolist() == [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]
    assert DepthToSpace(block_size=2, mode="depth_first").run(data).tolist() == [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]


def test_batch_and_space() -> None:
    data = np.arange(1, 7).reshape(1, 6)
    batches = ran(SpaceToBatch(), data, [1, 4], [0, 1], [0, 1])
    assert batches.tolist() == [[0, 4], [1, 5], [2, 6], [3, 0]]
    assert ran(BatchToSpace(), batches, [1, 4], [0, 1], [0, 1]).tolist() == data.tolist()
    cube = np.arange(96).reshape(2, 4, 6, 2)
    block, none = [1, 2, 3, 1], [0, 0, 0, 0]
    moved = ran(SpaceToBatch(), cube, block, none, none)
    assert moved.shape == (12, 2, 2, 2)
    assert np.array_equal(ran(BatchToSpace(), moved, block, none, none), cube)
