"""GatherND and GatherTree: known answers, shapes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensors import tensor

import ovir
from ovir import opset8 as ops
from ovir.core.element_types import i32, i64
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.ops.gather_nd import GatherND5, GatherND8, GatherTree

CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("batch_dims", "indices", "expected"),
    [
        (0, [[0, 0, 0], [1, -1, -1]], [0, 23]),
        (0, [[[1]]], CUBE[None, None, 1].tolist()),
        (1, [[1], [0]], CUBE[[0, 1], [1, 0]].tolist()),
        (1, [[[1, 2]], [[0, -1]]], [[6], [15]]),
        (2, [[[1], [0], [2]], [[0], [2], [-1]]], [[1, 4, 10], [12, 18, 23]]),
    ],
)
def test_gather_nd(batch_dims: int, indices: Any, expected: Any) -> None:
    result = GatherND8(batch_dims=batch_dims).run(CUBE, np.array(indices))
    assert result.tolist() == expected


def test_version_5_makes_the_batch_one_dimension() -> None:
    indices = np.array([[[1], [0], [2]], [[0], [2], [-1]]])
    found: list[str] = []
    with reporting_to(lambda code, message: found.append(message)):
        assert GatherND5(batch_dims=2).run(CUBE, indices).tolist() == [1, 4, 10, 12, 18, 23]
    assert found == ["GatherND-5 does not allow negative indices; they are counted from the end"]


def test_index_outside() -> None:
    with pytest.raises(OperatorError, match=r"indices\[...,1\]\[1\] = 3 is outside \[-3, 2\]"):
        GatherND8().run(CUBE, np.array([[0, 0], [1, 3]]))


@pytest.mark.parametrize(
    ("op", "data", "indices", "expected"),
    [
        (GatherND8(), "[?,3,4]", "[?,2..3,1]", "[?,2..3,3,4]"),
        (GatherND8(batch_dims=1), "[?,3,4]", "[5,2..3,1]", "[5,2..3,4]"),
        (GatherND8(batch_dims=2), "[2,?,4,5]", "[?,3,1]", "[2,3,5]"),
        (GatherND5(batch_dims=2), "[2,?,4,5]", "[?,3,1]", "[6,5]"),
        (GatherND8(), "[2,3,4]", "[2,?]", "[...]"),
        (GatherND8(), "[...]", "[2,1]", "[...]"),
    ],
)
def test_gather_nd_shapes(op: Any, data: str, indices: str, expected: str) -> None:
    assert str(op.infer(tensor(data), tensor(indices, i64)).shape) == expected


@pytest.mark.parametrize(
    ("op", "data", "indices", "message"),
    [
        (
            GatherND8(),
            "[2,3]",
            "[1,3]",
            "indices [1,3] holds tuples of 3 indices, but data [2,3] has only 2 dimensions after 0 batch dimensions",
        ),
        (
            GatherND8(batch_dims=1),
            "[2,3]",
            "[3,1]",
            "data [2,3] and indices [3,1] must be equal in the first 1 dimension (batch_dims)",
        ),
        (GatherND8(batch_dims=2), "[2,3]", "[2,3,1]", "data must have rank 3 or more, got shape [2,3]"),
        (GatherND8(), "[2,3]", "[]", "indices must have rank 1 or more, got shape []"),
    ],
)
def test_what_gather_nd_refuses(op: Any, data: str, indices: str, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        op.infer(tensor(data), tensor(indices, i64))
    assert str(caught.value) == message


STEPS = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]])
PARENTS = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]])


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


def test_gather_tree_inference_and_wrong_parents() -> None:
    inputs = tensor("[?,2,3]"), tensor("[4,?,..5]"), tensor("[2]"), tensor("[]")
    assert str(GatherTree().infer(*inputs).shape) == "[4,2,3]"
    with pytest.raises(OperatorError) as caught:
        GatherTree().infer(tensor("[4,2,3]"), tensor("[4,2,3]"), tensor("[3]"), tensor("[]"))
    assert str(caught.value) == (
        "step_ids of shape [4,2,3] and max_seq_len of shape [3] must have the same number of batches (dimensions 1 and 0)"
    )
    with pytest.raises(OperatorError) as caught:
        GatherTree().infer(tensor("[4,2,3]", i32), tensor("[4,2,3]"), tensor("[2]"), tensor("[]"))
    assert str(caught.value) == "step_ids is i32 and parent_ids is f32: their element types must be equal"
    with pytest.raises(OperatorError, match="parent 3 of step 2 is not a beam: there are 3 beams"):
        GatherTree().run(STEPS, PARENTS + (PARENTS == 2), np.array([3]), np.array(0))


def test_gather_nd_of_an_empty_batch() -> None:
    data, indices = np.zeros((0, 3, 4)), np.zeros((0, 1), np.int64)
    assert GatherND8(batch_dims=1).run(data, indices).shape == (0, 4)
    assert GatherND5(batch_dims=1).run(data, indices).shape == (0, 4)


def test_one_element_of_a_vector_again_and_again() -> None:
    x = ops.parameter([4], np.float32, name="x")
    compiled = ovir.compile_model(ovir.Model([ops.gather_nd(x, ops.constant(np.array([2])))], [x]))
    assert [compiled(np.arange(4, dtype=np.float32) + call)[0].tolist() for call in range(4)] == [2, 3, 4, 5]
