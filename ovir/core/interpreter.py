"""The machine and the interpreter: memory, garbage collection, and modules that are in no package."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


@cache
def physical_memory() -> int | None:
    """Return the size of main memory in bytes; None if the system does not provide it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector in a ``with`` block, because a model consists of many objects that all stay
    alive."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load_module(name: str, path: str, source: str | None = None) -> ModuleType:
    """Run the Python file at ``path`` as the module ``name``, and return it; ``source`` is its text if the file may be
    missing. Exceptions of the module are raised again."""
    spec = ModuleSpec(name, SourceFileLoader(name, path), origin=path)
    module = importlib.util.module_from_spec(spec)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses, among others, look up their module by name
    try:
        if source is None:
            SourceFileLoader(name, path).exec_module(module)
        else:
            exec(compile(source, path, "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def can_be_imported(name: str) -> bool:
    """Return whether another process, with the same search path, can import a module that this one has loaded."""
    return PathFinder.find_spec(name.partition(".")[0]) is not None or name in sys.builtin_module_names
