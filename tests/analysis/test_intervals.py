"""Confidence intervals and tests, against published examples and numbers worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from ovir.analysis.evaluation import beta_share, mcnemar, mean_interval, paired_t, share_difference, t_quantile, wilson

INF = float("inf")


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    # R. G. Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson(count: int, total: int, low: float, high: float) -> None:
    found = wilson(count, total)
    assert found is not None
    assert found[:2] == pytest.approx((low, high), abs=5e-5)
    other = wilson(total - count, total)
    assert other is not None
    assert other[:2] == pytest.approx((1 - high, 1 - low), abs=5e-5)
    assert wilson(0, 0) is None


def test_wilson_covers_what_it_promises() -> None:
    """Computed exactly: the mean coverage over shares is about 95 %."""
    size = 50
    shares = np.linspace(0.01, 0.99, 99)
    logs = [math.lgamma(size + 1) - math.lgamma(k + 1) - math.lgamma(size - k + 1) for k in range(size + 1)]
    covered = np.zeros(len(shares))
    for k, log in enumerate(logs):
        interval = wilson(k, size)
        assert interval is not None
        inside = (interval.low <= shares) & (shares <= interval.high)
        covered += inside * np.exp(log + k * np.log(shares) + (size - k) * np.log1p(-shares))
    assert covered.mean() == pytest.approx(0.952, abs=0.005)
    assert covered.min() > 0.9


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)]
)
def test_quantiles_of_student(freedom: int, expected: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(expected, abs=5e-4)


def test_quantiles_approach_those_of_the_normal_distribution() -> None:
    assert t_quantile(0.975, 10**7) == pytest.approx(1.959964, abs=1e-5)
    assert t_quantile(0.75, 1) == pytest.approx(1.0)  # of Cauchy's distribution


def test_the_interval_of_a_mean() -> None:
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])  # mean 3, standard deviation sqrt(2.5), t = 2.7764
    assert found is not None
    half = 2.7764451 * math.sqrt(2.5 / 5)
    assert found[:2] == pytest.approx((3 - half, 3 + half))
    for values in ([], [1.0], [1.0, INF], [1.0, math.nan]):
        assert mean_interval(values) is None


@pytest.mark.parametrize(
    ("table", "low", "high"),
    # R. G. Newcombe, Improved confidence intervals for the difference between ... paired data, 1998, table II
    [((36, 12, 2, 0), 0.0569, 0.3404)],
)
def test_the_difference_of_shares(table: tuple[int, int, int, int], low: float, high: float) -> None:
    found = share_difference(*table)
    assert found is not None
    assert found[:2] == pytest.approx((low, high), abs=5e-5)
    both, first, second, neither = table
    turned = share_difference(both, second, first, neither)
    assert turned is not None
    assert turned[:2] == pytest.approx((-high, -low), abs=5e-5)


def test_the_difference_of_shares_at_the_ends() -> None:
    assert share_difference(0, 0, 0, 0) is None
    found = share_difference(0, 10, 0, 0)
    assert found is not None
    assert 0 < found.low < found.high == 1
    equal = share_difference(50, 0, 0, 50)
    assert equal is not None
    assert equal.low == pytest.approx(-equal.high)


@pytest.mark.parametrize(("first", "second"), [(2, 12), (0, 6), (5, 5), (1, 0), (0, 0), (30, 50)])
def test_mcnemar_is_a_binomial_test(first: int, second: int) -> None:
    total = first + second
    tail = sum(math.comb(total, k) for k in range(min(first, second) + 1))
    assert (
        mcnemar(first, second) == mcnemar(second, first) == pytest.approx(float(min(1, Fraction(2 * tail, 2**total))))
    )


def test_mcnemar_of_many() -> None:
    assert mcnemar(20_000, 20_400) == pytest.approx(math.erfc(399 / math.sqrt(40_400) / math.sqrt(2)), rel=1e-3)


def test_paired_t() -> None:
    # differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 3.4641 with 2 degrees of freedom, whose two tails are
    # 1 - t / sqrt(t^2 + 2)
    t = 2 * math.sqrt(3)
    assert paired_t([1.0, 2.0, 3.0]) == pytest.approx(1 - t / math.sqrt(t * t + 2))
    assert paired_t([0.0, 0.0]) == 1
    assert paired_t([1.0, 1.0]) == 0
    assert paired_t([1.0]) is None


@pytest.mark.parametrize("x", [0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
def test_beta(x: float) -> None:
    assert beta_share(x, 1, 1) == pytest.approx(x)
    assert beta_share(x, 2, 3) == pytest.approx(6 * x**2 - 8 * x**3 + 3 * x**4)
    assert beta_share(x, 0.5, 0.5) == pytest.approx(2 / math.pi * math.asin(math.sqrt(x)))
