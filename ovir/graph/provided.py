"""What layers and models need to create layers; ``ovir.build`` does it and is imported on the first use.

``ovir.build`` works on layers, so this module cannot import it as others do. It registers itself here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol


class Builder(Protocol):
    """What ``ovir.build`` provides; ``Any`` stands for layers, whose module imports this one."""

    def apply(self, type_name: str, *operands: Any) -> Any:
        """Return a new layer that applies an operation to layers, ports, arrays or numbers."""

    def assemble(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Sequence[Any], str]:
        """Return the layers for the arguments of ``Model``, joined and numbered, and the name of the model."""

    def release(self, layers: Sequence[Any]) -> None:
        """Make the layers of a model that could not be made free again."""


_provided: list[Builder] = []


def provide_builder(builder: Builder) -> None:
    """Set what creates layers; ``ovir.build`` calls this when it is imported."""
    _provided[:] = [builder]


def builder() -> Builder:
    """Return what creates layers."""
    if not _provided:
        import_module("ovir.build.assembly")
    return _provided[0]
