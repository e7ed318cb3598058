"""``--extension MODULE.py``: modules of the user that register operations."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, SourceFileLoader

from ovir.cli.arguments import file_name, raise_usage_error

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
    loader = SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(ModuleSpec(name, loader, origin=path))
    module.__file__ = path
    sys.modules[name] = module  # dataclasses, among others, look up their module by name
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        what = (
            f"calls sys.exit({'' if error.code is None else repr(error.code)})"
            if isinstance(error, SystemExit)
            else f"fails: {type(error).__name__}: {error}"
        )
        raise_usage_error(f"--extension {file}: the module {what}")
