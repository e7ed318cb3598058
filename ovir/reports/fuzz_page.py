"""The report of ``ovir fuzz``: the map of a device, and the findings of a folder."""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote

from ovir.core.tables import Column, Table, columns
from ovir.diagnostics.wording import plural
from ovir.fuzzing.device_map import TYPES, Cell
from ovir.fuzzing.evidence import SPECIFICATIONS
from ovir.fuzzing.findings import Finding
from ovir.fuzzing.fuzz import Fuzzing
from ovir.reports.page import Block, Detail, Fact, Link, Linked, Page, Pairs, Text


def fuzz_page(found: Fuzzing) -> Page:
    """Return the report of a search."""
    count = len(found.findings)
    page = Page("fuzz", found.description, plural(count, "finding"), "bad" if count else "good")
    total = found.ovir_seconds + found.target_seconds
    share = f"{found.ovir_seconds / total:.0%}" if total else "-"
    page.facts += [
        Fact("findings", f"{count:,}", tone="bad" if count else "good"),
        Fact("models", f"{found.models:,}", f"{found.rate:.3g} in a second"),
        Fact("compared", f"{found.compared:,}", f"ovir does not run {found.refused:,} others"),
        Fact("known", f"{sum(found.known.values()):,}", "put down to known divergences"),
        Fact("time of ovir", share, "the rest is that of the other side"),
    ]
    page.add("Map", _map(found), note=_MAP_NOTE)
    heads = "kind: tag chosen; operations: text 2; message: text 3; layers: count; models: count; "
    rows = [(x.kind, " ".join(x.operations), x.message, x.layers, x.count, x.number, x.folder) for x in found.findings]
    note = "Each folder has the model, its inputs, the expected outputs, a script that needs no ovir, and a report."
    page.add(
        "Findings",
        Table(columns(heads + "seed: count; folder: path"), rows, [_detail(x) for x in found.findings]),
        note=note,
    )
    page.add("Known divergences", _counts("reason", found.known))
    page.add("Not supported", _counts("operation", found.unsupported))
    if found.unreached:
        page.add("Not reached", Text(", ".join(found.unreached)))
    return page


_MAP_NOTE = (
    "How the models of an operation version with an element type went, and how many of them. A cell with a finding "
    "leads to it. A dash stands for an element type that the operation does not take, or that no "
    "model of it has."
)
_TABLE = 1
"""The place of the table of findings among the tables of the page."""


def _map(found: Fuzzing) -> Table | None:
    """Return a table with a row for each operation version and a column for each element type."""
    types = [name for name in TYPES if any(name in row for row in found.map.values())]
    places = {finding.signature: index for index, finding in enumerate(found.findings)}

    def linked(cell: Cell | None) -> Linked | None:
        if cell is None:
            return None
        target = next((f"#row:{_TABLE}:{places[x]}" for x in cell.findings if x in places), None)
        return Linked(str(cell), cell.status, target)

    rows = [(version, *(linked(row.get(name)) for name in types)) for version, row in sorted(found.map.items())]
    heads = [Column("operation", "type"), *(Column(name, "outcome") for name in types)]
    return Table(heads, rows) if rows else None


def _detail(finding: Finding) -> Detail:
    """Return what the report of a finding says."""
    shown = finding.evidence
    blocks: list[Block] = [Text(finding.message)]
    if finding.folder is not None:
        folder = quote(finding.folder)
        blocks += [Link(f"{finding.folder}/", f"{folder}/"), Link("its report.md", f"{folder}/report.md")]
    layers = [
        (x.name, f"{x.operation}({x.attributes}): {', '.join(x.inputs)} -> {', '.join(x.outputs)}")
        for x in shown.layers
    ]
    blocks += [Pairs(layers, "Layers")] if layers else []
    for title, arrays in (("Inputs", shown.inputs), ("Expected", shown.expected), ("Got", shown.got)):
        blocks += [Text("\n".join(arrays), title, "code")] if arrays else []
    if shown.specification:
        blocks.append(Pairs(list(shown.specification.items()), "What the specification says"))
        blocks.append(Link("The specifications of all operations", SPECIFICATIONS))
    again = f"ovir fuzz --seed {finding.number} --models 1"
    blocks.append(Pairs([("signature", finding.signature), ("the model again", again)]))
    return Detail(finding.kind, blocks)


def _counts(name: str, counts: Counter[str]) -> Table | None:
    return Table(columns(f"{name}: text 4; models: count"), counts.most_common()) if counts else None
