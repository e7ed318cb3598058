"""What ovir says when something is wrong: a finding with its place, and the errors that carry one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding: its number, never reused, and what it means."""

    id: str
    meaning: str


# 0xx the file as a file, 1xx the structure of the IR, 2xx inference, 3xx running, 4xx use of the API.
UNREADABLE = Code("OVIR001", "a file cannot be read at all")
NOT_XML = Code("OVIR002", "the topology is not well-formed XML")
NOT_IR = Code("OVIR003", "the XML is not OpenVINO IR")
OLD_IR = Code("OVIR004", "an IR version that OpenVINO itself no longer reads")
NO_WEIGHTS = Code("OVIR005", "constants need a file of weights, and there is none")
MISSING_ELEMENT = Code("OVIR101", "an element or attribute that the format requires is missing")
BAD_ATTRIBUTE = Code("OVIR102", "an attribute's text is not a value of its type")
UNKNOWN_OPERATION = Code("OVIR103", "an operation that the named opset does not contain")
DUPLICATE_ID = Code("OVIR104", "an id stands twice")
BAD_EDGE = Code("OVIR105", "an edge that leads from or to nothing, or two into one port")
MISSING_INPUT = Code("OVIR106", "an input port without an edge")
CYCLE = Code("OVIR107", "layers that depend on each other")
WEIGHTS = Code("OVIR108", "a constant whose data the weights do not hold")
BODY = Code("OVIR109", "a body or port map of If, Loop or TensorIterator that does not fit")
UNKNOWN_ATTRIBUTE = Code("OVIR110", "an attribute that the operation does not have")
DEAD_LAYER = Code("OVIR111", "a layer that no result depends on, and that OpenVINO drops")
NAME_COLLISION = Code("OVIR112", "in a file of version 10, a tensor named as the layer of another")
NO_PRECISION = Code("OVIR113", "an output port that does not state its precision")
INFERENCE = Code("OVIR201", "an operation's inputs or attributes contradict its specification")
STATED_SHAPE = Code("OVIR202", "a stated shape that differs from the inferred one")
STATED_TYPE = Code("OVIR203", "a stated element type that differs from the inferred one")
INTERNAL = Code("OVIR299", "ovir itself failed")
RUN = Code("OVIR301", "a value that an operation cannot work on")
NOT_SUPPORTED = Code("OVIR302", "an operation or variant that ovir does not execute")
OUTSIDE_SPEC = Code("OVIR303", "a value on which devices may differ, as the specification excludes it")
BAD_INPUT = Code("OVIR401", "an input tensor that does not fit the model")
USAGE = Code("OVIR402", "a call with arguments that do not fit")


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
    severity: Severity = Severity.ERROR,
    hint: str | None = None,
    port: int | None = None,
    column: int | None = None,
) -> Diagnostic:
    """A finding at a place."""
    p = place or Place()
    return Diagnostic(code.id, severity, message, p.layer, p.layer_id, port, p.file, p.line, column, hint)


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


class Findings:
    """Collects the findings of one reading; an error in it makes ``raise_errors`` raise."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}  # ordered, each once

    def add(self, found: Diagnostic) -> None:
        self._found.setdefault(found)

    def error(self, code: Code, message: str, place: Place | None = None, hint: str | None = None) -> None:
        self.add(diagnostic(code, message, place, hint=hint))

    def warning(self, code: Code, message: str, place: Place | None = None, hint: str | None = None) -> None:
        self.add(diagnostic(code, message, place, severity=Severity.WARNING, hint=hint))

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self if d.severity is Severity.ERROR]

    def raise_errors(self, kind: type[OvirError] = ModelError) -> None:
        """Raise ``kind`` with every error found; nothing happens where there is none."""
        if errors := self.errors:
            raise kind(*errors)


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
