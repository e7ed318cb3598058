"""The report of ``ovir fuzz``: the findings of a folder, and the exercised operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ovir.core.tables import Table, columns
from ovir.diagnostics.wording import plural
from ovir.fuzzing.findings import Finding
from ovir.fuzzing.fuzz import Fuzzing
from ovir.reports.page import Detail, Fact, Page, Pairs, Text


def fuzz_page(found: Fuzzing) -> Page:
    """Return the report of a search."""
    count = len(found.findings)
    page = Page("fuzz", found.description, plural(count, "finding"), "bad" if count else "good")
    total = found.ovir_seconds + found.target_seconds
    share = f"{found.ovir_seconds / total:.0%}" if total else "-"
    page.facts += [
        Fact("findings", f"{count:,}", tone="bad" if count else "good"),
        Fact("models", f"{found.models:,}", f"{found.rate:.3g} in a second"),
        Fact("compared", f"{found.compared:,}", f"{found.refused:,} not run by ovir"),
        Fact("known", f"{sum(found.known.values()):,}", "put down to known divergences"),
        Fact("time of ovir", share, "the rest is that of the other side"),
    ]
    heads = "kind: tag chosen; operations: text 2; message: text 3; layers: count; models: count; seen: text; "
    rows = [
        (x.kind, " ".join(x.operations), x.message, x.layers, x.count, x.steadiness, x.number, x.folder)
        for x in found.findings
    ]
    note = "Each folder has the model, its inputs, the expected outputs, a script that needs no ovir, and a report."
    page.add(
        "Findings",
        Table(columns(heads + "seed: count; folder: path"), rows, [_detail(x) for x in found.findings]),
        note=note,
    )
    page.add("Known divergences", _counts("reason", found.known))
    exercised = [(x, types.total(), _listed(types)) for x, types in sorted(found.exercised.items())]
    table = Table(columns("operation: text 2; layers: count; element types: text 4"), exercised)
    page.add("Exercised", table, note="Layers that were compared, by operation version and element type.")
    page.add("Not supported", _counts("operation", found.unsupported))
    if found.unreached:
        page.add("Not reached", Text(", ".join(found.unreached)))
    return page


def _detail(finding: Finding) -> Detail:
    pairs = Pairs([("signature", finding.signature), ("folder", finding.folder or "-"), ("seed", str(finding.number))])
    return Detail(finding.kind, [Text(finding.message), pairs])


def _counts(name: str, counts: Counter[str]) -> Table | None:
    return Table(columns(f"{name}: text 4; models: count"), counts.most_common()) if counts else None


def _listed(types: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(types.items(), key=lambda item: -item[1]))
