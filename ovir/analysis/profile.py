"""The time of whole runs, and of each layer in them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from ovir.analysis.costs import ModelCosts
from ovir.core.arrays import Array
from ovir.core.shapes import Dimension
from ovir.core.tables import Table, columns
from ovir.graph.layers import Layer
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.inputs import Feeds
from ovir.system.progress import counted

WARM_UP = 3
"""Runs before the timed ones, in which steps bind themselves to shapes that come again."""


@dataclass(frozen=True)
class RunTimes:
    """The time of each run in seconds, in the order of the runs."""

    seconds: tuple[float, ...]

    def percentile(self, percent: float) -> float:
        """Return the time in which so many percent of the runs have ended, between two runs in proportion."""
        return float(np.percentile(self.seconds, percent))

    def __str__(self) -> str:
        """Return the median, the least and the most in milliseconds."""
        median, least, most = (1000 * value for value in (self.percentile(50), min(self.seconds), max(self.seconds)))
        return f"{median:,.2f} ms ({least:,.2f} to {most:,.2f} ms)"

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


@dataclass
class Timing:
    """Seconds spent in a layer, or in all layers of a type. Time in a body counts for its layers, not for the If, Loop
    or TensorIterator around them."""

    name: str
    type: str
    calls: int = 0
    seconds: float = 0.0
    macs: int | None = None
    """Multiply-accumulates; None if they are not known."""
    bytes: int | None = None
    """Bytes that the layer reads and writes."""
    is_joined: bool = False
    """Whether other layers ran together with this one, so that its own amounts say nothing about the time."""

    @property
    def rates(self) -> tuple[float | None, float | None]:
        """Return GMAC/s and GB/s; None for a number that is 0 or not known."""
        macs, size = (
            amount / self.seconds / 1e9 if amount and self.seconds else None for amount in (self.macs, self.bytes)
        )
        return macs, size


class Profile:
    """A listener that measures the time of each layer in a run; afterwards ``layers`` and ``types`` hold the times, the
    slowest first. ``profile_runs`` returns the medians of several runs."""

    sees_tensors = False

    def __init__(self) -> None:
        self.timings: dict[Layer, Timing] = {}
        """The time of each layer, in the order of the run."""
        self.runs = 1
        """The number of runs of which the times are medians."""
        self.slowest_types: list[str] = []
        """The operations that took most of the time in any of the runs: several if chance decided."""
        self._open: list[tuple[float, float]] = []  # the running layers: start, and seconds in inner layers

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        self._open.append((perf_counter(), 0.0))

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        now = perf_counter()
        start, inner = self._open.pop()
        timing = self.timings.get(layer)
        if timing is None:
            timing = self.timings[layer] = Timing(layer.scope + layer.name, layer.type)
        timing.is_joined = len(outputs) > len(layer.outputs)
        timing.calls += 1
        timing.seconds += now - start - inner
        if self._open:
            outer_start, outer_inner = self._open[-1]
            self._open[-1] = outer_start, outer_inner + now - start

    def add_costs(self, costs: ModelCosts) -> None:
        """Set the multiply-accumulates and the bytes of the layers that ran."""
        for row in costs.layers:
            timing, amounts = self.timings.get(row.layer), row.amounts
            if timing is None or timing.is_joined:
                continue
            if not amounts.runs.is_static:  # the run has decided how often it runs
                amounts = row.once.times(Dimension(timing.calls))
            macs, moved = amounts.macs, amounts.read + amounts.written
            known = [number.lower if number.is_static else None for number in (macs, moved)]
            self.timings[row.layer] = replace(timing, macs=known[0], bytes=known[1])

    @property
    def seconds(self) -> float:
        """Return the time in all kernels together."""
        return sum(timing.seconds for timing in self.timings.values())

    def _repr_html_(self) -> str:
        return self.layers_table().in_notebook(f"{1000 * self.seconds:,.2f} ms in layers")

    def layers_table(self, type_of: Callable[[Layer], str] = lambda _: "") -> Table:
        """Return the time of each layer, the slowest first; ``type_of`` returns its types for a report."""
        whole, order = self.seconds or 1.0, {layer: number for number, layer in enumerate(self.timings, 1)}
        slowest = sorted(self.timings.items(), key=lambda item: -item[1].seconds)
        rows = [
            (order[x], x, t.type, type_of(x), t.calls, t.seconds * 1000, t.seconds / whole, t.macs, *t.rates)
            for x, t in slowest
        ]
        heads = "order: count in reports; layer: layer 2.4; operation: type; output type: tensor 1.2 in reports; "
        heads += "calls: count; ms: ms; share: share; MACs: amount; GMAC/s: error; GB/s: error"
        return Table(columns(heads), rows, least=("calls", "GB/s", "MACs", "GMAC/s"))

    def types_table(self) -> Table:
        """Return the time of each operation, the slowest first."""
        rows = [(t.type, t.calls, t.seconds * 1000, t.seconds / (self.seconds or 1.0)) for t in self.types()]
        return Table(columns("operation: type; calls: count; ms: ms; share: share"), rows)

    def layers(self) -> list[Timing]:
        """Return the times of the layers, the slowest first."""
        return sorted(self.timings.values(), key=lambda t: -t.seconds)

    def types(self) -> list[Timing]:
        """Return the times summed by operation type; ``name`` is the type as well."""
        sums: dict[str, Timing] = {}
        for timing in self.timings.values():
            total = sums.setdefault(timing.type, Timing(timing.type, timing.type))
            total.calls += timing.calls
            total.seconds += timing.seconds
        return sorted(sums.values(), key=lambda t: -t.seconds)


RUNS = 7
"""The number of runs of a profile, after those that warm up."""


def profile_runs(compiled: CompiledModel, feeds: Feeds) -> tuple[Profile, RunTimes]:
    """Return the median time of each layer in several runs on the same inputs, and the times of as many runs that
    nothing measures from the inside.

    Both kinds of runs alternate, so that what else the machine does concerns them alike. States are reset before each
    run, and outputs go to the same memory, so that all runs do the same.
    """
    request, watched = compiled.create_infer_request(), compiled.create_infer_request()
    profiles, seconds = [], []
    for number in counted("profiling", range(WARM_UP + RUNS)):
        request.reset_state()
        start = perf_counter()
        request.infer(feeds, share_outputs=True)
        end = perf_counter()
        watched.reset_state()
        profile = Profile()
        watched.infer(feeds, listeners=[profile], share_outputs=True)
        if number >= WARM_UP:
            profiles.append(profile)
            seconds.append(end - start)
    summary = Profile()
    summary.runs = RUNS
    summary.slowest_types = list(dict.fromkeys(kind.type for profile in profiles for kind in profile.types()[:1]))
    for layer, timing in profiles[-1].timings.items():
        times = [profile.timings[layer].seconds for profile in profiles if layer in profile.timings]
        summary.timings[layer] = replace(timing, seconds=median(times))
    return summary, RunTimes(tuple(seconds))
