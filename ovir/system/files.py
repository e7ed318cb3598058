"""The files that ovir writes: each appears under its name when it is complete, and only then replaces an older one."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO, NamedTuple

from ovir.diagnostics.errors import InputError, WriteError
from ovir.diagnostics.wording import reason_of
from ovir.system.interrupts import uninterrupted

Path = str | os.PathLike[str]

TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp", re.DOTALL)
"""The names of files that are not complete; a process that is killed leaves them behind."""
_TOKEN = 6  # random bytes in the name of a temporary file, as 12 digits
_NAME = 40  # characters of the target's name in it
_BUFFER = 1 << 20


@contextmanager
def replaced_file(path: Path, doing: str = "write the file", *, hint: str | None = None) -> Iterator[BinaryIO]:
    """Open a file to write, which replaces ``path`` at the end of the ``with`` block; see ``replaced_files``."""
    with replaced_files([path], doing, hint=hint) as (file,):
        yield file


def copy_range(source: BinaryIO, target: BinaryIO, start: int, count: int) -> None:
    """Copy bytes of a file to where another file is; the system does it if it can, and may share blocks of the disk.

    Raises OSError if the source ends before.
    """
    target.flush()
    while count and hasattr(os, "copy_file_range"):
        try:
            done = os.copy_file_range(source.fileno(), target.fileno(), count, start)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            break  # not between these files
        if not done:
            break
        start, count = start + done, count - done
    source.seek(start)
    target.seek(0, os.SEEK_CUR)
    while count:
        data = source.read(min(count, _BUFFER))
        if not data:
            raise OSError(f"{source.name} has become shorter")
        target.write(data)
        count -= len(data)


def write_text(path: Path, text: str, doing: str) -> None:
    """Write a file in UTF-8; see ``replaced_files``."""
    with replaced_file(path, doing) as file:
        file.write(text.encode())


def write_json(path: Path, value: object, doing: str) -> None:
    """Write a value as JSON, which has no NaN; see ``replaced_files``."""
    import json  # most commands write none

    write_text(path, f"{json.dumps(value, indent=1, allow_nan=False)}\n", doing)


@contextmanager
def replaced_files(paths: Sequence[Path], doing: str, *, hint: str | None = None) -> Iterator[list[BinaryIO]]:
    """Open files to write, which replace those at ``paths`` together at the end of the ``with`` block.

    They lie next to their targets until then. If anything is raised before, which includes Ctrl-C and a full disk, the
    older files are what they were. Two files cannot be replaced at once: a process that is killed meanwhile leaves no
    file at the first path, which must be the one that readers open, and never new files beside old ones.

    A single path may be a link, which is kept, or a pipe or device, which is written directly. Raise WriteError, with
    the hint, if a file cannot be written: "cannot {doing}: ...".
    """
    names = [os.fspath(path) for path in paths]
    place = names[0]
    try:
        if len(names) == 1 and is_special(place):
            with io.BufferedWriter(_Stream(place, "wb")) as stream:
                yield [stream]
            return
        token = os.urandom(_TOKEN).hex()
        files = []
        for place in names:
            files.append(_Replacement(place, token, follows_link=len(names) == 1))
        place = names[0]
        try:
            with ExitStack() as opened:
                new = [opened.enter_context(open(file.new, "xb", buffering=_BUFFER)) for file in files]
                yield new
                for file in files:
                    file.keep_mode()
            with uninterrupted():
                _publish(files)
        finally:
            with uninterrupted():
                _remove([file.new for file in files])
    except BrokenPipeError:  # the reader of a pipe has ended
        raise
    except OSError as error:
        raise WriteError.of_file(place, f"cannot {doing}: {reason_of(error)}", hint=hint) from error


def is_special(path: Path) -> bool:
    """Return whether a path is a pipe, a device or an open descriptor, which is not replaced but written to."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return (not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)) or _is_descriptor(os.fspath(path))


class _Stream(io.FileIO):
    """A special file. Devices such as ``/dev/null`` accept a seek, but have no positions."""

    def seekable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = 0, /) -> int:
        raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))

    def tell(self) -> int:
        return self.seek(0)


def unwritable(path: Path) -> str | None:
    """Return the path that lacks write permission, the file or its directory; None if ``path`` can be written."""
    if is_special(path):
        return None if os.access(path, os.W_OK) else "the file"
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.exists(target) and not _has_write_permission(target):
        return "the file"
    return None if os.access(folder, os.W_OK) else f"the directory {os.path.dirname(os.fspath(path)) or '.'}"


def _is_descriptor(path: str) -> bool:
    """Return whether a path, or a link that it leads to, is an open descriptor, even one of a file."""
    for _ in range(40):  # the most links that systems follow
        folder, name = os.path.split(os.path.abspath(path))
        folder = os.path.realpath(folder)
        if _DESCRIPTORS.fullmatch(folder):
            return True
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            return False
        path = os.path.join(folder, os.readlink(path))
    return False


_DESCRIPTORS = re.compile(r"/dev/fd|/proc/\d+(/task/\d+)?/fd")
"""The folders of open descriptors, without links."""


def older_files(paths: Sequence[Path]) -> dict[str, str]:
    """Return the older files, by path, that a process has left which was killed while it replaced those at ``paths``.

    There are such files only if nothing is at the first path.
    """
    first, *_ = names = [os.fspath(path) for path in paths]
    if os.path.lexists(first):
        return {}
    from glob import glob  # only needed here

    found = sorted(glob(_beside(first, "?" * (2 * _TOKEN), "old")))
    if not found:
        return {}
    token = found[-1].split(".")[-2]
    kept = {name: _beside(name, token, "old") for name in names}
    return {name: file for name, file in kept.items() if os.path.exists(file)}


# --------------------------------------------------------------------------- replacing


class _Replacement:
    """A file that is being written, and the one that it replaces."""

    def __init__(self, path: str, token: str, *, follows_link: bool) -> None:
        """Raise OSError unless the file can be replaced."""
        self.target = os.path.realpath(path) if follows_link else path
        self.new = _beside(self.target, token, "tmp")
        self.old = _beside(self.target, token, "old")
        """The place of the older file while several are replaced."""
        folder = os.path.dirname(self.target) or "."
        if not os.path.isdir(folder):
            state = "is not a folder" if os.path.exists(folder) else "does not exist"
            raise OSError(f"the folder {folder} {state}")
        self.mode = _mode_of(self.target)
        """The permissions of the file that is replaced; None if there is no such file."""

    def keep_mode(self) -> None:
        """Give the new file the permissions of the older one."""
        if self.mode is not None and self.mode != stat.S_IMODE(os.stat(self.new).st_mode):
            os.chmod(self.new, self.mode)


def _beside(path: str, token: str, end: str) -> str:
    """Return the path of a hidden file next to a file, whose name is no longer than systems allow."""
    folder, name = os.path.split(path)
    if len(name) > _NAME:  # files that are replaced together differ in their endings
        name = name[: _NAME // 2] + name[-_NAME // 2 :]
    return os.path.join(folder, f".{name}.{token}.{end}")


def _mode_of(path: str) -> int | None:
    """Return the permissions of a file, None if it does not exist; OSError if it is read-only, or not a file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError("it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
    if not _has_write_permission(path):
        raise OSError("it is read-only")
    return stat.S_IMODE(mode)


def _has_write_permission(path: str) -> bool:
    """Return whether a file may be replaced. The user root may write to any file, but who has made one read-only does
    not want it replaced."""
    return bool(os.stat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)) and os.access(path, os.W_OK)


def _publish(files: Sequence[_Replacement]) -> None:
    """Replace all targets; if one cannot be replaced, restore the others.

    Several older files are moved away first, the first one before the others, and the new ones follow in the opposite
    order. So the first path never leads to a file whose companions are of another version.
    """
    try:
        for file in files if len(files) > 1 else ():
            if file.mode is not None:
                os.rename(file.target, file.old)
        for file in reversed(files):
            os.replace(file.new, file.target)
    finally:
        if os.path.exists(files[0].new):  # the last one that is moved
            _restore(files)
        else:
            _remove([file.old for file in files])


def _restore(files: Sequence[_Replacement]) -> None:
    """Bring the older files back, the first one last."""
    for file in reversed(files):
        if os.path.exists(file.old):
            os.replace(file.old, file.target)
        elif file.mode is None and not os.path.exists(file.new):
            os.remove(file.target)


def _remove(paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.remove(path)


# --------------------------------------------------------------------------- two files that belong together


class Kind(NamedTuple):
    """A kind of saved file, or pair of files: the endings of the paths, and words for messages.

    Without an ending for data, there is one file only.
    """

    title: str
    text: str
    data: str
    content: str
    """A plural noun for the data."""


MODEL = Kind("model", ".xml", ".bin", "weights")
CODE = Kind("Python file", ".py", ".npz", "large constants")


def target_paths(path: Path, kind: Kind = MODEL) -> tuple[str, str]:
    """Return the paths of the text and of the data; InputError for a path without the ending of the kind."""
    if not isinstance(path, (str, os.PathLike)):
        message = f"the path of the saved {kind.title} must be a string or a path, got {type(path).__name__}"
        raise InputError.usage(message)
    name = os.fsdecode(path)
    if "\0" in name:
        raise InputError.usage(f"the path of the saved {kind.title} has a null character: {name!r}")
    stem, extension = os.path.splitext(name)
    if extension.lower() != kind.text:
        message = f"the path of a saved {kind.title} must end in {kind.text}, got {name!r}"
        hint = f"the {kind.content} go to the {kind.data} next to it" if kind.data else None
        raise InputError.usage(message, hint=hint)
    return name, f"{stem}{kind.data}"


@contextmanager
def writing_pair(path: Path, kind: Kind = MODEL, *, has_data: bool = True) -> Iterator[list[BinaryIO]]:
    """Open the file of the text and, if there is data, its file; both replace the target together.

    See ``replaced_files``.
    """
    paths = target_paths(path, kind)
    with replaced_files(paths if has_data else paths[:1], f"save the {kind.title}") as files:
        yield files
