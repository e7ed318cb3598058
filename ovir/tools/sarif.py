"""Findings as SARIF 2.1.0, which code hosts and editors show beside the line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ovir import diagnostics
from ovir.diagnostics import Code, Diagnostic, Severity

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def known_codes() -> dict[str, Code]:
    """Every kind of finding by its number."""
    return {code.id: code for code in vars(diagnostics).values() if isinstance(code, Code)}


def to_sarif(findings: Iterable[Diagnostic], version: str) -> dict[str, Any]:
    """A SARIF log with one run; ``version`` is ovir's."""
    found = list(findings)
    codes = known_codes()
    used = sorted({d.code for d in found})
    rules = [
        {"id": code, **({"shortDescription": {"text": codes[code].meaning}} if code in codes else {})} for code in used
    ]
    driver = {"name": "ovir", "version": version, "rules": rules}
    results = [_result(d, used.index(d.code)) for d in found]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(found: Diagnostic, rule: int) -> dict[str, Any]:
    layer = f"{found.layer}: " if found.layer else ""
    hint = f" ({found.hint})" if found.hint else ""
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": _LEVELS[found.severity],
        "message": {"text": f"{layer}{found.message}{hint}"},
    }
    if found.file:
        place: dict[str, Any] = {"artifactLocation": {"uri": found.file.replace("\\", "/")}}
        if found.line:
            column = {"startColumn": found.column} if found.column else {}
            place["region"] = {"startLine": found.line, **column}
        location: dict[str, Any] = {"physicalLocation": place}
        if found.layer:
            location["logicalLocations"] = [{"fullyQualifiedName": found.layer, "kind": "module"}]
        result["locations"] = [location]
    return result
