"""The evaluation of a model on labelled inputs: a metric with its confidence interval, and the difference of two."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovir.analysis.intervals import CONFIDENCE, Interval, mcnemar, mean_interval, paired_t, share_difference, wilson
from ovir.analysis.metrics import MetricBase, Top
from ovir.core.arrays import Array


@dataclass(frozen=True)
class ClassAccuracy:
    """How a class of the labels is recognized."""

    number: int
    samples: int
    right: int
    """How many of them have the highest score for this class."""
    instead: tuple[int, int] | None
    """The class that most of the others are taken for, and how many."""


class Evaluation:
    """The scores of a model for many inputs, each of which is one sample or several."""

    def __init__(self, metric: MetricBase) -> None:
        self.metric = metric
        self._scores: dict[str, Array] = {}
        self.confusion: Counter[tuple[int, int]] = Counter()
        """For ``top1``: how many samples of a class are taken for a class."""

    def add(self, name: str, output: Array, label: Array) -> None:
        """Add an input; raise InputError if the label does not match the output."""
        self._scores[name] = self.metric.scores(output, label)
        if isinstance(self.metric, Top) and self.metric.count == 1:
            found = self.metric.predictions(output).tolist()
            self.confusion.update(zip(label.ravel().tolist(), found, strict=True))

    @property
    def inputs(self) -> int:
        """Return the number of inputs."""
        return len(self._scores)

    @property
    def scores(self) -> Array:
        """Return the scores of all samples."""
        return np.concatenate([np.zeros(0), *self._scores.values()])

    @property
    def value(self) -> float | None:
        """Return the mean of the scores; None without any."""
        scores = self.scores
        return float(scores.mean()) if scores.size else None

    @property
    def interval(self) -> Interval | None:
        """Return the confidence interval of the mean, if there is one."""
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

    def difference(self, other: Evaluation) -> Difference:
        """Return how much higher the metric is than in another evaluation, on the inputs that both have."""
        names = [name for name in self._scores if name in other._scores]
        pairs = [(self._scores[name], other._scores[name]) for name in names]
        first = np.concatenate([np.zeros(0), *(one for one, _ in pairs)])
        second = np.concatenate([np.zeros(0), *(two for _, two in pairs)])
        return Difference.of(first, second, is_share=self.metric.is_share)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        found: dict[str, Any] = {
            "metric": self.metric.name,
            "value": self.value,
            "interval": interval_to_dict(self.interval),
            "inputs": self.inputs,
            "samples": self.scores.size,
        }
        if self.metric.is_share:
            found["right"] = int(self.scores.sum())
        if self.confusion:
            found["confusion"] = [
                {"label": label, "found": taken, "samples": count}
                for (label, taken), count in sorted(self.confusion.items())
            ]
        return found


def _most_other(label: int, counts: Counter[int]) -> tuple[int, int] | None:
    others = {found: count for found, count in counts.items() if found != label}
    if not others:
        return None
    most = min(others, key=lambda found: (-others[found], found))
    return most, others[most]


def interval_to_dict(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval for JSON."""
    return None if interval is None else {**interval._asdict(), "confidence": CONFIDENCE}


@dataclass(frozen=True)
class Difference:
    """A paired comparison of two models on the same samples: the first minus the second."""

    samples: int
    value: float | None
    interval: Interval | None
    p_value: float | None
    """How likely at least such a difference is if there is none."""
    test: str
    only_first: int | None = None
    """For shares: the number of samples that only the first model has right."""
    only_second: int | None = None

    @classmethod
    def of(cls, first: Array, second: Array, *, is_share: bool) -> Difference:
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

    @property
    def is_shown(self) -> bool:
        """Return whether the difference is more than chance explains at this confidence."""
        return self.p_value is not None and self.p_value < 1 - CONFIDENCE

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        found: dict[str, Any] = {
            "samples": self.samples,
            "value": self.value,
            "interval": interval_to_dict(self.interval),
            "p_value": self.p_value,
            "test": self.test,
        }
        if self.only_first is not None:
            found |= {"only_first": self.only_first, "only_second": self.only_second}
        return found
