"""The files that others name for ovir to read: one place decides that something is a regular file."""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import Any

from ovir.diagnostics.wording import closest, reason_of

Path = str | os.PathLike[str]


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading; OSError for a pipe, a device or a socket, on which reading may never end."""
    _require_regular(os.stat(path).st_mode)  # because opening a device may already do something
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115  # the caller closes it
    try:
        _require_regular(os.fstat(file.fileno()).st_mode)  # it may have been replaced since
    except OSError:
        file.close()
        raise
    return file


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file; OSError if it is not one, or cannot be read."""
    with open_regular(path) as file:
        return file.read()


def read_beginning(path: Path, length: int) -> bytes:
    """Return the first bytes of a regular file; none if it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(length)
    except (OSError, ValueError):  # ValueError: the path has a null character
        return b""


def similar_file(path: Path) -> str | None:
    """Return a hint for a missing file: what its link points to, or the file beside it with the most similar name."""
    folder, name = os.path.split(os.fspath(path))
    try:
        if os.path.exists(path):
            return None
        if os.path.islink(path):
            return f"it is a symbolic link to {os.readlink(path)}"
        beside = os.listdir(folder or os.curdir)
    except (OSError, ValueError):
        return None
    meant = closest(name, beside)
    return None if meant is None else f"did you mean {os.path.join(folder, meant)}?"


def read_text(path: Path, encoding: str = "utf-8", newline: str | None = None) -> str:
    """Return the text of a regular file; OSError if it is not one, UnicodeDecodeError for another encoding."""
    with io.TextIOWrapper(open_regular(path), encoding, newline=newline) as file:
        return file.read()


def why_not_regular(path: Path) -> str | None:
    """Return why there is no regular file at a path; None if there is one."""
    try:
        mode = os.stat(path).st_mode
        _require_regular(mode)
    except FileNotFoundError:
        return "there is no such file"
    except (OSError, ValueError) as error:  # ValueError: the path has a null character
        return reason_of(error)
    return "it is a folder" if stat.S_ISDIR(mode) else None


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # open() raises its own error for a directory
        raise OSError(errno.EINVAL, "it is a pipe or device, not a regular file")


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def parse_json(text: str | bytes) -> Any:
    """Return the value of a text in JSON; ValueError for anything else, deeper lists than Python reads included."""
    import json  # most commands read none

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deep") from None
