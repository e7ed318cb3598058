"""The smallest part of a model that still differs, saved with its inputs and outputs as a reproducer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ovir.core.arrays import Array
from ovir.debugging.bisecting.bisection import Part
from ovir.debugging.bisecting.judge import Judge
from ovir.debugging.devices import Device
from ovir.debugging.reducing.candidates import count
from ovir.debugging.reducing.search import Search
from ovir.debugging.reducing.stage import Stage
from ovir.diagnostics.errors import RunError
from ovir.graph.input_names import distinct_names
from ovir.graph.model import Model
from ovir.io.tensor_files import save_npz
from ovir.ir.writing.save import save_model
from ovir.runtime.compiled import CompiledModel

PART_ENDINGS = ("_input.npz", "_expected.npz", "_actual.npz")
"""What follows the name of a part in the names of the files beside it."""


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


def save_part(stage: Stage, target: Path, device: Device | None) -> Part:
    """Write a part as an IR, and beside it its inputs, the outputs of ovir and, if there are any, outputs of a device.

    The files have the name of the part, with ``_input.npz``, ``_expected.npz`` and ``_actual.npz``.
    """
    model = stage.model
    save_model(model, target)
    files = [target, target.with_suffix(".bin")]
    feeds = stage.feeds
    arrays = [dict(zip(distinct_names(model.inputs), feeds, strict=True))]
    arrays.append(_named(model, list(CompiledModel(model)(feeds).values())))
    if device is not None:
        with suppress(RunError):  # the device may fail, which the report says
            arrays.append(_named(model, device.run(model, feeds)))
    for ending, tensors in zip(PART_ENDINGS, arrays, strict=False):
        files.append(target.with_name(f"{target.stem}{ending}"))
        save_npz(files[-1], tensors)
    return Part(model, count(model), [os.fspath(file) for file in files])


def _named(model: Model, arrays: Sequence[Array]) -> dict[str, Array]:
    """Return outputs by names under which no two of them are the same."""
    names = [port.any_name for port in model.outputs]
    own = [name if names.count(name) == 1 else f"{name}_{i}" for i, name in enumerate(names)]
    return dict(zip(own, arrays, strict=True))
