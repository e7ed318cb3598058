"""Sets of inputs on which models are compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ovir.analysis.feeds import random_inputs
from ovir.core.arrays import Array
from ovir.diagnostics.codes import BAD_INPUT, USAGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.graph.model import Model
from ovir.io.tensor_files import load_npz
from ovir.runtime.inputs import Feeds, collect_inputs

Inputs = Feeds | Sequence[Mapping[Any, Any]] | str | os.PathLike[str]
InputSet = Callable[[], list[Array]]
"""A function that returns the arrays of the inputs by position."""


def input_sets(model: Model, inputs: Inputs, samples: int | None, seed: int) -> list[InputSet]:
    """Return the sets of inputs for a model; each is loaded or drawn when it is asked for.

    ``inputs`` is one set, as a run takes it; a list of mappings; the path of an .npz; or a folder of them. Without
    inputs, ``samples`` random sets are drawn, with the seeds from ``seed`` on. Raises InputError.
    """
    if samples is not None and (type(samples) is not int or samples < 1):
        raise InputError(diagnose(USAGE, f"samples must be an integer of at least 1, got {samples!r}"))
    if inputs is None:
        return [partial(_random, model, seed + number) for number in range(samples or 1)]
    if samples is not None:
        raise InputError(diagnose(USAGE, "samples are random inputs: give either samples or inputs"))
    if isinstance(inputs, (str, os.PathLike)):
        return [partial(_loaded, model, path) for path in _paths(Path(inputs))]
    if isinstance(inputs, Sequence) and not inputs and model.inputs:
        raise InputError(diagnose(USAGE, "inputs is empty: expected arrays, or None for random ones"))
    if isinstance(inputs, Sequence) and inputs and all(isinstance(item, Mapping) for item in inputs):
        return [partial(_collected, model, item) for item in inputs]
    return [partial(_collected, model, inputs)]


def _paths(path: Path) -> list[Path]:
    """Return the .npz files of a folder in the order of their names, or the file itself."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.npz"))
    if not found:
        raise InputError(diagnose(BAD_INPUT, "there are no .npz files in the folder", Place(os.fspath(path))))
    return found


def _random(model: Model, seed: int) -> list[Array]:
    return _collected(model, random_inputs(model, seed))


def _loaded(model: Model, path: Path) -> list[Array]:
    try:
        return _collected(model, load_npz(path))
    except InputError as error:
        raise InputError(*(replace(found, file=os.fspath(path), line=None) for found in error.diagnostics)) from None


def _collected(model: Model, feeds: Any) -> list[Array]:
    return collect_inputs(model, feeds, model.input_index)
