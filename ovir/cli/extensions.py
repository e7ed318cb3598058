"""``--extension MODULE.py``: modules of the user that register operations."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from ovir.cli.arguments import file_name, raise_usage_error
from ovir.core.interpreter import load_module

_loaded: set[str] = set()


def add_extension(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--extension",
        type=file_name,
        action="append",
        default=[],
        metavar="MODULE.py",
        help="run this Python file first: it registers operations with `ovir.register`; may be repeated",
    )


def load_extensions(files: Iterable[str]) -> None:
    """Run each module once in this process; raise InputError if one cannot be run."""
    for file in files:
        path = os.path.realpath(file)
        if path not in _loaded:
            _load(file, path)
            _loaded.add(path)


def _load(file: str, path: str) -> None:
    if not os.path.isfile(path):
        raise_usage_error(f"--extension {file}: there is no such file")
    if not path.endswith(".py"):
        raise_usage_error(f"--extension {file}: not a Python module; its name must end in .py")
    name = f"ovir_extension_{os.path.splitext(os.path.basename(path))[0]}"
    try:
        load_module(name, path)
    except (Exception, SystemExit) as error:
        what = (
            f"calls sys.exit({'' if error.code is None else repr(error.code)})"
            if isinstance(error, SystemExit)
            else f"fails: {type(error).__name__}: {error}"
        )
        raise_usage_error(f"--extension {file}: the module {what}")
