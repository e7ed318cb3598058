"""The state of an infer request: the variables that ReadValue and Assign share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from ovir.model import Layer


class Variable:
    """One variable; ``value`` None means that it has not been assigned since the last reset."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: NDArray[Any] | None = None

    def reset(self) -> None:
        self.value = None


class Variables:
    """All variables of one request, by ``variable_id``."""

    def __init__(self) -> None:
        self._by_name: dict[str, Variable] = {}

    def of(self, layer: Layer) -> Variable:
        """The variable that a ReadValue or Assign names."""
        name = str(layer.attributes.get("variable_id", ""))
        return self._by_name.setdefault(name, Variable(name))

    def reset(self) -> None:
        for variable in self._by_name.values():
            variable.reset()

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._by_name.values())
