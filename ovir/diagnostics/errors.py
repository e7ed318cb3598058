"""The errors that ovir raises; each carries its diagnostics."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Self

from ovir.diagnostics.codes import BAD_INPUT, CODES, NO_ENGINE, UNREADABLE, UNWRITABLE, USAGE, Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import plural


class OvirError(Exception):
    """The base class of the errors that ovir raises.

    ``str(error)`` has the first diagnostic, with its place, and the number of the others.
    """

    _of_file: ClassVar[Code]
    """The code of an error about a file."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = diagnostics
        """One or more diagnostics, as a tuple."""

    @classmethod
    def of_file(
        cls, path: str | os.PathLike[str] | None, message: str, line: int | None = None, *, hint: str | None = None
    ) -> Self:
        """Return the error about a file, or about one of its lines; without a path, about data in memory."""
        place = Place(None if path is None else os.fspath(path), line)
        return cls(diagnose(cls._of_file, message, place, hint=hint))

    @property
    def diagnostic(self) -> Diagnostic:
        """Return the first diagnostic."""
        return self.diagnostics[0]

    def __str__(self) -> str:
        first, *rest = self.diagnostics
        return f"{first}\n({plural(len(rest), 'more error')})" if rest else str(first)


class ReadError(OvirError):
    """A file that cannot be read: it is missing, not readable, truncated, or no OpenVINO IR."""

    _of_file = UNREADABLE


class WriteError(OvirError):
    """A file that cannot be written: its folder is missing or read-only, or the disk is full."""

    _of_file = UNWRITABLE


class ModelError(OvirError):
    """A model that is wrong: its structure, an attribute, a shape or an element type.

    Reading, inferring, reshaping and editing raise it.
    """


class ExportError(OvirError):
    """A model that another format or an older release cannot express, with a diagnostic for each layer.

    ``export_onnx`` raises it before it writes anything, and ``Model.lower`` before it changes anything.
    """

    _SHOWN = 20

    def __str__(self) -> str:
        more = len(self.diagnostics) - self._SHOWN
        lines = [str(diagnostic) for diagnostic in self.diagnostics[: self._SHOWN]]
        return "\n".join([*lines, f"({more} more layers)"] if more > 0 else lines)


class RunError(OvirError):
    """A run that failed because of the values in it, such as an index outside of its axis."""


class InputError(OvirError, ValueError):
    """Arguments that cannot be used: the name, element type or shape of an input, or an option.

    It is a ValueError, too. A name or position that does not exist is also a KeyError and an IndexError.
    """

    _of_file = BAD_INPUT
    option: str | None = None
    """The argument with whose name the message begins; a shell spells it in another way."""

    @classmethod
    def usage(
        cls, message: str, place: Place | None = None, *, hint: str | None = None, option: str | None = None
    ) -> Self:
        """Return the error for a wrong argument or option, which the message names with its value.

        With ``option``, the name of the argument, the message goes on after it.
        """
        error = cls(diagnose(USAGE, message if option is None else f"{option} {message}", place, hint=hint))
        error.option = option
        return error

    def spelled(self, option: str) -> Self:
        """Return the error with another name of its option."""
        first, *rest = self.diagnostics
        error = type(self)(replace(first, message=option + first.message.removeprefix(str(self.option))), *rest)
        for note in getattr(self, "__notes__", ()):
            error.add_note(note)
        return error


class NotFoundError(InputError, KeyError, IndexError):
    """A name or position that does not exist."""


def require_counts(least: int = 1, **given: object) -> None:
    """Raise InputError for an argument that is neither None nor an integer of at least ``least``."""
    for name, value in given.items():
        if value is not None and (type(value) is not int or value < least):
            raise InputError.usage(f"must be an integer of at least {least}, got {value!r}", option=name)


def require_seconds(**given: object) -> None:
    """Raise InputError for an argument that is neither None nor a number of seconds above 0."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, (int, float)) and value is not True and value > 0):
            raise InputError.usage(f"must be a number of seconds above 0, got {value!r}", option=name)


def require_flags(**given: object) -> None:
    """Raise InputError for an argument that is neither None nor a truth value, also of NumPy."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, Hashable) and value in (True, False)):
            raise InputError.usage(f"must be True or False, got {value!r}", option=name)


def require_texts(**given: object) -> None:
    """Raise InputError for an argument that is not a text."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise InputError.usage(f"must be a text, got {value!r}", option=name)


class OperatorError(Exception):
    """An error raised inside an operation, which does not know its place in a model; the caller adds the place."""

    def __init__(self, message: str, code: Code | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.line: int | None = None
        """The line of the faulty part of the layer, if the operation knows it."""


OWN_FAULT = "this is a fault of ovir; please report it"
"""The hint of an error that should never occur."""


class Diagnostics:
    """A collection of diagnostics, in order and without duplicates."""

    __slots__ = ("_added", "_found")

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}  # a dict keeps the order and drops duplicates
        self._added: list[Diagnostic] = []

    def add(self, diagnostic: Diagnostic) -> None:
        self._added.append(diagnostic)
        self._found.setdefault(diagnostic)

    @property
    def added(self) -> int:
        """Return the number of diagnostics that have been added, including duplicates."""
        return len(self._added)

    def errors_since(self, count: int) -> list[Diagnostic]:
        """Return the errors that are not tolerated, among those added after the first ``count`` diagnostics."""
        return [found for found in self._added[count:] if _is_fatal(found)]

    def discard(self, *diagnostics: Diagnostic) -> None:
        """Remove diagnostics that another one includes."""
        for diagnostic in diagnostics:
            self._found.pop(diagnostic, None)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for item in diagnostics:
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


def _is_fatal(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is Severity.ERROR and not CODES[diagnostic.code].tolerated


def require_packages(user: str, extra: str, *packages: str) -> None:
    """Raise InputError if packages are not installed that ``user`` needs, with the extra that installs them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        message = f"{user} needs {listed}, which cannot be imported"
        raise InputError(diagnose(NO_ENGINE, message, hint=f'pip install "ovir[{extra}]"'))
