"""Sets of inputs on which models are compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ovir.analysis.random_inputs import random_inputs
from ovir.core.arrays import Array
from ovir.diagnostics.errors import InputError
from ovir.io.input_files import InputFile, find_inputs
from ovir.model import Model
from ovir.runtime.inputs import Feeds, collect_inputs

Inputs = Feeds | Sequence[Mapping[Any, Any]] | Sequence[InputFile] | str | os.PathLike[str]


@dataclass(frozen=True)
class InputSet:
    """One set of inputs; calling it loads or draws the arrays of the inputs by position."""

    name: str
    """What results call it, such as ``a/x.npz`` or ``input 2``."""
    load: Callable[[], list[Array]]

    def __call__(self) -> list[Array]:
        return self.load()


def input_sets(model: Model, inputs: Inputs, samples: int | None, seed: int) -> list[InputSet]:
    """Return the sets of inputs for a model; each is loaded or drawn when it is asked for.

    ``inputs`` is one set, as a run takes it; a list of mappings; the path of a file, of a folder of files or a pattern,
    see ``find_inputs``; or a list of such files. Without inputs, ``samples`` random sets are drawn, with the seeds from
    ``seed`` on. Raises InputError.
    """
    if samples is not None and (type(samples) is not int or samples < 1):
        raise InputError.usage(f"samples must be an integer of at least 1, got {samples!r}")
    if inputs is None:
        seeds = range(seed, seed + (samples or 1))
        return [InputSet(f"seed {number}", partial(_random, model, number)) for number in seeds]
    if samples is not None:
        raise InputError.usage("samples are random inputs: give either samples or inputs")
    given: Any = find_inputs(inputs) if isinstance(inputs, (str, os.PathLike)) else inputs
    if isinstance(given, Sequence) and not given and model.inputs:
        raise InputError.usage("inputs is empty: expected arrays, or None for random ones")
    if isinstance(given, Sequence) and given and all(isinstance(item, InputFile) for item in given):
        return [InputSet(item.name, partial(_loaded, model, item)) for item in given]
    if not (isinstance(given, Sequence) and given and all(isinstance(item, Mapping) for item in given)):
        given = [given]
    return [InputSet(f"input {number}", partial(_collected, model, item)) for number, item in enumerate(given)]


def _random(model: Model, seed: int) -> list[Array]:
    return _collected(model, random_inputs(model, seed))


def _loaded(model: Model, file: InputFile) -> list[Array]:
    feeds = file.load(model)
    try:
        return _collected(model, feeds)
    except InputError as error:
        raise InputError(*(replace(found, file=file.path, line=None) for found in error.diagnostics)) from None


def _collected(model: Model, feeds: Any) -> list[Array]:
    return collect_inputs(model, feeds, model.input_index)
