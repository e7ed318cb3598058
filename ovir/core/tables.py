"""Tables as data, which a terminal, a report and a notebook show, each in its own way."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ovir.core.html import html_table
from ovir.diagnostics.wording import count_text, number_text, size_text

NUMBERS: dict[str, Callable[[Any], str]] = {
    "count": "{:,}".format,
    "amount": lambda value: count_text(value) if value else "-",
    "real": number_text,
    "error": lambda value: number_text(float(f"{value:.3g}")),
    "ms": "{:.3f}".format,
    "bytes": lambda value: size_text(value) if value else "-",
    "share": "{:.1%}".format,
    "decibels": "{:.1f}".format,
    "cosine": "{:.6f}".format,
    "counts": str,
}
"""The kinds of columns of numbers, with their texts; reports have formats of their own."""


@dataclass(frozen=True)
class Column:
    """The column of a table."""

    name: str
    kind: str = "text"
    """Its look: one of ``NUMBERS``; ``text``, ``sentence``, ``name``, ``path``, ``tensor`` or ``tag``; ``type`` for
    operations; ``layer`` for layers or their keys; ``list``, ``names`` or ``values`` for several in one text; and in
    reports ``outcome`` for results that lead somewhere."""
    width: float = 1
    """The share of the space that remains in a report, for columns of texts."""
    filtered: bool = False
    """Whether the reader of a report can choose among its values with one click."""
    only: str = ""
    """``texts`` or ``reports`` for a column that only these have."""


def columns(text: str) -> list[Column]:
    """Return the columns of a text such as ``layer: layer 2; state: tag chosen; order: count in reports``."""
    found = re.findall(r"(.*?): (\w+)(?: ([\d.]+))?( chosen)?(?: in (\w+))?(?:; |$)", text)
    return [Column(name, kind, float(width or 1), bool(chosen), only) for name, kind, width, chosen, only in found]


@dataclass(frozen=True)
class Table:
    """Rows below columns. A cell may be None."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]] = ()
    details: Sequence[Any] | None = None
    """What a report shows when the reader chooses a row: one for each row, in the same order, or None."""
    empty: str = "none"
    """The text in place of a table without rows in a report."""
    least: Sequence[str] = ()
    """The columns that a narrow terminal leaves out, the first one first."""

    def without(self, names: Collection[str]) -> Table:
        """Return the table without the columns that have one of these names, or are only in these places."""
        kept = [i for i, column in enumerate(self.columns) if column.name not in names and column.only not in names]
        rows = [[row[place] for place in kept] for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in kept], rows=rows)

    def texts(self) -> list[list[str]]:
        """Return the cells as texts."""
        return [[cell_text(c.kind, cell) for c, cell in zip(self.columns, row, strict=True)] for row in self.rows]

    def in_notebook(self, title: str) -> str:
        """Return the table as a notebook shows it."""
        shown = self.without(["reports"])
        return html_table(title, [column.name for column in shown.columns], shown.texts())


def cell_text(kind: str, value: Any) -> str:
    """Return a cell as a text. An amount that is not known is ``?``."""
    if value is None and kind in NUMBERS:
        return "?" if kind in ("amount", "bytes") else "-"
    if kind in NUMBERS and not isinstance(value, str):
        return NUMBERS[kind](value)
    return "" if value is None else str(getattr(value, "key", value))
