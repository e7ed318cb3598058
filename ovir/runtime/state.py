"""The state of an infer request: the variables that ReadValue and Assign share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError, OperatorError
from ovir.graph.layers import Layer
from ovir.ops.state import ReadValueBase


@dataclass(frozen=True)
class Reader:
    """The ReadValue of a variable, as a plan runs it."""

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


class Content:
    """The value of one variable as the kernels of ReadValue and Assign see it; None if there is none since the last
    reset.

    Assigned arrays are copied. They are pending until the run succeeds: a run that fails leaves the value unchanged.
    """

    def __init__(self) -> None:
        self._value: Array | None = None
        self._pending: Array | None = None
        self._spare: Array | None = None

    @property
    def value(self) -> Array | None:
        return self._value if self._pending is None else self._pending

    @value.setter
    def value(self, array: Array) -> None:
        # Arrays returned in this run may still be in use and are not overwritten.
        target = self._spare if self._pending is None else None
        if target is None or target.shape != array.shape or target.dtype != array.dtype:
            target = np.empty(array.shape, array.dtype)
        np.copyto(target, array)
        self._pending = target

    def replace(self, array: Array | None) -> None:
        """Take a value that no run has assigned, which therefore outlives a run that fails."""
        self._value, self._pending = array, None

    def commit(self) -> None:
        """Make the pending array the value."""
        if self._pending is not None:
            self._value, self._spare, self._pending = self._pending, self._value, None

    def roll_back(self) -> None:
        self._pending = None


class Variable:
    """One variable of a request."""

    def __init__(self, name: str, reader: Reader, content: Content) -> None:
        """Show the content of a variable, or what ``reader`` gives as long as there is none."""
        self.name: str = name
        """The ``variable_id`` of its ReadValue and Assign."""
        self._reader = reader
        self._content = content

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
        run computes it from its inputs. Set it to an array, which is copied, or to None to reset the variable.
        """
        array = self._content.value
        if array is None:
            array = self._reader.initial()
        return None if array is None else array.copy()

    @value.setter
    def value(self, array: Array | None) -> None:
        if array is not None and not isinstance(array, np.ndarray):
            message = f"the value of variable {self.name!r} must be a NumPy array, got {type(array).__name__}"
            raise InputError(diagnose(BAD_INPUT, message))
        self._content.replace(None if array is None else array.copy())

    def reset(self) -> None:
        """Return to the initial value."""
        self._content.replace(None)

    def __repr__(self) -> str:
        array = self._content.value
        shown = "not assigned" if array is None else f"{array.dtype}{list(array.shape)}"
        return f"<Variable {self.name!r}: {shown}>"


class Variables:
    """The contents of all variables of one request, by ``variable_id``."""

    def __init__(self) -> None:
        self._by_name: dict[str, Content] = {}

    def of(self, layer: Layer) -> Content:
        """Return the content of the variable that a ReadValue or Assign names."""
        return self.named(str(layer.attributes.get("variable_id", "")))

    def named(self, name: str) -> Content:
        return self._by_name.setdefault(name, Content())

    def shapes(self, names: Sequence[str]) -> tuple[tuple[int, ...] | None, ...]:
        """Return the shapes of the values of variables; None for those that have no value."""
        values = [self.named(name).value for name in names]
        return tuple([None if value is None else value.shape for value in values])

    def commit(self) -> None:
        """Commit all variables after a run has succeeded."""
        for content in self._by_name.values():
            content.commit()

    def roll_back(self) -> None:
        """Discard all pending arrays after a run has failed."""
        for content in self._by_name.values():
            content.roll_back()

    def reset(self) -> None:
        for content in self._by_name.values():
            content.replace(None)
