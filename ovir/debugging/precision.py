"""The layers of a model that must stay in f32."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ovir.analysis.tensor_comparison import output_error, tensor_error
from ovir.core.arrays import Array
from ovir.core.tables import Table, columns
from ovir.debugging.comparison_setup import GivenInputs, Progress, input_sets
from ovir.debugging.searches import least, needed
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean, plural
from ovir.graph.layers import Layer
from ovir.model import Model, read_model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.emulation import NARROW, Emulation
from ovir.runtime.listeners import Listener
from ovir.runtime.partial_runs import PartialRuns, Tensors

TOLERANCES = {"f16": 0.01, "bf16": 0.05, "int8": 0.1}
"""The default tolerance for each type: the root mean square of an output's error, as a share of the output."""


@dataclass(frozen=True)
class LayerSensitivity:
    """The error of the outputs if one layer alone computes in the narrower type."""

    layer: str
    """Its key."""
    id: int
    """Its id in the file."""
    type: str
    """Its operation, such as ``MatMul``."""
    error: float | None
    """The largest error of an output; None if the time was not enough to measure it."""
    own_error: float
    """The error of the layer's own results."""
    keep: bool
    """Whether the layer must stay in f32."""


@dataclass(frozen=True)
class Precision:
    """The layers that must stay in f32 to keep the outputs within the tolerance, and how that was found."""

    to: str
    """The narrower type: ``f16``, ``bf16`` or ``int8``."""
    tolerance: float
    """The largest error of an output that is allowed, relative to the root mean square of the output."""
    samples: int
    """The number of sets of inputs that were used."""
    error_before: float
    """The error of the outputs if all layers compute in the narrower type."""
    error: float
    """The error of the outputs if the layers to keep stay in f32."""
    keep: tuple[str, ...]
    """The names of the layers to keep, in the order of the graph; in a body, after the names of the layers around."""
    layers: tuple[LayerSensitivity, ...]
    """All layers that compute real numbers, in the order of the graph."""

    @property
    def within(self) -> bool:
        """Return whether the outputs are within the tolerance."""
        return self.error <= self.tolerance

    @property
    def ignored_scope(self) -> str:
        """Return the layers to keep as Python code for NNCF."""
        return f"nncf.IgnoredScope(names={list(self.keep)!r})"

    def _repr_html_(self) -> str:
        title = f"{len(self.keep)} of {plural(len(self.layers), 'layer')} must stay in f32: error {self.error:.3g}"
        return self.table().in_notebook(title)

    def table(self) -> Table:
        """Return the layers, those to keep first, then the most sensitive ones."""
        order = sorted(self.layers, key=lambda x: (not x.keep, x.error is None, -(x.error or 0.0), -x.own_error))
        errors = ["not measured" if x.error is None else x.error for x in order]
        return Table(
            columns("layer: layer; operation: type; error: real; of its results: real; : tag"),
            [(x.layer, x.type, e, x.own_error, "f32" if x.keep else "") for x, e in zip(order, errors, strict=True)],
            least=("of its results",),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**asdict(self), "within": self.within, "ignored_scope": self.ignored_scope}


def precision(
    model: Model | str | os.PathLike[str],
    to: str = "f16",
    inputs: GivenInputs = None,
    *,
    samples: int | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    seconds: float = 300.0,
    progress: Progress | None = None,
) -> Precision:
    """Find the layers that must stay in f32 if the model computes in a narrower type.

    Each layer is first emulated alone; then the most sensitive ones are kept, as few as suffice, which is verified with
    all others emulated together.

    Args:
        model: The model, or the path of an .xml.
        to: The type: ``"f16"``, ``"bf16"`` or ``"int8"``.
        inputs: Sets of inputs as for ``ovir.compare``.
        samples: The number of sets of random inputs.
        seed: The seed of random inputs.
        tolerance: The share of the root mean square of an output that the one of its error may be.
        seconds: The time for measuring; the layers that are left are ranked by the error of their own results.
        progress: Called with how much is done, how much there is, and what is being done.

    Raises InputError for a type that cannot be emulated and for inputs that do not match the model, ReadError and
    ModelError for a file that cannot be read, and RunError if the model cannot be run in f32.
    """
    if to not in TOLERANCES:
        hint = did_you_mean(to, TOLERANCES) if isinstance(to, str) else None
        message = f"{to!r} cannot be emulated; expected {', '.join(TOLERANCES)}"
        raise InputError.usage(message, hint=hint)
    if not isinstance(model, Model):
        model = read_model(model)
    sets = [load() for load in input_sets(model, inputs, samples, seed)]
    limit = TOLERANCES[to] if tolerance is None else tolerance
    emulation = _emulation(model, to, sets)
    search = PrecisionSearch(model, emulation, sets, limit, seconds, progress or _no_progress)
    found = search.find()
    keep = tuple(key for index in sorted(found.keep) for key in search.runs.keys(index))
    layers = tuple(
        LayerSensitivity(
            *(layer.key, layer.id, layer.type, found.errors.get(index), found.own_errors.get(index, 0.0)),
            keep=index in found.keep,
        )
        for index in search.runs.candidates
        for layer in [search.runs.steps[index].layer]
    )
    return Precision(to, limit, len(sets), found.error_before, found.error, keep, layers)


def _no_progress(done: int, total: int, what: str) -> None:
    """Do nothing."""


# --------------------------------------------------------------------------- search


@dataclass
class Sensitivities:
    """The result of a search. Steps are known by their numbers."""

    error_before: float = 0.0
    """The error with all steps emulated."""
    error: float = 0.0
    """The error with all steps emulated except those to keep."""
    keep: frozenset[int] = frozenset()
    errors: dict[int, float] = field(default_factory=dict)
    """The error of the outputs with one step emulated."""
    own_errors: dict[int, float] = field(default_factory=dict)
    """The error of the step's own results if it is emulated."""


class PrecisionSearch:
    """Finds the steps to keep for one model and some sets of inputs."""

    def __init__(
        self,
        model: Model,
        emulation: Emulation,
        sets: Sequence[Sequence[Array]],
        tolerance: float,
        seconds: float,
        progress: Progress,
    ) -> None:
        self.runs = PartialRuns(model, emulation)
        self._inputs: list[Tensors] = [self.runs.inputs(arrays) for arrays in sets]
        self._tolerance = tolerance
        self._end = perf_counter() + seconds
        self._progress = progress
        self._references = [self.runs.run(inputs, ()) for inputs in self._inputs]
        self._verified: dict[frozenset[int], float] = {}

    def find(self) -> Sensitivities:
        """Return the steps to keep."""
        found = Sensitivities(error_before=self.error_with(frozenset()))
        found.error = found.error_before
        self._measure(found)
        if found.error_before > self._tolerance:
            ranked = self._ranked(found)
            found.keep = self._shrunk(self._first_enough(ranked))
            found.error = self.error_with(found.keep)
        return found

    # ----- one step alone

    def _measure(self, found: Sensitivities) -> None:
        """Set the error of each step's own results, then the error of the outputs, for the largest own errors first."""
        for inputs, reference in zip(self._inputs, self._references, strict=True):
            recorded = self.runs.record(inputs, Keeper().keep)
            for index in self.runs.candidates:
                own = [tensor_error(array, recorded[port]) for port, array in self.runs.run_step(recorded, index)]
                found.own_errors[index] = max(found.own_errors.get(index, 0.0), *own, 0.0)
            order = sorted(self.runs.candidates, key=lambda index: -found.own_errors[index])
            for done, index in enumerate(order):
                if found.own_errors[index] == 0.0:
                    error = 0.0
                elif perf_counter() > self._end:
                    continue
                else:
                    error = output_error(self.runs.rerun(recorded, [index]), reference)
                found.errors[index] = max(found.errors.get(index, 0.0), error)
                self._progress(done + 1, len(order), "sensitivity")

    def _ranked(self, found: Sensitivities) -> list[int]:
        """Return the steps that may matter, the most sensitive first; those that were not measured come last."""

        def rank(index: int) -> tuple[bool, float, float, int]:
            error = found.errors.get(index)
            return (error is None, -(error or 0.0), -found.own_errors[index], index)

        return sorted((i for i in self.runs.candidates if found.own_errors[i] > 0.0), key=rank)

    # ----- all together

    def error_with(self, keep: frozenset[int]) -> float:
        """Return the error of the outputs with all steps emulated except those in ``keep``."""
        if keep not in self._verified:
            emulated = [index for index in self.runs.candidates if index not in keep]
            errors = (
                output_error(self.runs.run(inputs, emulated), reference)
                for inputs, reference in zip(self._inputs, self._references, strict=True)
            )
            worst = 0.0
            for error in errors:
                worst = max(worst, error)
                if worst > self._tolerance and keep:  # no other sample makes it better
                    break
            self._verified[keep] = worst
        return self._verified[keep]

    def _is_enough(self, keep: Collection[int]) -> bool:
        return self.error_with(frozenset(keep)) <= self._tolerance

    def _first_enough(self, ranked: Sequence[int]) -> list[int]:
        """Return as many of the first steps as are needed, by doubling and then halving their number."""
        high = 1
        while high < len(ranked) and not self._is_enough(ranked[:high]):
            self._progress(0, high, "layers to keep")
            high *= 2
        count = least(
            *(high // 2, min(high, len(ranked)), lambda count: self._is_enough(ranked[:count])),
            narrowed=lambda low, high: self._progress(low, high, "layers to keep"),
        )
        return list(ranked[:count])

    def _shrunk(self, keep: Sequence[int]) -> frozenset[int]:
        """Return the steps that are left when those that are not needed are taken out, the least sensitive first."""

        def can_remove(_: Sequence[int], rest: Sequence[int]) -> bool:
            self._progress(len(keep) - len(rest), len(keep), "layers that are not needed")
            return perf_counter() < self._end and self._is_enough(rest)

        return frozenset(needed(keep[::-1], can_remove))


IN_MEMORY = 1 << 30
"""Bytes of recorded tensors that stay in memory; others are put into a temporary file."""


class Keeper:
    """Keeps arrays in memory up to a size, and in a temporary file from then on."""

    def __init__(self, most: int = IN_MEMORY) -> None:
        self._left = most

    def keep(self, array: Array) -> Array:
        """Return the array, or a copy of it in a file."""
        self._left -= array.nbytes
        if self._left >= 0 or array.dtype.kind in "TUSO" or not array.size:
            return array
        with tempfile.TemporaryFile() as file:  # it disappears with the last array that lies in it
            kept: Array = np.memmap(file, array.dtype, "w+", shape=array.shape)
        kept[...] = array
        return kept


# --------------------------------------------------------------------------- emulation of int8


def _emulation(model: Model, to: str, sets: Sequence[Sequence[Array]]) -> Emulation:
    if to in NARROW:
        return Emulation(to)
    ranges = CalibrationRanges()
    compiled = CompiledModel(model)
    for arrays in sets:
        compiled.create_infer_request().infer(list(arrays), listeners=[ranges])
    return Int8(ranges.found)


Range = tuple[float, float]


class CalibrationRanges(Listener):
    """A listener that collects the ranges of the inputs of quantized layers."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], Range] = {}

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
        if layer.operator is None:
            return
        for position, array in enumerate(inputs):
            if layer.operator.scale_axes(position, array.ndim) is None:
                continue
            if array.dtype.kind == "f" and array.size:
                low, high = self.found.get((layer.key, position), (0.0, 0.0))
                found = float(np.fmin.reduce(array, None)), float(np.fmax.reduce(array, None))
                self.found[layer.key, position] = min(low, found[0]), max(high, found[1])


class Int8(Emulation):
    """Rounds the inputs of products and convolutions as quantized models do.

    Weights have a symmetric scale for each output channel, other tensors a scale and a zero point for their range in
    the samples. Results, and all other layers, stay in f32.
    """

    rounds_outputs = rounds_steps = False

    def __init__(self, ranges: dict[tuple[str, int], Range], keep: Sequence[str] = ()) -> None:
        self.element_type = "int8"
        self.keep = frozenset(keep)
        self.ranges = ranges

    def covers(self, layer: Layer) -> bool:
        return _is_quantized(layer) and super().covers(layer)

    def constant(self, layer: Layer, position: int, array: Array) -> Array:
        assert layer.operator is not None
        axes = layer.operator.scale_axes(position, array.ndim)
        if axes is None or not array.size:
            return array
        others = tuple(axis for axis in range(array.ndim) if axis not in axes)
        scale = np.abs(array).max(axis=others, keepdims=True) / np.float32(127)
        scale = np.where((scale == 0) | ~np.isfinite(scale), np.float32(1), scale)
        rounded: Array = np.clip(np.rint(array / scale), -127, 127) * scale
        return rounded

    def input(self, layer: Layer, position: int, array: Array) -> Array:
        low, high = self.ranges.get((layer.key, position), (0.0, 0.0))
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            return array
        scale = (high - low) / 255
        zero = round(-low / scale)
        rounded: Array = np.clip(np.rint(array / array.dtype.type(scale)) + zero, 0, 255) - zero
        rounded *= scale
        return rounded

    def output(self, layer: Layer, array: Array, out: Array | None) -> Array:
        return array if out is None else out


def _is_quantized(layer: Layer) -> bool:
    """Return whether quantizers such as NNCF quantize the inputs of a layer, because devices compute it in int8."""
    return layer.operator is not None and layer.operator.scale_axes(0, 0) is not None
