"""The paths of a saved model, of its Python code or of a report: one file, or two that belong together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from ovir.core.files import replaced_files
from ovir.diagnostics.errors import InputError


class Kind(NamedTuple):
    """The content of a pair of files, for messages, and the endings of the paths; without an ending for data, there is
    one file only."""

    title: str
    text: str
    data: str
    content: str
    """A plural noun for the data."""


MODEL = Kind("model", ".xml", ".bin", "weights")
CODE = Kind("Python file", ".py", ".npz", "large constants")


class _Paths(NamedTuple):
    """Two paths that belong to one model."""

    text: str
    data: str


def target_paths(path: str | os.PathLike[str], kind: Kind = MODEL) -> _Paths:
    """Return the paths of both files; InputError for a path without the ending of the kind."""
    if not isinstance(path, (str, os.PathLike)):
        message = f"the path of the saved {kind.title} must be a text or a path, got {type(path).__name__}"
        raise InputError.usage(message)
    name = os.fsdecode(path)
    if "\0" in name:
        raise InputError.usage(f"the path of the saved {kind.title} has a null character: {name!r}")
    stem, extension = os.path.splitext(name)
    if extension.lower() != kind.text:
        message = f"the path of a saved {kind.title} must end in {kind.text}, got {name!r}"
        hint = f"the {kind.content} go to the {kind.data} next to it" if kind.data else None
        raise InputError.usage(message, hint=hint)
    return _Paths(name, f"{stem}{kind.data}")


@contextmanager
def writing_pair(
    path: str | os.PathLike[str], kind: Kind = MODEL, *, has_data: bool = True
) -> Iterator[list[BinaryIO]]:
    """Open the file of the text and, with data, the one of the data, which replace a target together; see
    ``replaced_files``."""
    paths = target_paths(path, kind)
    with replaced_files(paths if has_data else paths[:1], f"save the {kind.title}") as files:
        yield files
