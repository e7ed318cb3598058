"""Exit statuses: what a command says to the shell."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ovir.diagnostics.codes import CODES, USAGE, Severity
from ovir.diagnostics.diagnostic import Diagnostic

DONE, WRONG, UNUSABLE = 0, 1, 2
"""Nothing wrong; the model or its data is at fault; wrong usage, or a file that cannot be read at all."""
INTERRUPTED, BROKEN_PIPE = 130, 141


def is_unreadable(found: Diagnostic) -> bool:
    """Whether a file, not what it says, is at fault: it is not there, is something else, or ends in its middle."""
    return CODES[found.code].unusable


def status_of(diagnostics: Iterable[Diagnostic], failing: Collection[Severity] = (Severity.ERROR,)) -> int:
    """The same for all commands; diagnostics of the severities ``failing`` are a fault."""
    found = list(diagnostics)
    if any(is_unreadable(d) or d.code == USAGE.id for d in found):
        return UNUSABLE
    return WRONG if any(d.severity in failing for d in found) else DONE
