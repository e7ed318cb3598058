"""The map of a device: what was tried of each operation version with each element type, how it went, and what has
changed on a newer device or driver."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ovir.core.reading import parse_json, read_text
from ovir.core.tables import Table, columns
from ovir.debugging.layerwise_run import ENDS
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural, reason_of
from ovir.fuzzing.making import INTEGERS, NARROW, REALS
from ovir.graph.layers import Layer

TYPES = list(dict.fromkeys((*REALS, *INTEGERS, "boolean", *NARROW)))
"""The element types, the usual ones first."""
ANYWHERE = {"i32", "i64", "boolean"}
"""Element types of indices, sizes and masks, which models of all types have."""
STATUSES = ("agrees", "known", "not supported", "refuses", "differs", "crashes")
"""The states of cells that were tried, the best first; ``known`` stands for known divergences alone."""
NOT_TRIED = "not tried"
STATUS_OF_FAULT = {
    **dict.fromkeys(("crash", "hang"), "crashes"),
    "refusal": "refuses",
    **dict.fromkeys(("shape", "type", "values", "second run"), "differs"),
}
"""The states that faults of the other side give a cell, by kind."""


@dataclass
class Cell:
    """One operation version with one element type."""

    counts: Counter[str] = field(default_factory=Counter)
    """The number of models by status."""
    findings: list[str] = field(default_factory=list)
    """The signatures of the findings."""

    @property
    def status(self) -> str:
        """Return the worst status if there are findings, otherwise the best one."""
        found = [status for status in STATUSES if self.counts[status]] or [NOT_TRIED]
        return found[-1] if self.findings else found[0]

    def __str__(self) -> str:
        return f"{self.status} ({self.counts[self.status]:,})" if self.counts else NOT_TRIED

    def to_dict(self) -> dict[str, Any]:
        """Return the cell for JSON."""
        return {"status": self.status, "models": dict(self.counts), "findings": self.findings}


class DeviceMap(dict[str, dict[str, Cell]]):
    """Cells by operation version and element type. An element type that an operation does not take has no cell."""

    def cell(self, version: str, element_type: str) -> Cell:
        """Return a cell, which is added if it is missing."""
        return self.setdefault(version, {}).setdefault(element_type, Cell())

    def record(self, places: Iterable[tuple[str, str]], status: str, signature: str | None = None) -> None:
        """Count a model in cells, with the signature of its finding if there is one."""
        for place in set(places):
            cell = self.cell(*place)
            cell.counts[status] += 1
            if signature is not None and signature not in cell.findings:
                cell.findings.append(signature)

    def tried(self) -> dict[tuple[str, str], Cell]:
        """Return the cells that have models."""
        return {(version, name): cell for version, row in self.items() for name, cell in row.items() if cell.counts}

    def to_dict(self) -> dict[str, Any]:
        """Return the map for JSON."""
        return {version: {name: cell.to_dict() for name, cell in row.items()} for version, row in sorted(self.items())}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> DeviceMap:
        """Return the map that ``to_dict`` has described."""
        return cls(
            (version, {name: Cell(Counter(cell["models"]), cell["findings"]) for name, cell in row.items()})
            for version, row in content.items()
        )

    def csv(self) -> str:
        """Return a table with a line for each cell."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["operation", "element type", "status", *STATUSES, "findings"])
        for version, row in sorted(self.items()):
            for name, cell in row.items():
                counts = [cell.counts[status] for status in STATUSES]
                writer.writerow([version, name, cell.status, *counts, "; ".join(cell.findings)])
        return text.getvalue()


# --------------------------------------------------------------------------- the cells of layers


def version_of(layer: Layer) -> str:
    """Return type and opset of a layer's operation."""
    return f"{layer.type}-{layer.operator.opset}" if layer.operator is not None else layer.type


def main_type(inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
    """Return the element type that stands for a layer: that of its first input, or of its first output if the first
    input may be an index or a mask, and another one has the type of the output."""
    kinds, results = list(map(str, inputs)), list(map(str, outputs))
    if not kinds:
        return results[0] if results else "-"
    return results[0] if kinds[0] in ANYWHERE and results and results[0] in kinds else kinds[0]


def type_of_layer(layer: Layer) -> str:
    """Return the element type that stands for a layer."""
    return main_type(*([port.element_type for port in ports] for ports in (layer.inputs, layer.outputs)))


def places_of(layers: Iterable[Layer]) -> list[tuple[str, str]]:
    """Return the cells of layers."""
    return [(version_of(layer), type_of_layer(layer)) for layer in layers if layer.type not in ENDS]


# --------------------------------------------------------------------------- two maps


@dataclass(frozen=True)
class CellChange:
    """A cell that went otherwise in the second map."""

    change: str
    """``better`` or ``worse``."""
    operation: str
    type: str
    before: str
    after: str
    findings: list[str]
    """The signatures of the findings of both."""


@dataclass
class MapDiff:
    """The differences of two maps: true if a cell went otherwise."""

    a: str
    """The first device."""
    b: str
    changes: list[CellChange]
    """What has changed, what is worse first."""
    equal: int
    """The number of cells that went alike."""
    only: tuple[int, int]
    """The numbers of cells that only the first and only the second map has tried."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        worse = sum(item.change == "worse" for item in self.changes)
        texts = [f"{plural(len(self.changes) - worse, 'cell')} better, {worse:,} worse, {self.equal:,} alike"]
        texts += [f"{count:,} tried only on {name}" for count, name in zip(self.only, "AB", strict=True) if count]
        return "; ".join(texts)

    def table(self, limit: int | None = None) -> Table:
        """Return the changes as a table."""
        rows = [(*list(vars(item).values())[:-1], "; ".join(item.findings)) for item in self.changes[:limit]]
        return Table(columns("change: tag; operation: name; type: tag; A: text; B: text; findings: text"), rows)


def diff_maps(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> MapDiff:
    """Compare the maps in two files that ``ovir fuzz`` has written; raise InputError for other files."""
    (before, name), (after, other) = _read(a), _read(b)
    both, changes = before.keys() & after.keys(), []
    for place in sorted(both):
        old, new = before[place], after[place]
        if old.status != new.status:
            is_better = STATUSES.index(new.status) < STATUSES.index(old.status)
            findings = list(dict.fromkeys((*old.findings, *new.findings)))
            changes.append(CellChange("better" if is_better else "worse", *place, str(old), str(new), findings))
    changes.sort(key=lambda item: item.change, reverse=True)
    only = len(before) - len(both), len(after) - len(both)
    return MapDiff(name, other, changes, len(both) - len(changes), only)


def _read(path: str | os.PathLike[str]) -> tuple[dict[tuple[str, str], Cell], str]:
    """Return the cells of a file that were tried, and the name of the device."""
    try:
        content = parse_json(read_text(path))
        tried = DeviceMap.of(content["map"]).tried()
        if unknown := {status for cell in tried.values() for status in cell.counts} - {*STATUSES}:
            raise ValueError(f"there is no status {min(unknown)!r}")
        if not all(type(number) is int and number > 0 for cell in tried.values() for number in cell.counts.values()):
            raise ValueError("a number of models is not an integer above 0")
        if not all(isinstance(name, str) for cell in tried.values() for name in [*cell.findings]):
            raise ValueError("a finding is not a text")
        return tried, str(content["description"])
    except OSError as error:
        message = f"cannot read the map: {reason_of(error)}"
    except ValueError as error:
        message = f"not a map that ovir fuzz has written: {error}"
    except (TypeError, KeyError, AttributeError):
        message = "not a map that ovir fuzz has written: it lacks fields, or has others"
    raise InputError(diagnose(BAD_INPUT, message, Place(str(path))))
