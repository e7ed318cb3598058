"""Diagnostics as SARIF 2.1.0, which code hosts and editors show next to the line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ovir.diagnostics.codes import CODES, Code, Severity, section
from ovir.diagnostics.diagnostic import Diagnostic

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def to_sarif(diagnostics: Iterable[Diagnostic], version: str, *, untrusted: bool = False) -> dict[str, Any]:
    """Return a SARIF log with one run; ``version`` is the version of ovir.

    Code hosts show the dangers of ``untrusted`` files as vulnerabilities.
    """
    found = list(diagnostics)
    used = sorted({d.code for d in found})
    driver = {"name": "ovir", "version": version, "rules": [_rule(CODES[code], untrusted) for code in used]}
    results = [_result(d, used.index(d.code)) for d in found]
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: Code, untrusted: bool) -> dict[str, Any]:
    text = section(code.id)
    rule: dict[str, Any] = {
        "id": code.id,
        "shortDescription": {"text": code.meaning},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
        "help": {"text": f"`ovir explain {code.id}` shows this:\n\n{text}", "markdown": text},
    }
    if untrusted and code.danger:
        rule["properties"] = {"security-severity": f"{code.danger:.1f}", "tags": ["security"]}
        rule["defaultConfiguration"]["level"] = "error"
    return rule


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    layer = f"{diagnostic.layer}: " if diagnostic.layer else ""
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": f"{layer}{diagnostic.message}{hint}"},
    }
    if diagnostic.file:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(diagnostic.file)}}
        if diagnostic.line:
            column = {"startColumn": diagnostic.column} if diagnostic.column else {}
            place["region"] = {"startLine": diagnostic.line, **column}
        location: dict[str, Any] = {"physicalLocation": place}
        if diagnostic.layer:
            location["logicalLocations"] = [{"fullyQualifiedName": diagnostic.layer, "kind": "module"}]
        result["locations"] = [location]
    return result


def _uri(path: str) -> str:
    """Return a path as a relative or file URI reference, with characters escaped that a URI does not allow."""
    text = quote(os.fsencode(path.replace("\\", "/")))
    return f"file://{text}" if text.startswith("/") else text
