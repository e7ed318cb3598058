"""Confidence intervals of shares and means, and of differences between two models on the same inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A confidence interval, and the method that it was made with."""

    low: float
    high: float
    method: str


def wilson(count: int, total: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the score interval of a share; None for no trials.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927
    """
    if not total:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, z2 = count / total, z * z / total
    center = (share + z2 / 2) / (1 + z2)
    half = z / (1 + z2) * math.sqrt(share * (1 - share) / total + z2 / total / 4)
    low, high = max(0.0, center - half), min(1.0, center + half)
    return Interval(0.0 if count == 0 else low, 1.0 if count == total else high, "Wilson score")


def mean_interval(values: Sequence[float] | np.typing.NDArray[np.float64]) -> Interval | None:
    """Return Student's t-interval of a mean; None for less than two values, and for values that are not finite."""
    array = np.asarray(values, np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        return None
    half = t_quantile((1 + CONFIDENCE) / 2, array.size - 1) * array.std(ddof=1) / math.sqrt(array.size)
    return Interval(float(array.mean() - half), float(array.mean() + half), "Student t")


# --------------------------------------------------------------------------- differences


def share_difference(both: int, first: int, second: int, neither: int) -> Interval | None:
    """Return the interval of the difference of two shares of the same trials; None for no trials.

    The arguments count the trials in which both succeed, only one, or neither. Source: R. G. Newcombe, Improved
    confidence intervals for the difference between binomial proportions based on paired data, 1998, method 10
    """
    total = both + first + second + neither
    one, other = wilson(both + first, total), wilson(both + second, total)
    if one is None or other is None:
        return None
    p, q = (both + first) / total, (both + second) / total
    phi = _correlation(both, first, second, neither)
    below = _joined(p - one.low, other.high - q, phi)
    above = _joined(one.high - p, q - other.low, phi)
    return Interval(max(-1.0, p - q - below), min(1.0, p - q + above), "Newcombe, paired")


def _joined(a: float, b: float, phi: float) -> float:
    return math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b))


def _correlation(both: int, first: int, second: int, neither: int) -> float:
    """Return the correlation of two outcomes, with a correction for continuity where it is positive."""
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    if not margins:
        return 0.0
    product = both * neither - first * second
    corrected = max(product - (both + first + second + neither) / 2, 0.0) if product > 0 else product
    return corrected / math.sqrt(margins)


def mcnemar(first: int, second: int) -> float:
    """Return the exact p-value of McNemar's test: how likely at least such a difference is if there is none.

    The arguments count the trials in which only one of both succeeds.
    """
    total, less = first + second, min(first, second)
    if not total:
        return 1.0
    return min(1.0, 2 * beta_share(0.5, total - less, less + 1))  # P(X <= less) for X of Binomial(total, 1/2)


def paired_t(differences: Sequence[float] | np.typing.NDArray[np.float64]) -> float | None:
    """Return the p-value of the t-test of paired differences; None where ``mean_interval`` is."""
    array = np.asarray(differences, np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        return None
    if not array.any():
        return 1.0
    error = float(array.std(ddof=1)) / math.sqrt(array.size)
    return _t_tails(float(array.mean()) / error if error else math.inf, array.size - 1)


# --------------------------------------------------------------------------- distributions


def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile, above the median, of Student's distribution with so many degrees of freedom."""
    tails = 2 * (1 - probability)
    low, high = 0.0, 1.0
    while _t_tails(high, freedom) > tails:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _t_tails(middle, freedom) > tails else (low, middle)
    return high


def _t_tails(t: float, freedom: int) -> float:
    """Return the probability of more than ``t`` or less than ``-t``."""
    return beta_share(freedom / (freedom + t * t), freedom / 2, 0.5)


def beta_share(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function: the share of Beta(a, b) below x.

    Source: NIST Digital Library of Mathematical Functions, 8.17.22, a continued fraction
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - beta_share(1 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    numerator, denominator, fraction = 1.0, 0.0, 1.0
    for step in range(_MOST_STEPS):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / _nonzero(1 + term * denominator)
        numerator = _nonzero(1 + term / numerator)
        fraction *= numerator * denominator
        if abs(numerator * denominator - 1) < _PRECISION:
            break
    return math.exp(log) / a * (fraction - 1)


_MOST_STEPS = 10_000
_PRECISION = 1e-15


def _nonzero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
