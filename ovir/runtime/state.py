"""The state of an infer request: the variables that ReadValue and Assign share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType, array_text
from ovir.diagnostics.errors import OperatorError
from ovir.graph.layers import Layer
from ovir.ops.state import ReadValueBase
from ovir.runtime.inputs import fitted


@dataclass(frozen=True)
class InitialValue:
    """The ReadValue of a variable, as a plan runs it."""

    layer: Layer
    operator: ReadValueBase
    init_value: Array | None
    """The initial value, if it is a constant."""
    is_computed: bool
    """Whether the initial value follows from the inputs of a run."""

    def initial(self) -> Array | None:
        """Return the value before the first run; None if only the run shows it."""
        if self.is_computed:
            return None
        try:
            return self.operator.initial_value(self.init_value)
        except OperatorError:  # neither a value nor a rank
            return None


class VariableValue:
    """The value of one variable as the kernels of ReadValue and Assign see it; None if there is none since the last
    reset.

    Assigned arrays are copied, except for those that ``append`` has made and that are taken. They are pending until the
    run succeeds: a run that fails leaves the value unchanged.
    """

    def __init__(self) -> None:
        self._value: Array | None = None
        self._pending: Array | None = None
        self._spare: Array | None = None
        self._room: Array | None = None
        """The array that a value which grows is a part of."""
        self._appended: Array | None = None
        """The array that ``append`` returned in this run."""

    @property
    def value(self) -> Array | None:
        return self._value if self._pending is None else self._pending

    @value.setter
    def value(self, array: Array) -> None:
        if array is self._appended:
            self._pending = array
            return
        # Arrays returned in this run may still be in use and are not overwritten.
        target = self._spare if self._pending is None else None
        if target is None or target.shape != array.shape or target.dtype != array.dtype:
            target = np.empty(array.shape, array.dtype)
        np.copyto(target, array)
        self._pending = target

    def append(self, value: Array, new: Array, axis: int) -> Array:
        """Return ``value`` and ``new`` joined along an axis. If ``value`` is that of the variable, only ``new`` is
        copied as long as there is room for it, since nothing reads the room after the value."""
        length = new.shape[axis]
        if self._appended is not None or value.dtype != new.dtype or _resized(value, axis, length) != new.shape:
            return np.concatenate((value, new), axis)
        start, stop = value.shape[axis], value.shape[axis] + length
        before = (slice(None),) * axis
        room = self._room
        if room is None or value is not self._value or value.base is not room or room.shape[axis] < stop:
            room = np.empty(_resized(value, axis, stop + stop // 2 + _ROOM), value.dtype)
            room[(*before, slice(start))] = value
            self._room = room
        room[(*before, slice(start, stop))] = new
        self._appended = room[(*before, slice(stop))]
        return self._appended

    def take(self, array: Array) -> None:
        """Assign an array that nobody else writes to, without a copy."""
        self._pending = array

    def replace(self, array: Array | None) -> None:
        """Take a value that no run has assigned, so that it outlives a failing run."""
        self._value, self._pending, self._room = array, None, None

    def commit(self) -> None:
        """Make the pending array the value."""
        if self._pending is not None and self._pending is not self._value:
            # An array that shares memory with a growing value is not written to.
            self._spare = self._value if self._value is not None and self._value.base is None else None
            self._value = self._pending
        self.roll_back()

    def roll_back(self) -> None:
        """Drop the values that this run has assigned."""
        self._pending = self._appended = None


_ROOM = 16
"""The least number of slices for which a value that grows gets room."""


def _resized(array: Array, axis: int, size: int) -> tuple[int, ...]:
    """Return the shape of an array with another size along an axis."""
    return (*array.shape[:axis], size, *array.shape[axis + 1 :])


class Variable:
    """One variable of a request."""

    __slots__ = ("_reader", "_value", "name")  # setting any other attribute is an error

    def __init__(self, name: str, reader: InitialValue, value: VariableValue) -> None:
        """Show the value of a variable, or that of ``reader`` as long as there is none."""
        self.name: str = name
        """The ``variable_id`` of its ReadValue and Assign."""
        self._reader = reader
        self._value = value

    @property
    def element_type(self) -> ElementType:
        """Return the element type that the model declares or infers."""
        return self._reader.operator.output_types[0]

    @property
    def shape(self) -> PartialShape:
        """Return the shape that the model declares or infers."""
        return self._reader.operator.output_shapes[0]

    @property
    def value(self) -> Array | None:
        """Return a copy of the value, which the next run reads.

        Without an assigned value it is the initial value, or zeros if the model gives none. It is None if only the next
        run computes it from its inputs. Set it to an array, which is checked, converted and copied as one for an input
        is, or to None to reset the variable. Raises InputError if the array does not match the variable.
        """
        array = self._value.value
        if array is None:
            array = self._reader.initial()
        return None if array is None else array.copy()

    @value.setter
    def value(self, array: Any) -> None:
        if array is not None:
            tensor = TensorType(self.element_type, self.shape)
            array = fitted(f"variable '{self.name}'", array, tensor, self._reader.layer).copy()
        self._value.replace(array)

    state = value
    """The same as ``value``, as OpenVINO's API calls it."""

    def reset(self) -> None:
        """Return to the initial value."""
        self._value.replace(None)

    def __repr__(self) -> str:
        array = self._value.value
        shown = "not assigned" if array is None else array_text(array)
        return f"<Variable {self.name!r}: {shown}>"


class Variables:
    """The values of all variables of one request, by ``variable_id``."""

    def __init__(self) -> None:
        self._by_name: dict[str, VariableValue] = {}
        self.has_succeeded = False
        """Whether the run that is going on has computed everything."""

    def named(self, name: str) -> VariableValue:
        return self._by_name.get(name) or self._by_name.setdefault(name, VariableValue())

    def shapes(self, names: Sequence[str]) -> tuple[tuple[int, ...] | None, ...]:
        """Return the shapes of the values of variables; None for those that have no value."""
        values = [self.named(name).value for name in names]
        return tuple([None if value is None else value.shape for value in values])

    def settle(self) -> None:
        """End a run: commit all variables if it has succeeded, otherwise discard all pending arrays.

        If it is called again after an interrupt, it does the same.
        """
        for value in self._by_name.values():
            if self.has_succeeded:
                value.commit()
            else:
                value.roll_back()
        self.has_succeeded = False

    def reset(self) -> None:
        for value in self._by_name.values():
            value.replace(None)
