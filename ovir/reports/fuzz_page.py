"""The report of ``ovir fuzz``: the map of a device, and the findings of a folder."""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote

from ovir.core.tables import Column, Table, columns
from ovir.diagnostics.wording import plural
from ovir.fuzzing.device_map import TYPES, Cell
from ovir.fuzzing.findings import Finding
from ovir.fuzzing.fuzz import Fuzzing
from ovir.reports.page import Detail, Figure, Link, Markdown, Page, Pairs, Text


def fuzz_page(fuzzing: Fuzzing) -> Page:
    """Return the report of a search."""
    count = len(fuzzing.findings)
    page = Page("fuzz", fuzzing.description, plural(count, "finding"), "bad" if count else "good")
    total = fuzzing.ovir_seconds + fuzzing.target_seconds
    share = f"{fuzzing.ovir_seconds / total:.0%}" if total else "-"
    page.figures += [
        Figure("findings", f"{count:,}", tone="bad" if count else "good"),
        Figure("models", f"{fuzzing.models:,}", f"{fuzzing.rate:.3g} in a second"),
        Figure("compared", f"{fuzzing.compared:,}", f"ovir does not run {fuzzing.refused:,} others"),
        Figure("known", f"{sum(fuzzing.known.values()):,}", "put down to known divergences"),
        Figure("time of ovir", share, "the other side takes the rest"),
    ]
    page.add("Map", _map(fuzzing), note=_MAP_NOTE)
    heads = "kind: tag chosen; operations: text 2; message: text 3; layers: count; models: count; seen: text; "
    rows = [
        (x.kind, " ".join(x.operations), x.message, x.layers, x.count, x.steadiness, x.number, x.folder)
        for x in fuzzing.findings
    ]
    note = "Each folder has the model, its inputs, the expected outputs, a script that needs no ovir, and a report."
    page.add(
        "Findings",
        Table(columns(heads + "seed: count; folder: path"), rows, [_detail(x) for x in fuzzing.findings]),
        note=note,
    )
    page.add("Known divergences", _counts("reason", fuzzing.known))
    page.add("Not supported", _counts("operation", fuzzing.unsupported))
    if fuzzing.unreached:
        page.add("Not reached", Text(", ".join(fuzzing.unreached)))
    return page


_MAP_NOTE = (
    "How the models of an operation version with an element type went, and how many of them. A cell with a finding "
    "leads to it. A dash stands for an element type that the operation does not take, or that no model of it has."
)


def _map(fuzzing: Fuzzing) -> Table | None:
    """Return a table with a row for each operation version and a column for each element type.

    It stands before the findings, whose table is therefore number 1 in links.
    """
    types = [name for name in TYPES if any(name in row for row in fuzzing.map.values())]
    links = {finding.signature: f"#row:1:{index}" for index, finding in enumerate(fuzzing.findings)}

    def linked(cell: Cell) -> Link:
        return Link(str(cell), next((links[x] for x in cell.findings if x in links), None), cell.status)

    rows = [
        (version, *(linked(row[name]) if name in row else None for name in types))
        for version, row in sorted(fuzzing.map.items())
    ]
    heads = [Column("operation", "type"), *(Column(name, "outcome") for name in types)]
    return Table(heads, rows) if rows else None


def _detail(finding: Finding) -> Detail:
    folder = () if finding.folder is None else (Link(f"{finding.folder}/", f"{quote(finding.folder)}/"),)
    return Detail(finding.kind, [*folder, Markdown(finding.report), Pairs([("signature", finding.signature)])])


def _counts(name: str, counts: Counter[str]) -> Table | None:
    return Table(columns(f"{name}: text 4; models: count"), counts.most_common()) if counts else None
