"""Statistics of tensors, and ranges over several runs."""

import math
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.analysis.tensor_stats import Range, Ranges, Stats, likely_classes, stats


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32([1, 2, 6]), Stats(1, 6, 3.0)),
        (np.float16([math.nan, 4, -math.inf]), Stats(4, 4, 4.0, 2)),
        (np.float32([math.nan, math.inf]), Stats(nonfinite=2)),
        (np.int64([2**53 + 1, 2**53 - 1]), Stats(2**53 - 1, 2**53 + 1, 2.0**53)),
        (np.array([True, False]), Stats(0, 1, 0.5)),
        (np.array(["a"]), Stats()),
        (np.zeros(0), Stats()),
    ],
)
def test_statistics(array: Any, expected: Stats) -> None:
    assert stats(array) == expected


def test_a_range_covers_all_that_was_added() -> None:
    found = Range()
    assert (found.mean, found.largest) == (None, None)
    for values in ([math.nan], [2.0], [-7.0, 1.0, math.inf], [3.0]):
        found.add(np.array(values))
    assert (found.minimum, found.maximum, found.nonfinite) == (-7, 3, 2)
    assert (found.mean, found.largest) == (-0.25, 7)


def test_the_range_of_a_layer_is_that_of_its_outputs_that_are_read() -> None:
    x = ops.parameter([1, 1, 4], "f32", name="x")
    pool = ops.max_pool(x, [1], [1], [0], [0], [2], name="pool")
    split = ops.split(x, ops.constant(np.int64(2)), 2, name="split")
    measured = Ranges()
    model = ovir.Model([ops.relu(pool.output(0)), split.output(1)], [x])
    ovir.compile_model(model)([np.float32([[[0, -1, 0.5, 0.25]]])], listeners=[measured])
    ranges = {layer.name: (found.minimum, found.maximum) for layer, found in measured.ranges.items()}
    assert ranges["x"] == (-1, 0.5)
    assert ranges["pool"] == (0, 0.5)  # not the indices, up to 3
    assert ranges["split"] == (0.25, 0.5)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[0.25, 0.75], [1.0, 0.0]], [(1, 0.75), (0, 1.0)]),
        ([[0.5, 0.505]], [(1, 0.505)]),
        ([[0.5, 0.6]], None),
        ([[1.5, -0.5]], None),
        ([[1.0], [1.0]], None),
        ([0.5, 0.5], None),
        (np.zeros((0, 2)), None),
        ([[1, 0]], None),
    ],
)
def test_rows_of_probabilities(rows: Any, expected: Any) -> None:
    assert likely_classes(np.asarray(rows)) == expected
