"""The result of a search for the first layer that differs: beginnings of the model, suspects, and the smallest part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ovir.analysis.tensor_comparison import Criterion, TensorComparison
from ovir.core.json_fields import json_fields
from ovir.core.tables import Table, columns
from ovir.debugging.device_properties import DeviceSetting, Explanation
from ovir.debugging.divergences import Divergence
from ovir.debugging.reproducer import Part
from ovir.debugging.sides import ResultLayer
from ovir.diagnostics.diagnostic import Diagnostic


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
