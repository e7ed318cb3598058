"""The search for the first diverging layer in the topological order of a model, by running beginnings of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ovir.debugging.bisecting.bisection import Probe, Verdict, probe_of
from ovir.debugging.bisecting.judge import Judge
from ovir.debugging.reducing import candidates
from ovir.debugging.reducing.stage import Stage
from ovir.diagnostics.wording import plural

MOST_EXTRA = 4
"""The number of probes in addition to the binary search, which show whether errors are monotone."""


class PrefixSearch:
    """Binary search for the shortest beginning of a model whose tensors diverge.

    The beginning of n layers has all tensors as outputs that later layers, or Results, read. Layers are ordered
    topologically, so it is well defined for models with branches. A device computes it with the fusions of the whole
    model, except at its end.
    """

    def __init__(self, stage: Stage, judge: Judge, progress: Callable[[int, int, str], None] | None = None) -> None:
        """Prepare the search. ``progress`` is called with the number of layers excluded, their total and the runs."""
        self.stage = stage
        self.layers = candidates.layers_of(stage)
        self.probes: dict[int, Probe] = {}
        self._judge = judge
        self._progress = progress

    def run(self) -> int | None:
        """Return the length of the shortest beginning that diverges; None if the whole model does not diverge."""
        if self._agrees(len(self.layers)):
            return None
        first = self._first(0, len(self.layers))
        for _ in range(MOST_EXTRA):
            middle = self._widest_gap()
            if middle is None:
                break
            if not self._agrees(middle) and middle < first:
                first = self._first(0, middle)
        return first

    def part(self, count: int) -> Stage:
        """Return the beginning of this many layers."""
        if count == len(self.layers):
            return self.stage
        part = candidates.without(self.stage, self.layers[count:])
        assert part is not None  # it has at least one layer
        return part

    def _first(self, agreeing: int, diverging: int) -> int:
        """Return the shortest beginning that diverges between two lengths, of which the second diverges."""
        while diverging - agreeing > 1:
            middle = (agreeing + diverging) // 2
            if self._agrees(middle):
                agreeing = middle
            else:
                diverging = middle
            if self._progress is not None:
                done = len(self.layers) - (diverging - agreeing)
                self._progress(done, len(self.layers), plural(self._judge.runs, "run"))
        return diverging

    def _agrees(self, count: int) -> bool:
        if count not in self.probes:
            self.probes[count] = probe_of(count, self.stage.model.layer(self.layers[count - 1]), self._verdict(count))
        return self.probes[count].verdict.within

    def _verdict(self, count: int) -> Verdict:
        part = self.part(count)
        return self._judge(part.model, part.feeds)

    def _widest_gap(self) -> int | None:
        """Return the middle of the widest range of lengths without a probe; None if there is none."""
        known = sorted({0, *self.probes})
        width, start = max((b - a, a) for a, b in pairwise(known))
        return start + width // 2 if width > 1 else None
