"""Modules of users: extensions, and others that options name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import ModuleType

from ovir.cli.options.values import raise_usage_error
from ovir.core.reading import why_not_regular
from ovir.system.python_runtime import load_module

_loaded: set[str] = set()


def load_extensions(files: Iterable[str]) -> None:
    """Run each module once in this process; raise InputError if one cannot be run."""
    for file in files:
        path = os.path.realpath(file)
        if path not in _loaded:
            load_user_module("--extension", file, "extension")
            _loaded.add(path)


def load_user_module(option: str, file: str, kind: str) -> ModuleType:
    """Run a module that an option names, and return it; raise InputError if it cannot be run."""
    path = os.path.realpath(file)
    if (fault := why_not_regular(path)) is not None:
        raise_usage_error(f"{option} {file}: {fault}")
    if not path.endswith(".py"):
        raise_usage_error(f"{option} {file}: not a Python module; its name must end in .py")
    name = f"ovir_{kind}_{os.path.splitext(os.path.basename(path))[0]}"
    try:
        return load_module(name, path)
    except (Exception, SystemExit) as error:
        what = f"fails{_line_in(path, error)}: {type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            what = f"calls sys.exit({'' if error.code is None else repr(error.code)})"
        raise_usage_error(f"{option} {file}: the module {what}")


def _line_in(path: str, error: BaseException) -> str:
    """Return the line of a file that was running last, as the end of a phrase; empty if none was."""
    from traceback import extract_tb  # only needed here

    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == path]
    return f" in line {lines[-1]}" if lines else ""
