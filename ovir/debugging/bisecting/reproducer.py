"""A part of a model that differs, saved with its inputs and outputs as a reproducer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ovir.core.arrays import Array
from ovir.debugging.bisecting.bisection import Part
from ovir.debugging.bisecting.judge import Judge
from ovir.debugging.devices import Device
from ovir.debugging.reducing.candidates import count
from ovir.debugging.reducing.search import Search
from ovir.debugging.reducing.stage import Stage
from ovir.diagnostics.errors import RunError
from ovir.graph.names import distinct_names
from ovir.io.tensor_files import save_npz
from ovir.model import Model, save_model
from ovir.runtime.compiled import CompiledModel

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
