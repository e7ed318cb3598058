"""Everything that is wrong with an IR file, not the first thing only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ovir.diagnostics import (
    NO_PRECISION,
    STATED_SHAPE,
    STATED_TYPE,
    UNKNOWN_OPERATION,
    USAGE,
    Diagnostic,
    Findings,
    InputError,
    Severity,
    diagnostic,
)
from ovir.ir.reader import load
from ovir.ir.source import Source
from ovir.model import Model


def check(model: Source, weights: Any = None) -> list[Diagnostic]:
    """All findings of reading a file and inferring its shapes, errors and warnings, in the order of the file.

    Arguments are those of ``read_model``. Nothing is raised for a file that is wrong or unreadable; InputError for
    what is none of a file.
    """
    if isinstance(model, Model):
        message = "check() takes a file or its content, not a Model: a Model has been checked when it was read"
        raise InputError(diagnostic(USAGE, message, hint="its findings are in model.diagnostics"))
    findings = Findings()
    load(model, weights, findings)
    found = (replace(d, severity=_SEVERITY.get(d.code, d.severity)) for d in findings)
    return sorted(found, key=lambda d: (d.line or 0, d.column or 0))


# A reader can live with an operation that it does not know, with stated shapes that it infers anew, and with ports that
# state no type. Yet a file that needs the first is not whole, one with the second contradicts itself: who trusts what
# it states goes wrong; and OpenVINO refuses the third.
_SEVERITY = {code.id: Severity.ERROR for code in (UNKNOWN_OPERATION, STATED_SHAPE, STATED_TYPE, NO_PRECISION)}
