"""``ovir.bisect``: finds the first layer at which another side differs from a model."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ovir.analysis.input_sizes import NarrowTensor, about_narrow
from ovir.analysis.tensor_comparison import Criterion, TensorComparison, severity
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.debugging import candidates
from ovir.debugging.candidates import Candidate
from ovir.debugging.compare import Comparison, Session, TensorDifference, compare_as, with_excess
from ovir.debugging.comparison_setup import Against, ComparisonOptions, GivenInputs, InputSet, Progress, as_model
from ovir.debugging.device_properties import DeviceSetting, Explanation
from ovir.debugging.divergences import Divergence, row_of
from ovir.debugging.engines.process import EngineMissingError
from ovir.debugging.layerwise_run import Walk, WalkPlan, element_type_of, run_measured
from ovir.debugging.reduce import ReductionSearch
from ovir.debugging.searches import least
from ovir.debugging.sides import Device, ResultLayer, Side
from ovir.debugging.tensor_sides import Recorded
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ModelError, OvirError, RunError
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer, Port
from ovir.graph.names import distinct_names
from ovir.graph.order import dependents, trace_back
from ovir.io.tensor_files import save_npz
from ovir.model import Model, save_model
from ovir.runtime.compiled import CompiledModel
from ovir.system.files import target_paths


@dataclass(frozen=True)
class Verdict:
    """The agreement of a model's outputs on the other side with those of ovir."""

    within: bool
    tensor: str | None = None
    """The name of the output that exceeds its tolerance most."""
    comparison: TensorComparison | None = None
    """The comparison of that output."""
    problem: str | None = None
    """The failure of the other side, which counts as a difference."""

    @property
    def fails(self) -> bool:
        """Return whether the other side computed nothing to compare."""
        return self.problem is not None and self.comparison is None


@dataclass(frozen=True)
class Probe(ResultLayer):
    """The beginning of a model up to a layer, and whether its tensors agree."""

    count: int
    """The number of layers of the beginning, without Parameters, Results, Consts and layers computed from constants."""
    verdict: Verdict
    """Whether its outputs agree, as ``within``, and how far they differ."""

    def to_dict(self) -> dict[str, Any]:
        """Return the probe for JSON."""
        verdict, comparison = self.verdict, self.verdict.comparison
        head = json_fields(self, "count", "id", "name", "type", "version", "verdict.within", "verdict.tensor")
        names = ("max_abs", "max_rel", "sqnr_db", "lone")
        numbers = dict.fromkeys(names) if comparison is None else json_fields(comparison, *names)
        problem = verdict.problem or (None if comparison is None else comparison.problem)
        return {**head, **numbers, "problem": problem}


@dataclass(frozen=True)
class Suspect(ResultLayer):
    """A layer that may be at fault, or that was not compared."""

    reason: str | None = None
    """The reason why not all of its tensors were compared; None if they were."""

    def to_dict(self) -> dict[str, Any]:
        """Return the layer for JSON."""
        return asdict(self)


@dataclass
class Part:
    """The smallest part of a model that was found to differ, with inputs for which it does."""

    model: Model
    """The part, whose inputs are the tensors before it."""
    layers: int
    """The number of layers, without Parameters, Results, Consts and Assigns."""
    files: list[str] = field(default_factory=list)
    """The files that hold it, with its inputs, the results of ovir and those of the other side."""

    def to_dict(self) -> dict[str, Any]:
        """Return the part for JSON, without the model."""
        names = [layer.key for layer in self.model.layers if layer.inputs and layer.outputs]
        return {"layers": self.layers, "names": names, "files": self.files}


@dataclass
class Bisection:
    """The result of ``ovir.bisect``: true if no difference was found."""

    model: str
    """The path or the name of the model."""
    against: str
    """The other side of the comparison, such as ``OpenVINO 2026.4.1 on CPU``."""
    layers: int
    """The number of layers that were searched."""
    runs: int
    """The number of runs on the other side."""
    criterion: Criterion
    precision: str | None = None
    """The element type in which the other side computes, such as ``bf16``; None if it is not known."""
    sets: int = 1
    """The number of sets of inputs."""
    searched_set: int = 0
    """The number of the set that was searched, from 0: the first one for which something differs, or the last one."""
    probes: list[Probe] = field(default_factory=list)
    """The beginnings of the model that were compared, the shortest first."""
    suspects: list[Suspect] = field(default_factory=list)
    """The layers among which at least one is at fault, in the order of the run; empty if nothing differs.

    There are several if tensors before the first one that differs could not be compared."""
    between: list[str] = field(default_factory=list)
    """The names of the tensors that the suspects are computed from: inputs, and tensors that agree.

    Empty on a device."""
    not_compared: list[Suspect] = field(default_factory=list)
    """The layers with tensors that could not be compared."""
    known: Divergence | None = None
    """The known divergence of the first layer that differs."""
    part: Part | None = None
    """The smallest part that was found to differ; None without ``output``, or if nothing differs."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """Warnings and notes, and how the other side failed."""
    properties: Sequence[DeviceSetting] = ()
    """The properties by which the device changes numbers of the model."""
    explanation: Explanation | None = None
    """With ``explain``, whether the device agrees with other properties."""

    @property
    def failed(self) -> bool:
        """Return whether the other side fails to compute the outputs."""
        return bool(self.probes) and self.probes[-1].verdict.fails

    @property
    def within(self) -> bool:
        """Return whether all compared tensors are within the tolerance."""
        return all(probe.verdict.within for probe in self.probes)

    def __bool__(self) -> bool:
        return self.within

    @property
    def first(self) -> Probe | None:
        """Return the shortest beginning at which the other side fails, or else the shortest beyond the tolerance.

        Its last layer is the first that is seen to fail or to differ.
        """
        beyond = [probe for probe in self.probes if not probe.verdict.within]
        return next((probe for probe in beyond if probe.verdict.fails), beyond[0] if beyond else None)

    @property
    def beyond_before(self) -> Probe | None:
        """Return the shortest beginning beyond the tolerance if the other side fails at a longer one."""
        shortest = next((probe for probe in self.probes if not probe.verdict.within), None)
        return None if shortest is self.first else shortest

    @property
    def recovered(self) -> Probe | None:
        """Return the first beginning after the first diverging layer that is within the tolerance again.

        If there is one, errors are not monotone: the layer that spoils the outputs may be another one.
        """
        first = self.first
        if first is None:
            return None
        return next((p for p in self.probes if p.count > first.count and p.verdict.within), None)

    def __repr__(self) -> str:
        return f"<Bisection of {self.model} with {self.against}: {self._summary}>"

    @property
    def _summary(self) -> str:
        first = self.first
        return "within tolerance" if first is None else f"beyond tolerance, first at {first.type} '{first.name}'"

    def _repr_html_(self) -> str:
        return self.table().in_notebook(f"{self.model} against {self.against}: {self._summary}")

    def table(self) -> Table:
        """Return the beginnings of the model that were compared."""
        rows = []
        for probe in self.probes:
            mark = "first" if probe is self.first else "" if probe.verdict.within else "beyond"
            head = (mark, probe.count, probe.name, probe.type, probe.verdict.tensor or "-")
            numbers: tuple[object, ...] = (None, None, "fails" if probe.verdict.problem else None, "-")
            if (worst := probe.verdict.comparison) is not None:
                numbers = (worst.max_abs, worst.max_rel, worst.beyond, worst.lone_text)
            rows.append((*head, *numbers))
        heads = ": tag; layers: counts; last layer: layer; type: type; tensor: name; max abs: error; "
        heads += "max rel: error; beyond: count; nonfinite: count"
        table = Table(columns(heads), rows, least=("max rel", "tensor", "type"))
        return table if any(row[-1] != "-" for row in rows) else table.without(["nonfinite"])

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        found = json_fields(self, "within", "known", "first", "recovered", "suspects", "between", "not_compared")
        found |= json_fields(self, "model", "against", "precision", "layers", "runs", "sets", "searched_set")
        found |= json_fields(self, "properties", "explanation")
        return found | json_fields(self, "tolerance=criterion", "probes", "part", "diagnostics")


def bisect(
    model: Model | str | os.PathLike[str],
    against: Against = "openvino:CPU",
    *,
    inputs: GivenInputs = None,
    samples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    config: Mapping[str, str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    timeout: float | None = None,
    explain: bool = False,
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Bisection:
    """Find the first layer at which another side differs from a model. The result is true if none was found.

    On a device, ovir runs and compares beginnings of the model, about as many as the logarithm of the number of layers.
    A device computes a beginning as it computes the whole model, except for what it would have joined with later
    layers. If the device fails, as by a crash, the search is for the first layer at which it fails.

    A second model, an ONNX model and a recording have tensors of a whole run, which are compared in order. Where they
    do not have all tensors, several layers are ``suspects``: those between the tensors that agree and the first one
    that differs.

    Args:
        model: The model, or the path of an .xml.
        against: The other side, as for ``ovir.compare``.
        inputs: One set of inputs as in a run, a list of mappings, the path of an .npz, of a folder of them, or a
            pattern such as ``data/**/*.npz``. By default, recorded inputs, or random ones.
        samples: The number of sets of random inputs. The layer is looked for with the first set for which something
            differs.
        seed: The seed of random inputs.
        device: The device on which a second model runs; by default it runs in ovir.
        config: Properties of the device.
        rtol: The relative tolerance, as for ``ovir.compare``.
        atol: The absolute tolerance.
        metric: A metric with its limit, such as ``cosine=0.999``, in place of a tolerance.
        timeout: The seconds that one run of a device may take.
        explain: Whether the search is repeated, if something differs, with properties of the device that keep it from
            rounding; ``explanation`` of the result says whether that agrees.
        output: The path of an .xml, to which the smallest part of the model that was found to differ is saved, if there
            is one: the suspects, and on a device as many layers before the diverging one as are needed. Beside it are
            its inputs, the outputs of ovir, and the outputs of the other side, as .npz, and the same part of a second
            model.
        progress: Called with how much is done, how much there is, and what is being done.

    Raises InputError for arguments that do not fit, ReadError for files, RunError if the model itself cannot be run.
    """
    criterion = Criterion.of(rtol, atol, metric)
    options = ComparisonOptions(against, criterion, inputs, samples, seed, device, config, timeout, explain=explain)
    return bisect_as(options, model, output, progress)


def bisect_as(
    options: ComparisonOptions,
    model: Model | str | os.PathLike[str],
    output: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> Bisection:
    """Return the result of ``ovir.bisect``."""
    criterion = options.criterion
    target = None if output is None else Path(target_paths(output).text)
    first = as_model(model)
    with options.open_side(first) as side:
        runs, sets = 0, options.sets(first, side)
        for number, load in enumerate(sets):
            whole = Candidate(first, given=dict(enumerate(load())))
            name = first.path or first.name or "the model"
            result = Bisection(name, side.description, len(candidates.layers_of(whole)), 0, criterion)
            if side.device is not None:
                reproducer = _on_device(result, whole, side.device, progress, is_saved=target is not None)
            else:
                search = TensorSearch(whole, side, criterion)
                search.run(result, progress)
                reproducer = search.reproducer
            result.precision, result.properties = side.precision, side.settings
            result.diagnostics = [*load.diagnostics, *result.diagnostics]
            result.runs += runs
            result.sets, result.searched_set, runs = len(sets), number, result.runs
            if not result.within:
                break
        if target is not None and reproducer is not None:
            result.part = reproducer.save(target)
    if result.beyond_before is not None:
        result.known = None  # it explains the failure alone
    if not result.within and not result.failed:
        explanation = options.explanation(
            result.properties, lambda again: bisect_as(again, first, None, progress).within
        )
        if explanation is not None and explanation.is_by_precision:
            outputs = compare_as(replace(options, explain=False), first, progress)
            explanation = with_excess(explanation, outputs, options, lambda again: compare_as(again, first, progress))
        result.explanation = explanation
    return result


def _on_device(
    result: Bisection, whole: Candidate, device: Device, progress: Progress | None, *, is_saved: bool
) -> Reproducer | None:
    """Find the layer by running beginnings of the model; return the smallest part that differs if it is to be saved."""
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
            arrays, problem = (step.inputs, step.outputs, device.openvino_device), search.probes[length].verdict.problem
            result.known = row_of(layer, *arrays, message=problem, fails=search.seeks_failure)
        if is_saved:
            if progress is not None:
                progress(len(search.layers) - length, len(search.layers), "looking for the smallest part")
            part = smallest_part(search.part(length), judge, fails=search.seeks_failure)
            reproducer = run_on(device, part)
    result.runs, result.diagnostics = judge.runs, list(about_narrow(judge.narrow))
    return reproducer


# --------------------------------------------------------------------------- beginnings of a model on a device

MOST_EXTRA = 4
"""The number of probes in addition to the binary search, which show whether errors are monotone."""


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
        """Return the length of the shortest beginning that diverges; None if the whole model does not diverge."""
        if not self._diverges(len(self.layers)):
            return None
        first = self._first(0, len(self.layers))
        for _ in range(MOST_EXTRA):
            known = sorted({0, *self.probes})
            width, start = max((b - a, a) for a, b in pairwise(known))
            middle = start + width // 2 if width > 1 else None
            if middle is None:
                break
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
            self.probes[count] = Probe.of(self.whole.model.layer(self.layers[count - 1]), count, self._verdict(count))
        verdict = self.probes[count].verdict
        self.seeks_failure |= verdict.fails
        return verdict.fails if self.seeks_failure else not verdict.within

    def _verdict(self, count: int) -> Verdict:
        part = self.part(count)
        return self._judge(part.model, part.feeds)


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
        worst: tuple[Port, TensorComparison] | None = None
        for port, actual, reference in zip(model.outputs, results, expected, strict=True):
            kind, depth = element_type_of(port, reference), depths.of_port(port.source)
            tolerance = self._criterion.between(kind, actual, self._device.precision, depth)
            compared = self._criterion.compare(actual, reference, tolerance)
            if worst is None or severity(compared) > severity(worst[1]):
                worst = port, compared
        if worst is None:
            return Verdict(within=True)
        return Verdict(worst[1].within, worst[0].any_name, worst[1])


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


def run_on(device: Device, whole: Candidate) -> Reproducer:
    """Return a part with the outputs that a device computes for it."""
    actual = None
    with suppress(RunError):  # the device may fail, which the report says
        actual = device.run(whole.model, whole.feeds)
    return Reproducer(whole.model, whole.feeds, actual)


# --------------------------------------------------------------------------- tensors of whole runs

_NAME = "the inputs"
"""The name of the only set of inputs."""


class TensorSearch:
    """Searches for the first tensor that differs, and for the suspects, of which at least one layer is at fault.

    The suspects are the layers between the tensors that agree and the first one that differs; there are several if the
    other side does not have their tensors. One of them is at fault if ovir, given the other side's tensors before them,
    computes another tensor than the other side has after them. If it computes the same, differences within the
    tolerance have grown into the one that was found, and the search goes back past tensors that are not equal.
    """

    def __init__(self, whole: Candidate, side: Side, criterion: Criterion) -> None:
        self._whole = whole
        self._side = side
        self._criterion = criterion
        self._layers = [layer for layer in map(whole.model.layer, candidates.layers_of(whole)) if not layer.is_dead]
        self._known: dict[Port, TensorDifference] = {}
        """The tensors that were compared."""
        self._reasons: dict[str, str] = {}
        """The reasons why layers were not compared."""
        self.reproducer: Reproducer | None = None
        """The part of the suspects, once it is known to differ."""

    def run(self, result: Bisection, progress: Progress | None) -> None:
        """Compare all tensors that the other side has, and enter the conclusions in ``result``."""
        session = Session(self._whole.model, self._side, self._criterion, progress)
        compared = session.run([InputSet(_NAME, lambda: self._whole.feeds)], "cumulative")
        self._collect(session)
        result.runs, result.layers, result.diagnostics = 1, len(self._layers), compared.diagnostics
        result.not_compared = [x for layer in self._layers if (x := self._suspect(layer)).reason is not None]
        probes = []
        if ends := self._first_that_differ():
            probes.append(self._probe(ends, self._verdict(ends)))
        failing, problem = self._first_that_fails(session, compared)
        if failing:  # only failures count, as differences before them may have other reasons
            ends = failing
            earlier = [probe for probe in probes if probe.count < self._count(ends)]
            probes = [*earlier, self._probe(ends, Verdict(within=False, problem=problem))]
        if ends:
            result.probes = probes
            result.runs += self._find_suspects(ends, session, result, fails=bool(failing))
        if not failing:
            ports = self._outputs()
            is_new = not result.probes or result.probes[-1].count < len(self._layers)
            if self._layers and ports and is_new and all(port in self._known for port in ports):
                result.probes.append(Probe.of(self._layers[-1], len(self._layers), self._verdict(ports)))

    def _collect(self, session: Session) -> None:
        for layer in self._whole.model.layers:
            for position, difference in session.found.layers.get(layer.key, {}).items():
                self._known[layer.outputs[position]] = difference
        for index, difference in session.found.outputs.items():
            port = self._whole.model.outputs[index].source
            if port is not None and (port not in self._known or self._known[port].within):
                self._known[port] = difference  # a device may fail at the whole model alone
        self._reasons = session.found.skipped

    def _suspect(self, layer: Layer) -> Suspect:
        """Return a layer, with the reason if not all of its tensors were compared."""
        reason = None
        if any(port.readers and port not in self._known for port in layer.outputs):
            some = any(port in self._known for port in layer.outputs)
            reason = "only some of its outputs were compared" if some else self._reasons.get(layer.key, "not compared")
        return Suspect.of(layer, reason)

    def _first_that_differ(self) -> list[Port]:
        """Return the tensors beyond the tolerance of the first layer that has any."""
        fixed = [layer for layer in self._whole.model.layers if layer.id in self._whole.constant_layers]
        for layer in (*self._layers, *fixed):
            differing = [port for port in layer.outputs if port in self._known and not self._known[port].within]
            if differing:
                return differing
        return []

    def _first_that_fails(self, session: Session, compared: Comparison) -> tuple[list[Port], str]:
        """Return outputs of the first layer at which the other side fails, and how it does; none if it does not."""
        failed_at = session.found.failed_at
        for layer in self._layers:
            if layer.key in failed_at:
                return list(layer.outputs[:1]), failed_at[layer.key]
        if not compared.failed:
            return [], ""
        error = compared.diagnostics[-1]  # at a layer that the model does not have
        return self._first_missing_output(), f"{error.layer}: {error.message}" if error.layer else error.message

    def _count(self, ports: Sequence[Port]) -> int:
        """Return the length of the beginning that ends with the layer of some tensors."""
        return self._layers.index(ports[0].layer) + 1 if ports[0].layer in self._layers else 0

    def _probe(self, ports: Sequence[Port], verdict: Verdict) -> Probe:
        return Probe.of(ports[0].layer, self._count(ports), verdict)

    def _outputs(self) -> list[Port]:
        ports = [port.source for port in self._whole.model.outputs if port.source is not None]
        return [port for port in ports if port.layer.type != "Parameter"]

    def _first_missing_output(self) -> list[Port]:
        """Return the first output that was not compared; any other one if the tensors of all were."""
        ports = [port for port in self._outputs() if port.layer in self._layers]
        return sorted(ports, key=lambda port: (port in self._known, self._layers.index(port.layer)))[:1]

    def _verdict(self, ports: Sequence[Port]) -> Verdict:
        """Return the verdict on tensors that were compared."""
        port = max(ports, key=lambda port: severity(self._known[port].worst))
        worst = self._known[port].worst
        return Verdict(worst.within, port.any_name, worst)

    # ----- suspects

    def _find_suspects(self, ends: Sequence[Port], session: Session, result: Bisection, *, fails: bool) -> int:
        """Enter the suspects for tensors that differ, or that the other side ``fails`` to compute; return how many runs
        of the other side this took."""
        agreeing = {
            port for port, difference in self._known.items() if difference.within or (fails and port not in ends)
        }
        runs, steps, is_shown = 0, 1, False
        while not is_shown:
            layers, inputs = self._before(ends, agreeing)
            runs += 1
            is_shown = self._shows(ends, agreeing, session)
            unequal = _unequal(inputs, self._known)
            if is_shown or not unequal:
                break
            for _ in range(steps):
                agreeing -= unequal
                unequal = _unequal(self._before(ends, agreeing)[1], self._known)
            steps *= 2
        suspects = [layer for layer in self._layers if layer in layers] or [ends[0].layer]
        result.suspects = [self._suspect(layer) for layer in suspects]
        result.between = [port.any_name for port in inputs]
        return runs

    def _before(self, ends: Sequence[Port], cut: Collection[Port]) -> tuple[Collection[Layer], list[Port]]:
        """Return the layers between a cut and some tensors, and the tensors of the cut that these layers read."""
        constant = self._whole.constant_layers

        def enters(port: Port) -> bool:
            return port not in cut and port.layer.type != "Parameter" and port.layer.id not in constant

        layers, border = trace_back((port.layer for port in ends), enters)
        inputs = {port for port in border if port.layer.id not in constant}
        return layers, [port for layer in self._whole.model.layers for port in layer.outputs if port in inputs]

    def _shows(self, ends: Sequence[Port], agreeing: Collection[Port], session: Session) -> bool:
        """Keep the part between tensors if it differs from the other side; return whether it does.

        ovir runs the part on tensors of the other side, and must compute others than the other side has after it. A
        part that ovir cannot run, because inference needs the values of sizes, computes them itself.
        """
        cuts = [agreeing, {port for port in agreeing if port.element_type.is_real}]
        parts = [self._before(ends, cut)[1] for cut in cuts]
        tensors = session.tensors(self._whole.feeds, {*ends, *(port for inputs in parts for port in inputs)})
        tensors.update(zip(self._whole.model.inputs, self._whole.feeds, strict=True))
        for inputs in parts:
            if not all(port in tensors for port in inputs):  # the other side fails this time
                return False
            try:
                part = self._part(inputs, ends, tensors)
                if part.actual is None or not self._agrees(part):
                    self.reproducer = part
                    return True
                return False
            except OvirError:
                continue
        return False

    def _part(self, inputs: Sequence[Port], ends: Sequence[Port], tensors: Mapping[Port, Array]) -> Reproducer:
        """Return the part between tensors, fed with the other side's; raise OvirError if ovir cannot run it."""
        part = self._whole.model.extract(inputs=inputs, outputs=ends)
        feeds = [_typed(tensors[port], port) for port in inputs]
        CompiledModel(part, keep_compressed=True)(feeds)
        other = None if self._side.partners is None else self._side.partners.part(inputs, ends)
        fails = any(port not in tensors for port in ends)
        return Reproducer(part, feeds, None if fails else [tensors[port] for port in ends], other)

    def _agrees(self, part: Reproducer) -> bool:
        """Return whether the results of the part agree with the other side."""
        assert part.actual is not None
        side = Recorded(part.model, part.named(part.actual), "the part", self._side.precision)
        sets = [InputSet(_NAME, lambda: list(part.feeds))]
        return Session(part.model, side, self._criterion, None).run(sets, None).within


def _unequal(ports: Sequence[Port], known: dict[Port, TensorDifference]) -> set[Port]:
    """Return the tensors that are not the same on both sides, although they are within the tolerance."""
    return {port for port in ports if port in known and known[port].worst.max_abs}


def _typed(array: Array, port: Port) -> Array:
    """Return an array of the other side in the element type of the model."""
    return array if port.element_type.is_dynamic else array.astype(port.element_type.to_dtype(), copy=False)


# --------------------------------------------------------------------------- the part that is saved

_ARRAYS = ("_input.npz", "_expected.npz", "_actual.npz")
_OTHER = "_other.xml"
PART_ENDINGS = (*_ARRAYS, _OTHER, "_other.bin")
"""The endings of the files beside a part, each after the name of the part."""


@dataclass(frozen=True)
class Reproducer:
    """A part of a model that differs from another side."""

    model: Model
    feeds: Sequence[Array]
    """The inputs for which it differs."""
    actual: Sequence[Array] | None
    """The outputs of the other side; None if it fails."""
    other: Model | None = None
    """The same part of a second model."""

    def named(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """Return outputs by distinct names."""
        names = [port.any_name for port in self.model.outputs]
        distinct = [name if names.count(name) == 1 else f"{name}_{i}" for i, name in enumerate(names)]
        return dict(zip(distinct, arrays, strict=True))

    def save(self, target: Path) -> Part:
        """Write the part as an IR, and beside it its inputs, the outputs of ovir and of the other side.

        The files have the name of the part, with ``_input.npz``, ``_expected.npz`` and ``_actual.npz``. The part of a
        second model is written with ``_other.xml``.
        """
        files: list[Path] = []
        models = {target: self.model}
        if self.other is not None:
            models[target.with_name(f"{target.stem}{_OTHER}")] = self.other
        for path, model in models.items():
            save_model(model, path)
            files += [path, path.with_suffix(".bin")]
        arrays = [dict(zip(distinct_names(self.model.inputs), self.feeds, strict=True))]
        arrays.append(self.named(list(CompiledModel(self.model)(list(self.feeds)).values())))
        if self.actual is not None:
            arrays.append(self.named(self.actual))
        for ending, tensors in zip(_ARRAYS, arrays, strict=False):
            files.append(target.with_name(f"{target.stem}{ending}"))
            save_npz(files[-1], tensors)
        return Part(self.model, candidates.count(self.model), [os.fspath(file) for file in files])
