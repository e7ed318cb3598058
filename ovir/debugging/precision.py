"""The layers of a model that must stay in f32, or whose weights cannot take 4 or 8 bits."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from ovir.analysis.tensor_comparison import output_error, tensor_error
from ovir.core.arrays import Array
from ovir.core.tables import Table, columns
from ovir.debugging.comparison_setup import GivenInputs, Progress, input_sets
from ovir.debugging.searches import least, needed
from ovir.debugging.weight_types import WeightCompression
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean, plural
from ovir.editing.weight_compression import WeightType
from ovir.graph.layers import Layer
from ovir.model import Model, opened
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.emulation import NARROW, Emulation
from ovir.runtime.listeners import Listener
from ovir.runtime.partial_runs import PartialRuns, Tensors

TOLERANCES = {"f16": 0.01, "bf16": 0.05, "int8": 0.1}
"""The default tolerance for each type: the root mean square of an output's error, as a share of the output."""
OF_WEIGHTS = 0.1
"""The same where weights alone have another type."""


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
class Choice:
    """What becomes of a model if the weights of its most sensitive layers keep more bits."""

    kept: int
    """The number of these layers."""
    error: float
    """The error of the outputs."""
    weight_bytes: int
    """The bytes of all weights that can be compressed."""


@dataclass(frozen=True)
class Precision:
    """The layers that must stay in f32 to keep the outputs within the tolerance, and how that was found."""

    to: str
    """The narrower type: ``f16``, ``bf16``, ``int8``, or one of weights alone, such as ``int4:sym:64``."""
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
    kept_in: str = "f32"
    """What the layers to keep have instead: ``int8`` for the weights of those that cannot take 4 bits."""
    choices: tuple[Choice, ...] = ()
    """For types of weights alone: what other numbers of layers would give, none first."""

    @property
    def within(self) -> bool:
        """Return whether the outputs are within the tolerance."""
        return self.error <= self.tolerance

    @property
    def ignored_scope(self) -> str:
        """Return the layers to keep as Python code for NNCF."""
        return f"nncf.IgnoredScope(names={list(self.keep)!r})"

    def compressed(self, model: Model) -> Model:
        """Return a copy of the model with weights in the type, as OpenVINO reads them; those of the layers to keep are
        in int8, or as they are. Raise InputError if the type is not one of weights alone."""
        if not self.choices:
            raise InputError.usage(f"{self.to} is not a type of weights alone, such as int4")
        return WeightCompression(model, _weight_type(self.to)).model(self.keep)

    def _repr_html_(self) -> str:
        kept = f"{len(self.keep)} of {plural(len(self.layers), 'layer')} must stay in {self.kept_in}"
        return self.table().in_notebook(f"{kept}: error {self.error:.3g}")

    def table(self) -> Table:
        """Return the layers, those to keep first, then the most sensitive ones."""
        order = sorted(self.layers, key=lambda x: (not x.keep, x.error is None, -(x.error or 0.0), -x.own_error))
        rows = []
        for x in order:
            error, tag = "not measured" if x.error is None else x.error, self.kept_in if x.keep else ""
            rows.append((x.layer, x.type, error, x.own_error, tag))
        heads = columns("layer: layer; operation: type; output error: real; own error: real; : tag")
        return Table(heads, rows, least=("own error",))

    def choices_table(self) -> Table:
        """Return the choices."""
        rows = [(choice.kept, choice.error, choice.weight_bytes) for choice in self.choices]
        return Table(columns(f"in {self.kept_in}: count; error: real; weights: bytes"), rows)

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
        to: The type: ``"f16"``, ``"bf16"`` or ``"int8"``; or one of weights alone, ``"int4[:sym|asym][:GROUP]"`` or
            ``"int8:sym|asym[:GROUP]"``. The layers to keep then have weights in int8, or as they are.
        inputs: Sets of inputs as for ``ovir.compare``.
        samples: The number of sets of random inputs.
        seed: The seed of random inputs.
        tolerance: The share of the root mean square of an output that the one of its error may be.
        seconds: The time for measuring; the layers that are left are ranked by the error of their own results.
        progress: Called with how much is done, how much there is, and what is being done.

    Raises InputError for a type that cannot be emulated and for inputs that do not match the model, ReadError and
    ModelError for a file that cannot be read, and RunError if the model cannot be run in f32.
    """
    model = opened(model)
    of_weights = None if to in TOLERANCES else WeightCompression(model, _weight_type(to))
    sets = [load() for load in input_sets(model, inputs, samples, seed)]
    limit = tolerance if tolerance is not None else TOLERANCES.get(to, OF_WEIGHTS)
    runs = PartialRuns(model, _emulation(model, to, sets)) if of_weights is None else of_weights.runs
    exact = None if of_weights is None else [list(CompiledModel(model)(arrays).values()) for arrays in sets]
    search = PrecisionSearch(runs, sets, limit, seconds, progress or (lambda *_: None), exact)
    result = search.find()
    keep = tuple(key for index in sorted(result.keep) for key in runs.keys(index))
    layers = []
    for index in runs.candidates:
        layer, own_error = runs.steps[index].layer, result.own_errors.get(index, 0.0)
        errors = (result.errors.get(index), own_error)
        layers.append(LayerSensitivity(layer.key, layer.id, layer.type, *errors, keep=index in result.keep))
    measured = Precision(to, limit, len(sets), result.error_before, result.error, keep, tuple(layers))
    if of_weights is None:
        return measured
    choices = (
        Choice(len(indices), error, of_weights.bytes({key for index in indices for key in runs.keys(index)}))
        for indices, error in search.choices(result)
    )
    return replace(measured, kept_in=of_weights.kept_in, choices=tuple(choices))


def _weight_type(to: str) -> WeightType:
    weight_type = WeightType.of(to) if isinstance(to, str) else None
    if weight_type is None:
        forms = f"{', '.join(TOLERANCES)}, int4[:sym|asym][:GROUP] or int8:sym|asym[:GROUP]"
        hint = did_you_mean(to, TOLERANCES) if isinstance(to, str) else None
        raise InputError.usage(f"expected {forms}, got {to!r}", hint=hint)
    return weight_type


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
        runs: PartialRuns,
        sets: Sequence[Sequence[Array]],
        tolerance: float,
        seconds: float,
        progress: Progress,
        references: list[list[Array]] | None = None,
    ) -> None:
        """Search among the steps of ``runs``; ``references`` are the outputs if those without emulation are not."""
        self.runs = runs
        self._inputs: list[Tensors] = [self.runs.inputs(arrays) for arrays in sets]
        self._tolerance = tolerance
        self._end = perf_counter() + seconds
        self._progress = progress
        self._references = references or [self.runs.run(inputs, ()) for inputs in self._inputs]
        self._verified: dict[frozenset[int], float] = {}

    def find(self) -> Sensitivities:
        """Return the steps to keep."""
        sensitivities = Sensitivities(error_before=self.error_with(frozenset()))
        sensitivities.error = sensitivities.error_before
        self._measure(sensitivities)
        if sensitivities.error_before > self._tolerance:
            ranked = self._ranked(sensitivities)
            sensitivities.keep = self._shrunk(self._first_enough(ranked))
            sensitivities.error = self.error_with(sensitivities.keep)
        return sensitivities

    # ----- one step alone

    def _measure(self, sensitivities: Sensitivities) -> None:
        """Set the error of each step's own results, then the error of the outputs, for the largest own errors first."""
        for inputs in self._inputs:
            recorded = self.runs.record(inputs, Keeper().keep)
            reference = self.runs.outputs(recorded)
            for index in self.runs.candidates:
                errors = [tensor_error(array, recorded[port]) for port, array in self.runs.run_step(recorded, index)]
                sensitivities.own_errors[index] = max(sensitivities.own_errors.get(index, 0.0), *errors, 0.0)
            order = sorted(self.runs.candidates, key=lambda index: -sensitivities.own_errors[index])
            for done, index in enumerate(order):
                if sensitivities.own_errors[index] == 0.0:
                    error = 0.0
                elif perf_counter() > self._end:
                    continue
                else:
                    error = output_error(self.runs.rerun(recorded, [index]), reference)
                sensitivities.errors[index] = max(sensitivities.errors.get(index, 0.0), error)
                self._progress(done + 1, len(order), "sensitivity")

    def _ranked(self, sensitivities: Sensitivities) -> list[int]:
        """Return the steps that may matter, the most sensitive first; those that were not measured come last."""
        errors, own_errors = sensitivities.errors, sensitivities.own_errors
        indices = [i for i in self.runs.candidates if own_errors[i] > 0.0]
        return sorted(indices, key=lambda i: (i not in errors, -errors.get(i, 0.0), -own_errors[i], i))

    # ----- all together

    def error_with(self, keep: frozenset[int]) -> float:
        """Return the error of the outputs with all steps emulated except those in ``keep``."""
        if keep not in self._verified:
            worst = 0.0
            for error in self._errors_with(keep):
                worst = max(worst, error)
                if worst > self._tolerance and keep:  # no other sample makes it better
                    break
            self._verified[keep] = worst
        return self._verified[keep]

    def _errors_with(self, keep: Collection[int]) -> Iterator[float]:
        emulated = [index for index in self.runs.candidates if index not in keep]
        for inputs, reference in zip(self._inputs, self._references, strict=True):
            yield output_error(self.runs.run(inputs, emulated), reference)

    def choices(self, sensitivities: Sensitivities) -> Iterator[tuple[frozenset[int], float]]:
        """Yield what keeping 0, 1, 2, 4, ... of the most sensitive steps gives, and the steps that were found, with the
        error of the outputs; fewer if there is no time."""
        ranked = self._ranked(sensitivities)
        counts = {0, *(1 << n for n in range(len(ranked).bit_length())), len(ranked)}
        sets = {count: frozenset(ranked[:count]) for count in counts} | {len(sensitivities.keep): sensitivities.keep}
        for count, keep in sorted(sets.items()):
            if not count or keep == sensitivities.keep or perf_counter() < self._end:
                error = self.error_with(keep)
                is_whole = error <= self._tolerance or not keep
                yield keep, error if is_whole else max(self._errors_with(keep))

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
            copy: Array = np.memmap(file, array.dtype, "w+", shape=array.shape)
        copy[...] = array
        return copy


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
                ends = float(np.fmin.reduce(array, None)), float(np.fmax.reduce(array, None))
                self.found[layer.key, position] = min(low, ends[0]), max(high, ends[1])


class Int8(Emulation):
    """Rounds the inputs of products and convolutions as quantized models do.

    Weights have a symmetric scale for each output channel, other tensors a scale and a zero point for their range in
    the samples. Results, and all other layers, stay in f32.
    """

    rounds_outputs = rounds_steps = False

    def __init__(self, ranges: dict[tuple[str, int], Range]) -> None:
        self.element_type = "int8"
        self.ranges = ranges

    def covers(self, layer: Layer) -> bool:
        """Return whether quantizers such as NNCF quantize the inputs of the layer."""
        return layer.operator is not None and layer.operator.scale_axes(0, 0) is not None

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
