"""Contents of the modules ``ovir.opset1`` to ``ovir.opset17``: functions, each made on its first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from ovir.diagnostics.wording import did_you_mean
from ovir.ops.base import opsets


def contents(module: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of the module of an opset."""
    opset = int(module.rpartition("opset")[2])
    known = functions(opset)

    def load(name: str) -> Any:
        if name not in known:
            meant = did_you_mean(name, known, "{}")
            raise AttributeError(f"opset{opset} has no operation '{name}'{f'; {meant}' if meant else ''}")
        from ovir.building.functions import make_function  # imports NumPy and the operations' base classes

        version = known[name]
        function = make_function(opset, name, version.type, version.opset)
        setattr(sys.modules[module], name, function)
        return function

    return list(known), load, lambda: list(known)


@cache
def functions(opset: int) -> dict[str, opsets.Version]:
    """Return the operation version whose layers each function of an opset creates, by the name of the function."""
    held = (opsets.resolve(type_name, f"opset{opset}") for type_name in opsets.OPERATIONS)
    found = {name: version for version in held if version is not None for name in version.functions}
    return dict(sorted(found.items()))
