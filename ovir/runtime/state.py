"""The state of an infer request: the variables that ReadValue and Assign share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.model import Layer

Array = NDArray[Any]


class Variable:
    """One variable; ``value`` None means that it has not been assigned since the last reset.

    What is set is copied. The array that ``value`` gives stays as it is until the variable is set twice more.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._value: Array | None = None
        self._spare: Array | None = None

    @property
    def value(self) -> Array | None:
        return self._value

    @value.setter
    def value(self, array: Array | None) -> None:
        if array is None:
            self._value = None
            return
        # Not into the present value: what has been read from it in this run may still be in use.
        spare = self._spare
        if spare is None or spare.shape != array.shape or spare.dtype != array.dtype:
            spare = np.empty(array.shape, array.dtype)
        np.copyto(spare, array)
        self._value, self._spare = spare, self._value

    def reset(self) -> None:
        self._value = None


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
