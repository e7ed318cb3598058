"""The files that ``ovir check`` reads, and the work on each."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

from ovir.checks.checker import check
from ovir.cli.check_config import Settings
from ovir.cli.extensions import load_extensions
from ovir.diagnostics.codes import CODES, UNREADABLE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import plural

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
    names: Sequence[str],
    weights: str | None,
    settings: Settings,
    extensions: Sequence[str],
    workers: dict[str, Any] | None = None,
) -> Generator[Checked]:
    """Yield the diagnostics of each file in order.

    ``workers`` are the arguments of ``map_tasks`` that say who checks them. Without them, this process does, and the
    processes of a pool join in if that takes long.
    """
    one = partial(
        _check_file,
        folder=os.getcwd(),
        weights=weights,
        need_weights=not settings.no_weights,
        runtime=settings.runtime,
        skip=frozenset(code for code in CODES if not settings.wants(code)),
        extensions=tuple(extensions),
    )
    left = iter(names)
    if workers is None:
        start = perf_counter()
        for done, name in enumerate(left, 1):
            yield one(name)
            if perf_counter() - start > _PATIENCE and len(names) - done > 1:
                break
        workers = {}
    remaining = list(left)
    if remaining:
        yield from _check_by_workers(one, remaining, workers)


_PATIENCE = 1.0
"""Seconds after which other processes join in; starting them takes about as long."""


def _check_by_workers(
    one: Callable[[str], Checked], names: Sequence[str], workers: dict[str, Any]
) -> Iterator[Checked]:
    from ovir.workers.tasks import map_tasks  # importing it takes longer than checking a small file

    with map_tasks(one, names, chunk=_chunk(names), **workers) as outcomes:
        for outcome in outcomes:
            if outcome.error is None:
                yield outcome.result
            else:  # such as a worker that died
                yield [replace(found, file=outcome.item) for found in outcome.error.diagnostics], {}


def _chunk(names: Sequence[str]) -> int:
    """Return how many files are handed over together: many of small files, as it takes as long to hand one over."""
    sizes = [os.path.getsize(name) if os.path.isfile(name) else 0 for name in names]
    fair = len(names) // 16  # so that no worker has to wait long for others at the end
    return max(1, min(_MOST, fair, _TASK * len(names) // max(1, sum(sizes))))


_TASK = 200_000
"""The bytes of XML of one task."""
_MOST = 32
"""The most files of one task."""


def _check_file(
    name: str,
    folder: str,
    weights: str | None,
    need_weights: bool,
    runtime: tuple[int, int] | None,
    skip: frozenset[str],
    extensions: Sequence[str],
) -> Checked:
    """Check a file, whose name is relative to ``folder``, which need not be the current one of a worker."""
    load_extensions(os.path.join(folder, path) for path in extensions)
    root = "" if folder == os.getcwd() else os.path.join(folder, "")
    times: dict[str, float] = {}
    found = check(
        os.path.join(root, name),
        weights and os.path.join(root, weights),
        need_weights=need_weights,
        runtime=runtime,
        skip=skip,
        clock=times.__setitem__,
    )
    if root and not os.path.isabs(name):
        found = [replace(d, file=d.file and d.file.removeprefix(root)) for d in found]
    return found, times
