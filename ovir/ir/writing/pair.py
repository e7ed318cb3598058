"""The two files of a saved model or of its Python code, which replace an older pair together or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ovir.core.interrupts import uninterrupted
from ovir.diagnostics.codes import UNWRITABLE, USAGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, WriteError


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


class Pair(NamedTuple):
    """The open files of a model that is being saved."""

    text: BinaryIO
    data: BinaryIO


class _Paths(NamedTuple):
    """Two paths that belong to one model: the paths of the target, or of the temporary files."""

    text: str
    data: str


def target_paths(path: str | os.PathLike[str], kind: Kind = MODEL) -> _Paths:
    """Return the paths of both files; InputError for a path without the ending of the kind."""
    if not isinstance(path, (str, os.PathLike)):
        message = f"the path of the saved {kind.title} must be a text or a path, got {type(path).__name__}"
        raise InputError(diagnose(USAGE, message))
    name = os.fsdecode(path)
    if "\0" in name:
        raise InputError(diagnose(USAGE, f"the path of the saved {kind.title} has a null character: {name!r}"))
    stem, extension = os.path.splitext(name)
    if extension.lower() != kind.text:
        message = f"the path of a saved {kind.title} must end in {kind.text}, got {name!r}"
        hint = f"the {kind.content} go to the {kind.data} next to it" if kind.data else None
        raise InputError(diagnose(USAGE, message, hint=hint))
    return _Paths(name, f"{stem}{kind.data}")


@contextlib.contextmanager
def writing_pair(path: str | os.PathLike[str], kind: Kind = MODEL, *, has_data: bool = True) -> Iterator[Pair]:
    """Open temporary files next to a target; they replace it at the end of the ``with`` block.

    Without data, only the file of the text is replaced. If anything is raised before, the target is what it was, and
    no temporary file is left. This includes Ctrl-C and a full disk. Raises WriteError if a file cannot be written.
    """
    target = target_paths(path, kind)
    _require_folder(target.text, kind)
    modes = [_mode_of(name, kind) for name in (target if has_data else target[:1])]
    token = secrets.token_hex(6)
    folder, base = os.path.split(target.text)
    base = os.path.splitext(base)[0]
    new = _Paths(*(os.path.join(folder, f".{base}.{token}{end}.tmp") for end in (kind.text, kind.data)))
    backup = os.path.join(folder, f".{base}.{token}{kind.data}.old")
    try:
        try:
            with open(new.text, "xb") as text, open(new.data, "xb", buffering=1 << 20) as data:
                yield Pair(text, data)
                for file, mode in zip((text, data), modes, strict=False):
                    _set_mode(file, mode)
            with uninterrupted():
                if has_data:
                    _publish(new, target, backup, replaced=modes[1] is not None)
                else:
                    os.replace(new.text, target.text)
        finally:
            with uninterrupted():
                for name in (*new, backup):
                    with contextlib.suppress(FileNotFoundError):
                        os.remove(name)
    except OSError as error:
        raise _cannot_write(target.text, kind, error.strerror or str(error)) from error


def _require_folder(name: str, kind: Kind) -> None:
    """Raise WriteError for a target whose folder is missing."""
    folder = os.path.dirname(name) or "."
    if not os.path.isdir(folder):
        state = "is not a folder" if os.path.exists(folder) else "does not exist"
        raise _cannot_write(name, kind, f"the folder {folder} {state}")


def _mode_of(name: str, kind: Kind) -> int | None:
    """Return the permissions of a target, None if it does not exist; WriteError if it is read-only or not a file."""
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _cannot_write(name, kind, error.strerror or str(error)) from error
    if not stat.S_ISREG(mode):
        raise _cannot_write(name, kind, "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
    # The user root may write to any file, but who has made it read-only does not want it replaced.
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(name, os.W_OK):
        raise _cannot_write(name, kind, "it is read-only")
    return stat.S_IMODE(mode)


def _cannot_write(name: str, kind: Kind, reason: str) -> WriteError:
    return WriteError(diagnose(UNWRITABLE, f"cannot save the {kind.title}: {reason}", Place(name)))


def _set_mode(file: BinaryIO, mode: int | None) -> None:
    """Give a new file the permissions of the one that it replaces, if there is one."""
    if mode is not None and mode != stat.S_IMODE(os.fstat(file.fileno()).st_mode):
        os.chmod(file.name, mode)


def _publish(new: _Paths, target: _Paths, backup: str, *, replaced: bool) -> None:
    """Replace the target by both new files; if the second cannot follow the first, restore the first.

    ``replaced`` tells whether there is an older file of data.
    """
    try:
        if replaced:
            _keep_reachable(target.data, backup)
        os.replace(new.data, target.data)
        os.replace(new.text, target.text)
    except BaseException:
        if os.path.exists(new.text):  # otherwise both are in place
            if os.path.exists(backup):
                os.replace(backup, target.data)
            elif not replaced and not os.path.exists(new.data):
                os.remove(target.data)
        raise


def _keep_reachable(name: str, backup: str) -> None:
    """Give a file, which is about to be replaced, a second name."""
    try:
        os.link(name, backup, follow_symlinks=False)
    except (OSError, NotImplementedError):  # not all file systems have links
        os.rename(name, backup)
