"""Embedding bags in blocks: the sums of many bags against those of the reference."""

import re

import numpy as np
import pytest
from support.binding import bound_results
from support.tensors import applied_to

from ovir.diagnostics.errors import OperatorError
from ovir.ops.segments import EmbeddingBagOffsetsSum


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("first", "bags", "longest"), [(0, 200, 20), (3, 200, 20), (0, 3, 5000), (0, 1, 400)])
def test_many_bags(first: int, bags: int, longest: int, weighted: bool) -> None:
    random = np.random.default_rng(0)
    table = random.standard_normal((50, 64)).astype(np.float32)
    offsets = first + np.r_[0, random.integers(1, longest, bags - 1).cumsum()].astype(np.int64)
    indices = random.integers(0, 50, offsets[-1] + 7 if bags > 1 else 400)
    weights = random.standard_normal(indices.size).astype(np.float32)
    inputs = table, indices, offsets, *([np.array(-1), weights] if weighted else [])
    op = applied_to(EmbeddingBagOffsetsSum(), *inputs)
    expected = op.run(*inputs)
    found = bound_results(op, inputs, [expected], set())
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("index", [49, 50, -1])
@pytest.mark.parametrize("last", [3, 4])
def test_the_last_index_and_the_last_bag(index: int, last: int) -> None:
    table = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    inputs = table, np.int64([1, 2, 0, index]), np.int64([0, last])  # the bag that begins at 4 is empty
    op = applied_to(EmbeddingBagOffsetsSum(), *inputs)
    try:
        expected = op.run(*inputs)
    except OperatorError as error:
        with pytest.raises(OperatorError, match=re.escape(str(error))):
            bound_results(op, inputs, [np.zeros((2, 3), np.float32)], set())
        return
    found = bound_results(op, inputs, [expected], set())
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-4)
