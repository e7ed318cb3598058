"""The differences between two models, and between two layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Literal

from ovir.analysis.constant_differences import EXACT, DataDifference, Tolerance, constants_differ, weights_differ
from ovir.analysis.matching import as_f32, operation_of, settings_of
from ovir.core.element_types import ElementType
from ovir.core.shapes import Dimension, PartialShape
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer, Port
from ovir.graph.names import legacy_name
from ovir.graph.rt_info import RtInfo
from ovir.inference.layer_weights import compression_of
from ovir.ir.elements import OLD_KEYS
from ovir.model import Model
from ovir.ops.infrastructure import Const

Status = Literal["added", "removed", "replaced", "moved", "changed"]
STATUSES: tuple[Status, ...] = ("added", "removed", "replaced", "moved", "changed")


@dataclass(frozen=True)
class Change:
    """One thing in which a layer, or the whole model, differs."""

    what: str
    """The kind of the change, such as ``attribute``, ``input`` or ``constant``; docs/python.md lists all."""
    name: str = ""
    """Which one of them: the name of the attribute, the number of the input or output, the key in rt_info."""
    old: Any = None
    """The earlier value: a text, number, boolean or list; None for nothing."""
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
        entry: dict[str, Any] = {"what": self.what, "name": self.name, "old": self.old, "new": self.new}
        return entry if self.data is None else {**entry, **vars(self.data)}


@dataclass(frozen=True)
class LayerDiff:
    """One layer that differs between two models."""

    status: Status
    """``added``, ``removed``, ``replaced``, ``moved`` or ``changed``."""
    a: Layer | None
    """The layer in the first model; None if it was added."""
    b: Layer | None
    """The layer in the second model; None if it was removed."""
    changes: tuple[Change, ...] = ()
    """What differs between ``a`` and ``b``."""
    sources: tuple[str, ...] = ()
    """For a layer that was added, removed or moved: the keys of the layers that it reads, except constants."""
    readers: tuple[str, ...] = ()
    """The same for the layers that read it."""
    group: int | None = None
    """The number of the moved subgraph to which the layer belongs."""

    @property
    def layer(self) -> Layer:
        """Return the layer of the second model, or the layer of the first if the second has none."""
        found = self.b or self.a
        assert found is not None
        return found

    @property
    def place(self) -> str:
        """Return in words between which layers it is."""
        before, behind = _listed(self.sources), _listed(self.readers)
        if before and behind:
            return f"between {before} and {behind}"
        return f"behind {before}" if before else f"read by {behind}" if behind else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the layer as a dictionary for JSON."""
        entry: dict[str, Any] = {"status": self.status, "a": _described(self.a), "b": _described(self.b)}
        if self.status in ("added", "removed", "moved"):
            entry |= {"sources": list(self.sources), "readers": list(self.readers)}
        if self.group is not None:
            entry["group"] = self.group
        return {**entry, "changes": [change.to_dict() for change in self.changes]}


@dataclass(frozen=True)
class Affected:
    """An output of another element type or shape, because of what its layer reads."""

    a: Layer
    """The layer in the first model."""
    b: Layer
    """The layer in the second model, which is equal to it."""
    output: int
    """The position of the output."""
    old: str
    """Its element type and shape in the first model, such as ``f32[1,?]``."""
    new: str
    """Its element type and shape in the second model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the output as a dictionary for JSON."""
        return {"a": self.a.key, "b": self.b.key, "output": self.output, "old": self.old, "new": self.new}


@dataclass
class Diff:
    """The differences of two models. It is true if there are any: ``if ovir.diff(a, b): ...``."""

    a: Model
    """The first model."""
    b: Model
    """The second model."""
    model: list[Change] = field(default_factory=list)
    """The differences of the models as a whole: name, order of inputs and outputs, rt_info."""
    layers: list[LayerDiff] = field(default_factory=list)
    """All layers that differ, in the order of the second model; layers of bodies follow the layer that has the body."""
    affected: list[Affected] = field(default_factory=list)
    """Consequences: outputs whose type differs although their layers are equal."""
    notes: list[str] = field(default_factory=list)
    """Facts that do not count as differences, but are worth knowing."""

    def __bool__(self) -> bool:
        return not self.is_equal

    @property
    def is_equal(self) -> bool:
        """Return whether the models are equal in meaning."""
        return not (self.model or self.layers or self.affected)

    @property
    def added(self) -> list[LayerDiff]:
        """Return the layers that only the second model has."""
        return self.of("added")

    @property
    def removed(self) -> list[LayerDiff]:
        """Return the layers that only the first model has."""
        return self.of("removed")

    @property
    def replaced(self) -> list[LayerDiff]:
        """Return the layers in whose place the second model has another operation."""
        return self.of("replaced")

    @property
    def moved(self) -> list[LayerDiff]:
        """Return the layers that are between other layers than before."""
        return self.of("moved")

    @property
    def changed(self) -> list[LayerDiff]:
        """Return the layers of which something else differs."""
        return self.of("changed")

    def of(self, status: Status) -> list[LayerDiff]:
        """Return the layers of one status."""
        return [entry for entry in self.layers if entry.status == status]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of layers by status, and how many outputs are affected."""
        found = Counter(entry.status for entry in self.layers)
        return {**{status: found[status] for status in STATUSES}, "affected": len(self.affected)}

    def __str__(self) -> str:
        if self.is_equal:
            return "the models are equal"
        counts = self.counts
        affected = counts.pop("affected")
        parts = [f"{plural(count, 'layer')} {status}" for status, count in counts.items() if count]
        if self.model:
            parts.insert(0, f"{plural(len(self.model), 'difference')} of the models as a whole")
        if affected:
            parts.append(f"{plural(affected, 'output')} of another type as a consequence")
        return f"the models differ: {', '.join(parts)}"

    def __repr__(self) -> str:
        return f"<Diff: {self}>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        return {
            "equal": self.is_equal,
            "a": {"path": self.a.path, "name": self.a.name},
            "b": {"path": self.b.path, "name": self.b.name},
            "counts": self.counts,
            "model": [change.to_dict() for change in self.model],
            "layers": [entry.to_dict() for entry in self.layers],
            "affected": [entry.to_dict() for entry in self.affected],
            "notes": self.notes,
        }


def value_text(value: Any) -> str:
    """Return an old or new value as messages show it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def _described(layer: Layer | None) -> dict[str, Any] | None:
    if layer is None:
        return None
    return {"key": layer.key, "id": layer.id, "type": layer.type, "version": layer.version, "line": layer.line}


def _listed(keys: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{key}'" for key in keys[:_SHOWN])
    return f"{shown} and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else shown


_SHOWN = 3  # layers


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
