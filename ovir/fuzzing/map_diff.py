"""The comparison of two maps: what is better and what is worse on a newer device or driver."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ovir.core.reading import read_text
from ovir.core.tables import Table, columns
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural
from ovir.fuzzing.device_map import STATUSES, Cell, DeviceMap, map_from_dict


@dataclass(frozen=True)
class CellChange:
    """A cell that went otherwise in the second map."""

    operation: str
    type: str
    before: Cell
    after: Cell

    @property
    def is_better(self) -> bool:
        """Return whether the second map is the better one."""
        return STATUSES.index(self.after.status) < STATUSES.index(self.before.status)

    def to_dict(self) -> dict[str, Any]:
        """Return the change for JSON."""
        cells = {"before": self.before.to_dict(), "after": self.after.to_dict()}
        return {"operation": self.operation, "type": self.type, **cells}


@dataclass
class MapDiff:
    """The differences of two maps: true if a cell went otherwise."""

    names: tuple[str, str]
    """The devices."""
    better: list[CellChange] = field(default_factory=list)
    worse: list[CellChange] = field(default_factory=list)
    equal: int = 0
    """The number of cells that went alike."""
    only: tuple[int, int] = (0, 0)
    """The numbers of cells that only the first and only the second map has tried."""

    def __bool__(self) -> bool:
        return bool(self.better or self.worse)

    @property
    def compared(self) -> int:
        """Return the number of cells that both maps have tried."""
        return self.equal + len(self.better) + len(self.worse)

    def __str__(self) -> str:
        text = f"{plural(self.compared, 'cell')}: {len(self.better):,} better, {len(self.worse):,} worse"
        others = [f"{count:,} tried only on {name}" for count, name in zip(self.only, ("A", "B"), strict=True) if count]
        return "; ".join([f"{text}, {self.equal:,} alike", *others])

    def table(self, limit: int | None = None) -> Table:
        """Return the changes as a table, what is worse first."""
        changes = [*self.worse, *self.better][:limit]
        rows = [
            ("better" if x.is_better else "worse", x.operation, x.type, str(x.before), str(x.after), _cause(x))
            for x in changes
        ]
        return Table(columns("change: tag; operation: name; type: tag; A: text; B: text; finding: text"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the differences for JSON."""
        changes = {name: [x.to_dict() for x in getattr(self, name)] for name in ("better", "worse")}
        return {"a": self.names[0], "b": self.names[1], **changes, "equal": self.equal, "only": list(self.only)}


def _cause(change: CellChange) -> str:
    return next(iter((*change.after.findings, *change.before.findings)), "")


def diff_maps(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> MapDiff:
    """Compare the maps in two files that ``ovir fuzz`` has written; raise InputError for other files."""
    (first, name), (second, other) = _read(a), _read(b)
    found = MapDiff((name, other))
    before, after = _tried(first), _tried(second)
    for place in sorted(before.keys() & after.keys()):
        change = CellChange(*place, before[place], after[place])
        if change.before.status == change.after.status:
            found.equal += 1
        else:
            (found.better if change.is_better else found.worse).append(change)
    found.only = len(before.keys() - after.keys()), len(after.keys() - before.keys())
    return found


def _tried(cells: DeviceMap) -> dict[tuple[str, str], Cell]:
    """Return the cells that have models."""
    return {(version, name): cell for version, row in cells.items() for name, cell in row.items() if cell.counts}


def _read(path: str | os.PathLike[str]) -> tuple[DeviceMap, str]:
    try:
        content = json.loads(read_text(Path(path)))
        cells = map_from_dict(content["map"])
        unknown = {status for row in cells.values() for cell in row.values() for status in cell.counts} - {*STATUSES}
        if unknown:
            raise ValueError(f"there is no status {min(unknown)!r}")
        return cells, str(content["description"])
    except OSError as error:
        message = f"cannot read the map: {error.strerror}"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"no map that ovir fuzz has written: {type(error).__name__}: {error}"
    raise InputError(diagnose(BAD_INPUT, message, Place(str(path))))
