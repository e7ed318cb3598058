"""Embedding bags in blocks: the sums of many bags against those of the reference."""

import numpy as np
import pytest
from support.binding import bound_results

from ovir.core.tensor_types import constant_type
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
    types = [constant_type(array) for array in inputs]
    inferred = EmbeddingBagOffsetsSum().infer(*types)
    op = EmbeddingBagOffsetsSum().applied(types, (inferred,))
    expected = op.run(*inputs)
    found = bound_results(op, inputs, [expected], set())
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-4)
