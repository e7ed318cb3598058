"""Writes the signatures of OpenVINO's opset functions as JSON, apart from the tests.

usage: signatures_worker.py FILE    {opset: {function: [[name, kind, default or null, whether it has one], ...] or null}}
"""

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

OPSETS = range(1, 18)


def plain(default: Any) -> Any:
    """Return a default as JSON can hold it."""
    if isinstance(default, type):
        return default.__name__
    return default if default is None or isinstance(default, (bool, int, float, str, list, tuple)) else repr(default)


def described(function: Any) -> list[list[Any]] | None:
    """Return the arguments of a function, None if Python does not know them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    return [
        [p.name, p.kind.name, None if p.default is p.empty else plain(p.default), p.default is not p.empty]
        for p in parameters
    ]


def main(path: Path) -> None:
    found = {}
    for number in OPSETS:
        module = importlib.import_module(f"openvino.opset{number}")
        names = [name for name in dir(module) if not name.startswith("_") and callable(getattr(module, name))]
        found[number] = {name: described(getattr(module, name)) for name in names}
    path.write_text(json.dumps(found), encoding="utf-8")


main(Path(sys.argv[1]))
