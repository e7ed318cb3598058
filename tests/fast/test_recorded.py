"""Passes that are recorded from formulas compute what the formulas say, in memory that is used again."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ovir.core.arrays import Array
from ovir.fast.base.recorded import recorded


def _branches(x: Array, other: Array) -> Array:
    power = np.exp(np.clip(x, -1, 2))
    return np.maximum(x * (power / (power + 2)) - other, 1 - power)


def _in_f64(x: Array, other: Array) -> Array:
    wide = x.astype(np.float64)
    return (wide - np.floor(wide / other.astype(np.float64)) * 0.7).astype(np.float32)


@pytest.mark.parametrize(
    ("formula", "spares"),
    [(lambda x, other: 1 / (1 + np.exp(-x)), 0), (lambda x, other: x * x + other, 0), (_branches, 1), (_in_f64, 2)],
)
def test_recorded_passes_give_the_result_of_the_formula(formula: Callable[..., Array], spares: int) -> None:
    x, other, y = np.linspace(-3, 3, 7, dtype=np.float32), np.float32([0.5]), np.empty(7, np.float32)
    made: list[Array] = []

    def spare(dtype: Any = np.float32) -> Array:
        made.append(np.full(7, np.nan, dtype))
        return made[-1]

    for function, arguments in recorded(formula)(x, other, y, spare):
        function(*arguments)
    np.testing.assert_array_equal(y, formula(x, other))
    assert len(made) == spares


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: np.where(x > 0, x, 0),
        lambda x: np.add.reduce(x) * x,
        lambda x: x if x.dtype == np.float32 and (x > 0) else -x,
        lambda x: x > 0,
        lambda x: x,
        lambda x: [np.exp(x), np.negative(x)][0],
    ],
)
def test_other_formulas_are_refused(formula: Callable[..., Array]) -> None:
    y = np.empty(3, np.bool_)
    with pytest.raises(TypeError):
        recorded(formula)(np.zeros(3, np.float32), y, np.empty_like)
