"""The map of a device: what was tried of each operation version with each element type, and how it went."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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


DeviceMap = dict[str, dict[str, Cell]]
"""Cells by operation version and element type. An element type that an operation does not take has no cell."""


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


def add_cells(cells: DeviceMap, version: str, types: Iterable[str]) -> None:
    """Add the cells of an operation version that are missing."""
    row = cells.setdefault(version, {})
    for element_type in types:
        row.setdefault(element_type, Cell())


def record(cells: DeviceMap, places: Iterable[tuple[str, str]], status: str, signature: str | None = None) -> None:
    """Count a model in cells, with the signature of its finding if there is one."""
    for version, element_type in set(places):
        add_cells(cells, version, [element_type])
        cell = cells[version][element_type]
        cell.counts[status] += 1
        if signature is not None and signature not in cell.findings:
            cell.findings.append(signature)


def map_to_dict(cells: DeviceMap) -> dict[str, Any]:
    """Return a map for JSON."""
    return {version: {name: cell.to_dict() for name, cell in row.items()} for version, row in sorted(cells.items())}


def map_from_dict(content: Mapping[str, Any]) -> DeviceMap:
    """Return the map that ``map_to_dict`` has described."""
    return {
        version: {name: Cell(Counter(cell["models"]), cell["findings"]) for name, cell in row.items()}
        for version, row in content.items()
    }


def map_csv(cells: DeviceMap) -> str:
    """Return a map as a table with a line for each cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["operation", "element type", "status", *STATUSES, "findings"])
    for version, row in sorted(cells.items()):
        for name, cell in row.items():
            counts = [cell.counts[status] for status in STATUSES]
            writer.writerow([version, name, cell.status, *counts, "; ".join(cell.findings)])
    return text.getvalue()
