"""The result of a bisection, the comparison with a device, and the part that is saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.candidates import Stage, count
from ovir.debugging.comparison import severity
from ovir.debugging.devices import Device
from ovir.debugging.reduce import Search
from ovir.debugging.tensor_comparison import Criterion, TensorComparison
from ovir.debugging.walk import Depths, Walk, WalkPlan
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import ModelError, RunError
from ovir.engines.process import EngineMissingError
from ovir.graph.layers import Layer, Port
from ovir.graph.names import distinct_names
from ovir.io.tensor_files import save_npz
from ovir.model import Model, save_model
from ovir.runtime.compiled import CompiledModel


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
        """Return outputs by names under which no two of them are the same."""
        names = [port.any_name for port in self.model.outputs]
        own = [name if names.count(name) == 1 else f"{name}_{i}" for i, name in enumerate(names)]
        return dict(zip(own, arrays, strict=True))

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
        return Part(self.model, count(self.model), [os.fspath(file) for file in files])


def smallest_part(stage: Stage, judge: Judge) -> Stage:
    """Return the smallest part of a diverging model that still diverges for the values that its inputs have in it."""

    def attempt(candidate: Stage, _: str) -> bool:
        try:
            return not judge(candidate.model, candidate.feeds).within
        except RunError:  # ovir cannot run it alone
            return False

    search = Search(stage, attempt)
    search.remove_context()
    return search.stage


def run_on(device: Device, stage: Stage) -> Reproducer:
    """Return a part with what a device computes for it."""
    actual = None
    with suppress(RunError):  # the device may fail, which the report says
        actual = device.run(stage.model, stage.feeds)
    return Reproducer(stage.model, stage.feeds, actual)


class Judge:
    """Runs models in ovir and on a device, and compares all outputs."""

    def __init__(self, device: Device, criterion: Criterion) -> None:
        self.runs = 0
        self._device = device
        self._criterion = criterion

    def __call__(self, model: Model, feeds: Sequence[Array]) -> Verdict:
        """Return how far the outputs agree. Raises RunError if ovir cannot run the model."""
        depths = Depths()
        walk = Walk(WalkPlan(model, with_constants=False), feeds)
        for step in walk:
            depths.of(step)
        expected = walk.finish()
        self.runs += 1
        try:
            found = self._device.run(model, feeds)
        except EngineMissingError:
            raise
        except (RunError, ModelError) as error:
            return Verdict(within=False, problem=error.diagnostic.message)
        worst: tuple[Port, TensorComparison] | None = None
        for port, actual, reference in zip(model.outputs, found, expected, strict=True):
            terms, steps = depths.of_port(port.source) if port.source is not None else (0.0, 0.0)
            tolerance = self._criterion.between(_type(port, reference), actual, self._device.precision, terms, steps)
            compared = self._criterion.compare(actual, reference, tolerance)
            if worst is None or severity(compared) > severity(worst[1]):
                worst = port, compared
        if worst is None:
            return Verdict(within=True)
        return Verdict(worst[1].within, worst[0].any_name, worst[1])


def _type(port: Port, array: Array) -> ElementType:
    return ElementType.from_dtype(array.dtype) if port.element_type.is_dynamic else port.element_type
