"""Compares two layers that are matched: name, operation, attributes, data, types, tensor names, rt_info."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from ovir.analysis.constant_differences import EXACT, Tolerance, constants_differ, weights_differ
from ovir.analysis.diff_result import Change
from ovir.analysis.signatures import as_f32, operation_of, settings_of
from ovir.core.element_types import ElementType
from ovir.core.shapes import Dimension, PartialShape
from ovir.graph.layers import Layer, Port
from ovir.graph.names import legacy_name
from ovir.graph.rt_info import RtInfo
from ovir.inference.layer_weights import compression_of
from ovir.ir.elements import OLD_KEYS
from ovir.ops.infrastructure import Const

WRITTEN_BY_ITSELF = frozenset({"fused_names", "DisablePrecisionConversion"})
"""Entries in the rt_info of layers that OpenVINO drops, or adds to integer constants, when it saves a model."""
MADE_BY = frozenset({"MO_version", "Runtime_version", "OpenVINO Runtime"})
"""Entries in the rt_info of a model that record which program wrote the file."""


@dataclass(frozen=True)
class Options:
    """Rules for what counts as a difference."""

    ignore_names: bool = False
    tolerance: Tolerance = EXACT


def own_changes(a: Layer, b: Layer) -> Iterator[Change]:
    """Yield in which operation and attributes two layers differ."""
    if a.type != b.type:
        yield Change("type", old=a.type, new=b.type)
    elif operation_of(a) != operation_of(b):
        yield Change("version", old=operation_of(a)[1], new=operation_of(b)[1])
    if isinstance(a.operator, Const) or isinstance(b.operator, Const) or a.type != b.type:
        return
    old, new = settings_of(a), settings_of(b)
    for name in [*old, *(name for name in new if name not in old)]:
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


def data_changes(a: Layer, b: Layer, options: Options) -> Iterator[Change]:
    """Yield how two constants differ."""
    old, new = a.operator, b.operator
    if not (isinstance(old, Const) and isinstance(new, Const)):
        return
    if old.shape != new.shape:
        yield Change("shape", old=list(old.shape), new=list(new.shape))
    if old.element_type != new.element_type:
        yield Change("element type", old=str(old.element_type), new=str(new.element_type))
    if old.shape == new.shape and (old.element_type == new.element_type or _are_numbers(old, new)):
        difference = constants_differ(old, new, options.tolerance)
        if difference is not None:
            yield Change("constant", data=difference)


def _are_numbers(a: Const, b: Const) -> bool:
    return not any(const.element_type.name == "string" for const in (a, b))


def restored_changes(a: Layer, b: Layer, options: Options) -> Iterator[Change]:
    """Yield how two constants differ of which at least one is the last layer of a decompression."""
    first, second = a.outputs[0], b.outputs[0]
    difference = weights_differ(first, second, options.tolerance)
    yield Change("compression", old=compression_of(first), new=compression_of(second), data=difference)


def type_changes(a: Layer, b: Layer) -> Iterator[Change]:
    """Yield the outputs whose inferred types differ."""
    if a.type == b.type and a.type in ("Parameter", "Const"):
        return  # these types are attributes
    for first, second in zip(a.outputs, b.outputs, strict=False):
        if first.type != second.type:
            yield Change("output", str(first.index), str(first.type), str(second.type))


def label_changes(a: Layer, b: Layer, versions: tuple[int, int], options: Options) -> Iterator[Change]:
    """Yield in which names and runtime information two layers of models of these IR versions differ.

    Tensor names in bodies do not count: nothing can refer to them, and OpenVINO changes them.
    """
    if not options.ignore_names:
        yield from _name_changes(a, b)
        if not (a.scope or b.scope):
            for first, second in zip(_named_ports(a), _named_ports(b), strict=False):
                names = _tensor_names(first, versions[0]), _tensor_names(second, versions[1])
                yield from _tensor_name_changes(first.index, *names)
    yield from rt_info_changes(a.rt_info, b.rt_info, WRITTEN_BY_ITSELF)
    for kind, ports_a, ports_b in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        for first, second in zip(ports_a, ports_b, strict=False):
            yield from rt_info_changes(first.rt_info, second.rt_info, WRITTEN_BY_ITSELF, f"{kind} {first.index}/")


def restored_label_changes(a: Sequence[Layer], b: Sequence[Layer], options: Options) -> Iterator[Change]:
    """Yield in which names and runtime information two decompressions differ; the layer that is read comes first."""
    if not options.ignore_names:
        yield from _name_changes(a[0], b[0])
        if not a[0].scope:
            names = [{name for layer in chain for port in layer.outputs for name in port.own_names} for chain in (a, b)]
            yield from _tensor_name_changes(0, *names)
    yield from rt_info_changes(a[0].rt_info, b[0].rt_info, WRITTEN_BY_ITSELF | {"decompression"})


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
    is_end = port.layer.type == "Parameter" or any(reader.layer.type == "Result" for reader in port.readers)
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
    for key in [*old, *(key for key in new if key not in old)]:
        if old.get(key) != new.get(key):
            yield Change("rt_info", prefix + key, old.get(key), new.get(key))


def _spaced(text: str) -> str:
    """Return a text of runtime information with one space behind each comma; writers differ in that."""
    return ", ".join(part.strip() for part in text.split(","))


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
            else:
                yield path, _spaced(value) if isinstance(value, str) else ""


def plain(value: Any) -> Any:
    """Return a value of an attribute as a text, number, boolean or list of these."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (ElementType, PartialShape, Dimension)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)
