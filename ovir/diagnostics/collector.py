"""Collect the diagnostics of one reading, inference or check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ovir.diagnostics.codes import CODES, Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import ModelError, OvirError


class Diagnostics:
    """Collects the diagnostics of one reading."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}  # ordered, each once
        self._added: list[Diagnostic] = []

    def add(self, found: Diagnostic) -> None:
        self._added.append(found)
        self._found.setdefault(found)

    @property
    def told(self) -> int:
        """How many have been added, equal ones included."""
        return len(self._added)

    def errors_since(self, told: int) -> list[Diagnostic]:
        """Return the errors no reader can live with that were added after the first ``told`` diagnostics."""
        return [found for found in self._added[told:] if _is_fatal(found)]

    def discard(self, found: Diagnostic) -> None:
        """Take back what another diagnostic says, too."""
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
        """Add a diagnostic; the arguments are those of ``diagnostic``."""
        self.add(diagnose(code, message, place, severity=severity, hint=hint, port=port))

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def fatal(self) -> list[Diagnostic]:
        """The errors that no reader can live with."""
        return [found for found in self if _is_fatal(found)]

    @property
    def non_fatal(self) -> list[Diagnostic]:
        """The others, none of them graver than a warning."""
        fatal = set(self.fatal)
        return [
            replace(d, severity=Severity.WARNING) if d.severity is Severity.ERROR else d for d in self if d not in fatal
        ]

    def raise_errors(self, kind: type[OvirError] = ModelError) -> None:
        """Raise ``kind`` with every error that no reader can live with; nothing happens where there is none."""
        if fatal := self.fatal:
            raise kind(*fatal)


def _is_fatal(found: Diagnostic) -> bool:
    return found.severity is Severity.ERROR and not CODES[found.code].tolerated
