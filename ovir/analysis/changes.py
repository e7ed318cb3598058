"""The changes between two layers, constants or models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ovir.analysis.matching import as_f32, operation_of, settings_of
from ovir.analysis.tensor_comparison import EXACT, SIDES, Tolerance, distances, nonfinite_text
from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, nf4, string
from ovir.core.json_fields import json_fields
from ovir.core.shapes import Dimension, PartialShape
from ovir.editing.layer_edits import feeds_result
from ovir.graph.layers import Layer, Port
from ovir.graph.names import legacy_name
from ovir.graph.rt_info import RtInfo
from ovir.inference.layer_weights import compression_of
from ovir.ir.elements import OLD_KEYS
from ovir.ir.weights import release_pages
from ovir.ops.compressed import blocks
from ovir.ops.convert import in_f32
from ovir.ops.infrastructure import Const
from ovir.runtime.decompression import ConstantWeights


@dataclass(frozen=True)
class DataDifference:
    """The differences between the elements of two constants of one shape."""

    elements: int
    """The number of elements of each of them."""
    different: int
    """The number of elements that differ by more than the tolerance."""
    largest: float | None
    """The largest absolute difference of these; None for strings, infinite beside a NaN."""
    nonfinite: str = ""
    """The numbers of NaN and infinities among these, with the models that have them."""

    def __str__(self) -> str:
        is_finite = self.largest is not None and self.largest < np.inf
        extent = f"by at most {self.largest:.6g}" if is_finite else self.nonfinite
        return f"{self.different:,} of {self.elements:,} values differ{', ' * bool(extent)}{extent}"


@dataclass(frozen=True)
class Change:
    """One thing in which a layer, or the whole model, differs."""

    what: str
    """The kind of the change, such as ``attribute``, ``input`` or ``constant``; docs/python.md lists all."""
    name: str = ""
    """The one that changed: the name of the attribute, the number of the input or output, the key in rt_info."""
    old: Any = None
    """The earlier value: a string, number, boolean or list; None for nothing."""
    new: Any = None
    """The later value, as ``old``."""
    data: DataDifference | None = None
    """For constants, how many values differ and by how much."""

    def __str__(self) -> str:
        head = f"{self.what} {self.name}".rstrip()
        if self.data is not None and self.old is self.new is None:
            return f"{head}: {self.data}"
        text = f"{head}: {value_text(self.old)} -> {value_text(self.new)}"
        return text if self.data is None else f"{text} ({self.data})"

    def to_dict(self) -> dict[str, Any]:
        """Return the change as a dictionary for JSON."""
        numbers = {} if self.data is None else json_fields(self.data, "elements", "different", "largest")
        return {**json_fields(self, "what", "name", "old", "new"), **numbers}


def value_text(value: Any) -> str:
    """Return an old or new value as messages show it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)


WRITTEN_BY_ITSELF = frozenset({"fused_names", "DisablePrecisionConversion"})
"""Entries in the rt_info of layers that OpenVINO drops, or adds to integer constants, when it saves a model."""
MADE_BY = frozenset({"MO_version", "Runtime_version", "OpenVINO Runtime"})
"""Entries in the rt_info of a model that record which program wrote the file."""


@dataclass(frozen=True)
class DiffOptions:
    """Rules about differences that count."""

    ignore_names: bool = False
    tolerance: Tolerance = EXACT
    """Numbers a and b in constants count as equal if ``|a - b| <= atol + rtol * |b|``; NaN equals NaN."""


def own_changes(a: Layer, b: Layer) -> Iterator[Change]:
    """Yield the changes of operation and attributes between two layers."""
    if a.type != b.type:
        yield Change("type", old=a.type, new=b.type)
    elif operation_of(a) != operation_of(b):
        yield Change("version", old=operation_of(a)[1], new=operation_of(b)[1])
    if isinstance(a.operator, Const) or isinstance(b.operator, Const) or a.type != b.type:
        return
    old, new = settings_of(a), settings_of(b)
    for name in {**old, **new}:
        if not _are_equal(old.get(name), new.get(name)):
            yield Change("attribute", name, plain(old.get(name)), plain(new.get(name)))


def _are_equal(a: Any, b: Any) -> bool:
    """Return whether two values of an attribute are equal.

    OpenVINO keeps many numbers in f32 and writes what became of them, so a number equals its f32.
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_are_equal, a, b))
    if not (isinstance(a, float) and isinstance(b, float)):
        return bool(a == b)
    return a == b or (a != a and b != b) or as_f32(a) == b or a == as_f32(b)


def data_changes(a: Layer, b: Layer, options: DiffOptions) -> Iterator[Change]:
    """Yield the changes between two constants."""
    old, new = a.operator, b.operator
    if not (isinstance(old, Const) and isinstance(new, Const)):
        return
    if old.shape != new.shape:
        yield Change("shape", old=list(old.shape), new=list(new.shape))
    if old.element_type != new.element_type:
        yield Change("element type", old=str(old.element_type), new=str(new.element_type))
    types = old.element_type, new.element_type
    if old.shape == new.shape and (types[0] == types[1] or string not in types):
        difference = constant_difference(old, new, options.tolerance)
        if difference is not None:
            yield Change("constant", data=difference)


def restored_changes(a: Layer, b: Layer, options: DiffOptions) -> Iterator[Change]:
    """Yield the changes between two constants, each given by its last layer, of which at least one is decompressed."""
    first, second = a.outputs[0], b.outputs[0]
    difference = weight_difference(first, second, options.tolerance)
    yield Change("compression", old=compression_of(first), new=compression_of(second), data=difference)


def type_changes(a: Layer, b: Layer) -> Iterator[Change]:
    """Yield the outputs whose inferred types differ."""
    if a.type == b.type and a.type in ("Parameter", "Const"):
        return  # these types are attributes
    for first, second in zip(a.outputs, b.outputs, strict=False):
        if first.type != second.type:
            yield Change("output", str(first.index), str(first.type), str(second.type))


def label_changes(a: Layer, b: Layer, versions: tuple[int, int], options: DiffOptions) -> Iterator[Change]:
    """Yield the changes of names and runtime information between two layers of models of these IR versions.

    Tensor names in bodies do not count: nothing can refer to them, and OpenVINO changes them.
    """
    if not options.ignore_names:
        yield from _name_changes(a, b)
        if not a.scope:
            for first, second in zip(_named_ports(a), _named_ports(b), strict=False):
                names = _tensor_names(first, versions[0]), _tensor_names(second, versions[1])
                yield from _tensor_name_changes(first.index, *names)
    yield from rt_info_changes(a.rt_info, b.rt_info, WRITTEN_BY_ITSELF)
    for kind, ports_a, ports_b in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        for first, second in zip(ports_a, ports_b, strict=False):
            yield from rt_info_changes(first.rt_info, second.rt_info, WRITTEN_BY_ITSELF, f"{kind} {first.index}/")


def restored_label_changes(a: Sequence[Layer], b: Sequence[Layer], options: DiffOptions) -> Iterator[Change]:
    """Yield the changes of names and runtime information between two decompressions, given from their end backwards."""
    if not options.ignore_names:
        yield from _name_changes(a[0], b[0])
        if not a[0].scope:
            names = [{name for layer in chain for port in layer.outputs for name in port.own_names} for chain in (a, b)]
            yield from _tensor_name_changes(0, *names)
    yield from rt_info_changes(a[0].rt_info, b[0].rt_info, WRITTEN_BY_ITSELF | {"decompression"})


_AUTOMATIC = re.compile(r"[A-Z][A-Za-z0-9]*_[0-9]+(_compressed)?")
"""The names that OpenVINO gives to layers without one: an operation, and a number that counts all layers."""


def is_renumbering(change: Change) -> bool:
    """Return whether a layer has only got another automatic name, for itself or its tensors."""
    if change.what == "name":
        names = [change.old, change.new]
    elif change.what == "tensor names":
        names = [*change.old, *change.new]
    else:
        return False
    return all(map(_AUTOMATIC.fullmatch, names))


def _name_changes(a: Layer, b: Layer) -> Iterator[Change]:
    if a.name != b.name:
        yield Change("name", old=a.name, new=b.name)


def _tensor_name_changes(index: int, old: AbstractSet[str], new: AbstractSet[str]) -> Iterator[Change]:
    if old != new:
        yield Change("tensor names", str(index), sorted(old), sorted(new))


def _named_ports(layer: Layer) -> list[Port]:
    return layer.inputs if layer.type == "Result" else layer.outputs


def _tensor_names(port: Port, version: int) -> frozenset[str]:
    """Return the tensor names that a port gives; for a Result, only the names that its source does not have.

    In version 10, names of layers serve as names of inputs and outputs.
    """
    if port.source is not None:
        return port.own_names - _tensor_names(port.source, version)
    is_end = port.layer.type == "Parameter" or feeds_result(port)
    return port.own_names | {legacy_name(port)} if version == 10 and is_end else port.own_names


def model_rt_info_changes(a: RtInfo, b: RtInfo) -> Iterator[Change]:
    """Yield the entries of the rt_info of two models that differ; empty sections mean nothing."""
    for change in rt_info_changes(a, b, MADE_BY):
        if change.old or change.new:
            yield change


def rt_info_changes(a: RtInfo, b: RtInfo, ignored: frozenset[str], prefix: str = "") -> Iterator[Change]:
    """Yield the entries of runtime information that differ."""
    if a.elements == b.elements:
        return
    old, new = dict(_entries(a.to_dict(), ignored)), dict(_entries(b.to_dict(), ignored))
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            yield Change("rt_info", prefix + key, old.get(key), new.get(key))


def _entries(info: Mapping[str, Any], ignored: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield nested entries with keys such as ``conversion_parameters/framework``; an empty section is a flag."""
    pending: list[tuple[str, Mapping[str, Any]]] = [("", info)]
    while pending:
        prefix, entries = pending.pop()
        for key, value in entries.items():
            if not prefix and key in ignored:
                continue
            path = prefix + OLD_KEYS.get(key, key)
            if isinstance(value, Mapping) and value:
                pending.append((f"{path}/", value))
            else:  # writers differ in the spaces behind commas
                yield path, ", ".join(map(str.strip, value.split(","))) if isinstance(value, str) else ""


def plain(value: Any) -> Any:
    """Return a value of an attribute as a string, number, boolean or list of these."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (ElementType, PartialShape, Dimension)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


# --------------------------------------------------------------------------- the data of constants

BLOCK = 1 << 20
"""The number of elements that are compared together."""


def constant_difference(a: Const, b: Const, tolerance: Tolerance) -> DataDifference | None:
    """Return the difference of the elements of two constants of one shape; None if they are equal."""
    if a.constant_data is b.constant_data and a._data is b._data:
        return None
    count = prod(a.shape)
    same_type = a.element_type == b.element_type
    total = _Total(count, tolerance)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        first, second = a.elements(start, stop), b.elements(start, stop)
        if not (same_type and _are_identical(first, second)):
            total.add(_numbers(first, a.element_type), _numbers(second, b.element_type))
        if count > BLOCK:  # the files may be larger than the memory
            release_pages(first)
            release_pages(second)
    return total.result


def weight_difference(a: Port, b: Port, tolerance: Tolerance) -> DataDifference | None:
    """Return the difference of two constants of one shape, decompressed to f32; None if they are equal."""
    total = _Total(prod(a.shape.to_tuple()), tolerance)
    for first, second in _decompressed(a, b):
        total.add(as_numbers(first).ravel(), as_numbers(second).ravel())
    return total.result


def _decompressed(a: Port, b: Port) -> Iterator[tuple[Array, Array]]:
    first, second = ConstantWeights(a), ConstantWeights(b)
    if not (first.has_slices and second.has_slices):
        yield first.whole(), second.whole()
        return
    for part in blocks(first.shape, BLOCK):
        yield first.slices(part), second.slices(part)


def _numbers(array: Array, element_type: ElementType) -> Array:
    if element_type == string:
        return array
    return in_f32(array, nf4) if element_type == nf4 else as_numbers(array)


def _are_identical(a: Array, b: Array) -> bool:
    if a.dtype != b.dtype or a.dtype.kind in "TO":
        return False
    return np.array_equal(np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8))


class _Total:
    """Differences summed up over blocks."""

    def __init__(self, elements: int, tolerance: Tolerance) -> None:
        self.elements = elements
        self.tolerance = tolerance
        self.different = 0
        self.largest: float | None = None
        self.nan, self.inf = [0, 0], [0, 0]

    def add(self, a: Array, b: Array) -> None:
        """Compare two flat arrays of equal length."""
        unequal = a != b
        if a.dtype.kind in "TO" or b.dtype.kind in "TO":
            self.different += int(np.count_nonzero(unequal))
            return
        unequal &= (a == a) | (b == b)  # NaN equals NaN
        a, b = a[unequal], b[unequal]
        if not a.size:
            return
        distance = distances(a, b, a.astype(np.float64), b.astype(np.float64))
        if self.tolerance != EXACT:
            with np.errstate(invalid="ignore"):
                allowed = self.tolerance.atol + self.tolerance.rtol * np.abs(b.astype(np.float64))
            beyond = ~(distance <= allowed)
            a, b, distance = a[beyond], b[beyond], distance[beyond]
        if not distance.size:
            return
        self.different += distance.size
        largest = float(distance.max())
        if not np.isfinite(largest):
            largest = np.inf
            for side, values in enumerate((a, b)):
                self.nan[side] += int(np.count_nonzero(np.isnan(values)))
                self.inf[side] += int(np.count_nonzero(np.isinf(values)))
        self.largest = max(self.largest or 0.0, largest)

    @property
    def result(self) -> DataDifference | None:
        if not self.different:
            return None
        return DataDifference(self.elements, self.different, self.largest, nonfinite_text(self.nan, self.inf, SIDES))
