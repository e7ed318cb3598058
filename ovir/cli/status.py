"""Exit statuses of the commands."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ovir.diagnostics.codes import CODES, NO_ENGINE, UNWRITABLE, USAGE, Severity
from ovir.diagnostics.diagnostic import Diagnostic

DONE, WRONG, UNUSABLE = 0, 1, 2
"""Nothing is wrong; the model or its data is at fault; wrong usage, or a file cannot be read at all."""
INTERRUPTED, BROKEN_PIPE = 130, 141


def is_unreadable(found: Diagnostic) -> bool:
    """Return whether the file itself is unusable: missing, of another format, or truncated."""
    return CODES[found.code].unusable


def status_of(diagnostics: Iterable[Diagnostic], failing: Collection[Severity] = (Severity.ERROR,)) -> int:
    """Return the exit status of a command; diagnostics of the severities ``failing`` count as faults."""
    found = list(diagnostics)
    if any(is_unreadable(d) or d.code in (USAGE.id, UNWRITABLE.id, NO_ENGINE.id) for d in found):
        return UNUSABLE
    return WRONG if any(d.severity in failing for d in found) else DONE
