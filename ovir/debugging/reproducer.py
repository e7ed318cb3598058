"""The part of a model that differs from another side, as it is saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ovir.core.arrays import Array
from ovir.debugging.candidates import counted_layers
from ovir.graph.names import TakenNames, distinct_names, take_name
from ovir.io.tensor_files import save_npz
from ovir.model import Model, save_model
from ovir.runtime.compiled import CompiledModel


@dataclass
class Part:
    """The smallest part of a model that was found to differ, with inputs for which it does."""

    model: Model
    """The part, whose inputs are the tensors before it."""
    files: list[str] = field(default_factory=list)
    """The files that hold it, with its inputs, the results of ovir and those of the other side."""

    @property
    def names(self) -> list[str]:
        """Return the keys of the layers, those of bodies included, without Parameters, Results, Consts and Assigns."""
        return [layer.key for layer in counted_layers(self.model)]

    def to_dict(self) -> dict[str, Any]:
        """Return the part for JSON, without the model."""
        return {"layers": len(self.names), "names": self.names, "files": self.files}


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
        taken = TakenNames()
        return {take_name(port.any_name, taken): array for port, array in zip(self.model.outputs, arrays, strict=True)}

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
        return Part(self.model, [os.fspath(file) for file in files])
