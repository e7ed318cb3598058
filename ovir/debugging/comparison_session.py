"""Runs a model and another side, and compares their outputs and layers for one set of inputs after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from ovir.analysis.clipping import Clipping, add_clipping
from ovir.analysis.input_sizes import about_narrow
from ovir.analysis.tensor_comparison import SIDES, Criterion, Depth, TensorComparison, Tolerance, noise, severity
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.comparison import Comparison, LayerDifference, OutputDifference, TensorDifference, agreement_of
from ovir.debugging.comparison_setup import InputSet, Progress
from ovir.debugging.device_properties import DeviceSetting
from ovir.debugging.divergences import Divergence, row_of
from ovir.debugging.engines.process import EngineMissingError
from ovir.debugging.layerwise_run import Depths, Walk, WalkPlan, element_type_of, local
from ovir.debugging.sides import LayerAnswer, LayerMode, NotCompared, Side
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.diagnostics.errors import InputError, RunError
from ovir.graph.layers import Layer, Port
from ovir.graph.order import dependents
from ovir.ir.executed import Execution
from ovir.model import Model
from ovir.runtime.executor import SeenStep


def _add(known: dict[int, TensorDifference], position: int, difference: TensorDifference) -> None:
    """Add the comparison of a tensor to those for earlier sets of inputs."""
    if position in known:
        known[position].add(difference)
    else:
        known[position] = difference


@dataclass
class Findings:
    """Differences by layer and output. Layers are named by their key, so that processes can exchange findings."""

    steps: list[str] = field(default_factory=list)
    """The layers that can be compared, in the order of the run."""
    layers: dict[str, dict[int, TensorDifference]] = field(default_factory=dict)
    """The comparisons of each layer by the position of its output."""
    outputs: dict[int, TensorDifference] = field(default_factory=dict)
    contributions: dict[str, float] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    """The keys of layers that have another name in the other model."""
    lone_before: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The layers that a layer reads and that only one model has, by its key."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reasons why layers were not compared."""
    known: dict[str, Divergence | None] = field(default_factory=dict)
    """For layers that differ, the known divergence; None if a set of inputs is not explained by one."""
    clipped: dict[str, Clipping] = field(default_factory=dict)
    """What FakeQuantize layers of both models have clipped, by their keys."""
    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)
    failed: bool = False
    """Whether the other side failed to compute the outputs."""
    failed_at: dict[str, str] = field(default_factory=dict)
    """The failures of the other side at layers."""
    description: str = ""
    """The name of the other side; this and the fields below describe it."""
    precision: str | None = None
    properties: Sequence[DeviceSetting] = ()
    executions: Mapping[str, Execution] = field(default_factory=dict)
    not_compared: list[NotCompared] = field(default_factory=list)
    sides: tuple[str, str] = SIDES
    outputs_first: bool = False
    repeat: int | None = None

    def describe(self, side: Side) -> None:
        """Record the description of the other side after its runs."""
        self.diagnostics.update(dict.fromkeys(side.diagnostics))
        self.description, self.precision, self.executions = side.description, side.precision, side.executions
        self.not_compared, self.sides, self.properties = list(side.not_compared), side.labels, side.settings
        self.outputs_first, self.repeat = side.outputs_first, None if self.failed else side.repeats.count

    def add_tensor(self, layer: Layer, position: int, difference: TensorDifference) -> None:
        """Add the comparison of an output of a layer."""
        _add(self.layers.setdefault(layer.key, {}), position, difference)

    def add_row(self, key: str, row: Divergence | None) -> None:
        """Add the known divergence of a layer that differs."""
        self.known[key] = None if row is None else self.known.get(key, row)

    def add(self, later: Findings) -> None:
        """Add the findings for later sets of inputs."""
        for key, row in later.known.items():
            self.add_row(key, row)
        for key, clipping in later.clipped.items():
            add_clipping(self.clipped, key, clipping)
        for key, tensors in later.layers.items():
            for position, tensor in tensors.items():
                _add(self.layers.setdefault(key, {}), position, tensor)
        for index, tensor in later.outputs.items():
            _add(self.outputs, index, tensor)
        for key, contribution in later.contributions.items():
            self.contributions[key] = max(self.contributions.get(key, 0.0), contribution)
        self.others.update(later.others)
        self.lone_before.update(later.lone_before)
        self.skipped = {**later.skipped, **self.skipped}
        self.diagnostics.update(later.diagnostics)
        self.failed |= later.failed
        self.failed_at.update(later.failed_at)
        self.steps = self.steps or later.steps
        self.description, self.precision, self.executions = later.description, later.precision, later.executions
        self.not_compared, self.sides, self.properties = later.not_compared, later.sides, later.properties
        self.outputs_first, self.repeat = later.outputs_first, None if self.failed else later.repeat

    def outputs_agree(self) -> bool:
        """Return whether outputs were compared and are within the tolerance."""
        return bool(self.outputs) and not self.failed and all(tensor.within for tensor in self.outputs.values())

    def result(self, model: Model, criterion: Criterion, mode: str, sets: int) -> Comparison:
        """Return the result for so many sets of inputs."""
        layers = {layer.key: layer for layer in model.layers}
        compared = [layers[key] for key in self.steps if key in self.layers]
        skipped = [layers[key] for key in self.steps if key in self.skipped and key not in self.layers]
        return Comparison(
            model=model.path or model.name or "the model",
            against=self.description,
            precision=self.precision,
            mode=mode,
            sets=sets,
            criterion=criterion,
            outputs=[OutputDifference(i, model.outputs[i].any_name, x) for i, x in sorted(self.outputs.items())],
            layers=[self._layer(layer) for layer in compared],
            not_compared=[NotCompared(x.id, x.key, x.type, self.skipped[x.key]) for x in skipped] + self.not_compared,
            values=self.sides,
            diagnostics=list(self.diagnostics),
            failed=self.failed,
            is_explained=self._is_explained(model, [layers[key] for key in self.layers if key in layers]),
            repeat=self.repeat,
            properties=self.properties,
            clipped=dict(sorted(self.clipped.items(), key=lambda item: -item[1].share)),
        )

    def _is_explained(self, model: Model, compared: Sequence[Layer]) -> bool:
        """Return whether a layer with a known divergence comes before all that is beyond tolerance."""
        wrong = [layer for layer in compared if not all(x.within for x in self.layers[layer.key].values())]
        wrong += [model.outputs[index].layer for index, tensor in self.outputs.items() if not tensor.within]
        known = {layer for layer in compared if self.known.get(layer.key) is not None}
        return not known or known | dependents(known) >= set(wrong)

    def _layer(self, layer: Layer) -> LayerDifference:
        differences = self.layers[layer.key]
        position = max(differences, key=lambda place: severity(differences[place].worst))
        varying = (tensor.variation for tensor in differences.values() if tensor.variation is not None)
        differences[position].variation = max(varying, key=lambda found: severity(found.spread), default=None)
        return LayerDifference.of(
            *(layer, position, differences[position], self.contributions[layer.key], self.others.get(layer.key)),
            *(bool(layer.bodies), self.lone_before.get(layer.key, ()), self.executions.get(layer.key)),
            self.known.get(layer.key),
        )


class Session:
    """One comparison of a model with another side."""

    def __init__(
        self, model: Model, side: Side, criterion: Criterion, progress: Progress | None, *, keeps_state: bool = False
    ) -> None:
        self._model = model
        self._side = side
        self._criterion = criterion
        self._progress = progress
        self._plan = WalkPlan(model, with_constants=side.with_constants, keeps_state=keeps_state)
        self._done = self._total = 0
        self._set = 0, ""
        """The number and the name of the present set of inputs."""
        self._noise: dict[Port, float] = {}
        self._depths: dict[Layer, Depth] = {}
        self.findings = Findings([layer.key for layer in self._plan.layers])

    def run(self, sets: Sequence[InputSet], mode: LayerMode | None) -> Comparison:
        """Compare for all sets of inputs."""
        self.compare(sets)

        def compare_layers(mode: LayerMode) -> None:
            self.compare(sets, mode, runs_whole=not self.findings.failed)

        return finish(self.findings, self._model, self._criterion, len(sets), mode, compare_layers)

    def compare(
        self, sets: Sequence[InputSet], mode: LayerMode | None = None, first: int = 0, *, runs_whole: bool = True
    ) -> None:
        """Compare for sets of inputs, which are numbered from ``first`` on.

        A side that has outputs first is compared twice: without a mode for its outputs, then with one for its layers;
        ``runs_whole`` says whether it was able to run the whole model. Any other side is compared once.
        """
        self._total += len(self._plan.layers) * len(sets)
        self._plan.clipped = {}
        if mode is not None:
            self._side.compare_layers(mode, runs_whole=runs_whole)
        for number, inputs in enumerate(sets, first):
            arrays = inputs()
            self.findings.diagnostics.update(dict.fromkeys(inputs.diagnostics))
            self._set = number, inputs.name
            self._compare(arrays, mode)
        self.findings.describe(self._side)
        if mode is None:
            self.findings.clipped = {**self._side.clipped, **self._plan.clipped}

    def _compare(self, inputs: list[Array], mode: LayerMode | None) -> None:
        """Compare for one set of inputs."""
        side, depths = self._side, Depths(self._rounded_constants)
        no_layers = mode is None and side.outputs_first
        walk = Walk(self._plan, inputs, share=no_layers or side.shares_steps)
        self._noise.clear()

        def steps() -> Iterator[SeenStep]:
            for step in walk:
                depth = depths.of(step)
                self._depths[step.layer] = depth if side.accumulates else local(step)
                yield step
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, self._total, f"{step.layer.type} {step.layer.name}")

        if no_layers:
            for _ in steps():
                pass
        else:
            for answer in side.layer_outputs(inputs, steps()):
                self._take(answer)
        self.findings.diagnostics.update(dict.fromkeys(about_narrow(depths.narrow)))
        if mode is None:
            self._take_outputs(inputs, walk, depths)

    def tensors(self, inputs: list[Array], wanted: Collection[Port]) -> dict[Port, Array]:
        """Run both sides once more, and return the wanted tensors as far as the other side has them."""
        arrays: dict[Port, Array] = {}
        for answer in self._side.layer_outputs(inputs, Walk(self._plan, inputs)):
            for port, array in zip(answer.step.layer.outputs, answer.arrays, strict=False):
                if port in wanted and array is not None:
                    arrays[port] = array
        if any(port.source in wanted for port in self._model.outputs):
            with suppress(RunError):  # the other side may fail at a later layer
                sources = [output.source for output in self._model.outputs]
                for source, array in zip(sources, self._side.outputs(inputs), strict=True):
                    if source is not None and source in wanted and array is not None:
                        arrays[source] = array
        return arrays

    @cached_property
    def _rounded_constants(self) -> Mapping[Layer, ElementType]:
        return self._side.rounded_constants()

    # ----- outputs

    def _take_outputs(self, inputs: list[Array], walk: Walk, depths: Depths) -> None:
        """Compare the outputs of a finished run with the outputs of the other side."""
        references = walk.finish()
        self.findings.diagnostics.update(dict.fromkeys(walk.diagnostics))
        try:
            others = self._side.outputs(inputs)
        except EngineMissingError:
            raise
        except RunError as error:
            if not self._side.outputs_first and not self.findings.layers:
                raise  # nothing is known about the model
            self.findings.failed = True
            self.findings.diagnostics.update(dict.fromkeys(error.diagnostics))
            return
        for index, (reference, actual) in enumerate(zip(references, others, strict=True)):
            if actual is None:
                continue
            port = self._model.outputs[index]
            assert port.source is not None
            depth = depths.of_port(port.source)
            difference = self._difference(port, actual, reference, depth, counts_errors=True)
            is_odd = difference.worst.lone or difference.worst.problem
            agreement = None if is_odd else agreement_of(actual, reference)
            difference.agreements = [] if agreement is None else [agreement]
            _add(self.findings.outputs, index, difference)

    def _difference(
        self, port: Port, actual: Array, reference: Array, depth: Depth, *, counts_errors: bool = False
    ) -> TensorDifference:
        """Compare a tensor with its reference, for the present set of inputs."""
        element_type = element_type_of(port, reference)
        tolerance = self._criterion.between(element_type, actual, self._side.precision, depth)
        if (problem := self._side.mismatch(element_type, actual)) is not None:
            comparison = TensorComparison(reference.size, within=False, beyond=reference.size, problem=problem)
        else:
            comparison = self._criterion.compare(actual, reference, tolerance, counts_errors=counts_errors)
        difference = TensorDifference(comparison, *self._set, tolerance, str(element_type), reference.shape)
        difference.variation = self._side.repeats.variation(actual, reference, self._set[1])
        return difference

    # ----- layers

    def _take(self, answer: LayerAnswer) -> None:
        """Compare the outputs of a layer."""
        step = answer.step
        layer = step.layer
        if answer.skipped is not None:
            self.findings.skipped.setdefault(layer.key, answer.skipped)
            return
        if answer.other is not None and answer.other is not layer and answer.other.name != layer.name:
            self.findings.others[layer.key] = answer.other.key
        if (partners := self._side.partners) is not None and layer.key not in self.findings.lone_before:
            self.findings.lone_before[layer.key] = tuple(partners.lone_before(layer))
        worst: TensorComparison | None = None
        if answer.problem is not None:
            self.findings.failed_at.setdefault(layer.key, answer.problem)
            size = step.outputs[0].size if step.outputs else 0
            worst = TensorComparison(size, within=False, beyond=size, problem=answer.problem)
            shape = step.outputs[0].shape if step.outputs else ()
            kind = str(layer.outputs[0].element_type)
            self.findings.add_tensor(layer, 0, TensorDifference(worst, *self._set, Tolerance(), kind, shape))
        for position, (port, actual) in enumerate(zip(layer.outputs, answer.arrays, strict=False)):
            if actual is not None:
                difference = self._difference(port, actual, step.outputs[position], self._depths[layer])
                self.findings.add_tensor(layer, position, difference)
                comparison = difference.worst
                self._noise[port] = noise(comparison)
                worst = comparison if worst is None or severity(comparison) > severity(worst) else worst
        if worst is not None:
            self._contribute(layer, worst)
        if worst is not None and not worst.within:
            self.findings.add_row(layer.key, self._row(step, answer.problem))

    def _row(self, step: SeenStep, problem: str | None) -> Divergence | None:
        """Return the known divergence that explains the difference, or the failure, at a layer."""
        device = "" if self._side.device is None else self._side.device.openvino_device
        return row_of(step.layer, step.inputs, step.outputs, device, failure=problem)

    def _contribute(self, layer: Layer, comparison: TensorComparison) -> None:
        """Record how much noise a layer adds to that of its inputs."""
        added = noise(comparison)
        if self._side.accumulates:
            sources = [self._noise.get(port.source, 0.0) for port in layer.inputs if port.source is not None]
            before = max(sources, default=0.0)
            added = added - before if added > before else 0.0
        contributions = self.findings.contributions
        contributions[layer.key] = max(contributions.get(layer.key, 0.0), added)


def finish(
    findings: Findings,
    model: Model,
    criterion: Criterion,
    sets: int,
    mode: LayerMode | None,
    compare_layers: Callable[[LayerMode], None],
) -> Comparison:
    """Compare layers, too, if the side has outputs first and these differ or vary, or a mode is given.

    ``sets`` is the number of sets of inputs. Return the result; raise InputError if nothing was compared.
    """
    compared = "cumulative"
    if findings.outputs_first:
        varies = any(tensor.variation is not None for tensor in findings.outputs.values())
        wanted: LayerMode = mode or ("cumulative" if varies else "isolated")
        compared = "outputs" if mode is None and findings.outputs_agree() and not varies else wanted
        if compared != "outputs":
            compare_layers(wanted)
    if findings.outputs or findings.layers or findings.failed:
        return findings.result(model, criterion, compared, sets)
    reasons = dict.fromkeys(findings.skipped.values())
    reason = f": {next(iter(reasons))}" if len(reasons) == 1 else ""
    message = f"nothing was compared: no layer and no output can be{reason}"
    raise InputError.usage(message, Place(findings.description))
