"""A collection of the diagnostics of one reading, inference or check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ovir.diagnostics.codes import CODES, Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import ModelError, OvirError


class Diagnostics:
    """A collection of diagnostics, in order and without duplicates."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}  # a dict keeps the order and drops duplicates
        self._added: list[Diagnostic] = []

    def add(self, found: Diagnostic) -> None:
        self._added.append(found)
        self._found.setdefault(found)

    @property
    def added(self) -> int:
        """Return how many diagnostics have been added, including duplicates."""
        return len(self._added)

    def errors_since(self, count: int) -> list[Diagnostic]:
        """Return the errors that are not tolerated, among those added after the first ``count`` diagnostics."""
        return [found for found in self._added[count:] if _is_fatal(found)]

    def discard(self, found: Diagnostic) -> None:
        """Remove a diagnostic that another one includes."""
        self._found.pop(found, None)

    def extend(self, found: Iterable[Diagnostic]) -> None:
        for item in found:
            self.add(item)

    def report(
        self,
        code: Code,
        message: str,
        place: Place | None = None,
        hint: str | None = None,
        *,
        severity: Severity | None = None,
        port: int | None = None,
    ) -> None:
        """Add a diagnostic; the arguments are the same as in ``diagnose``."""
        self.add(diagnose(code, message, place, severity=severity, hint=hint, port=port))

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def fatal(self) -> list[Diagnostic]:
        """Return the errors that are not tolerated."""
        return [found for found in self if _is_fatal(found)]

    @property
    def non_fatal(self) -> list[Diagnostic]:
        """Return the other diagnostics, with errors turned into warnings."""
        fatal = set(self.fatal)
        return [
            replace(d, severity=Severity.WARNING) if d.severity is Severity.ERROR else d for d in self if d not in fatal
        ]

    def raise_errors(self, kind: type[OvirError] = ModelError) -> None:
        """Raise ``kind`` with every error that is not tolerated, if there are any."""
        if fatal := self.fatal:
            raise kind(*fatal)


def _is_fatal(found: Diagnostic) -> bool:
    return found.severity is Severity.ERROR and not CODES[found.code].tolerated
