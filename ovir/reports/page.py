"""The content of a report, as data: figures, sections with tables and charts, and the details behind their rows.

All texts are plain: whoever renders a page escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ovir.core.tables import Table
from ovir.reports.charts import Chart
from ovir.reports.layers import LayerIndex, Sources

Tone = Literal["plain", "good", "bad", "warn", "info"]
"""The meaning of a value for its reader, shown as a color."""


@dataclass(frozen=True)
class Figure:
    """One figure at the top of a page."""

    label: str
    value: str
    note: str = ""
    tone: Tone = "plain"
    layer: int | None = None
    """The layer that the figure is about."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    title: str = ""
    form: Literal["plain", "hint"] = "plain"


@dataclass(frozen=True)
class Markdown:
    """A text with the headings, lists, tables and blocks of code of Markdown."""

    text: str


@dataclass(frozen=True)
class Link:
    """A link to a folder beside the page; in cells of the kind ``outcome``, to a row of the page, or to nothing."""

    text: str
    href: str | None
    status: str = ""
    """The word that gives it its color."""


@dataclass(frozen=True)
class Pairs:
    """Names with their values, or with an old and a new value."""

    rows: Sequence[tuple[str, ...]]
    title: str = ""


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file around one that is marked."""

    file: str
    line: int
    column: int | None = None
    title: str = ""


@dataclass(frozen=True)
class Explanation:
    """The section of the documentation about a code."""

    code: str


Block = Text | Markdown | Link | Pairs | Excerpt | Explanation | Chart


@dataclass(frozen=True)
class Detail:
    """The details beside a table when a row is chosen; a layer is shown below the blocks.

    A row without any opens the layer that its column of the kind ``layer`` names.
    """

    title: str
    blocks: Sequence[Block] = ()
    layer: int | None = None
    tag: str = ""


@dataclass
class Section:
    """A part of a page with a heading."""

    title: str
    blocks: Sequence[Table | Chart | Text]
    note: str = ""

    @property
    def id(self) -> str:
        """Return the anchor of the section."""
        return self.title.lower().replace(" ", "-")


@dataclass
class Page:
    """A whole report."""

    command: str
    """The command that made it, such as ``check``."""
    subject: str
    """Its subject, mostly a model."""
    verdict: str
    tone: Tone = "plain"
    conclusion: Sequence[str] = ()
    """Sentences that follow from the findings."""
    origin: str = ""
    """Its origin: the date, the versions and the command line."""
    figures: list[Figure] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    layers: LayerIndex = field(default_factory=LayerIndex)
    sources: Sources = field(default_factory=Sources)
    codes: set[str] = field(default_factory=set)
    """The codes of diagnostics that details explain."""

    def add(self, title: str, *blocks: Table | Chart | Text | None, note: str = "") -> None:
        """Add a section with the blocks that are not None, if there are any."""
        present = [block for block in blocks if block is not None]
        if present:
            self.sections.append(Section(title, present, note))

    def excerpt(self, file: str | None, line: int | None, column: int | None = None, title: str = "") -> list[Block]:
        """Return lines of a file as blocks, and keep them in the page; no block for a place that is not known."""
        if file is None or line is None or not self.sources.add(file, line):
            return []
        return [Excerpt(file, line, column, title)]

    @property
    def tables(self) -> Iterator[Table]:
        """Return the tables of the sections."""
        return (block for section in self.sections for block in section.blocks if isinstance(block, Table))

    @property
    def charts(self) -> Iterator[Chart]:
        """Return the charts of the sections and of the details."""
        for section in self.sections:
            for block in section.blocks:
                if isinstance(block, Chart):
                    yield block
                details = block.details if isinstance(block, Table) else None
                for detail in details or ():
                    yield from (part for part in (detail.blocks if detail else ()) if isinstance(part, Chart))
