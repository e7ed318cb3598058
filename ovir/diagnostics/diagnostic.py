"""Diagnostics, the places that they are about, and the list that collects them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from ovir.diagnostics.codes import Code, Severity
from ovir.diagnostics.wording import escaped, plural, readable


class TextEdit(NamedTuple):
    """A range of the bytes of a file, and what takes their place."""

    begin: int
    """The first byte."""
    end: int
    """The byte behind the last one; if it is ``begin``, nothing is removed."""
    text: bytes
    """What takes their place."""


@dataclass(frozen=True, slots=True)
class Fix:
    """The exact change of a file that removes the cause of a diagnostic."""

    what: str
    """The change in words, such as ``declares [2,3]``."""
    edits: tuple[TextEdit, ...]
    """The change itself: ranges of the bytes of the .xml, and what takes their place."""
    is_safe: bool = True
    """Whether results stay the same."""


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostic:
    """One fault, or one fact worth knowing, and its place. Fields that are not known are None.

    Python and notebooks show it as ``ovir check`` prints it: in one line, and a second one with the hint.
    """

    code: str
    """The kind of diagnostic, such as ``OVIR402``; docs/diagnostics.md has a section for each."""
    severity: Severity
    """Whether it is an error, a warning or an info."""
    message: str
    """The finding, with the expected value or form."""
    layer: str | None = None
    """The layer as a text, such as ``layer 6 'Gather_4' (Gather, opset1)``."""
    layer_id: int | None = None
    """The id of the layer in the file."""
    port: int | None = None
    """The id of the port in the file."""
    file: str | None = None
    """The path of the file, as it was given."""
    line: int | None = None
    """The line of the file, from 1."""
    column: int | None = None
    """The column of the line, from 1."""
    hint: str | None = None
    """Advice that may help to fix it."""
    fix: Fix | None = field(default=None, compare=False)
    """The change that removes the cause, if ``ovir.check`` knows it; ``ovir.fix`` applies it."""

    def __str__(self) -> str:
        place = "".join(f":{n}" for n in (self.line, self.column) if n is not None)
        head = f"{escaped(self.file)}{place}: " if self.file else ""
        layer = f"{readable(self.layer)}: " if self.layer else ""
        hint = f"\n  hint: {readable(self.hint)}" if self.hint else ""
        return f"{head}{self.severity}[{self.code}] {layer}{readable(self.message)}{hint}"

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnostic for JSON, with names and values in full and without its fix and unknown fields."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "fix"}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file; unknown fields are None."""

    file: str | None = None
    line: int | None = None
    layer: str | None = None
    layer_id: int | None = None


def diagnose(
    code: Code,
    message: str,
    place: Place | None = None,
    *,
    severity: Severity | None = None,
    hint: str | None = None,
    port: int | None = None,
    column: int | None = None,
) -> Diagnostic:
    """Return a diagnostic at a place, with the severity of its code unless ``severity`` is given."""
    p = place or Place()
    return Diagnostic(
        code.id, severity or code.severity, message, p.layer, p.layer_id, port, p.file, p.line, column, hint
    )


def counts_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the numbers of errors, warnings and infos in words."""
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    return ", ".join(plural(counts[s], s.value) for s in Severity if counts[s]) or "nothing found"


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


_STOOD_FOR: ContextVar[Place | None] = ContextVar("_STOOD_FOR", default=None)


@contextmanager
def in_place_of(place: Place) -> Iterator[None]:
    """Let the layers that a block creates have the place of the layer that they stand for."""
    token = _STOOD_FOR.set(place)
    try:
        yield
    finally:
        _STOOD_FOR.reset(token)


def stood_for() -> Place | None:
    """Return the place that ``in_place_of`` says."""
    return _STOOD_FOR.get()


def caller() -> Place:
    """Return the line of Python outside of this package that is being run, or the place that ``in_place_of`` says."""
    if (place := _STOOD_FOR.get()) is not None:
        return Place(place.file, place.line)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)
