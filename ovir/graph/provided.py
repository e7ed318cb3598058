"""Functions of higher packages, which layers and models use but cannot import.

Each package registers an object here when it is imported, which happens on the first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

Provider = TypeVar("Provider")


class Provided(Generic[Provider]):
    """The object that a module registers, which is imported when it is first needed."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._objects: list[Provider] = []

    def provide(self, provider: Provider) -> None:
        """Register the object; the module calls this when it is imported."""
        self._objects[:] = [provider]

    def __call__(self) -> Provider:
        """Return the object."""
        if not self._objects:
            import_module(self._module)
        return self._objects[0]


class Builder(Protocol):
    """The functions that ``ovir.build`` provides; ``Any`` stands for layers, whose module imports this one."""

    def apply(self, type_name: str, *operands: Any) -> Any:
        """Return a new layer that applies an operation to layers, ports, arrays or numbers."""

    def assemble(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Sequence[Any], str]:
        """Return the layers for the arguments of ``Model``, joined and numbered, and the name of the model."""

    def release(self, layers: Sequence[Any]) -> None:
        """Make the layers of a model that could not be made free again."""


builder = Provided[Builder]("ovir.build.assembly")
