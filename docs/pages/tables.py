"""The tables and counts that pages of the documentation show of the code."""

from __future__ import annotations

import re
from itertools import groupby

from ovir.checks.rules import CODES
from ovir.checks.rules.devices import LIMITS
from ovir.cli.operations import entries
from ovir.debugging.device_properties import PROPERTIES
from ovir.debugging.divergences import divergences
from ovir.export.exporters import NOT_EXPORTED, rows
from ovir.lowering.constructs import CONSTRUCTS
from ovir.lowering.registry import decomposition_of
from ovir.lowering.releases import IR_VERSION_11, OPERATIONS_SINCE, Release, release_of_opset, release_text
from ovir.ops import find
from ovir.ops.base.opsets import NEWEST_OPSET, OPERATIONS


def with_counts(text: str) -> str:
    """Return README.md with the counts of operation versions as they are now."""
    listed = entries()
    counts = {
        "total": len(listed),
        "newest": NEWEST_OPSET,
        "inferred": sum(entry.infers for entry in listed),
        "run": sum(entry.runs for entry in listed),
    }
    sentence = "Of the {total} operation versions of opsets 1 to {newest}, {inferred} are inferred and {run} are run"
    found, count = re.subn(re.sub(r"{\w+}", r"\\d+", sentence), sentence.format(**counts), text)
    assert count == 1, "README.md must have one sentence with the counts of operation versions"
    return found


def with_releases(text: str) -> str:
    """Return docs/old-releases.md with the tables of what is rewritten for which release."""
    by_release: dict[Release, tuple[list[str], list[str]]] = {}
    for kind, versions in sorted(OPERATIONS.items()):
        for opset in versions:
            cls = find(kind, opset)
            release = OPERATIONS_SINCE.get((kind, opset)) or release_of_opset(opset)
            if cls is not None and release >= IR_VERSION_11:
                cells = by_release.setdefault(release, ([], []))
                cells[decomposition_of(cls) is None].append(f"{kind}-{opset}")
    table = ["| new in | rewritten for older releases | not rewritten |", "|---|---|---|"]
    for release, cells in sorted(by_release.items()):
        table.append(f"| {release_text(release)} | {' | '.join(', '.join(cell) for cell in cells)} |")
    found = ["| operation | releases | what fails | what is done |", "|---|---|---|---|"]
    for construct in CONSTRUCTS:
        types = ", ".join(sorted(construct.types)) or "any"
        releases = " to ".join(dict.fromkeys(map(release_text, (construct.first, construct.last))))
        done = (construct.rewrite.__doc__ or "").strip().rstrip(".")
        found.append(f"| {types} | {releases} | {construct.reason} | {done[:1].lower() + done[1:]} |")
    return _between(_between(text, "operation versions", table), "constructs", found)


def with_limits(text: str) -> str:
    """Return docs/devices.md with the table of what devices do not take."""
    table = ["| device | what | code | until | source |", "|---|---|---|---|---|"]
    for limit in LIMITS:
        until = release_text(limit.until) if limit.until is not None else ""
        table.append(f"| {limit.device} | {limit.says} | {limit.code.id} | {until} | {limit.source} |")
    return _between(text, "limits", table)


def with_properties(text: str) -> str:
    """Return docs/wrong-results.md with the table of properties of devices that change numbers."""
    table = ["| property | devices | since | changes numbers unless it is | then |", "|---|---|---|---|---|"]
    for row in PROPERTIES:
        since = release_text(row.since)
        exact = " or ".join(f"`{value}`" for value in (row.exact, *row.same[:1]))
        table.append(f"| `{row.name}` | {', '.join(row.devices)} | {since} | {exact} | {row.effect} |")
    return _between(text, "properties", table)


def with_divergences(text: str) -> str:
    """Return docs/divergences.md with a table for each section of the list."""
    lines = []
    for section, cases in groupby(divergences(), lambda row: row.section):
        lines += ["", f"## {section}", "", "| case | OpenVINO | ovir | recognized |", "|---|---|---|---|"]
        for row in cases:
            recognized = ", ".join(["yes", *filter(None, [row.releases])]) if row.effect else ""
            lines.append(f"| {row.case} | {row.openvino} | {row.ovir} | {recognized} |")
    return _between(text, "divergences", [*lines, ""])


def with_exports(text: str) -> str:
    """Return docs/onnx.md with the table of what operations are exported as."""
    exported = list(rows())
    left = sum(target == NOT_EXPORTED for _, target, _ in exported)
    count = (
        f"Of {len(exported)} operation versions, {len(exported) - left} are exported, and {left} run *{NOT_EXPORTED}*."
    )
    lines = ["", count, "", "| operation | exported as | limits |", "|---|---|---|"]
    lines += [f"| {operation} | {target} | {limits} |" for operation, target, limits in exported]
    return _between(text, "exports", [*lines, ""])


def with_codes(text: str) -> str:
    """Return docs/diagnostics.md with a section for each code."""
    return _between(text, "codes", "\n\n".join(code.section for code in CODES.values()).splitlines())


def _between(text: str, name: str, lines: list[str]) -> str:
    """Return a page with these lines between its comments ``begin: name`` and ``end: name``."""
    before, _, rest = text.partition(f"<!-- begin: {name} -->\n")
    _, end, after = rest.partition(f"<!-- end: {name} -->")
    assert end, f"the page has no place for {name}"
    return "".join([before, f"<!-- begin: {name} -->\n", *(f"{line}\n" for line in lines), end, after])
