"""The functions of the modules ``ovir.opset1`` to ``ovir.opset17``, which ``ovir/__init__.py`` makes."""

from __future__ import annotations

from functools import cache
from typing import Any

from ovir.diagnostics.wording import did_you_mean
from ovir.ops.base import opsets


def member(opset: int, name: str) -> Any:
    """Return a function of the module of an opset, or its ``__all__``."""
    known = functions(opset)
    if name == "__all__":
        return list(known)
    if name not in known:
        meant = did_you_mean(name, known, "{}")
        raise AttributeError(f"opset{opset} has no operation '{name}'{f'; {meant}' if meant else ''}")
    from ovir.building.functions import make_function  # imports NumPy and the operations' base classes

    version = known[name]
    return make_function(opset, name, version.type, version.opset)


@cache
def functions(opset: int) -> dict[str, opsets.Version]:
    """Return the operation version whose layers each function of an opset creates, by the name of the function."""
    held = (opsets.resolve(type_name, f"opset{opset}") for type_name in opsets.OPERATIONS)
    versions = {name: version for version in held if version is not None for name in version.functions}
    return dict(sorted(versions.items()))
