"""The check of untrusted files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.guard import Guard, Verdict
from ovir.checks.untrusted.paths import find_models, is_no_model, name_fault, nothing_checked, path_fault
from ovir.diagnostics.codes import UNREADABLE, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.system.interrupts import result_of, uninterrupted


def check_untrusted(model: Any, weights: Any, options: CheckOptions, budget: Budget) -> list[Diagnostic]:
    """Return the diagnostics of a file or of all models of a folder; see ``ovir.check``."""
    for name, value in (("model", model), ("weights", weights)):
        if not isinstance(value, (str, os.PathLike)) and not (name == "weights" and value is None):
            message = f"with untrusted, the {name} must be a path, got {type(value).__name__}"
            raise InputError.usage(message, hint="write the content to a file of a new folder first")
    path = os.fsdecode(model)
    files, found = find_untrusted([path])
    checked = 0
    bin_path = None if weights is None else os.fsdecode(weights)
    verdicts = check_each([name for name, _ in files], bin_path, options, budget)
    for (_, in_folder), verdict in zip(files, verdicts, strict=True):
        if not in_folder or not is_no_model(verdict.diagnostics):
            found += verdict.diagnostics
            checked += 1
    if files and not checked:
        found.append(nothing_checked(len(files), path))
    return found


def find_untrusted(given: Sequence[str]) -> tuple[list[tuple[str, bool]], list[Diagnostic]]:
    """Return every file to check, each once, with whether it was found in a folder; and the errors of paths."""
    files: dict[str, bool] = {}
    wrong: list[Diagnostic] = []
    for path in given:
        if os.path.isdir(path) and not os.path.islink(path):
            known: list[Diagnostic] = []
            inside = find_models(path, known)
            wrong += known
            files |= {name: True for name in inside if name not in files}
            if not inside and not known:
                wrong.append(diagnose(UNREADABLE, "the folder holds no .xml file", Place(path)))
        elif (fault := path_fault(path)) is not None:
            wrong.append(fault)
        else:
            wrong += filter(None, [name_fault(path)])
            files[path] = False
    return list(files.items()), wrong


def check_each(
    names: Sequence[str], weights: str | None, options: CheckOptions, budget: Budget, processes: int = 1
) -> Iterator[Verdict]:
    """Yield the verdict on each file, in order; ``processes`` files are checked at a time."""
    if not names:
        return
    count = min(processes, len(names))
    with ExitStack() as stack:
        free: SimpleQueue[Guard] = SimpleQueue()
        for _ in range(count):
            free.put(stack.enter_context(Guard(options, budget)))

        def one(name: str) -> Verdict:
            guard = free.get()
            try:
                verdict = guard.check(name, weights)
                if budget.run and not any(d.severity is Severity.ERROR for d in verdict.diagnostics):
                    from ovir.checks.untrusted.guarded_command import trial_run  # most checks do not run models

                    verdict.diagnostics.extend(trial_run(name, weights, budget))
                return verdict
            finally:
                free.put(guard)

        if count == 1:
            yield from map(one, names)
            return
        pool = ThreadPoolExecutor(count)
        try:
            with uninterrupted():
                verdicts = [pool.submit(one, name) for name in names]
            yield from map(result_of, verdicts)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
