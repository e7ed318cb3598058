"""Output of ``ovir check``: diagnostics as text, JSON, SARIF, annotations of GitHub, or counts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import ovir
from ovir.cli.output import print_message, say_json, say_table
from ovir.cli.terminal import has_colors
from ovir.core.files import write_text
from ovir.diagnostics.codes import CODES, Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.wording import plural

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}


def coloured(found: Diagnostic) -> str:
    """Return the diagnostic as a text, with its severity in colour on a terminal that supports it."""
    text = str(found)
    if not has_colors(sys.stdout):
        return text
    label = f"{found.severity}[{found.code}]"
    return text.replace(label, f"\x1b[1;{_COLOURS[found.severity]}m{label}\x1b[0m", 1)


def annotation(found: Diagnostic) -> str:
    """Return the diagnostic as a command of GitHub Actions, which shows it next to the line.

    Source: workflow commands, in the documentation of GitHub Actions
    """
    kind = {Severity.INFO: "notice"}.get(found.severity, found.severity.value)
    properties = {"file": found.file, "line": found.line, "col": found.column, "title": found.code}
    given = ",".join(f"{key}={_escaped_property(str(value))}" for key, value in properties.items() if value is not None)
    layer = f"{found.layer}: " if found.layer else ""
    hint = f"\nhint: {found.hint}" if found.hint else ""
    return f"::{kind} {given}::{_escaped(f'{layer}{found.message}{hint}')}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def counts_of(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the numbers of errors, warnings and infos as a text."""
    counts = Counter(found.severity for found in diagnostics)
    return ", ".join(plural(counts[s], s) for s in Severity if counts[s]) or "nothing found"


def say_counts(diagnostics: Sequence[Diagnostic]) -> None:
    """Print the count of each code, and the counts of each file, the worst first."""
    by_code = Counter((found.code, found.severity) for found in diagnostics)
    files = {kind: len({d.file for d in diagnostics if (d.code, d.severity) == kind}) for kind in by_code}
    rows = [
        (code, severity, count, files[code, severity], CODES[code].meaning)
        for (code, severity), count in sorted(by_code.items(), key=lambda item: (-item[1], item[0]))
    ]
    if not rows:
        return
    say_table(("code", "severity", ">found", ">files", "meaning"), rows)
    by_file: dict[str, list[Diagnostic]] = {}
    for found in diagnostics:
        by_file.setdefault(found.file or "", []).append(found)
    tables = {file: [sum(d.severity is s for d in found) for s in Severity] for file, found in by_file.items()}
    worst = sorted(tables.items(), key=lambda item: ([-count for count in item[1]], item[0]))
    say_table(("file", ">errors", ">warnings", ">infos"), [(file, *counts) for file, counts in worst], title="")


def say_times(times: Counter[str]) -> None:
    total = sum(times.values()) or 1.0
    for stage, seconds in times.items():
        print_message(f"{stage:<10} {seconds * 1e3:9.1f} ms  {seconds / total:4.0%}")
    print_message(f"outside inference: {1 - times['inference'] / total:.0%}")


def write_sarif(target: str, diagnostics: Sequence[Diagnostic]) -> None:
    """Write the SARIF log to a file, or to stdout for ``-``."""
    import json

    from ovir.io.sarif import to_sarif

    log = to_sarif(diagnostics, ovir.__version__)
    if target == "-":
        say_json(log)
        return
    write_text(target, json.dumps(log, indent=1) + "\n", "write the SARIF log")
