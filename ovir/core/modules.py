"""Python modules that are loaded from a file, because they are in no package."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


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
