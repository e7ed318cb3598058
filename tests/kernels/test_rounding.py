"""Rounding: halves, their neighbors, numbers so large that none has a fraction, and what is not a number."""

from typing import Any

import numpy as np
import pytest

from ovir.kernels.rounding import as_index, round_half_away


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_half_away(dtype: Any) -> None:
    halves = np.arange(-9, 9, dtype=dtype) + dtype(0.5)
    expected = [*range(-9, 0), *range(1, 10)]
    assert round_half_away(halves).tolist() == expected
    inward = round_half_away(np.nextafter(halves, dtype(0)))
    assert inward.tolist() == [*range(-8, 1), *range(9)]
    assert inward.dtype == dtype
    large = dtype(2) ** (np.finfo(dtype).nmant + np.arange(3)) + dtype(1)
    assert (round_half_away(large) == large).all()
    assert round_half_away(np.array([np.inf, -np.inf, np.nan], dtype)).tolist()[:2] == [np.inf, -np.inf]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_index(dtype: Any) -> None:
    index = as_index(np.array([3, -2, np.inf, -np.inf, np.nan, 1e30], dtype))
    assert index.dtype == np.int64
    assert index.tolist() == [3, -2, 2**62, -(2**62), -(2**62), 2**62]
