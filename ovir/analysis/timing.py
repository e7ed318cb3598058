"""How long runs of a model take."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ovir.core.progress import counted
from ovir.runtime.compiled import CompiledModel

WARM_UP = 3
"""Runs before those that are timed: the first prepares kernels, the next bind steps to shapes that come again."""


@dataclass(frozen=True)
class RunTimes:
    """The time of each run in seconds, in the order of the runs."""

    seconds: tuple[float, ...]

    def percentile(self, percent: float) -> float:
        """Return the time in which so many percent of the runs have ended, between two runs in proportion."""
        ordered = sorted(self.seconds)
        position = (len(ordered) - 1) * percent / 100
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (position - below)

    def to_dict(self) -> dict[str, float]:
        """Return least, median, mean, 90th and 99th percentile, and most."""
        return {
            "min": min(self.seconds),
            "median": self.percentile(50),
            "mean": statistics.fmean(self.seconds),
            "p90": self.percentile(90),
            "p99": self.percentile(99),
            "max": max(self.seconds),
        }


def time_runs(compiled: CompiledModel, feeds: Mapping[Any, Any], count: int, warm_up: int = WARM_UP) -> RunTimes:
    """Run a model ``count`` times on the same inputs, after some runs that are not timed.

    States are reset before each run, and outputs go to the same memory, so that all runs do the same.
    """
    request = compiled.create_infer_request()
    seconds = []
    for number in counted("repeating", range(warm_up + count)):
        request.reset_state()
        start = perf_counter()
        request.infer(feeds, share_outputs=True)
        if number >= warm_up:
            seconds.append(perf_counter() - start)
    return RunTimes(tuple(seconds))
