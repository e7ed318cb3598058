"""Tables of diagnostics and of layers, which several pages have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ovir.checks.rules import CODES
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.reports.page import Block, Cell, Column, Detail, Explanation, Page, Table, Text, Tone

Layers = Mapping[tuple[str | None, str | None], Layer]
"""Layers by the file and the ``layer`` of a diagnostic."""

TONES: dict[Severity, Tone] = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "info"}


def layers_by_title(layers: Iterable[Layer]) -> dict[tuple[str | None, str | None], Layer]:
    """Return layers by their names in diagnostics; of layers with one title the first."""
    found: dict[tuple[str | None, str | None], Layer] = {}
    for layer in layers:
        found.setdefault((layer.file, layer.title), layer)
    return found


def add_diagnostics(page: Page, diagnostics: Iterable[Diagnostic], layers: Layers, *, with_files: bool = False) -> None:
    """Add a section with diagnostics, errors first; with files, each row names its file."""
    found = sorted(diagnostics, key=lambda item: list(Severity).index(item.severity))
    if not found:
        return
    place = Column("file", "path", width=1.4) if with_files else None
    columns = [Column("severity", "tag", filtered=True), Column("code", "tag"), place, Column("line", "count")]
    columns += [Column("layer", "name"), Column("message", width=3)]
    rows = [_row(item, layers, with_files=with_files) for item in found]
    details = [_detail(page, item, layers) for item in found]
    table = Table([column for column in columns if column is not None], rows, details)
    page.add("Diagnostics", table, note="Click a diagnostic to see its lines, its layer, and what its code means.")


def _row(found: Diagnostic, layers: Layers, *, with_files: bool) -> Sequence[Cell]:
    layer = layers.get((found.file, found.layer))
    name = found.layer if layer is None else layer.key
    file = [found.file] if with_files else []
    return [found.severity.value, found.code, *file, found.line, name, found.message]


def _detail(page: Page, found: Diagnostic, layers: Layers) -> Detail:
    blocks: list[Block] = [Text(found.message)]
    if found.hint:
        blocks.append(Text(found.hint, form="hint"))
    blocks += page.excerpt(found.file, found.line, found.column, "Source")
    if found.code in CODES:
        page.codes.add(found.code)
        blocks.append(Explanation(found.code))
    layer = layers.get((found.file, found.layer))
    return Detail(found.code, blocks, page.layers.number(layer), found.severity.value)


def worst_tone(diagnostics: Iterable[Diagnostic]) -> Tone:
    """Return the tone of the worst severity; good where nothing was found."""
    severities = {found.severity for found in diagnostics}
    return next((TONES[s] for s in Severity if s in severities), "good")


Extra = Callable[[Layer], Sequence[Cell]]
"""Returns the cells of a layer for columns that a report adds."""


def add_layers(page: Page, layers: Iterable[Layer], columns: Sequence[Column] = (), extra: Extra | None = None) -> None:
    """Add a section with layers, which are in the index of the page already, and with further columns."""
    heads = [Column("id", "count"), Column("layer", "layer", width=2.4), Column("operation", "type")]
    heads += [Column("output type", "tensor", width=1.4), *columns, Column("line", "count")]
    rows = [
        (
            *(layer.id, page.layers.cell(layer), layer.type, ", ".join(page.layers.types(layer))),
            *(extra(layer) if extra is not None else ()),
            layer.line,
        )
        for layer in layers
    ]
    if rows:
        page.add("Layers", Table(heads, rows), note="Click a layer to see its attributes and its neighbors.")
