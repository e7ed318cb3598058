"""The errors that a user of ovir can meet; each carries its diagnostics."""

from __future__ import annotations

from ovir.diagnostics.codes import Code
from ovir.diagnostics.diagnostic import Diagnostic


class OvirError(Exception):
    """The base of every error that a user of ovir can meet; ``diagnostics`` has one or more diagnostics."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    @property
    def diagnostic(self) -> Diagnostic:
        """The first diagnostic."""
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
