"""The result of a comparison of a model with another side: the differences of its outputs and layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ovir.analysis.clipping import Clipping
from ovir.analysis.metrics import top_scores
from ovir.analysis.tensor_comparison import SIDES, Criterion, TensorComparison, Tolerance, nonfinite_text, severity
from ovir.analysis.tensor_stats import likely_classes
from ovir.core.arrays import Array
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.debugging.device_properties import DeviceSetting, Explanation
from ovir.debugging.divergences import Divergence
from ovir.debugging.repeats import WAYS, Variation, joined
from ovir.debugging.sides import NotCompared, ResultLayer
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.wording import shown
from ovir.ir.executed import Execution

MEANS = ("max_abs", "max_rel", "mean_abs", "rmse", "cosine", "sqnr_db")
"""The metrics whose mean over sets of inputs is given."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of the highest scores of an output, as shares of its rows."""

    top1: float
    """The share of rows with the same highest score."""
    top5: float
    """The mean share of classes that are among the five highest scores on both sides."""


def agreement_of(actual: Array, reference: Array) -> Agreement | None:
    """Return the agreement of the highest scores of two tensors; None for tensors that are not rows of probabilities.

    Other numbers, such as those of an embedding, have no highest score that means anything.
    """
    shape = [size for size in reference.shape if size != 1]
    if actual.shape != reference.shape or not reference.size or not 1 <= len(shape) <= 2:
        return None
    if likely_classes(reference.reshape(-1, shape[-1])) is None:
        return None
    rows = [top_scores(array.reshape(shape), 5) for array in (actual, reference)]
    if rows[0] is None or rows[1] is None:
        return None
    top1 = top5 = 0.0
    for one, other in zip(*rows, strict=True):
        top1 += one[0].number == other[0].number
        numbers = {score.number for score in other}
        top5 += len(numbers & {score.number for score in one}) / len(numbers)
    return Agreement(top1 / len(rows[0]), top5 / len(rows[0]))


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
        optional = json_fields(self, "tolerance.rounded_to", "tolerance.weights_in", "variation")
        fields |= {name: value for name, value in optional.items() if value is not None}
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
        head = json_fields(self, "id", "name", "type", "version", "output")
        optional = json_fields(self, "other", "has_bodies", "lone_before", "executed=execution")
        head |= {name: value for name, value in optional.items() if value}
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
_COLUMNS = {"max_rel": "max rel", "mean_abs": "mean", "rmse": "RMSE", "sqnr_db": "SQNR dB", "cosine": "cosine"}
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
        least = [name for name in _LEAST if name != _COLUMNS.get(self.criterion.metric or "")]
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
