"""Passes that are recorded from formulas compute what the formulas say, in memory that is used again."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.binding import LoneBinder

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Spare
from ovir.fast.base.passes import bind_passes
from ovir.fast.base.recorded import recorded
from ovir.fast.registry import bind
from ovir.ops.activation import PReLU


def _branches(x: Array, other: Array) -> Array:
    power = np.exp(np.clip(x, -1, 2))
    return np.maximum(x * (power / (power + 2)) - other, 1 - power)


def _in_f64(x: Array, other: Array) -> Array:
    wide = x.astype(np.float64)
    return (wide - np.floor(wide / other.astype(np.float64)) * 0.7).astype(np.float32)


def _leaky(x: Array, other: Array) -> Array:
    return np.clip(x, -np.inf, 0) * other + np.clip(x, 0, np.inf)


@pytest.mark.parametrize(
    ("formula", "spares", "in_place"),
    [
        (lambda x, other: 1 / (1 + np.exp(-x)), 0, 0),
        (lambda x, other: x * x + other, 0, 0),
        (lambda x, other: np.maximum(x, x * other), 0, 1),
        (_leaky, 1, 1),
        (_branches, 1, 2),
        (_in_f64, 2, 2),
    ],
)
def test_recorded_passes_give_the_result_of_the_formula(
    formula: Callable[..., Array], spares: int, in_place: int
) -> None:
    other, made = np.float32([0.5]), []

    def spare(dtype: Any = np.float32) -> Array:
        made.append(np.full(7, np.nan, dtype))
        return made[-1]

    for overwrites, count in ((False, spares), (True, in_place)):
        x = np.linspace(-3, 3, 7, dtype=np.float32)
        expected, y = formula(x, other), x[:] if overwrites else np.empty(7, np.float32)
        made.clear()
        for function, arguments in recorded(formula)(x, other, y, spare):
            function(*arguments)
        np.testing.assert_array_equal(y, expected)
        assert len(made) == count


@pytest.mark.parametrize("slope", [0.5, [0.5, 2.0, 0.5]])
def test_data_that_several_passes_read_is_overwritten(slope: Any) -> None:
    x, slopes = np.float32([[-2, -3, 4]]), np.float32(slope)
    expected = PReLU().run(x, slopes)
    binder = LoneBinder((x, slopes), [(x.shape, x.dtype)], {1}, overwritable=(0,))
    assert bind(PReLU(), binder, x, slopes)
    np.testing.assert_array_equal(binder.run()[0], expected)
    assert np.may_share_memory(binder.results[0], x)


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


@pytest.mark.parametrize(("first_writes", "overwrites"), [(False, True), (True, False)])
def test_data_that_is_read_after_the_output_is_written_stays(first_writes: bool, overwrites: bool) -> None:
    def passes(x: Array, y: Array, spare: Spare) -> list[Call]:
        half = y if first_writes else spare(x.dtype)
        return [(np.multiply, (x, 0.5, half)), (np.add, (x, half, y))]

    x = np.float32([-2, 4])
    binder = LoneBinder((x,), [(x.shape, x.dtype)], set(), overwritable=(0,))
    bind_passes(binder, passes, x)
    assert binder.run()[0].tolist() == [-3, 6]
    assert np.may_share_memory(binder.results[0], x) == overwrites
