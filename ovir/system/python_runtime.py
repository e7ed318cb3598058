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

from ovir.core.reading import read_text


@cache
def physical_memory() -> int | None:
    """Return the size of main memory in bytes; None if the system does not provide it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def free_memory() -> int | None:
    """Return the bytes of memory that this process may still take, without swapping; None if that is not known."""
    found = [_available(), *(_left_in_group(*names) for names in _GROUPS)]
    return min((size for size in found if size is not None), default=physical_memory())


_GROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
"""The files of Linux with the limit of a container, the memory that it uses, and the part that can be dropped."""


def _available() -> int | None:
    for line in _text("/proc/meminfo").splitlines():
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            return int(size.split()[0]) << 10
    return None


def _left_in_group(limit: str, usage: str, statistics: str) -> int | None:
    most, used = (_text(f"/sys/fs/cgroup/{name}").strip() for name in (limit, usage))
    if not (most.isdecimal() and used.isdecimal()):
        return None
    counts = dict(line.split(" ", 1) for line in _text(f"/sys/fs/cgroup/{statistics}").splitlines())
    droppable = int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))
    return max(int(most) - int(used) + droppable, 0)


def _text(path: str) -> str:
    try:
        return read_text(path, "ascii")
    except OSError:
        return ""


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector in a ``with`` block, because all the objects of a model stay alive."""
    if not gc.isenabled():  # and not switched off again, if another thread is about to switch it on
        yield
        return
    gc.disable()
    try:
        yield
    finally:
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
