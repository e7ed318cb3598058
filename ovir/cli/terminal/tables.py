"""Tables that fit into a terminal: long names are shortened, sentences filled, and the least columns left out.

If sentences or a list at the end of the rows have no room, they stand below their row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ovir.core.short_names import columns_of, short_names, without_middle
from ovir.core.tables import NUMBERS, Table
from ovir.diagnostics.wording import escaped

NUMBER, NAME, LIST, TEXT = "number", "name", "list", "text"
_LOOKS = {
    **dict.fromkeys(NUMBERS, NUMBER),
    **dict.fromkeys(("name", "path", "layer", "type"), NAME),
    **dict.fromkeys(("list", "names", "values"), LIST),
    "sentence": TEXT,
}
"""The looks of kinds of columns: numbers are aligned to the right, names may lose parts, lists their end, and sentences
may take several lines. A column of another kind keeps its cells, as long as any other can give way."""

_GAP = "  "
_INDENT = "      "
"""The margin of lines below a row."""
_ROOM = {NAME: 24, LIST: 30, TEXT: 30}
"""Columns are left out before names, lists and sentences become narrower than this."""


@dataclass
class _Column:
    head: str
    look: str | None
    cells: list[str]
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.width = self.natural

    @property
    def natural(self) -> int:
        return max(map(columns_of, (self.head, *self.cells)))

    @property
    def smallest(self) -> int:
        """The width below which other columns are left out."""
        return max(columns_of(self.head), min(self.width, _ROOM.get(self.look or "", self.width)))

    @property
    def says_nothing(self) -> bool:
        return all(cell in ("", "-", "0") for cell in self.cells)

    def lines(self, cell: str) -> list[str]:
        """Return a cell, which was shortened before, as lines of the width of the column."""
        lines = _filled(cell, self.width) if self.look == TEXT else [cell]
        return [self.padded(line) for line in lines]

    def padded(self, text: str) -> str:
        space = " " * (self.width - columns_of(text))
        return space + text if self.look == NUMBER else text + space


class FittedTable:
    """The columns of a table as they are shown, in ``width`` columns of a terminal if that is given.

    Its columns ``least`` may be left out: first those that say nothing, then the others in this order. Before that,
    sentences or a list in the last column get lines of their own, below each row.
    """

    def __init__(self, table: Table, *, width: int | None = None) -> None:
        rows = [list(map(escaped, row)) for row in table.texts()]
        cells = map(list, zip(*rows, strict=True)) if rows else ([] for _ in table.columns)
        pairs = zip(table.columns, cells, strict=True)
        self._columns = [_Column(column.name, _LOOKS.get(column.kind), texts) for column, texts in pairs]
        self.left_out: list[str] = []
        """The headings of the columns that are not shown."""
        self._below: _Column | None = None
        if width is not None and self._width() > width:
            if self._width(smallest=True) > width:
                self._move_below(width)
            self._leave_out(table.least, width)
            self._shrink(width)

    def heads(self) -> Iterator[str]:
        """Yield the lines of the headings."""
        yield _GAP.join(column.padded(column.head) for column in self._columns).rstrip()
        if self._below is not None:
            yield _INDENT + self._below.head

    def rows(self) -> Iterator[str]:
        """Yield the lines of the rows."""
        for number, row in enumerate(zip(*(column.cells for column in self._columns), strict=True)):
            cells = [column.lines(cell) for column, cell in zip(self._columns, row, strict=True)]
            empty = [" " * column.width for column in self._columns]
            for line in zip_longest(*cells):
                yield _GAP.join(part or space for part, space in zip(line, empty, strict=True)).rstrip()
            if self._below is not None and (cell := self._below.cells[number]):
                yield from (_INDENT + line for line in _filled(cell, self._below.width))

    def _width(self, *, smallest: bool = False) -> int:
        widths = [column.smallest if smallest else column.width for column in self._columns]
        return sum(widths) + len(_GAP) * (len(widths) - 1)

    def _move_below(self, width: int) -> None:
        """Give the last column lines of its own, if it has sentences or lists; if all of them are empty, omit it."""
        *others, last = self._columns
        if others and last.look in (LIST, TEXT):
            self._columns = others
            if any(last.cells):
                self._below = last
                last.width = width - len(_INDENT)

    def _leave_out(self, least: Sequence[str], width: int) -> None:
        by_head = {column.head: column for column in self._columns}
        candidates = [by_head[head] for head in least if head in by_head]
        for column in sorted(candidates, key=lambda column: not column.says_nothing):
            if self._width(smallest=True) <= width:
                break
            self._columns.remove(column)
        shown = {column.head for column in self._columns}
        self.left_out = [head for head in by_head if head not in shown]

    def _shrink(self, width: int) -> None:
        """Shorten names and lists, and fill sentences; if that is not enough, shorten everything but numbers."""
        room = width - self._width()
        flexible = [column for column in self._columns if column.look in _ROOM]
        if sum(columns_of(column.head) - column.width for column in flexible) > room:
            flexible = [column for column in self._columns if column.look != NUMBER]
        room += sum(column.width for column in flexible)
        for widest in range(width, 0, -1):
            widths = [max(columns_of(column.head), min(column.width, widest)) for column in flexible]
            if sum(widths) <= room:
                break
        for column, given in zip(flexible, widths, strict=True):
            if given < column.width and column.look == LIST:
                column.cells = [_without_end(cell, given) for cell in column.cells]
            elif given < column.width and column.look != TEXT:
                column.cells = short_names(column.cells, given)
            column.width = given


def _without_end(text: str, width: int) -> str:
    """Return the first words of a list; long ones lose their middle, so that there is room for several."""
    if columns_of(text) <= width:
        return text
    words = (without_middle(word, width * 2 // 3) for word in text.split(" "))
    shown = ""
    for word in words:
        if columns_of(f"{shown}{word} …") > width:
            break
        shown += f"{word} "
    return f"{shown}…"


def _filled(text: str, width: int) -> list[str]:
    """Return lines of whole words; the middle of longer words is left out."""
    lines = [""]
    for word in text.split(" "):
        shown = without_middle(word, width)
        joined = f"{lines[-1]} {shown}" if lines[-1] else shown
        if columns_of(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(shown)
    return lines
