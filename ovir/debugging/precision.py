"""The layers of a model that must stay in f32."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ovir.build.generic import create_layer
from ovir.core.arrays import Array
from ovir.debugging.comparison import output_error, tensor_error
from ovir.debugging.sides import Inputs, input_sets
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean
from ovir.graph.layers import Layer, Port
from ovir.graph.rt_info import RtElement, RtInfo
from ovir.inference.constant_layers import constant_layers
from ovir.kernels.narrow import NARROW
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.emulation import Emulation
from ovir.runtime.partial_runs import PartialRuns, Tensors

Range = tuple[float, float]


class Ranges:
    """A listener that collects the ranges of what quantized layers read."""

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

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Do nothing after a layer."""


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
    """Return whether quantizers such as NNCF quantize what a layer reads, because devices compute it in int8."""
    return layer.operator is not None and layer.operator.scale_axes(0, 0) is not None


_MARKS = (
    RtElement(
        1, "attribute", (("name", "DisablePrecisionConversion"), ("version", "0"), ("value", "dynamic:bf16,f16"))
    ),
    RtElement(1, "attribute", (("name", "precise"), ("version", "0"))),
)
"""The mark of OpenVINO 2026 and later, and the one that versions from 2023 on know."""


def with_exact_layers(model: Model, keys: Collection[str]) -> Model:
    """Return a copy of a model in which the layers with these keys, and the constants that they read, are marked.

    Some layers get an equal form first, because OpenVINO would replace them by layers without a mark.
    """
    marked = model.clone()
    wanted = set(keys)
    for part in marked.graphs():
        for layer in [layer for layer in part.layers if layer.key in wanted]:
            forms = equal_form(layer) or [layer]
            info, constants = _with_marks(layer.rt_info), [found for form in forms for found in _constants(form)]
            if forms[-1] is not layer:
                names = layer.outputs[0].own_names
                part.replace(layer, forms[-1])
                forms[-1].outputs[0].names = names
            for form in forms:
                form.rt_info_source = info
            for found in constants:
                found.rt_info_source = _with_marks(found.rt_info)
    return marked


def lost_marks(model: Model, keys: Collection[str]) -> dict[str, str]:
    """Return for which of the layers with these keys OpenVINO's CPU plugin does not honour the marks, and why."""
    wanted = set(keys)
    reasons = {layer.key: lost_mark(layer) for layer in model.walk() if layer.key in wanted}
    return {key: reason for key, reason in reasons.items() if reason is not None}


def _constants(layer: Layer) -> Iterator[Layer]:
    """Yield the layers that compute the real constants that a layer reads."""
    for port in layer.inputs:
        if port.source is not None and port.element_type.is_real:
            yield from constant_layers(port.source.layer) or ()


def _with_marks(info: RtInfo) -> RtInfo:
    root, *inner = info.elements or (RtElement(0, "rt_info"),)
    names = {mark.key for mark in _MARKS}
    kept = [item for item in inner if item.depth > 1 or item.key not in names]
    return RtInfo((root, *_MARKS, *kept))


def equal_form(layer: Layer) -> list[Layer]:
    """Return new layers that compute the same and that OpenVINO leaves as they are; the last one is to replace the
    layer. The list is empty if the layer has no such form, or needs none."""
    make = _FORMS.get(layer.type)
    if make is None or any(port.source is None for port in layer.inputs):
        return []
    return make(layer, [port.source for port in layer.inputs if port.source is not None])


def lost_mark(layer: Layer) -> str | None:
    """Return why OpenVINO's CPU plugin does not honour the mark of a layer; None if nothing is known against it."""
    if layer.type == "ScaledDotProductAttention" or _is_in_attention(layer):
        return "attention is computed as one layer"
    if layer.type in _REPLACED or (layer.type, layer.version) in _REPLACED_VERSIONS:
        return f"OpenVINO replaces {layer.type} by other layers"
    if layer.type in _FORMS and (layer.type, layer.version) != ("SoftMax", "opset1") and not equal_form(layer):
        return f"OpenVINO replaces {layer.type} by other layers, and for this shape there is no equal form"
    return None


_REPLACED = ("LogSoftmax", "PRelu", "NormalizeL2", "GroupNormalization", "BatchNormInference", "Interpolate")
_REPLACED_VERSIONS = (("MaxPool", "opset8"), ("Pad", "opset12"))


def _softmax(layer: Layer, sources: list[Port]) -> list[Layer]:
    """Return a SoftMax-1, whose axis is not negative."""
    rank = sources[0].shape.rank
    if layer.version == "opset1" or rank is None:
        return []
    axis = int(layer.attributes.get("axis", 1)) % max(rank, 1)
    return [create_layer("SoftMax", sources, {"axis": axis}, version="opset1", name=layer.name)]


def _subtract(layer: Layer, sources: list[Port]) -> list[Layer]:
    """Return a + b * [-1, -1, ...]; with a single -1, OpenVINO would make a Subtract of it."""
    return _with_second(layer, sources, "Multiply", "Add")


def _divide(layer: Layer, sources: list[Port]) -> list[Layer]:
    """Return a * b ** [-1, -1, ...], which is how OpenVINO divides real numbers; with a single -1, it would make a
    Divide of it."""
    return _with_second(layer, sources, "Power", "Multiply")


def _with_second(layer: Layer, sources: list[Port], inner: str, outer: str) -> list[Layer]:
    """Return the layers that change the second input by an element-wise operation with -1, and combine both then."""
    minus = _minus_ones(layer.outputs[0])
    if minus is None or layer.attributes.get("auto_broadcast", "numpy") != "numpy":
        return []
    changed = create_layer(inner, [sources[1], minus], version="opset1", name=f"{layer.name}/{inner.lower()}")
    return [changed, create_layer(outer, [sources[0], changed], version="opset1", name=layer.name)]


def _minus_ones(port: Port) -> Array | None:
    """Return several -1 in a shape that broadcasting does not change; None if no dimension is known to be above 1."""
    shape = port.shape
    if not port.element_type.is_real or shape.rank is None:
        return None
    known = [(dim.length, i) for i, dim in enumerate(shape) if dim.is_static and dim.length > 1]
    if not known:
        return None
    length, place = min(known)
    sizes = [1] * (shape.rank - place)
    sizes[0] = length
    return np.full(sizes, -1, port.element_type.to_dtype())


_FORMS: Mapping[str, Callable[[Layer, list[Port]], list[Layer]]] = {
    "SoftMax": _softmax,
    "Subtract": _subtract,
    "Divide": _divide,
}


# --------------------------------------------------------------------------- attention

_BETWEEN = ("Add", "Multiply", "Divide", "Subtract", "Reshape", "Select")
_MOST_BETWEEN = 4
"""The most layers, of these types, that attention may have between its products and its SoftMax."""


def _is_in_attention(layer: Layer) -> bool:
    """Return whether a layer is one of two products with a SoftMax between them, or lies between these."""
    if layer.type == "SoftMax":
        return all(any(map(_is_product, _around(layer, step))) for step in (_before, _after))
    if _is_product(layer):
        around = [*_around(layer, _before), *_around(layer, _after)]
    elif layer.type in _BETWEEN:
        around = [*_around(layer, _after)]
    else:
        return False
    return any(found.type == "SoftMax" and _is_in_attention(found) for found in around)


def _is_product(layer: Layer) -> bool:
    """Return whether a layer multiplies two tensors that are no constants."""
    sources = [port.source for port in layer.inputs if port.source is not None]
    return layer.type == "MatMul" and all(constant_layers(source.layer) is None for source in sources)


def _around(layer: Layer, step: Callable[[Layer], Iterator[Layer]]) -> Iterator[Layer]:
    """Yield the layers that one comes to in one direction, until a layer that attention does not have inside."""
    reached = [layer]
    for _ in range(_MOST_BETWEEN):
        reached = [other for item in reached for other in step(item)]
        yield from reached
        reached = [other for other in reached if other.type in _BETWEEN]


def _before(layer: Layer) -> Iterator[Layer]:
    return (port.source.layer for port in layer.inputs[:1] if port.source is not None)


def _after(layer: Layer) -> Iterator[Layer]:
    return (reader.layer for port in layer.outputs for reader in port.readers)


IN_MEMORY = 1 << 30
"""Bytes of recorded tensors that stay in memory; others are put into a temporary file."""


@dataclass
class Found:
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


class Search:
    """Finds the steps to keep for one model and some sets of inputs."""

    def __init__(
        self,
        model: Model,
        emulation: Emulation,
        sets: Sequence[Sequence[Array]],
        tolerance: float,
        seconds: float,
        progress: Callable[[int, int, str], None],
    ) -> None:
        self.runs = PartialRuns(model, emulation)
        self._inputs: list[Tensors] = [self.runs.inputs(arrays) for arrays in sets]
        self._tolerance = tolerance
        self._end = perf_counter() + seconds
        self._progress = progress
        self._references = [self.runs.run(inputs, ()) for inputs in self._inputs]
        self._verified: dict[frozenset[int], float] = {}

    def find(self) -> Found:
        """Return the steps to keep."""
        found = Found(error_before=self.error_with(frozenset()))
        found.error = found.error_before
        self._measure(found)
        if found.error_before > self._tolerance:
            ranked = self._ranked(found)
            found.keep = self._shrunk(self._first_enough(ranked), ranked)
            found.error = self.error_with(found.keep)
        return found

    # ----- one step alone

    def _measure(self, found: Found) -> None:
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

    def _ranked(self, found: Found) -> list[int]:
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
        low, high = high // 2, min(high, len(ranked))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_enough(ranked[:middle]) else (middle, high)
            self._progress(low, high, "layers to keep")
        return list(ranked[:high])

    def _shrunk(self, keep: list[int], ranked: Sequence[int]) -> frozenset[int]:
        """Return the steps that are left when those that are not needed are taken out, the least sensitive first, at
        first many at a time."""
        size = max(len(keep) // 2, 1)
        while keep:
            position = len(keep)
            while position > 0 and perf_counter() < self._end:
                start = max(position - size, 0)
                without = keep[:start] + keep[position:]
                if self._is_enough(without):
                    keep = without
                position = start
                self._progress(len(keep) - position, len(keep), "layers that are not needed")
            if size == 1 or perf_counter() >= self._end:
                break
            size = max(size // 2, 1)
        return frozenset(keep)


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


TOLERANCES = {"f16": 0.01, "bf16": 0.05, "int8": 0.1}
"""The default tolerance for each type: the root mean square of an output's error, as a share of the output."""

Progress = Callable[[int, int, str], None]
"""Called with how much is done, how much there is, and what is being done."""


@dataclass(frozen=True)
class LayerSensitivity:
    """What happens to the outputs if one layer alone computes in the narrower type."""

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

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**asdict(self), "within": self.within, "ignored_scope": self.ignored_scope}


def precision(
    model: Model | str | os.PathLike[str],
    to: str = "f16",
    inputs: Inputs = None,
    *,
    samples: int | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    seconds: float = 300.0,
    progress: Progress | None = None,
) -> Precision:
    """Find the layers that must stay in f32 if the model computes in ``to``: ``"f16"``, ``"bf16"`` or ``"int8"``.

    ``inputs``, ``samples`` and ``seed`` give sets of inputs as for ``ovir.compare``. An output is within ``tolerance``
    if the root mean square of its error is at most this share of its own. Each layer is first emulated alone; then the
    most sensitive ones are kept, as few as suffice, which is verified with all others emulated together. If measuring
    takes longer than ``seconds``, the rest is ranked by the error of the layers' own results. ``progress`` is called
    with how much is done, how much there is, and what is being done.

    Raises InputError for a type that cannot be emulated and for inputs that do not match the model, ReadError and
    ModelError for a file that cannot be read, and RunError if the model cannot be run in f32.
    """
    if to not in TOLERANCES:
        hint = did_you_mean(to, TOLERANCES) if isinstance(to, str) else None
        message = f"{to!r} cannot be emulated; expected {', '.join(TOLERANCES)}"
        raise InputError.usage(message, hint=hint)
    if not isinstance(model, Model):
        from ovir.model import read_model  # a convenience only

        model = read_model(model)
    sets = [load() for load in input_sets(model, inputs, samples, seed)]
    limit = TOLERANCES[to] if tolerance is None else tolerance
    emulation = _emulation(model, to, sets)
    search = Search(model, emulation, sets, limit, seconds, progress or _no_progress)
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


def _emulation(model: Model, to: str, sets: Sequence[Sequence[Array]]) -> Emulation:
    if to in NARROW:
        return Emulation(to)
    ranges = Ranges()
    compiled = CompiledModel(model)
    for arrays in sets:
        compiled.create_infer_request().infer(list(arrays), listeners=[ranges])
    return Int8(ranges.found)
