"""The result of ``ovir.diff``: the differences of two models, as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from ovir.analysis.constant_differences import DataDifference
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer
from ovir.model import Model

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
