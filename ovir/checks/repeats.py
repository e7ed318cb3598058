"""Sum up repeated diagnostics, as a fault that occurs in hundreds of layers usually has one cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ovir.diagnostics.codes import CODES, Severity
from ovir.diagnostics.diagnostic import Diagnostic

SHOWN = 3
"""Up to this many equal diagnostics are reported one by one; a sum of more shows this many examples."""


def sum_up(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics in order, with repeated ones summed up in the first of them.

    Warnings and infos repeat if code and message are equal, or only the code if it is declared as ``summed``. Errors
    are never summed up.
    """
    groups: dict[object, list[Diagnostic]] = {}
    for found in diagnostics:
        groups.setdefault(_key(found), []).append(found)
    return [item for group in groups.values() for item in (group if len(group) <= SHOWN else [_sum(group)])]


def _key(found: Diagnostic) -> object:
    if found.severity is Severity.ERROR:
        return found
    message = None if CODES[found.code].summed else found.message
    return found.code, found.severity, found.file, message


def _sum(group: list[Diagnostic]) -> Diagnostic:
    first, *others = group
    examples = [_example(found, first) for found in others[: SHOWN - 1]]
    return replace(
        first, message=f"{first.message}; {len(others)} more of this kind, for example {' and '.join(examples)}"
    )


def _example(found: Diagnostic, first: Diagnostic) -> str:
    place = f"on line {found.line}" if found.line is not None else found.layer or "on an unknown line"
    return place if found.message == first.message else f"{place} ({found.message})"
