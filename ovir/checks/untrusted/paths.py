"""The files of an untrusted folder, without opening any of them, and without following links."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from ovir.checks.untrusted.budget import stored_size
from ovir.checks.untrusted.texts import unsafe_character
from ovir.diagnostics.codes import COMPRESSED, LINK, NOT_IR, OUT_OF_PROPORTION, SPECIAL_FILE, UNREADABLE, UNSAFE_NAME
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import exact_size_text, plural, reason_of, size_text

_COMPRESSED = re.compile(
    r"\.xml\.(?:7z|br|bz2|gz|lrz|lz|lz4|lzma|lzo|rar|s?z|t[bgx]z|tzst|xz|zip|zst|zstd)$", re.IGNORECASE
)


def find_models(folder: str, wrong: list[Diagnostic]) -> list[str]:
    """Return the .xml files of a folder and its subfolders; add the faults of their paths to ``wrong``."""
    paths: list[str] = []
    pending = [folder]
    while pending:
        inside = pending.pop()
        try:
            with os.scandir(inside) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            wrong.append(diagnose(UNREADABLE, f"cannot read the folder: {reason_of(error)}", Place(inside)))
            continue
        for entry in listed:
            if (fault := name_fault(entry.path)) is not None:
                wrong.append(fault)
            is_model = entry.name.lower().endswith(".xml")
            if entry.is_dir(follow_symlinks=False) and not is_model:
                pending.append(entry.path)
            elif is_model or not entry.is_file(follow_symlinks=False):
                fault = path_fault(entry.path)
                if fault is None:
                    paths.append(entry.path)
                elif not _is_weights_of_a_model(entry.path, listed):
                    wrong.append(fault)
            elif _COMPRESSED.search(entry.name):
                message = "a compressed model, which is not checked"
                wrong.append(diagnose(COMPRESSED, message, Place(entry.path), hint="decompress it, and check the .xml"))
    return sorted(paths)


def _is_weights_of_a_model(path: str, listed: list[os.DirEntry[str]]) -> bool:
    """Return whether a path is the .bin beside an .xml, whose check reports it."""
    stem, ending = os.path.splitext(os.path.basename(path))
    return ending == ".bin" and any(entry.name == f"{stem}.xml" for entry in listed)


def path_fault(path: str) -> Diagnostic | None:
    """Return the diagnostic for a path at which there is no regular file; None if there is one, or nothing at all."""
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return None  # reading it gives the reason
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        message = f"this is a symbolic link to {target!r}, which is not followed"
        return diagnose(LINK, message, Place(path), hint="put a copy of the file there")
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "a file of an unknown kind")
        message = f"this is {kind}, not a regular file; it is not opened"
        return diagnose(SPECIAL_FILE, message, Place(path))
    return None


def name_fault(path: str) -> Diagnostic | None:
    """Return the diagnostic for a name of a file or folder that looks like another one; None for other names."""
    if (unsafe := unsafe_character(os.path.basename(path))) is None:
        return None
    return diagnose(UNSAFE_NAME, f"the name of the file has {unsafe}", Place(path), hint="rename it")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def sparse_fault(path: str) -> Diagnostic | None:
    """Return the diagnostic for a large file of which hardly anything is on the disk, else None."""
    try:
        state = os.lstat(path)
    except (OSError, ValueError):
        return None
    if state.st_size < _LARGE or stored_size(state) * _TIMES > state.st_size:
        return None
    message = f"the file has {exact_size_text(state.st_size)}, but only {size_text(stored_size(state))} on the disk"
    return diagnose(OUT_OF_PROPORTION, message, Place(path))


_LARGE = 1 << 26
_TIMES = 16


def is_no_model(diagnostics: Sequence[Diagnostic]) -> bool:
    """Return whether a file of a folder is harmless XML of another kind."""
    return bool(diagnostics) and all(d.code == NOT_IR.id for d in diagnostics)


def nothing_checked(files: int, folder: str) -> Diagnostic:
    """Return an error for a folder of .xml files without a model, because a run that checked nothing must not pass."""
    message = f"no OpenVINO IR was found: {plural(files, '.xml file')} with another root element than <net>"
    return diagnose(UNREADABLE, message, Place(folder))


def weights_beside(path: str) -> str:
    """Return the path at which the weights of a model are expected."""
    return os.path.splitext(path)[0] + ".bin"
