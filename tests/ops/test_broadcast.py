"""Broadcast and Tile."""

from typing import Any

import numpy as np
import pytest
from support.tensors import const, inferred, tensor

from ovir.core.element_types import f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import constant_type
from ovir.ops.broadcast import Broadcast1, Broadcast3, Tile


@pytest.mark.parametrize(
    ("mode", "data", "target", "axes", "result"),
    [
        ("numpy", (16, 1, 1), [2, 16, 5, 5], None, (2, 16, 5, 5)),
        ("numpy", (3, 1), [3, 0], None, (3, 0)),
        ("explicit", (), [1, 2], [0], (1, 2)),
        ("explicit", (2,), [2, 2], [0], (2, 2)),
        ("bidirectional", (16, 1, 1), [1, 1, 5, 5], None, (1, 16, 5, 5)),
    ],
)
def test_broadcast(mode: str, data: tuple[int, ...], target: list[int], axes: list[int] | None, result: Any) -> None:
    op = Broadcast3(mode=mode)
    array = np.arange(int(np.prod(data)), dtype=np.float32).reshape(data)
    extra = [] if axes is None else [np.array(axes)]
    if axes is None:
        expected = np.broadcast_to(array, result)
    else:
        places = [data[axes.index(i)] if i in axes and data else 1 for i in range(len(target))]
        expected = np.broadcast_to(array.reshape(places), result)
    found = op.run(array, np.array(target), *extra)
    assert np.array_equal(found, expected)
    assert found.shape == result
    types = [const(axes)] if axes is not None else []
    assert inferred(op, constant_type(array), const(target), *types) == str(PartialShape(result))


def test_first_version_aligns_from_an_axis() -> None:
    op = Broadcast1(mode="pdpd", start_axis=1)
    result = op.run(np.array([[1], [2]]), np.array([3, 2, 1, 2]))
    assert result.shape == (3, 2, 1, 2)
    assert result[0, :, 0, 1].tolist() == [1, 2]
    ignored = tensor("", f32)
    assert inferred(Broadcast1(mode="numpy"), tensor("3,1"), const([2, 3, 4]), ignored) == "[2,3,4]"


# ----- Tile


@pytest.mark.parametrize(
    ("data", "repeats"),
    [((2, 3, 4), [1, 2, 3]), ((2, 3), [5, 1, 2]), ((4, 2, 3), [2, 2]), ((3,), [0]), ((), [2, 3]), ((2, 3), [1, 1, 1])],
)
def test_tile(data: tuple[int, ...], repeats: list[int]) -> None:
    array = np.arange(int(np.prod(data))).reshape(data)
    expected = np.tile(array, repeats)
    assert np.array_equal(Tile().run(array, np.array(repeats)), expected)
    assert inferred(Tile(), constant_type(array), const(repeats)) == str(PartialShape(expected.shape))
