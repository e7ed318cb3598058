"""Tables of diagnostics and of layers, which several pages have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ovir.checks.rules import CODES
from ovir.core.tables import Column, Table, columns
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.layers import Layer
from ovir.reports.page import Block, Detail, Explanation, Page, Text, Tone

TONES: dict[Severity, Tone] = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "info"}


def add_diagnostics(page: Page, diagnostics: Iterable[Diagnostic], *, with_files: bool = False) -> None:
    """Add a section with diagnostics, errors first; with files, each row names its file."""
    ordered = sorted(diagnostics, key=lambda item: list(Severity).index(item.severity))
    if not ordered:
        return
    at_fault = [page.layers.titled(item.file, item.layer) for item in ordered]
    rows = [
        (item.severity.value, item.code, item.file, item.line, item.layer if layer is None else layer.key, item.message)
        for item, layer in zip(ordered, at_fault, strict=True)
    ]
    heads = "severity: tag chosen; code: tag; file: path 1.4; line: count; layer: name; message: text 3"
    table = Table(columns(heads), rows, [_detail(page, item) for item in ordered])
    table = table if with_files else table.without(["file"])
    page.add("Diagnostics", table, note="Click a diagnostic to see its lines, its layer, and what its code means.")


def _detail(page: Page, diagnostic: Diagnostic) -> Detail:
    blocks: list[Block] = [Text(diagnostic.message)]
    if diagnostic.hint:
        blocks.append(Text(diagnostic.hint, form="hint"))
    blocks += page.excerpt(diagnostic.file, diagnostic.line, diagnostic.column, "Source")
    if diagnostic.code in CODES:
        page.codes.add(diagnostic.code)
        blocks.append(Explanation(diagnostic.code))
    number = page.layers.number(page.layers.titled(diagnostic.file, diagnostic.layer))
    return Detail(diagnostic.code, blocks, number, diagnostic.severity.value)


def worst_tone(diagnostics: Iterable[Diagnostic]) -> Tone:
    """Return the tone of the worst severity; good where nothing was found."""
    severities = {diagnostic.severity for diagnostic in diagnostics}
    return next((TONES[s] for s in Severity if s in severities), "good")


def add_layers(
    page: Page, more: Sequence[Column] = (), cells: Callable[[Layer], Sequence[object]] = lambda _: ()
) -> None:
    """Add a section with the layers in the index of the page; ``cells`` returns those in ``more`` columns."""
    heads = columns("id: count; layer: layer 2.4; operation: type; output type: tensor 1.4")
    rows = [(x.id, x, x.type, ", ".join(page.layers.types(x)), *cells(x), x.line) for x in page.layers]
    if rows:
        note = "Click a layer to see its attributes and its neighbors."
        page.add("Layers", Table([*heads, *more, Column("line", "count")], rows), note=note)
