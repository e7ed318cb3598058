"""Everything that is wrong with an IR file, not the first thing only."""

from __future__ import annotations

from typing import Any

from ovir.diagnostics import Diagnostic, Findings
from ovir.reader import Source, load


def check(model: Source, weights: Any = None) -> list[Diagnostic]:
    """All findings of reading a file and inferring its shapes, errors and warnings, in the order of the file.

    Arguments are those of ``read_model``. Nothing is raised for a file that is wrong or unreadable.
    """
    findings = Findings()
    load(model, weights, findings)
    return sorted(findings, key=lambda d: (d.line or 0, d.column or 0))
