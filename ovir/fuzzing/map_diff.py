"""The comparison of two maps: what is better and what is worse on a newer device or driver."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ovir.core.reading import parse_json, read_text
from ovir.core.tables import Table, columns
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural
from ovir.fuzzing.device_map import STATUSES, Cell, map_from_dict


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
        rows = map_from_dict(content["map"]).items()
        tried = {(version, name): cell for version, row in rows for name, cell in row.items() if cell.counts.total()}
        if unknown := {status for cell in tried.values() for status in cell.counts} - {*STATUSES}:
            raise ValueError(f"there is no status {min(unknown)!r}")
        return tried, str(content["description"])
    except OSError as error:
        message = f"cannot read the map: {error.strerror}"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"not a map that ovir fuzz has written: {type(error).__name__}: {error}"
    raise InputError(diagnose(BAD_INPUT, message, Place(str(path))))
