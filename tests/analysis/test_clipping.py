"""The values that FakeQuantize layers clip: what is counted, and what comparisons say of it."""

from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.analysis.clipping import Clipping
from ovir.core.arrays import Array
from ovir.runtime.executor import SeenStep

X = np.float32([[-4, -1, 0, 1], [2, 3, 4, np.nan]])


def clipped(*ranges: Any) -> Clipping:
    arrays = [np.asarray(end, np.float32) for end in ranges]
    x = ops.parameter([2, 4], "f32")
    found = Clipping.of(SeenStep(ops.fake_quantize(x, *arrays, 256), [X, *arrays], [X]))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ranges", "counts", "text"),
    [
        ((-1, 3, -2, 6), (1, 1), "12.5% of values below output bound -2, 12.5% of values above output bound 6"),
        ((3, -1, 6, -2), (1, 1), "12.5% of values below output bound 6, 12.5% of values above output bound -2"),
        ((-4, 3, -4, 3), (0, 1), "12.5% of values above output bound 3"),
        ((-4, 4, -4, 4), (0, 0), ""),
        ((-4, 3.99, -4, 3.99), (0, 1), "12.5% of values above output bound 3.99"),  # by less than a step
        (([[0], [2]], 4, [[0], [2]], 4), (2, 0), "25.0% of values below output bounds 0 to 2"),
    ],
)
def test_values_outside_the_input_range_are_counted(ranges: Any, counts: tuple[int, int], text: str) -> None:
    found = clipped(*ranges)
    assert (found.below, found.above, found.size) == (*counts, 8)
    assert str(found) == text
    assert found.share == sum(counts) / 8
    found.add(clipped(-4, 4, -4, 4))
    assert (found.size, found.share) == (16, sum(counts) / 16)


def network(*, quantized: bool) -> ovir.Model:
    x = ops.parameter([2, 4], "f32", name="x", tensor_names="x")
    scores = ops.sigmoid(x, name="scores")
    if quantized:
        scores = ops.fake_quantize(scores, *np.float32([0, 0.75, 0, 0.75]), 256, name="cap")
    return ovir.Model([ops.concat([scores, scores], 1, name="y")], [x])


SETS = [np.float32([[0, 0.5, 2, 3], [4, 5, 6, 7]]), np.zeros((2, 4), np.float32)]


def expected(sets: list[Array]) -> float:
    return float(np.mean([1 / (1 + np.exp(-x)) > 0.75 for x in sets]))


@pytest.mark.parametrize("quantized", [(False, True), (True, False), (True, True)])
def test_a_comparison_counts_in_both_models(quantized: tuple[bool, bool]) -> None:
    one, other = (network(quantized=which) for which in quantized)
    found = ovir.compare(one, other, inputs=[{"x": x} for x in SETS])
    assert {name: item.share for name, item in found.clipped.items()} == {"cap": expected(SETS)}
    assert found.within == (quantized[0] == quantized[1])
    assert found.to_dict()["clipped"]["cap"]["above"] == 6
    assert np.max(found.clipped["cap"].high) == 0.75


@pytest.mark.slow
def test_workers_count_as_one_process_does() -> None:
    from ovir.analysis.tensor_comparison import Criterion
    from ovir.debugging.comparison_setup import ComparisonOptions
    from ovir.workers.comparing import compare_by_workers

    options = ComparisonOptions(network(quantized=False), Criterion(), [{"x": x} for x in SETS])
    found = compare_by_workers(network(quantized=True), options, workers=2)
    assert found.clipped["cap"] == Clipping(16, 0, 6, (0, 0), (0.75, 0.75))
