"""Convolutions that are computed by tiles of 2x2 outputs, with limits so small that small ones have several blocks."""

from typing import Any

import numpy as np
import pytest
from support.binding import bound_results

from ovir.core import parallel
from ovir.fast.base import tiles
from ovir.fast.base.images import Axis
from ovir.ops.convolution import Convolution


def convolution(*pads: int) -> Convolution:
    begin, end = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    return Convolution(strides=(1, 1), dilations=(1, 1), pads_begin=begin, pads_end=end)


def results_of(op: Convolution, data: Any, filters: Any, shares_memory: bool = False) -> tuple[Any, Any]:
    """What ``run`` and the fast form give."""
    with np.errstate(invalid="ignore", over="ignore"), parallel.limit(2):
        expected = op.run(data, filters)
        results = bound_results(op, (data, filters), [expected], {1}, shares_memory=shares_memory)
    assert results is not None
    return expected, results[0]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tiles pay for all filters."""
    for name in ("_LEAST_FILTERS", "_LEAST_WORK", "_LEAST_TILES"):
        monkeypatch.setattr(tiles, name, 0)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shares_memory", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_like_run(seed: int, shares_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(tiles, "SHARED", int(rng.choice([1, 1 << 30])))
    monkeypatch.setattr(tiles, "_BLOCK_BYTES", int(rng.choice([1, 4000, 1 << 20])))
    images, channels, outputs = (int(n) for n in rng.integers(1, (4, 9, 13)))
    size = rng.integers(4, 14, 2)
    data = rng.normal(size=(images, channels, *size)).astype(rng.choice([np.float32, np.float64]))
    filters = rng.normal(size=(outputs, channels, 3, 3)).astype(data.dtype)
    op = convolution(*(int(pad) for pad in rng.integers(0, 3, 4)))
    expected, got = results_of(op, data, filters, shares_memory)
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 2e38])
def test_numbers_that_are_not_finite_reach_only_the_outputs_that_read_them(number: float) -> None:
    data = np.random.default_rng(0).normal(size=(1, 3, 9, 8)).astype(np.float32)
    data[0, 1, 4:6, 3] = number
    expected, got = results_of(convolution(1, 1, 1, 1), data, np.full((2, 3, 3, 3), 0.25, np.float32))
    assert np.isfinite(expected).any()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("axis", [Axis(3, 2, 1, 1, 28), Axis(3, 1, 2, 1, 28), Axis(5, 1, 1, 1, 28)])
def test_other_windows_have_no_tiles(axis: Axis) -> None:
    assert tiles.whole_tiles([axis, axis], (1, 128, 128, axis.kernel, axis.kernel)) is None


@pytest.mark.parametrize(
    ("windows", "channels", "pays"),
    [(14, 64, True), (13, 512, True), (12, 512, False), (14, 62, False), (200, 48, True), (200, 47, False)],
)
def test_where_tiles_pay(windows: int, channels: int, pays: bool) -> None:
    axis = Axis(3, 1, 1, 1, windows)
    assert (tiles.whole_tiles([axis, axis], (1, channels, channels, 3, 3)) is not None) == pays
