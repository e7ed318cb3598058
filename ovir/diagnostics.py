"""What ovir says when something is wrong: a finding with its place, and the errors that carry one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any

from ovir.codes import CODES, OUTSIDE_SPEC, Code, Severity


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. ``layer`` is a text such as ``layer 6 'Gather_4' (Gather, opset1)``."""

    code: str
    severity: Severity
    message: str
    layer: str | None = None
    layer_id: int | None = None
    port: int | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = "".join(f":{n}" for n in (self.line, self.column) if n is not None)
        head = f"{escaped(self.file)}{place}: " if self.file else ""
        layer = f"{readable(self.layer)}: " if self.layer else ""
        hint = f"\n  hint: {readable(self.hint)}" if self.hint else ""
        return f"{head}{self.severity}[{self.code}] {layer}{readable(self.message)}{hint}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON, names and values in full; what is not known is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file something stands; what is unknown is None."""

    file: str | None = None
    line: int | None = None
    layer: str | None = None
    layer_id: int | None = None


def diagnostic(
    code: Code,
    message: str,
    place: Place | None = None,
    *,
    severity: Severity | None = None,
    hint: str | None = None,
    port: int | None = None,
    column: int | None = None,
) -> Diagnostic:
    """A finding at a place, as grave as its code says unless ``severity`` says otherwise."""
    p = place or Place()
    return Diagnostic(
        code.id, severity or code.severity, message, p.layer, p.layer_id, port, p.file, p.line, column, hint
    )


class OvirError(Exception):
    """The base of every error that a user of ovir can meet; ``diagnostics`` has one or more findings."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    @property
    def diagnostic(self) -> Diagnostic:
        """The first finding."""
        return self.diagnostics[0]

    def __str__(self) -> str:
        first, *rest = self.diagnostics
        more = f"\n({len(rest)} more: `ovir check` lists them all)" if rest else ""
        return f"{first}{more}"


class ReadError(OvirError):
    """A file that is not there, not readable or not XML."""


class ModelError(OvirError):
    """A model that is wrong: its structure, an attribute, a shape or a type."""


class RunError(OvirError):
    """A run that failed on its values."""


class InputError(OvirError, ValueError):
    """Arguments that do not fit the model: an input's name, type or shape."""


class NotFoundError(InputError, KeyError, IndexError):
    """A name or position at which there is nothing."""


class OperatorError(Exception):
    """Raised inside an operation, which does not know where it stands; its caller adds the place."""

    def __init__(self, message: str, code: Code | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.line: int | None = None
        """Of the part of the layer that is at fault, where the operation knows it."""


OWN_FAULT = "this is a fault of ovir; please report it"
"""The hint for what should never happen."""


class Findings:
    """Collects the findings of one reading."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}  # ordered, each once
        self.told = 0
        """How many have been added, equal ones included."""

    def add(self, found: Diagnostic) -> None:
        self.told += 1
        self._found.setdefault(found)

    def discard(self, found: Diagnostic) -> None:
        """Take back what another finding says, too."""
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
        """Add a finding; the arguments are those of ``diagnostic``."""
        self.add(diagnostic(code, message, place, severity=severity, hint=hint, port=port))

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def fatal(self) -> list[Diagnostic]:
        """The errors that no reader can live with."""
        return [d for d in self if d.severity is Severity.ERROR and not CODES[d.code].tolerated]

    @property
    def tolerable(self) -> list[Diagnostic]:
        """The others, none of them graver than a warning."""
        fatal = set(self.fatal)
        return [
            replace(d, severity=Severity.WARNING) if d.severity is Severity.ERROR else d for d in self if d not in fatal
        ]

    def raise_errors(self, kind: type[OvirError] = ModelError) -> None:
        """Raise ``kind`` with every error that no reader can live with; nothing happens where there is none."""
        if fatal := self.fatal:
            raise kind(*fatal)


# --------------------------------------------------------------------------- texts for people

LONGEST = 100
"""So many characters of a name or value a message shows."""
_SHOWN = 10_000  # of a whole text: no message is longer, except for such a name or value in it

# A name in quotes, a list, or a word; parts of paths are words.
_PARTS = re.compile(r"(?<!\w)'.*?'(?!\w)|\[[^\[\]]*\]|[^\s/\\'\[\]]+", re.DOTALL)


def escaped(text: str) -> str:
    """The text in one line, with what a terminal would not show (or obey) as Python writes it in a string."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def readable(text: str) -> str:
    """The same, with names and values of more than ``LONGEST`` characters shortened."""
    return escaped(_PARTS.sub(lambda part: _shortened(part[0], LONGEST), _shortened(text, _SHOWN)))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest * 2 // 3]}…{text[-longest // 4 :]}"


# --------------------------------------------------------------------------- warnings of kernels

_sink: ContextVar[Callable[[Code, str], None] | None] = ContextVar("ovir_kernel_reports", default=None)


@contextmanager
def reporting_to(sink: Callable[[Code, str], None]) -> Iterator[None]:
    """While it lasts, ``report`` calls ``sink``, which knows the running layer and may raise."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def report(message: str, code: Code = OUTSIDE_SPEC) -> None:
    """Called by a kernel that meets values on which the specification is silent and devices differ."""
    sink = _sink.get()
    if sink is not None:
        sink(code, message)
