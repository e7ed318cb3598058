"""Reversing, rolling, shuffling and moving blocks: known answers, shapes, and what is refused."""

from typing import Any

import numpy as np
import pytest
from support.tensors import assert_refused, tensor

from ovir.core.element_types import boolean, i32, i64
from ovir.core.tensor_types import TensorType, constant_type
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


def items(*values: int) -> TensorType:
    return constant_type(np.array(values))


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
        (1, [0, 1], [[12, 10, 11], [3, 1, 2], [6, 4, 5], [9, 7, 8]]),
    ],
)
def test_roll(shift: Any, axes: Any, expected: Any) -> None:
    assert ran(Roll(), GRID, shift, axes).tolist() == expected
    assert ran(Roll(), GRID[:0], shift, axes).shape == (0, 3)


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


@pytest.mark.parametrize(
    ("op", "blocks", "begins", "ends", "message"),
    [
        (SpaceToBatch(), [2, 3], [0, 0], [0, 0], "block_shape [2,3] must begin with 1, for the batch"),
        (BatchToSpace(), [2, 2], [0, 0], [0, 0], "block_shape [2,2] must begin with 1, for the batch"),
        (SpaceToBatch(), [1, 3], [0, 0], [1, 0], "pads_end [1,0] must begin with 0, for the batch"),
        (BatchToSpace(), [1, 2], [1, 0], [0, 0], "crops_begin [1,0] must begin with 0, for the batch"),
        (SpaceToBatch(), [1], [0, 0], [0, 0], "block_shape of shape [1], pads_begin of shape [2], pads_end of shape"),
        (BatchToSpace(), [1, 2], [0, 4], [0, 3], "crops 4 and 3 exceed dimension 1 of data of shape [4,3], which has"),
        (BatchToSpace(), [1, 3], [0, 0], [0, 0], "batch of data of shape [4,3] is not a multiple of 3,"),
        (SpaceToBatch(), [1, 2], [0, 0], [0, 0], "dimension 1 of data of shape [4,3], with pads 0 and 0, is not"),
    ],
)
def test_blocks_refused_when_run(op: Any, blocks: Any, begins: Any, ends: Any, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        ran(op, GRID, blocks, begins, ends)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        (Reverse(), (tensor("[?,2..5]"), items(1)), "[?,2..5]"),
        (Roll(), (tensor("[...]"), items(1), items(5)), "[...]"),
        (ReverseSequence(), (tensor("[?,4]"), tensor("[3]")), "[3,4]"),
        (ShuffleChannels(group=3), (tensor("[1,2..7,3]"),), "[1,2..7,3]"),
        (DepthToSpace(block_size=2), (tensor("[?,5..12,2..3,4]"),), "[?,2..3,4..6,8]"),
        (DepthToSpace(block_size=2), (tensor("[...]"),), "[...]"),
        (SpaceToDepth(block_size=2), (tensor("[1,3,?,5..8]"),), "[1,12,?,3..4]"),
        (
            BatchToSpace(),
            (tensor("[3..6,1..4,?]"), items(1, 2, 2), items(0, 1, 0), items(0, 0, 1)),
            "[1,1..7,?]",
        ),
        (BatchToSpace(), (tensor("[4,1]"), items(1, 2), tensor("[2]", i64), items(0, 0)), "[?,?]"),
        (SpaceToBatch(), (tensor("[?,3,?]"), items(1, 2, 2), items(0, 1, 0), items(0, 0, 3)), "[?,2,2..]"),
        (SpaceToBatch(), (tensor("[...]"), items(1, 2), items(0, 0), items(0, 0)), "[...]"),
    ],
)
def test_shapes(op: Any, inputs: tuple[TensorType, ...], expected: str) -> None:
    assert str(op.infer(*inputs).shape) == expected


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (Reverse(), (tensor("[2,3]"), items(2)), "axis 2 is outside [-2, 1] of a tensor of rank 2"),
        (BatchToSpace(), (tensor("[4,1]"), items(1, 2), tensor("[2]", i32), items(0, 0)), "block_shape is i64"),
        (Reverse(mode="mask"), (tensor("[2,3]"), tensor("[3]", boolean)), "mask has shape [3], but data [2,3] has"),
        (Reverse(mode="mask"), (tensor("[2,3]"), tensor("[2]", i64)), "axes must be boolean in mode mask, got i64"),
        (ReverseSequence(), (tensor("[2,3]"), tensor("[3]")), "data of shape [2,3] and seq_lengths of shape [3] must"),
        (Roll(), (tensor("[2,3]"), items(1, 2), items(0)), "shift [2] must be a scalar, or have the shape of axes [1]"),
        (ShuffleChannels(group=4), (tensor("[1,6]"),), "dimension 1 of data [1,6], 6, is not a multiple of group 4"),
        (DepthToSpace(block_size=2), (tensor("[1,6,2,2]"),), "depth of data of shape [1,6,2,2] is not a multiple"),
        (SpaceToDepth(block_size=2), (tensor("[1,6,2,3]"),), "dimension 3 of data of shape [1,6,2,3] is not"),
        (SpaceToDepth(block_size=2), (tensor("[1,6]"),), "data must have rank 3 or more, got shape [1,6]"),
        (BatchToSpace(), (tensor("[3,4]"), items(1, 2), items(0, 0), items(0, 0)), "batch of data of shape [3,4]"),
        (BatchToSpace(), (tensor("[2,1]"), items(1, 2), items(0, 2), items(0, 1)), "crops 2 and 1 exceed dimension 1"),
        (BatchToSpace(), (tensor("[2,1]"), items(1, 0), items(0, 2), items(0, 1)), "items of block_shape [1,0]"),
        (SpaceToBatch(), (tensor("[2,3]"), items(1, 2), items(0, 1), items(0, 1)), "dimension 1 of data of shape"),
        (SpaceToBatch(), (tensor("[2,3]"), items(2, 3), items(0, 0), items(0, 0)), "block_shape [2,3] must begin"),
        (BatchToSpace(), (tensor("[2,3]"), items(1, 2), items(1, 0), items(0, 0)), "crops_begin [1,0] must begin"),
        (SpaceToBatch(), (tensor("[2,3]"), items(1, 2, 1), items(0, 1), items(0, 1)), "block_shape of shape [3]"),
    ],
)
def test_what_is_refused(op: Any, inputs: tuple[TensorType, ...], message: str) -> None:
    assert_refused(message, op, *inputs)
