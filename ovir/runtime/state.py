"""The state of an infer request: the variables that ReadValue and Assign share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError
from ovir.graph.layers import Layer


class Variable:
    """One variable; its ``value`` is None if it has not been assigned since the last reset.

    Assigned arrays are copied. They are pending until the run succeeds: a run that fails leaves the variable unchanged.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._value: Array | None = None
        self._pending: Array | None = None
        self._spare: Array | None = None

    @property
    def value(self) -> Array | None:
        return self._value if self._pending is None else self._pending

    @value.setter
    def value(self, array: Array) -> None:
        if not isinstance(array, np.ndarray):
            message = f"the value of variable {self.name!r} must be a NumPy array, got {type(array).__name__}"
            raise InputError(diagnose(BAD_INPUT, message))
        # Arrays returned in this run may still be in use and are not overwritten.
        target = self._spare if self._pending is None else None
        if target is None or target.shape != array.shape or target.dtype != array.dtype:
            target = np.empty(array.shape, array.dtype)
        np.copyto(target, array)
        self._pending = target

    def __repr__(self) -> str:
        value = self.value
        shown = "not assigned" if value is None else f"{value.dtype}{list(value.shape)}"
        return f"<Variable {self.name!r}: {shown}>"

    def commit(self) -> None:
        """Make the pending array the value."""
        if self._pending is not None:
            self._value, self._spare, self._pending = self._pending, self._value, None

    def roll_back(self) -> None:
        self._pending = None

    def reset(self) -> None:
        self._value = self._pending = None


class Variables:
    """All variables of one request, by ``variable_id``."""

    def __init__(self) -> None:
        self._by_name: dict[str, Variable] = {}

    def of(self, layer: Layer) -> Variable:
        """Return the variable that a ReadValue or Assign names."""
        name = str(layer.attributes.get("variable_id", ""))
        return self._by_name.setdefault(name, Variable(name))

    def shapes(self, names: Sequence[str]) -> tuple[tuple[int, ...] | None, ...]:
        """Return the shapes of the values of variables; None for those that have no value."""
        values = (v.value if (v := self._by_name.get(name)) is not None else None for name in names)
        return tuple([None if value is None else value.shape for value in values])

    def commit(self) -> None:
        """Commit all variables after a run has succeeded."""
        for variable in self._by_name.values():
            variable.commit()

    def roll_back(self) -> None:
        """Discard all pending arrays after a run has failed."""
        for variable in self._by_name.values():
            variable.roll_back()

    def reset(self) -> None:
        for variable in self._by_name.values():
            variable.reset()

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._by_name.values())
