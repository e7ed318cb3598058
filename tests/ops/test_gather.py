"""Gather-1, -7, -8 and GatherElements-6: inference, values, reports and errors."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.tensors import operation, reports

import ovir
from ovir import opset8 as ops
from ovir.ops.gather import GatherND5, GatherND8, GatherTree


def gather(data: str, indices: str, axis: int = 0, *, opset: int = 8) -> Net:
    net = Net()
    inputs = net.parameter("data", data), net.parameter("indices", indices, "i64"), net.const(np.int64(axis))
    net.result(net.op("Gather", *inputs, opset=opset, name="pick"))
    return net


@pytest.mark.parametrize("opset", [1, 7, 8])
def test_negative_indices_count_from_the_end_and_those_outside_give_zero(opset: int) -> None:
    results = gather("5", "6", opset=opset).compiled()(
        [np.float32([1, 2, 3, 4, 5]), np.int64([0, -1, 7, -6, -5, 2**32 + 1])]
    )
    assert results[0].tolist() == [1, 5, 0, 0, 1, 0]
    first = {1: r"indices[1] = -1 is outside [0, 4]", 7: r"indices[1] = -1 is outside [0, 4]"}
    expected = first.get(opset, "indices[2] = 7 is outside [-5, 4]") + " along axis 0 of data f32[5]"
    assert expected in results.diagnostics[0].message


def test_strict_refuses_what_is_outside() -> None:
    with pytest.raises(ovir.RunError, match=r"layer 3 'pick'.*indices\[1\] = -1 is outside \[0, 4\]"):
        gather("5", "2", opset=7).compiled(strict=True)([np.float32([1, 2, 3, 4, 5]), np.int64([0, -1])])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty(shape: tuple[int, int]) -> None:
    result = gather("?,?", "2", 1).compiled()([np.ones(shape, np.float32), np.int64([0, 0])])[0]
    np.testing.assert_array_equal(result, np.zeros((shape[0], 2), np.float32))
    assert gather("3", "?").compiled()([np.float32([1, 2, 3]), np.empty(0, np.int64)])[0].shape == (0,)


def elements(data: str, indices: str, axis: int = 0) -> Net:
    net = Net()
    inputs = net.parameter("data", data), net.parameter("indices", indices, "i64")
    net.result(net.op("GatherElements", *inputs, opset=6, axis=axis, name="pick"))
    return net


@pytest.mark.parametrize(
    ("data", "indices", "axis", "expected"),
    [
        ([[1, 2], [3, 4]], [[0, 1], [0, 0]], 0, [[1, 4], [1, 2]]),
        ([[1, 7], [4, 3]], [[1, 1, 0], [1, 0, 1]], 1, [[7, 7, 1], [3, 4, 3]]),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 0, 1], [1, 2, 0]], 0, [[4, 2, 6], [4, 8, 3]]),
        ([[1, 2, 3]], [[-1, -3]], -1, [[3, 1]]),
    ],
)
def test_elements(data: list[list[int]], indices: list[list[int]], axis: int, expected: list[list[int]]) -> None:
    compiled = elements("?,?", "?,?", axis).compiled()
    assert compiled([np.float32(data), np.int64(indices)])[0].tolist() == expected


def test_an_element_outside_is_an_error_with_its_place() -> None:
    feeds = [np.ones((5, 2), np.float32), np.int64([[0, 1], [5, 0]])]
    message = r"layer 2 'pick' \(GatherElements, opset6\): indices\[1,0\] = 5 is outside \[-5, 4\] along axis 0 of data f32\[5,2\]"
    with pytest.raises(ovir.RunError, match=message):
        elements("5,2", "2,2").compiled()(feeds)


@pytest.mark.slow
def test_constant_indices_are_prepared_once_and_checked() -> None:
    for indices, good in (([[1, 0]], True), ([[9, 0]], False)):
        net = Net()
        picked = net.op("GatherElements", net.parameter("data", "?,2"), net.const(np.int64(indices)), opset=6, axis=0)
        net.result(picked)
        compiled = net.compiled()
        for rows in (2, 3):
            data = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
            if good:
                assert compiled([data])[0].tolist() == [[2, 1]]
            else:
                with pytest.raises(ovir.RunError, match=r"indices\[0,0\] = 9 is outside"):
                    compiled([data])


CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("batch_dims", "indices", "expected"),
    [
        (0, [[0, 0, 0], [1, -1, -1]], [0, 23]),
        (0, [[[1]]], CUBE[None, None, 1].tolist()),
        (1, [[[1, 2]], [[0, -1]]], [[6], [15]]),
        (2, [[[1], [0], [2]], [[0], [2], [-1]]], [[1, 4, 10], [12, 18, 23]]),
    ],
)
def test_gather_nd(batch_dims: int, indices: Any, expected: Any) -> None:
    result = GatherND8(batch_dims=batch_dims).run(CUBE, np.array(indices))
    assert result.tolist() == expected


def test_version_5_makes_the_batch_one_dimension() -> None:
    indices = np.array([[[1], [0], [2]], [[0], [2], [-1]]])
    with reports() as found:
        assert GatherND5(batch_dims=2).run(CUBE, indices).tolist() == [1, 4, 10, 12, 18, 23]
    assert found == ["GatherND-5 does not allow negative indices; they are counted from the end"]


STEPS = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]])
PARENTS = np.array([[[9, -1, 0]], [[0, 1, 1]], [[2, 1, 2]]])


@pytest.mark.parametrize(
    ("length", "end", "expected"),
    [
        (3, -1, [[2, 2, 2], [6, 5, 6], [7, 8, 9]]),
        (9, -1, [[2, 2, 2], [6, 5, 6], [7, 8, 9]]),
        (2, -1, [[1, 2, 2], [4, 5, 6], [-1, -1, -1]]),
        (0, -1, [[-1, -1, -1]] * 3),
        (3, 6, [[2, 2, 2], [6, 5, 6], [6, 8, 6]]),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_gather_tree(length: int, end: int, expected: Any, dtype: Any) -> None:
    inputs = STEPS.astype(dtype), PARENTS.astype(dtype), np.array([length], dtype), np.array(end, dtype)
    result = GatherTree().run(*inputs)
    assert result[:, 0].tolist() == expected
    assert result.dtype == dtype


def test_gather_nd_of_an_empty_batch() -> None:
    data, indices = np.zeros((0, 3, 4)), np.zeros((0, 1), np.int64)
    assert GatherND8(batch_dims=1).run(data, indices).shape == (0, 4)
    assert GatherND5(batch_dims=1).run(data, indices).shape == (0, 4)


def test_one_element_of_a_vector_again_and_again() -> None:
    x = ops.parameter([4], np.float32, name="x")
    compiled = ovir.compile_model(ovir.Model([ops.gather_nd(x, ops.constant(np.array([2])))], [x]))
    assert [compiled(np.arange(4, dtype=np.float32) + call)[0].tolist() for call in range(4)] == [2, 3, 4, 5]


def test_batch_dims_count_from_the_rank_of_the_indices() -> None:
    data, indices = np.arange(24).reshape(2, 3, 4), np.array([[2, 1], [0, 2]])
    for batch_dims, axis in ((-2, 1), (-1, 1), (1, 1), (-1, 2)):
        result = operation(f"Gather-8 batch_dims={batch_dims}").run(data, indices, np.array(axis))
        expected = (
            np.take(data, indices, axis)
            if batch_dims == -2
            else np.stack([np.take(d, i, axis - 1) for d, i in zip(data, indices, strict=True)])
        )
        np.testing.assert_array_equal(result, expected)
