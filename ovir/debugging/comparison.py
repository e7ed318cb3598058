"""The result of a comparison, and how it is collected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.debugging.side import NotCompared, Side
from ovir.debugging.tensor_comparison import Criterion, TensorComparison, Tolerance
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.kernels.blas import single_thread
from ovir.model import Model

MEANS = ("max_abs", "max_rel", "mean_abs", "rmse", "cosine", "sqnr_db")
"""The metrics of which the mean over sets of inputs is given."""


@dataclass(frozen=True)
class Agreement:
    """How far the highest scores of an output agree, as shares of its rows."""

    top1: float
    """The share of rows with the same highest score."""
    top5: float
    """The mean share of classes that are among the five highest scores on both sides."""


@dataclass(frozen=True)
class TensorDifference:
    """One tensor, compared for every set of inputs."""

    worst: TensorComparison
    """The comparison for the set with the largest difference."""
    worst_set: int
    """The number of that set, from 0."""
    means: dict[str, float | None]
    """The means of the metrics over all sets; non-finite values are left out."""
    sets: int
    """For how many sets of inputs the tensor was compared."""
    worst_input: str
    """The name of the set with the largest difference."""
    tolerance: Tolerance
    """The tolerance of this tensor, with ``rtol`` and ``atol``."""
    element_type: str
    """The element type in the first model, such as ``f32``."""
    shape: tuple[int, ...]
    """The shape in the worst set."""
    agreement: Agreement | None = None
    """For outputs that look like scores; the mean over the sets."""

    @property
    def within(self) -> bool:
        """Return whether the tensor is within the tolerance for all sets."""
        return self.worst.within

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON."""
        worst = self.worst
        found: dict[str, Any] = {
            "within": worst.within,
            "element_type": self.element_type,
            "shape": list(self.shape),
            "size": worst.size,
            "beyond": worst.beyond,
            **{name: getattr(worst, name) for name in MEANS},
            "nan": {"reference": worst.nan[0], "actual": worst.nan[1]},
            "inf": {"reference": worst.inf[0], "actual": worst.inf[1]},
            "position": None if worst.position is None else list(worst.position),
            "reference": worst.reference,
            "actual": worst.actual,
            "problem": worst.problem,
            "rtol": self.tolerance.rtol,
            "atol": self.tolerance.atol,
        }
        if self.agreement is not None:
            found |= {"top1": self.agreement.top1, "top5": self.agreement.top5}
        if self.sets > 1:
            found |= {"sets": self.sets, "worst_set": self.worst_set, "worst_input": self.worst_input}
            found["mean"] = self.means
        return found


@dataclass(frozen=True)
class LayerDifference:
    """A layer of the first model, and the output of it that differs most."""

    id: int
    """The id of the layer."""
    name: str
    """The key of the layer, which is its name unless the model has several layers of this name."""
    type: str
    """The operation, such as ``Convolution``."""
    version: str
    """The opset that the file names, such as ``opset1``."""
    output: int
    """The position of the output that the numbers are about."""
    tensor: TensorDifference
    """How that output differs."""
    contribution: float
    """How much noise the layer adds to its output, relative to the signal: what its inputs bring along is subtracted
    unless layers were isolated. Infinite for problems, and where NaN or infinities disagree."""
    other: str | None = None
    """The name of the layer in the other model, if it differs."""
    has_bodies: bool = False
    """Whether it is a Loop, a TensorIterator or an If, whose bodies are compared as a whole."""

    @property
    def within(self) -> bool:
        """Return whether the output is within the tolerance for all sets of inputs."""
        return self.tensor.within

    def to_dict(self) -> dict[str, Any]:
        """Return the layer for JSON."""
        head = {"id": self.id, "name": self.name, "type": self.type, "version": self.version, "output": self.output}
        if self.other is not None:
            head["other"] = self.other
        if self.has_bodies:
            head["has_bodies"] = True
        return {**head, **self.tensor.to_dict(), "contribution": self.contribution}


@dataclass(frozen=True)
class OutputDifference:
    """An output of the first model."""

    index: int
    """The position of the output."""
    name: str
    """The name of its tensor."""
    tensor: TensorDifference
    """How it differs."""

    @property
    def within(self) -> bool:
        """Return whether the output is within the tolerance for all sets of inputs."""
        return self.tensor.within

    def to_dict(self) -> dict[str, Any]:
        """Return the output for JSON."""
        return {"index": self.index, "name": self.name, **self.tensor.to_dict()}


@dataclass
class Comparison:
    """The result of ``ovir.compare``: true if everything is within the tolerance."""

    model: str
    """The path or the name of the first model."""
    against: str
    """What the model was compared with, such as ``OpenVINO 2026.4.1 on CPU``."""
    mode: str
    """How layers were compared: ``outputs`` (not at all, because the outputs agree), ``isolated``, ``cumulative``."""
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
    """What else is worth knowing, and what the engine failed at."""
    values: tuple[str, str] = ("in the other model", "in the first")
    """Where ``actual`` and ``reference`` of a tensor are from, for texts."""
    failed: bool = False
    """Whether the other side failed to compute the outputs."""

    @property
    def within(self) -> bool:
        """Return whether all outputs and layers are within the tolerance."""
        parts = (*(output.within for output in self.outputs), *(layer.within for layer in self.layers))
        return not self.failed and all(parts)

    def __bool__(self) -> bool:
        return self.within

    @property
    def first(self) -> LayerDifference | None:
        """Return the first layer beyond the tolerance, in the order of the run."""
        return next((layer for layer in self.layers if not layer.within), None)

    @property
    def largest(self) -> LayerDifference | None:
        """Return the layer beyond the tolerance that adds the most noise."""
        beyond = [layer for layer in self.layers if not layer.within]
        return max(beyond, key=lambda layer: layer.contribution, default=None)

    def ranked(self) -> list[LayerDifference]:
        """Return the layers as tables show them: the first one beyond the tolerance, the one that adds most noise,
        then the others, largest contributions first."""
        heads = [layer for layer in (self.first, self.largest) if layer is not None]
        rest = sorted(self.layers, key=lambda layer: (layer.within, -layer.contribution))
        return list({layer.id: layer for layer in (*heads, *rest)}.values())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        return {
            "within": self.within,
            "first": None if self.first is None else self.first.to_dict(),
            "largest": None if self.largest is None else self.largest.to_dict(),
            "model": self.model,
            "against": self.against,
            "precision": self.precision,
            "mode": self.mode,
            "sets": self.sets,
            "tolerance": self.criterion.to_dict(),
            "outputs": [item.to_dict() for item in self.outputs],
            "layers": [item.to_dict() for item in self.layers],
            "not_compared": [item.to_dict() for item in self.not_compared],
            "diagnostics": [item.to_dict() for item in self.diagnostics],
        }

    def __repr__(self) -> str:
        state = "within tolerance" if self.within else "beyond tolerance"
        return f"<Comparison of {self.model} with {self.against}: {state}>"


# --------------------------------------------------------------------------- several sets of inputs


class Tally:
    """The comparisons of one tensor for all sets of inputs."""

    def __init__(self) -> None:
        self._worst: tuple[TensorComparison, int, Tolerance, str, tuple[int, ...]] | None = None
        self._sums: dict[str, list[float]] = {name: [] for name in MEANS}
        self._agreements: list[Agreement] = []
        self.sets = 0

    def add(
        self,
        number: int,
        found: TensorComparison,
        tolerance: Tolerance,
        element_type: str,
        shape: tuple[int, ...],
        agreement: Agreement | None = None,
    ) -> None:
        """Add the comparison for one set of inputs."""
        self.sets += 1
        for name, values in self._sums.items():
            value = getattr(found, name)
            if value is not None and math.isfinite(value):
                values.append(value)
        if agreement is not None:
            self._agreements.append(agreement)
        if self._worst is None or severity(found) > severity(self._worst[0]):
            self._worst = found, number, tolerance, element_type, shape

    def merge(self, later: Tally) -> None:
        """Add the comparisons for later sets of inputs."""
        self.sets += later.sets
        for name, values in self._sums.items():
            values.extend(later._sums[name])
        self._agreements.extend(later._agreements)
        worst, other = self._worst, later._worst
        if worst is None or (other is not None and severity(other[0]) > severity(worst[0])):
            self._worst = other

    def difference(self, names: Sequence[str]) -> TensorDifference:
        """Return the result over all sets, which have these names."""
        assert self._worst is not None
        worst, number, tolerance, element_type, shape = self._worst
        means = {name: mean(values) for name, values in self._sums.items()}
        agreement = None
        if self._agreements:
            shares = [(item.top1, item.top5) for item in self._agreements]
            agreement = Agreement(*(sum(column) / len(shares) for column in zip(*shares, strict=True)))
        name = names[number]
        return TensorDifference(worst, number, means, self.sets, name, tolerance, element_type, shape, agreement)


def mean(values: Iterable[float]) -> float | None:
    """Return the mean; None without values."""
    listed = list(values)
    return sum(listed) / len(listed) if listed else None


def noise(found: TensorComparison) -> float:
    """Return the root mean square of the errors, relative to the reference; infinite for what has no number."""
    if found.problem is not None or found.lone:
        return math.inf
    if found.sqnr_db is None:  # strings, or nothing but NaN and infinities
        return math.inf if found.beyond else 0.0
    return 10.0 ** (-found.sqnr_db / 20) if found.sqnr_db > -6000 else math.inf


def severity(found: TensorComparison) -> tuple[bool, float, float]:
    """Return what orders comparisons of a tensor: the larger, the worse."""
    return not found.within, noise(found), found.max_abs or 0.0


_BLOCK = 1 << 18
"""The number of elements that are compared at a time."""


def output_error(outputs: Sequence[Array], reference: Sequence[Array]) -> float:
    """Return the largest error of an output."""
    return max((tensor_error(one, other) for one, other in zip(outputs, reference, strict=True)), default=0.0)


def tensor_error(array: Array, reference: Array) -> float:
    """Return the error of a tensor as a share of the reference.

    For real numbers it is the root mean square of the difference, divided by the one of the reference. Elements where
    the reference is not finite, and equal, do not count; a NaN or an infinity elsewhere makes the error infinite. For
    other types it is the share of elements that differ. Tensors of different shapes have an infinite error.
    """
    if array.shape != reference.shape:
        return math.inf
    if not reference.size:
        return 0.0
    if array.dtype.kind in "TUSObiu":
        return float(np.count_nonzero(array != reference)) / reference.size
    difference = norm = 0.0
    one, other = array.reshape(-1), reference.reshape(-1)
    for start in range(0, one.size, _BLOCK):
        got = as_numbers(one[start : start + _BLOCK]).astype(np.float64)
        wanted = as_numbers(other[start : start + _BLOCK]).astype(np.float64)
        finite = np.isfinite(wanted)
        if not finite.all():
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
            if not (same | finite).all():
                return math.inf
            got, wanted = got[finite], wanted[finite]
        error = got - wanted
        with single_thread:
            difference += float(error @ error)
            norm += float(wanted @ wanted)
    if not math.isfinite(difference):
        return math.inf
    if not norm:
        return 0.0 if not difference else math.inf
    return math.sqrt(difference / norm)


@dataclass
class Findings:
    """Differences by layer and output. Layers are named by their key, so that processes can exchange findings."""

    steps: list[str] = field(default_factory=list)
    """The layers that can be compared, in the order of the run."""
    layers: dict[str, dict[int, Tally]] = field(default_factory=dict)
    """The comparisons of each layer by the position of its output."""
    outputs: dict[int, Tally] = field(default_factory=dict)
    contributions: dict[str, float] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    """The keys of layers that have another name in the other model."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why layers were not compared."""
    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)
    failed: bool = False
    """Whether the other side failed to compute the outputs."""
    description: str = ""
    """What the other side says about itself, here and below."""
    precision: str | None = None
    not_compared: list[NotCompared] = field(default_factory=list)
    sides: tuple[str, str] = Side.labels
    outputs_first: bool = False

    def describe(self, side: Side) -> None:
        """Record what the other side says about itself after its runs."""
        self.diagnostics.update(dict.fromkeys(side.diagnostics))
        self.description, self.precision = side.description, side.precision
        self.not_compared, self.sides = side.not_compared, side.labels
        self.outputs_first = side.outputs_first

    def tally(self, layer: Layer, position: int) -> Tally:
        """Return the comparisons of an output of a layer."""
        return self.layers.setdefault(layer.key, {}).setdefault(position, Tally())

    def add(self, later: Findings) -> None:
        """Add what has been found for later sets of inputs."""
        for key, tallies in later.layers.items():
            own = self.layers.setdefault(key, {})
            for position, tally in tallies.items():
                own.setdefault(position, Tally()).merge(tally)
        for index, tally in later.outputs.items():
            self.outputs.setdefault(index, Tally()).merge(tally)
        for key, contribution in later.contributions.items():
            self.contributions[key] = max(self.contributions.get(key, 0.0), contribution)
        self.others.update(later.others)
        self.skipped = {**later.skipped, **self.skipped}
        self.diagnostics.update(later.diagnostics)
        self.failed |= later.failed
        self.steps = self.steps or later.steps
        self.description, self.precision = later.description, later.precision
        self.not_compared, self.sides = later.not_compared, later.sides
        self.outputs_first = later.outputs_first

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was compared."""
        return not (self.outputs or self.layers or self.failed)

    def outputs_agree(self, names: Sequence[str]) -> bool:
        """Return whether outputs were compared and are within the tolerance."""
        compared = self.outputs.values()
        return bool(compared) and not self.failed and all(tally.difference(names).within for tally in compared)

    def result(self, model: Model, criterion: Criterion, mode: str, names: Sequence[str]) -> Comparison:
        """Return the result for sets of inputs with these names."""
        layers = {layer.key: layer for layer in model.layers}
        compared = [layers[key] for key in self.steps if key in self.layers]
        skipped = [layers[key] for key in self.steps if key in self.skipped and key not in self.layers]
        return Comparison(
            model=model.path or model.name or "the model",
            against=self.description,
            precision=self.precision,
            mode=mode,
            sets=len(names),
            criterion=criterion,
            outputs=[
                OutputDifference(index, model.outputs[index].any_name, tally.difference(names))
                for index, tally in sorted(self.outputs.items())
            ],
            layers=[self._layer(layer, names) for layer in compared],
            not_compared=[
                *(NotCompared(x.id, x.key, x.type, self.skipped[x.key]) for x in skipped),
                *self.not_compared,
            ],
            values=self.sides,
            diagnostics=list(self.diagnostics),
            failed=self.failed,
        )

    def _layer(self, layer: Layer, names: Sequence[str]) -> LayerDifference:
        differences = {position: tally.difference(names) for position, tally in self.layers[layer.key].items()}
        position = max(differences, key=lambda place: severity(differences[place].worst))
        return LayerDifference(
            *(layer.id, layer.key, layer.type, layer.version, position),
            tensor=differences[position],
            contribution=self.contributions[layer.key],
            other=self.others.get(layer.key),
            has_bodies=bool(layer.bodies),
        )
