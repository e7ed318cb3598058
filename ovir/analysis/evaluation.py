"""Scores of a model on labeled inputs, with confidence intervals, and of two models on the same inputs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ovir.analysis.metrics import MetricBase, Top
from ovir.analysis.set_metrics import SetMetric
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A confidence interval, and the method that it was made with."""

    low: float
    high: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        """Return the interval for JSON."""
        return {**self._asdict(), "confidence": CONFIDENCE}


def wilson(count: int, total: int) -> Interval | None:
    """Return the score interval of a share; None for no trials.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927
    """
    if not total:
        return None
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
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


_GROUPS = 20


def jackknife(value: Callable[[Sequence[int]], float], count: int) -> Array:
    """Return pseudovalues of a value that follows from some of ``count`` inputs: their mean has its standard error.

    They leave out one of at most 20 groups of inputs. Source: R. G. Miller, The jackknife - a review, 1974
    """
    groups, whole = min(count, _GROUPS), value(range(count))
    rest = [value([i for i in range(count) if i % groups != group]) for group in range(groups)] if groups > 1 else []
    return np.array([groups * whole - (groups - 1) * part for part in rest])


def jackknife_interval(value: float, pseudovalues: Array, low: float, high: float) -> Interval | None:
    """Return the interval of a value between ``low`` and ``high`` from its pseudovalues."""
    interval = mean_interval(pseudovalues)
    if interval is None or math.isnan(value):
        return None
    half = (interval.high - interval.low) / 2
    return Interval(max(low, value - half), min(high, value + half), f"jackknife, {pseudovalues.size} groups")


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
    corrected = max(product - (both + first + second + neither) / 2, 0.0)
    return min(product, corrected) / math.sqrt(margins)


def mcnemar(first: int, second: int) -> float:
    """Return the exact p-value of McNemar's test: the probability of at least such a difference if there is none.

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
        factor = numerator * denominator
        fraction *= factor
        if abs(factor - 1) < _PRECISION:
            break
    return math.exp(log) / a * (fraction - 1)


_MOST_STEPS = 10_000
_PRECISION = 1e-15


def _nonzero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300


@dataclass(frozen=True)
class ClassAccuracy:
    """The accuracy for a class of the labels."""

    number: int
    samples: int
    right: int
    """The number of them with the highest score for this class."""
    instead: tuple[int, int] | None
    """The class that most of the others are taken for, and how many."""


class ModelEvaluation:
    """The scores of a model for many inputs, each of which is one sample or several."""

    def __init__(self, metric: MetricBase) -> None:
        self.metric = metric
        self._scores: dict[str, Array] = {}
        self._items: dict[str, Any] = {}
        """The values that a ``SetMetric`` keeps for each input."""
        self.confusion: Counter[tuple[int, int]] = Counter()
        """For ``top1``: how many samples of a class are taken for a class."""

    def add(self, name: str, output: Array, label: Array) -> None:
        """Add an input; raise InputError if the label does not match the output."""
        if isinstance(self.metric, SetMetric):
            self._items[name] = self.metric.item(output, label)
            return
        self._scores[name] = self.metric.scores(output, label)
        if isinstance(self.metric, Top) and self.metric.count == 1:
            predicted = self.metric.predictions(output).tolist()
            self.confusion.update(zip(label.ravel().tolist(), predicted, strict=True))

    @property
    def inputs(self) -> int:
        """Return the number of inputs."""
        return len(self._items or self._scores)

    @property
    def samples(self) -> int:
        """Return the number of samples, of which an input has one or several."""
        return len(self._items) or self.scores.size

    @property
    def scores(self) -> Array:
        """Return the scores of all samples."""
        return np.concatenate([np.zeros(0), *self._scores.values()])

    @property
    def value(self) -> float | None:
        """Return the mean of the scores, or the value of a ``SetMetric``; None without any."""
        if isinstance(self.metric, SetMetric):
            value = self.metric.value(list(self._items.values()))
            return None if math.isnan(value) else value
        scores = self.scores
        return float(scores.mean()) if scores.size else None

    @property
    def interval(self) -> Interval | None:
        """Return the confidence interval of the value, if there is one."""
        if isinstance(self.metric, SetMetric):
            of = self.metric.of(list(self._items.values()))
            return jackknife_interval(of(range(self.inputs)), jackknife(of, self.inputs), 0, 1)
        scores = self.scores
        return wilson(int(scores.sum()), scores.size) if self.metric.is_share else mean_interval(scores)

    def classes(self) -> list[ClassAccuracy]:
        """Return each class of the labels, for ``top1``."""
        taken: dict[int, Counter[int]] = defaultdict(Counter)
        for (label, found), count in self.confusion.items():
            taken[label][found] += count
        return [
            ClassAccuracy(label, counts.total(), counts[label], _most_other(label, counts))
            for label, counts in sorted(taken.items())
        ]

    def difference(self, other: ModelEvaluation) -> ScoreDifference:
        """Return the difference of the metric from another evaluation, on the inputs that both have."""
        if isinstance(self.metric, SetMetric):
            common = [name for name in self._items if name in other._items]
            one, two = (self.metric.of([side._items[name] for name in common]) for side in (self, other))
            return ScoreDifference.of_sets(lambda chosen: one(chosen) - two(chosen), len(common))
        names = [name for name in self._scores if name in other._scores]
        sides = (np.concatenate([np.zeros(0), *(side._scores[name] for name in names)]) for side in (self, other))
        return ScoreDifference.of(*sides, is_share=self.metric.is_share)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        fields = json_fields(self, "metric=metric.name", "value", "interval", "inputs", "samples")
        if self.metric.is_share:
            fields["right"] = int(self.scores.sum())
        if self.confusion:
            fields["confusion"] = [
                {"label": label, "found": taken, "samples": count}
                for (label, taken), count in sorted(self.confusion.items())
            ]
        return fields


def _most_other(label: int, counts: Counter[int]) -> tuple[int, int] | None:
    others = (item for item in counts.items() if item[0] != label)
    return min(others, key=lambda item: (-item[1], item[0]), default=None)


@dataclass(frozen=True)
class ScoreDifference:
    """A paired comparison of two models on the same samples: the first minus the second."""

    samples: int
    value: float | None
    interval: Interval | None
    p_value: float | None
    """The probability of at least such a difference if there is none."""
    test: str
    only_first: int | None = None
    """For shares: the number of samples that only the first model has right."""
    only_second: int | None = None

    @classmethod
    def of(cls, first: Array, second: Array, *, is_share: bool) -> ScoreDifference:
        """Return the difference of the scores of the same samples."""
        if not first.size:
            return cls(0, None, None, None, "none")
        differences = first - second
        value = float(differences.mean())
        if not is_share:
            return cls(first.size, value, mean_interval(differences), paired_t(differences), "paired t")
        both, either = int((first * second).sum()), int(np.maximum(first, second).sum())
        only_first, only_second = int(first.sum()) - both, int(second.sum()) - both
        interval = share_difference(both, only_first, only_second, first.size - either)
        p_value = mcnemar(only_first, only_second)
        return cls(first.size, value, interval, p_value, "McNemar, exact", only_first, only_second)

    @classmethod
    def of_sets(cls, value: Callable[[Sequence[int]], float], count: int) -> ScoreDifference:
        """Return the difference of a ``SetMetric`` on the same inputs; ``value`` computes it for some of them."""
        whole = value(range(count))
        if math.isnan(whole):
            return cls(count, None, None, None, "none")
        parts = jackknife(value, count)
        return cls(count, whole, jackknife_interval(whole, parts, -1, 1), paired_t(parts), "t, jackknife")

    @property
    def is_shown(self) -> bool:
        """Return whether the difference is more than chance explains at this confidence."""
        return self.p_value is not None and self.p_value < 1 - CONFIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        fields = json_fields(self, "samples", "value", "interval", "p_value", "test")
        return fields if self.only_first is None else fields | json_fields(self, "only_first", "only_second")
