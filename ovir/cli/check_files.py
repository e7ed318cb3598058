"""The files that ``ovir check`` reads, and the work on each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from ovir.checks.checker import check
from ovir.cli.check_config import Settings
from ovir.cli.extensions import load_extensions
from ovir.diagnostics.codes import CODES, UNREADABLE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.text import plural

Checked = tuple[list[Diagnostic], dict[str, float]]
"""The diagnostics of a file, and the seconds that each stage took."""


def find_files(given: Sequence[str]) -> tuple[list[tuple[str, bool]], list[Diagnostic]]:
    """Return every file to check, each once, with whether it was found in a folder; and the errors of folders."""
    found: dict[str, tuple[str, bool]] = {}
    wrong: list[Diagnostic] = []
    for name in given:
        if os.path.isdir(name):
            inside = _inside(name, wrong)
            if not inside:
                wrong.append(diagnose(UNREADABLE, "the folder holds no .xml file", Place(name)))
            for path in inside:
                found.setdefault(os.path.realpath(path), (path, True))
        else:
            found[os.path.realpath(name)] = (name, False)
    return list(found.values()), wrong


def _inside(folder: str, wrong: list[Diagnostic]) -> list[str]:
    """Return the .xml files in a folder and its subfolders; add a folder that cannot be read to ``wrong``."""

    def refused(error: OSError) -> None:
        wrong.append(diagnose(UNREADABLE, f"cannot read the folder: {error.strerror}", Place(str(error.filename))))

    paths = (os.path.join(root, file) for root, _, files in os.walk(folder, onerror=refused) for file in files)
    return sorted(path for path in paths if path.lower().endswith(".xml") and os.path.isfile(path))


def nothing_checked(files: int, given: Sequence[str]) -> Diagnostic:
    """Return an error if the folders hold .xml files but no model, because a run that checked nothing must not pass."""
    folder = next(name for name in given if os.path.isdir(name))
    message = f"no OpenVINO IR was found: {plural(files, '.xml file')} with another root element than <net>"
    return diagnose(UNREADABLE, message, Place(folder))


def check_each(
    names: Sequence[str], weights: str | None, settings: Settings, extensions: Sequence[str]
) -> Iterator[Checked]:
    """Yield the diagnostics of each file in order, computed by several processes if there are many files."""
    one = partial(
        _check_file,
        weights=weights,
        need_weights=not settings.no_weights,
        runtime=settings.runtime,
        skip=frozenset(code for code in CODES if not settings.wants(code)),
    )
    workers = min(os.cpu_count() or 1, len(names))
    if workers < 2 or len(names) < _FEW:
        yield from map(one, names)
        return
    from concurrent.futures import ProcessPoolExecutor  # importing it takes longer than checking a small file

    with ProcessPoolExecutor(workers, initializer=load_extensions, initargs=(extensions,)) as pool:
        yield from pool.map(one, names)


_FEW = 4  # files; fewer are checked before other processes have started


def _check_file(
    name: str, weights: str | None, need_weights: bool, runtime: tuple[int, int] | None, skip: frozenset[str]
) -> Checked:
    times: dict[str, float] = {}
    found = check(name, weights, need_weights=need_weights, runtime=runtime, skip=skip, clock=times.__setitem__)
    return found, times
