"""The search for the first layer that differs on a device, which runs beginnings of the model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from ovir.analysis.input_sizes import NarrowTensor, about_narrow
from ovir.analysis.tensor_comparison import Criterion, TensorComparison, severity
from ovir.core.arrays import Array
from ovir.debugging import candidates
from ovir.debugging.bisection import Bisection, Probe, Suspect, Verdict
from ovir.debugging.candidates import Candidate
from ovir.debugging.comparison_setup import Progress
from ovir.debugging.divergences import row_of
from ovir.debugging.engines.process import EngineMissingError
from ovir.debugging.layerwise_run import Walk, WalkPlan, element_type_of, run_measured
from ovir.debugging.reduce import ReductionSearch
from ovir.debugging.reproducer import Reproducer
from ovir.debugging.searches import least
from ovir.debugging.sides import Device
from ovir.diagnostics.errors import InputError, ModelError, RunError
from ovir.diagnostics.wording import plural
from ovir.graph.order import dependents
from ovir.model import Model

MOST_EXTRA = 4
"""The number of probes in addition to the binary search, which show whether errors are monotone."""


def search_prefixes(
    result: Bisection, whole: Candidate, device: Device, progress: Progress | None, *, is_saved: bool
) -> Reproducer | None:
    """Enter the conclusions in ``result``; return the smallest part that differs if it is to be saved."""
    judge = Judge(device, result.criterion)
    search = PrefixSearch(whole, judge, progress)
    length = search.run()
    result.probes = [search.probes[count] for count in sorted(search.probes)]
    reproducer = None
    if length is not None:
        layer = whole.model.layer(search.layers[length - 1])
        result.suspects = [Suspect.of(layer)]
        steps = Walk(WalkPlan(whole.model, with_constants=False), whole.feeds)
        step = next((step for step in steps if step.layer is layer), None)  # a dead layer is not run
        if step is not None and dependents([layer]) >= {end.layer for end in whole.model.outputs}:
            problem = search.probes[length].verdict.problem
            result.known = row_of(layer, step.inputs, step.outputs, device.openvino_device, problem)
        if is_saved:
            if progress is not None:
                progress(len(search.layers) - length, len(search.layers), "looking for the smallest part")
            part = smallest_part(search.part(length), judge, fails=search.seeks_failure)
            actual = None
            with suppress(RunError):  # the device may fail, which the report says
                actual = device.run(part.model, part.feeds)
            reproducer = Reproducer(part.model, part.feeds, actual)
    result.runs, result.diagnostics = judge.runs, list(about_narrow(judge.narrow))
    return reproducer


class PrefixSearch:
    """Binary search for the shortest beginning of a model whose tensors diverge.

    The beginning of n layers has all tensors as outputs that later layers, or Results, read. Layers are ordered
    topologically, so it is well defined for models with branches. A device computes it with the fusions of the whole
    model, except at its end.

    Once the device fails at a beginning, only failures count: tensors of shorter ones may differ for other reasons.
    """

    def __init__(self, whole: Candidate, judge: Judge, progress: Progress | None = None) -> None:
        """Prepare the search. ``progress`` is called with the number of layers excluded, their total and the runs."""
        self.whole = whole
        self.layers = candidates.layers_of(whole)
        self.probes: dict[int, Probe] = {}
        self.seeks_failure = False
        self._judge = judge
        self._progress = progress

    def run(self) -> int | None:
        """Return the length of the shortest beginning that diverges; None if the whole model does not diverge.

        Raises InputError for a model in which no layer depends on inputs or states.
        """
        if not self.layers:
            raise InputError.usage("the model has no layers to search: none depends on inputs or states")
        if not self._diverges(len(self.layers)):
            return None
        first = self._first(0, len(self.layers))
        for _ in range(MOST_EXTRA):
            known = sorted({0, *self.probes})
            width, start = max((b - a, a) for a, b in pairwise(known))
            if width == 1:
                break
            middle = start + width // 2
            sought_failure = self.seeks_failure
            if self._diverges(middle) and (middle < first or self.seeks_failure != sought_failure):
                first = self._first(0, middle)
        return first

    def part(self, count: int) -> Candidate:
        """Return the beginning of this many layers."""
        if count == len(self.layers):
            return self.whole
        part = candidates.without(self.whole, self.layers[count:])
        assert part is not None  # it has at least one layer
        return part

    def _first(self, agreeing: int, diverging: int) -> int:
        """Return the shortest beginning that diverges between two lengths, of which the second diverges."""

        def narrowed(agreeing: int, diverging: int) -> None:
            if self._progress is not None:
                done = len(self.layers) - (diverging - agreeing)
                self._progress(done, len(self.layers), plural(self._judge.runs, "run"))

        return least(agreeing, diverging, self._diverges, narrowed=narrowed)

    def _diverges(self, count: int) -> bool:
        if count not in self.probes:
            last, part = self.whole.model.layer(self.layers[count - 1]), self.part(count)
            self.probes[count] = Probe.of(last, count, self._judge(part.model, part.feeds))
        verdict = self.probes[count].verdict
        self.seeks_failure |= verdict.fails
        return verdict.fails if self.seeks_failure else not verdict.within


class Judge:
    """Runs models in ovir and on a device, and compares all outputs."""

    def __init__(self, device: Device, criterion: Criterion) -> None:
        self.runs = 0
        self.narrow: list[NarrowTensor] = []
        """The tensors of the first run that were too small for the layers that read them."""
        self._device = device
        self._criterion = criterion

    def __call__(self, model: Model, feeds: Sequence[Array]) -> Verdict:
        """Return the verdict on the outputs of both sides. Raises RunError if ovir cannot run the model."""
        expected, depths = run_measured(model, feeds)
        self.narrow = self.narrow if self.runs else depths.narrow
        self.runs += 1
        try:
            results = self._device.run(model, feeds)
        except EngineMissingError:
            raise
        except (RunError, ModelError) as error:
            return Verdict(within=False, problem=error.diagnostic.message)
        comparisons: list[tuple[str, TensorComparison]] = []
        for port, actual, reference in zip(model.outputs, results, expected, strict=True):
            kind, depth = element_type_of(port, reference), depths.of_port(port.source)
            tolerance = self._criterion.between(kind, actual, self._device.precision, depth)
            comparisons.append((port.any_name, self._criterion.compare(actual, reference, tolerance)))
        if not comparisons:
            return Verdict(within=True)
        name, worst = max(comparisons, key=lambda named: severity(named[1]))
        return Verdict(worst.within, name, worst)


def smallest_part(whole: Candidate, judge: Judge, *, fails: bool = False) -> Candidate:
    """Return the smallest part of a diverging model that still diverges for the values that its inputs have in it.

    A part of a model at which the device ``fails`` must fail, too.
    """

    def attempt(candidate: Candidate, _: str) -> bool:
        try:
            verdict = judge(candidate.model, candidate.feeds)
            return verdict.fails if fails else not verdict.within
        except RunError:  # ovir cannot run it alone
            return False

    search = ReductionSearch(whole, attempt)
    search.remove_context()
    return search.best
