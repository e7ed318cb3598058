"""`ovir.compare`: finds the layers at which a model differs from another model, an engine or a recording."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ovir.analysis.clipping import Clipping, add_clipping
from ovir.analysis.input_sizes import about_narrow
from ovir.analysis.metrics import top_scores
from ovir.analysis.tensor_comparison import (
    SIDES,
    Criterion,
    Depth,
    TensorComparison,
    Tolerance,
    noise,
    nonfinite_text,
    severity,
)
from ovir.analysis.tensor_stats import likely_classes
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.debugging.comparison_setup import Against, ComparisonOptions, GivenInputs, InputSet, Progress, as_model
from ovir.debugging.device_properties import DeviceSetting, Explanation
from ovir.debugging.divergences import Divergence, row_of
from ovir.debugging.engines.process import EngineMissingError
from ovir.debugging.layerwise_run import Depths, Walk, WalkPlan, element_type_of, local
from ovir.debugging.repeats import WAYS, Variation, joined
from ovir.debugging.sides import LayerAnswer, LayerMode, NotCompared, ResultLayer, Side
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.diagnostics.errors import InputError, RunError
from ovir.diagnostics.wording import shown
from ovir.graph.layers import Layer, Port
from ovir.graph.order import dependents
from ovir.ir.executed import Execution
from ovir.model import Model
from ovir.runtime.emulation import NARROW
from ovir.runtime.executor import SeenStep

MEANS = ("max_abs", "max_rel", "mean_abs", "rmse", "cosine", "sqnr_db")
"""The metrics whose mean over sets of inputs is given."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of the highest scores of an output, as shares of its rows."""

    top1: float
    """The share of rows with the same highest score."""
    top5: float
    """The mean share of classes that are among the five highest scores on both sides."""


@dataclass
class TensorDifference:
    """One tensor, compared for every set of inputs."""

    worst: TensorComparison
    """The comparison for the set with the largest difference."""
    worst_set: int
    """The number of that set, from 0."""
    worst_input: str
    """The name of that set."""
    tolerance: Tolerance
    """The tolerance of this tensor, with ``rtol`` and ``atol``."""
    element_type: str
    """The element type in the first model, such as ``f32``."""
    shape: tuple[int, ...]
    """The shape in the worst set."""
    agreements: list[Agreement] = field(default_factory=list)
    """For outputs that are rows of probabilities, one for each set."""
    sets: int = 1
    """For how many sets of inputs the tensor was compared."""
    variation: Variation | None = None
    """How it varies in repeated runs, if it does; for a layer, that of the output that varies most."""

    def __post_init__(self) -> None:
        values = {name: getattr(self.worst, name) for name in MEANS}
        self._values = {name: [x] if x is not None and math.isfinite(x) else [] for name, x in values.items()}

    def add(self, later: TensorDifference) -> None:
        """Add the comparisons for later sets of inputs."""
        self.sets += later.sets
        self.agreements += later.agreements
        self.variation = joined(self.variation, later.variation)
        for name, values in self._values.items():
            values += later._values[name]
        if severity(later.worst) > severity(self.worst):
            self.worst, self.worst_set, self.worst_input = later.worst, later.worst_set, later.worst_input
            self.tolerance, self.element_type, self.shape = later.tolerance, later.element_type, later.shape

    @property
    def type(self) -> str:
        """Return the element type with the shape, such as ``f32[1,3]``."""
        return f"{self.element_type}{shown(self.shape)}"

    @property
    def means(self) -> dict[str, float | None]:
        """Return the means of the metrics over all sets; non-finite values are left out."""
        return {name: sum(values) / len(values) if values else None for name, values in self._values.items()}

    @property
    def agreement(self) -> Agreement | None:
        """Return the mean agreement over the sets, for outputs that are rows of probabilities."""
        shares = [(item.top1, item.top5) for item in self.agreements]
        return Agreement(*(sum(column) / len(shares) for column in zip(*shares, strict=True))) if shares else None

    @property
    def within(self) -> bool:
        """Return whether the tensor is within the tolerance for all sets."""
        return self.worst.within

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        worst = self.worst
        fields: dict[str, Any] = {
            **json_fields(self, "within", "element_type", "shape", "worst.size", "worst.beyond"),
            **json_fields(worst, *MEANS),
            "nan": {"reference": worst.nan[0], "actual": worst.nan[1]},
            "inf": {"reference": worst.inf[0], "actual": worst.inf[1]},
            **json_fields(worst, "position", "reference", "actual", "problem"),
            **json_fields(self.tolerance, "rtol", "atol"),
        }
        if self.tolerance.rounded_to is not None:
            fields["rounded_to"] = self.tolerance.rounded_to
        if self.tolerance.weights_in is not None:
            fields["weights_in"] = self.tolerance.weights_in
        if self.variation is not None:
            fields["variation"] = self.variation.to_dict()
        if (agreement := self.agreement) is not None:
            fields |= {"top1": agreement.top1, "top5": agreement.top5}
        if self.sets > 1:
            fields |= json_fields(self, "sets", "worst_set", "worst_input", "mean=means")
        return fields


@dataclass(frozen=True)
class LayerDifference(ResultLayer):
    """A layer of the first model, and the output of it that differs most."""

    output: int
    """The position of the output that the numbers are about."""
    tensor: TensorDifference
    """The differences of that output."""
    contribution: float
    """The noise that the layer adds to its output, relative to the signal: the noise of its inputs is subtracted
    unless layers were isolated. Infinite for problems, and where NaN or infinities disagree."""
    other: str | None = None
    """The name of the layer in the other model, if it differs."""
    has_bodies: bool = False
    """Whether it is a Loop, a TensorIterator or an If, whose bodies are compared as a whole."""
    lone_before: tuple[str, ...] = ()
    """The layers that it reads and that only one of two models has, with its name."""
    execution: Execution | None = None
    """Its execution on the other side, if its executed graph is known."""
    known: Divergence | None = None
    """The known divergence that explains its difference."""

    @property
    def within(self) -> bool:
        """Return whether the output is within the tolerance for all sets of inputs."""
        return self.tensor.within

    @property
    def rounds(self) -> bool:
        """Return whether it quantizes, and only a few elements fall on another level."""
        worst = self.tensor.worst
        return self.type == "FakeQuantize" and worst.problem is None and 0 < worst.beyond <= max(1, worst.size // 1000)

    def to_dict(self) -> dict[str, Any]:
        """Return the layer for JSON."""
        head = {"id": self.id, "name": self.name, "type": self.type, "version": self.version, "output": self.output}
        if self.other is not None:
            head["other"] = self.other
        if self.has_bodies:
            head["has_bodies"] = True
        if self.lone_before:
            head["lone_before"] = list(self.lone_before)
        if self.execution is not None:
            head["executed"] = self.execution.to_dict()
        return {**head, **self.tensor.to_dict(), **json_fields(self, "contribution", "known")}


@dataclass(frozen=True)
class OutputDifference:
    """An output of the first model."""

    index: int
    """The position of the output."""
    name: str
    """The name of its tensor."""
    tensor: TensorDifference
    """Its differences."""

    @property
    def within(self) -> bool:
        """Return whether the output is within the tolerance for all sets of inputs."""
        return self.tensor.within

    def to_dict(self) -> dict[str, Any]:
        """Return the output for JSON."""
        return {"index": self.index, "name": self.name, **self.tensor.to_dict()}


_METRICS = columns(
    "max abs: error; max rel: error in texts; mean: error in texts; RMSE: error; cosine: cosine; SQNR dB: decibels; "
    "beyond: count; nonfinite: counts in texts; NaN, Inf: text in reports; mean SQNR: decibels in texts; "
    "worst input: name in texts; top-1: share in texts; top-5: share in texts"
)
"""A report has no room for some of them; the details behind its rows have all."""
_LEAST = ("RMSE", "mean", "cosine", "tensor", "top-5", "mean SQNR", "max rel", "type", "SQNR dB", "nonfinite")


@dataclass
class Comparison:
    """The result of ``ovir.compare``: true if everything is within the tolerance, and repeated runs do not vary."""

    model: str
    """The path or the name of the first model."""
    against: str
    """The other side of the comparison, such as ``OpenVINO 2026.4.1 on CPU``."""
    mode: str
    """The mode of comparison: ``outputs`` (not at all, because the outputs agree), ``isolated``, ``cumulative``."""
    sets: int
    """Number of sets of inputs."""
    criterion: Criterion
    precision: str | None = None
    """The element type in which the device computes, such as ``bf16``; None if it is not known."""
    outputs: list[OutputDifference] = field(default_factory=list)
    """The outputs, in their order."""
    layers: list[LayerDifference] = field(default_factory=list)
    """The layers that were compared, in the order of the run."""
    not_compared: list[NotCompared] = field(default_factory=list)
    """The layers that were left out, with the reason."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """Warnings and notes, and how the engine failed."""
    values: tuple[str, str] = SIDES
    """The sources of ``actual`` and ``reference`` of a tensor, in words."""
    failed: bool = False
    """Whether the other side failed to compute the outputs."""
    is_explained: bool = True
    """Whether a layer with a known divergence comes before each output and each later layer beyond tolerance."""
    repeat: int | None = None
    """How often runs were repeated in each way; None if they were not, or if the device failed."""
    clipped: Mapping[str, Clipping] = field(default_factory=dict)
    """What FakeQuantize layers of both models clip, by their keys, the largest shares first."""
    properties: Sequence[DeviceSetting] = ()
    """The properties by which the device changes numbers of the model."""
    explanation: Explanation | None = None
    """With ``explain``, whether the device agrees with other properties."""

    def add_executions(self, executions: Mapping[str, Execution]) -> None:
        """Say of each layer how the other side executed it; the layers are named by their keys."""
        self.layers = [replace(layer, execution=executions.get(layer.name)) for layer in self.layers]

    @property
    def within(self) -> bool:
        """Return whether all outputs and layers are within the tolerance."""
        parts = (*(output.within for output in self.outputs), *(layer.within for layer in self.layers))
        return not self.failed and all(parts)

    def __bool__(self) -> bool:
        return self.within and self.varies is None

    @property
    def varying(self) -> list[OutputDifference | LayerDifference]:
        """Return the outputs, then the layers, that vary in repeated runs."""
        items: list[OutputDifference | LayerDifference] = [*self.outputs, *self.layers]
        return [item for item in items if item.tensor.variation is not None]

    @property
    def varies(self) -> str | None:
        """Return the first way of repeating in which results vary: ``run`` (in one request), ``request`` or
        ``compilation``; None if none does."""
        variations = [item.tensor.variation for item in self.varying]
        return next((way for way in WAYS if any(x is not None and x.differing[way] for x in variations)), None)

    @property
    def first_varying(self) -> LayerDifference | None:
        """Return the first layer that varies, in the order of the run."""
        return next((layer for layer in self.layers if layer.tensor.variation is not None), None)

    @property
    def compared(self) -> str:
        """Describe the comparison in words."""
        words = {"outputs": "outputs", "isolated": "outputs, and layers alone", "cumulative": "outputs and layers"}
        return words[self.mode]

    @property
    def verdict(self) -> str:
        """Describe the result in a few words."""
        text = "within tolerance" if self.within else "the other side fails" if self.failed else "beyond tolerance"
        return text if self.known is None else f"{text}: a known divergence"

    @property
    def known(self) -> Divergence | None:
        """Return the known divergence of the first layer beyond tolerance, if one explains all that is wrong.

        Other layers that ran alone, and layers at which the other side fails, must have one as well.
        """
        first, beyond = self.first, [layer for layer in self.layers if not layer.within]
        failing = [layer for layer in beyond if layer.tensor.worst.problem is not None]
        explained = failing if self.mode == "cumulative" else beyond
        if first is None or (self.failed and not failing) or not self.is_explained:
            return None
        return None if any(layer.known is None for layer in explained) else first.known

    @property
    def first(self) -> LayerDifference | None:
        """Return the first layer beyond the tolerance, in the order of the run.

        A FakeQuantize of which a few elements round to another level is only named if there is no other layer.
        """
        beyond = [layer for layer in self.layers if not layer.within]
        return next((layer for layer in beyond if not layer.rounds), beyond[0] if beyond else None)

    @property
    def largest(self) -> LayerDifference | None:
        """Return the layer beyond the tolerance that adds the most noise."""
        beyond = [layer for layer in self.layers if not layer.within]
        return max(beyond, key=lambda layer: (not layer.rounds, layer.contribution), default=None)

    def ranked(self) -> list[LayerDifference]:
        """Return the layers as tables show them: the first one beyond the tolerance, the one that adds most noise,
        then the others, largest contributions first."""
        heads = [layer for layer in (self.first, self.largest) if layer is not None]
        others = sorted(self.layers, key=lambda layer: (layer.within, -layer.contribution))
        return list({layer.id: layer for layer in (*heads, *others)}.values())

    def mark(self, item: LayerDifference | OutputDifference) -> str:
        """Return the verdict in tables on a layer or an output: ``first`` and ``largest``, ``beyond`` or ``within``."""
        marks = [name for name, marked in (("first", self.first), ("largest", self.largest)) if marked is item]
        return ", ".join(marks) or ("within" if item.within else "beyond")

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        head = json_fields(self, "within", "known", "first", "largest", "model", "against", "precision", "mode", "sets")
        parts = json_fields(self, "tolerance=criterion", "outputs", "layers", "not_compared", "diagnostics")
        head["clipped"] = {name: clipping.to_dict() for name, clipping in self.clipped.items()}
        return {**head, **json_fields(self, "properties", "explanation", "repeat", "varies", "first_varying"), **parts}

    def _repr_html_(self) -> str:
        first = self.first
        verdict = self.verdict if first is None else f"{self.verdict}, first at {first.type} '{first.name}'"
        outputs = self.outputs_table(self.outputs).in_notebook(f"{self.model} against {self.against}: {verdict}")
        return outputs + (self.layers_table(self.ranked()).in_notebook("Layers") if self.layers else "")

    def outputs_table(self, outputs: Sequence[OutputDifference]) -> Table:
        """Return outputs with their differences."""
        rows = [(self.mark(x), x.name, x.tensor.type, x.tensor.type, *self._cells(x.tensor)) for x in outputs]
        heads = ": tag in reports; output: name 1.5; type: tensor in texts; tensor: tensor in reports"
        return self._table(heads, rows)

    def layers_table(self, layers: Sequence[LayerDifference]) -> Table:
        """Return layers with their differences, and the noise that they add."""
        order = {layer.id: number for number, layer in enumerate(self.layers, 1)}
        rows: list[Sequence[object]] = []
        for x in layers:
            computed_in = "-" if x.execution is None else x.execution.by.types or "-"
            tensor = f"{x.name}:{x.output}" if x.output else x.name
            head = (self.mark(x), x.id, order[x.id], tensor, x.name, x.type, x.type, x.tensor.type, computed_in)
            rows.append((*head, x.contribution, *self._cells(x.tensor)))
        heads = ": tag chosen; id: counts in texts; order: count in reports; layer: layer in texts; "
        heads += "layer: layer 2 in reports; type: type in texts; operation: type in reports; tensor: tensor; "
        heads += "computed in: text in texts; noise: error in reports"
        return self._table(heads, rows)

    def _cells(self, tensor: TensorDifference) -> tuple[object, ...]:
        """Return the cells of a tensor under ``_METRICS``."""
        worst, agreement = tensor.worst, tensor.agreement
        errors = (worst.max_abs, worst.max_rel, worst.mean_abs, worst.rmse, worst.cosine, worst.sqnr_db, worst.beyond)
        top = (None, None) if agreement is None else (agreement.top1, agreement.top5)
        nonfinite = worst.problem or nonfinite_text(worst.nan, worst.inf, self.values) or None
        lone = nonfinite if worst.lone else worst.problem
        return (*errors, nonfinite, lone, tensor.means["sqnr_db"], tensor.worst_input, *top)

    def _table(self, heads: str, rows: Sequence[Sequence[object]]) -> Table:
        """Return a table without columns that have nothing in any row. A narrow terminal leaves out other metrics than
        that of the tolerance."""
        metric_columns = {
            "max_rel": "max rel",
            "mean_abs": "mean",
            "rmse": "RMSE",
            "sqnr_db": "SQNR dB",
            "cosine": "cosine",
        }
        least = [name for name in _LEAST if name != metric_columns.get(self.criterion.metric or "")]
        absent = [] if self.sets > 1 else ["mean SQNR", "worst input"]
        absent += [] if any(row[-1] is not None for row in rows) else ["top-1", "top-5"]
        absent += [] if any(layer.execution for layer in self.layers) else ["computed in"]
        return Table([*columns(heads), *_METRICS], rows, least=least).without(absent)

    def varying_table(self) -> Table:
        """Return the outputs and layers that vary in repeated runs."""
        rows = []
        for item in self.varying:
            variation, runs = item.tensor.variation, (self.repeat or 0) * item.tensor.sets
            assert variation is not None
            counts = (f"{variation.differing[way]} of {runs}" for way in WAYS)
            spread = variation.spread
            elements = spread.problem or spread.beyond
            numbers = (spread.max_abs, spread.max_rel, f"{variation.between:,} of {spread.beyond:,}")
            kind = item.type if isinstance(item, LayerDifference) else "output"
            rows.append((item.name, kind, *counts, elements, *numbers))
        ways = "; ".join(f"{words}: text" for words in WAYS.values())
        numbers_of = "elements: count; max abs: error; max rel: error; ovir between: text"
        return Table(columns(f"varies: name; type: type; {ways}; {numbers_of}"), rows, least=("max rel", "type"))

    def __repr__(self) -> str:
        return f"<Comparison of {self.model} with {self.against}: {self.verdict}>"


# --------------------------------------------------------------------------- several sets of inputs


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
        self.not_compared, self.sides, self.properties = side.not_compared, side.labels, side.settings
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

    def outputs_vary(self) -> bool:
        """Return whether outputs vary in repeated runs."""
        return any(tensor.variation is not None for tensor in self.outputs.values())

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
            outputs=[
                OutputDifference(index, model.outputs[index].any_name, tensor)
                for index, tensor in sorted(self.outputs.items())
            ],
            layers=[self._layer(layer) for layer in compared],
            not_compared=[
                *(NotCompared(x.id, x.key, x.type, self.skipped[x.key]) for x in skipped),
                *self.not_compared,
            ],
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


def compare(
    model: Model | str | os.PathLike[str],
    against: Against = "openvino:CPU",
    *,
    inputs: GivenInputs = None,
    samples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    config: Mapping[str, str] | None = None,
    mode: LayerMode | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    timeout: float | None = None,
    explain: bool = False,
    repeat: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare the outputs and layers of a model in ovir with another side. The result is true if all are within
    tolerance, and do not vary if runs are repeated.

    On a device, layers are compared only if outputs differ or vary, or with a ``mode``. All other sides are compared
    cumulatively; a second model can be isolated, too, and is compared as a device is if its runs are repeated.

    Args:
        model: The model, or the path of an .xml.
        against: A device of OpenVINO (``openvino:CPU``), an ONNX model (``onnx:model.onnx``), a second model (a Model
            or the path of an .xml), or recorded tensors by name (a mapping, or the path of an .npz).
        inputs: One set of inputs as in a run, a list of mappings, the path of an .npz, of a folder of them, or a
            pattern such as ``data/**/*.npz``. By default, recorded inputs, or random ones.
        samples: The number of sets of random inputs.
        seed: The seed of random inputs.
        device: The device on which a second model runs; by default it runs in ovir.
        config: Properties of the device.
        mode: The comparison of layers: ``isolated`` runs each layer alone with the inputs that it has in ovir,
            ``cumulative`` compares the tensors between layers as errors add up.
        rtol: The relative tolerance. By default the tolerance of a tensor follows from its element type and how many
            numbers are summed up. Integers must be equal.
        atol: The absolute tolerance.
        metric: A metric with its limit, such as ``cosine=0.999``, in place of a tolerance.
        timeout: The seconds that one run of a device may take.
        explain: Whether a comparison beyond tolerance is repeated with properties of the device that keep it from
            rounding; ``explanation`` of the result says whether that agrees.
        repeat: How often the other side runs each set of inputs in one request, in new requests, and after new
            compilations. ``varies`` and ``varying`` of the result say in which of these ways, and what.
        progress: Called with how much is done, how much there is, and what is being done.

    Raises InputError for arguments that do not fit, ReadError for files, RunError if the model itself cannot be run. A
    device that fails is part of the result.
    """
    criterion = Criterion.of(rtol, atol, metric)
    options = ComparisonOptions(
        against, criterion, inputs, samples, seed, device, config, timeout, mode, explain, repeat
    )
    return compare_as(options, model, progress)


def compare_as(
    options: ComparisonOptions, model: Model | str | os.PathLike[str], progress: Progress | None
) -> Comparison:
    """Return the result of ``ovir.compare``."""
    first = as_model(model)
    with options.open_side(first) as side:
        session = Session(first, side, options.criterion, progress)
        comparison = session.run(options.sets(first, side), options.mode)
    return explained(comparison, options, lambda again: compare_as(again, first, progress))


def explained(
    comparison: Comparison, options: ComparisonOptions, compare: Callable[[ComparisonOptions], Comparison]
) -> Comparison:
    """Return a comparison with its explanation, if one is wanted and it is beyond tolerance."""
    if not comparison.within and not comparison.failed:
        explanation = options.explanation(comparison.properties, lambda again: compare(again).within)
        comparison.explanation = with_excess(explanation, comparison, options, compare)
    return comparison


def with_excess(
    explanation: Explanation | None,
    found: Comparison,
    options: ComparisonOptions,
    compare: Callable[[ComparisonOptions], Comparison],
) -> Explanation | None:
    """Return an explanation that also holds the errors of outputs against those of an emulation of the precision."""
    if explanation is None or not explanation.is_by_precision or found.precision not in NARROW:
        return explanation
    emulated = compare(options.emulated(found.precision))
    errors = ((a.tensor.worst.rmse, b.tensor.worst.rmse) for a, b in zip(found.outputs, emulated.outputs, strict=True))
    return replace(explanation, excess=max((a / b for a, b in errors if a is not None and b), default=None))


class Session:
    """One comparison of a model with another side."""

    def __init__(
        self,
        model: Model,
        side: Side,
        criterion: Criterion,
        progress: Progress | None,
        *,
        keeps_state: bool = False,
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
        side, walk, depths = self._side, Walk(self._plan, inputs), Depths(self._rounded_constants)
        self._noise.clear()

        def steps() -> Iterator[SeenStep]:
            for step in walk:
                depth = depths.of(step)
                self._depths[step.layer] = depth if side.accumulates else local(step)
                yield step
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, self._total, f"{step.layer.type} {step.layer.name}")

        if mode is None and side.outputs_first:
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
            tolerance = self._tolerance(port, reference, actual, depths.of_port(port.source))
            comparison = self._compared(port, actual, reference, tolerance, counts_errors=True)
            agreement = None if comparison.lone or comparison.problem else agreement_of(actual, reference)
            difference = self._difference(comparison, tolerance, _type_of(port, reference), reference.shape)
            difference.agreements = [] if agreement is None else [agreement]
            difference.variation = self._side.repeats.variation(actual, reference, self._set[1])
            _add(self.findings.outputs, index, difference)

    def _difference(
        self, comparison: TensorComparison, tolerance: Tolerance, element_type: str, shape: tuple[int, ...]
    ) -> TensorDifference:
        """Return the comparison of a tensor for the present set of inputs."""
        return TensorDifference(comparison, *self._set, tolerance, element_type, shape)

    def _compared(
        self, port: Port, actual: Array, reference: Array, tolerance: Tolerance, *, counts_errors: bool = False
    ) -> TensorComparison:
        """Compare a tensor with its reference."""
        problem = self._side.mismatch(element_type_of(port, reference), actual)
        if problem is not None:
            return TensorComparison(reference.size, within=False, beyond=reference.size, problem=problem)
        return self._criterion.compare(actual, reference, tolerance, counts_errors=counts_errors)

    def _tolerance(self, port: Port, reference: Array, actual: Array, depth: Depth) -> Tolerance:
        """Return the tolerance for a tensor."""
        return self._criterion.between(element_type_of(port, reference), actual, self._side.precision, depth)

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
            kind = _type_of(layer.outputs[0], None)
            self.findings.add_tensor(layer, 0, self._difference(worst, Tolerance(), kind, shape))
        for position, actual in enumerate(answer.arrays):
            if actual is not None:
                comparison = self._compare_one(step, position, actual)
                worst = comparison if worst is None or severity(comparison) > severity(worst) else worst
        if worst is not None:
            self._contribute(layer, worst)
        if worst is not None and not worst.within:
            self.findings.add_row(layer.key, self._row(step, answer.problem))

    def _row(self, step: SeenStep, problem: str | None) -> Divergence | None:
        """Return the known divergence that explains the difference, or the failure, at a layer."""
        device, fails = self._side.openvino_device, problem is not None
        return row_of(step.layer, step.inputs, step.outputs, device, message=problem, fails=fails)

    def _compare_one(self, step: SeenStep, position: int, actual: Array) -> TensorComparison:
        port, reference = step.layer.outputs[position], step.outputs[position]
        tolerance = self._tolerance(port, reference, actual, self._depths[step.layer])
        comparison = self._compared(port, actual, reference, tolerance)
        difference = self._difference(comparison, tolerance, _type_of(port, reference), reference.shape)
        difference.variation = self._side.repeats.variation(actual, reference, self._set[1])
        self.findings.add_tensor(step.layer, position, difference)
        self._noise[port] = noise(comparison)
        return comparison

    def _contribute(self, layer: Layer, comparison: TensorComparison) -> None:
        """Record how much noise a layer adds to that of its inputs."""
        added = noise(comparison)
        if self._side.accumulates:
            sources = [self._noise.get(port.source, 0.0) for port in layer.inputs if port.source is not None]
            before = max(sources, default=0.0)
            added = max(added - before, 0.0) if added > before else 0.0
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
        varies = findings.outputs_vary()
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


def _type_of(port: Port, array: Array | None) -> str:
    return str(port.element_type if array is None else element_type_of(port, array))


def agreement_of(actual: Array, reference: Array) -> Agreement | None:
    """Return the agreement of the highest scores of two tensors; None for tensors that are not rows of probabilities.

    Other numbers, such as those of an embedding, have no highest score that means anything.
    """
    shape = [size for size in reference.shape if size != 1]
    if actual.shape != reference.shape or not reference.size or not 1 <= len(shape) <= 2:
        return None
    if likely_classes(reference.reshape(-1, shape[-1])) is None:
        return None
    rows = [top_scores(array.reshape(shape), _HIGHEST) for array in (actual, reference)]
    if rows[0] is None or rows[1] is None:
        return None
    top1 = top5 = 0.0
    for one, other in zip(*rows, strict=True):
        top1 += one[0].number == other[0].number
        numbers = {score.number for score in other}
        top5 += len(numbers & {score.number for score in one}) / len(numbers)
    return Agreement(top1 / len(rows[0]), top5 / len(rows[0]))


_HIGHEST = 5
