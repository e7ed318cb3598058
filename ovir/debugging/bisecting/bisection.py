"""The result of ``ovir.bisect`` as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ovir.debugging.criterion import Criterion
from ovir.debugging.tensor_comparison import TensorComparison
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.model import Model


@dataclass(frozen=True)
class Verdict:
    """How far the outputs of a model on the other side agree with what ovir computes."""

    within: bool
    tensor: str | None = None
    """The name of the output that differs most from what is allowed."""
    comparison: TensorComparison | None = None
    """The comparison of that output."""
    problem: str | None = None
    """What the other side failed at; that counts as a difference."""


@dataclass(frozen=True)
class Probe:
    """The beginning of a model up to a layer, and whether its tensors agree."""

    count: int
    """The number of layers of the beginning, without Parameters, Results, Consts and what follows from constants."""
    id: int
    """The id of its last layer."""
    name: str
    """The key of its last layer."""
    type: str
    """The operation of its last layer, such as ``Convolution``."""
    version: str
    """The opset of its last layer, such as ``opset1``."""
    verdict: Verdict
    """Whether its outputs agree, as ``within``, and how far they differ."""

    def to_dict(self) -> dict[str, Any]:
        """Return the probe for JSON."""
        verdict, found = self.verdict, self.verdict.comparison
        return {
            "count": self.count,
            "id": self.id,
            "name": self.name,
            "type": self.type,
            "version": self.version,
            "within": verdict.within,
            "tensor": verdict.tensor,
            "max_abs": None if found is None else found.max_abs,
            "max_rel": None if found is None else found.max_rel,
            "sqnr_db": None if found is None else found.sqnr_db,
            "problem": verdict.problem or (None if found is None else found.problem),
        }


@dataclass(frozen=True)
class Suspect:
    """A layer that may be at fault, or that was not compared."""

    id: int
    """The id of the layer."""
    name: str
    """The key of the layer."""
    type: str
    """The operation, such as ``Convolution``."""
    version: str
    """The opset, such as ``opset1``."""
    reason: str | None = None
    """Why not all of its tensors were compared; None if they were."""

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
    """Where it is saved, with its inputs, what ovir computes and what the other side computes."""

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
    """What the model was compared with, such as ``OpenVINO 2026.4.1 on CPU``."""
    layers: int
    """The number of layers that were searched."""
    runs: int
    """The number of runs on the other side."""
    criterion: Criterion
    sets: int = 1
    """The number of sets of inputs."""
    searched_set: int = 0
    """The number of the set that was searched, from 0: the first one for which something differs, or the last one."""
    probes: list[Probe] = field(default_factory=list)
    """The beginnings of the model of which it is known whether they agree, the shortest first."""
    suspects: list[Suspect] = field(default_factory=list)
    """The layers of which at least one is at fault, in the order of the run; empty if nothing differs.

    There are several if tensors before the first one that differs could not be compared."""
    between: list[str] = field(default_factory=list)
    """The names of the tensors that the suspects are computed from: inputs, and tensors that agree.

    Empty on a device."""
    not_compared: list[Suspect] = field(default_factory=list)
    """The layers of which not all tensors could be compared."""
    part: Part | None = None
    """The smallest part that was found to differ; None without ``output``, or if nothing differs."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """What else is worth knowing, and what the other side failed at."""

    @property
    def within(self) -> bool:
        """Return whether all that was compared is within the tolerance."""
        return all(probe.verdict.within for probe in self.probes)

    def __bool__(self) -> bool:
        return self.within

    @property
    def first(self) -> Probe | None:
        """Return the shortest beginning beyond the tolerance; its last layer is the first that is seen to differ."""
        return next((probe for probe in self.probes if not probe.verdict.within), None)

    @property
    def recovered(self) -> Probe | None:
        """Return the first beginning behind the first diverging layer that is within the tolerance again.

        If there is one, errors are not monotone: the layer that spoils the outputs may be another one.
        """
        first = self.first
        if first is None:
            return None
        return next((p for p in self.probes if p.count > first.count and p.verdict.within), None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        first, recovered = self.first, self.recovered
        return {
            "within": self.within,
            "first": None if first is None else first.to_dict(),
            "recovered": None if recovered is None else recovered.to_dict(),
            "suspects": [item.to_dict() for item in self.suspects],
            "between": self.between,
            "not_compared": [item.to_dict() for item in self.not_compared],
            "model": self.model,
            "against": self.against,
            "layers": self.layers,
            "runs": self.runs,
            "sets": self.sets,
            "searched_set": self.searched_set,
            "tolerance": self.criterion.to_dict(),
            "probes": [probe.to_dict() for probe in self.probes],
            "part": None if self.part is None else self.part.to_dict(),
            "diagnostics": [item.to_dict() for item in self.diagnostics],
        }


def suspect_of(layer: Layer, reason: str | None = None) -> Suspect:
    """Return a layer as one that may be at fault."""
    return Suspect(layer.id, layer.key, layer.type, layer.version, reason)


def probe_of(count: int, layer: Layer, verdict: Verdict) -> Probe:
    """Return the probe of the beginning that ends with a layer."""
    return Probe(count, layer.id, layer.key, layer.type, layer.version, verdict)
