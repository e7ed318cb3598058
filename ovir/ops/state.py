"""ReadValue and Assign: variables, which keep a value from one call of a request to the next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, dynamic
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class Variable(Protocol):
    """A variable of a request. ``value`` is None until it is set; setting it stores a copy."""

    value: Array | None

    def take(self, array: Array) -> None:
        """Set the value to an array that nobody else writes to, without a copy."""


class StateBase(Operator):
    """Base of the operations that read or set a variable."""

    variable_id: str = attribute()

    pure = False
    views = True


class ReadValueBase(StateBase):
    """Base of both versions of ReadValue, with the kernel."""

    forwards_values = (0,)

    def run(self, init_value: Array | None = None, *, variable: Variable) -> Array:
        value = variable.value
        if value is None:
            value = self.initial_value(init_value)
        (element_type,), (shape,) = self.output_types, self.output_shapes
        message = "variable '{}' holds a value of shape {}, but is declared as {}"
        self.require(shape.contains(value.shape), message, self.variable_id, value.shape, shape)
        if not element_type.is_dynamic:
            message = "variable '{}' holds a value of type {}, but is declared as {}"
            same = value.dtype == element_type.to_dtype()
            self.require(same, message, self.variable_id, value.dtype, element_type)
        return value

    def at_state(
        self, shape: Iterable[int | Dimension] | None, declared: TensorType, *, has_initial: bool
    ) -> ReadValueBase:
        """Return this operation for one call, in which the variable holds a value of a shape, or none yet (None)."""
        if shape is None and has_initial:
            return ReadValue3(variable_id=self.variable_id)
        if shape is None and declared.shape.rank is None:
            return self
        known = PartialShape([dim.lower for dim in declared.shape] if shape is None else shape)
        return FixedReadValue(variable_id=self.variable_id, variable_type=declared.element_type, variable_shape=known)

    def initial_value(self, init_value: Array | None) -> Array:
        """Return ``init_value``; without it zeros of the variable's shape, with unknown sizes as small as allowed."""
        if init_value is not None:
            return init_value
        (element_type,), (shape,) = self.output_types, self.output_shapes
        message = "variable '{}' has neither init_value nor a known rank, so its initial value is undefined"
        self.require(shape.rank is not None, message, self.variable_id)
        return np.zeros([dim.lower for dim in shape], element_type.to_dtype())


@operator("ReadValue", opset=3)
class ReadValue3(ReadValueBase):
    """The value last assigned to the variable; before that, and after a reset, `init_value`.

    The output has the type and shape of `init_value`.
    """

    def infer(self, init_value: TensorType) -> TensorType:
        return TensorType(init_value.element_type, init_value.shape)


@operator("ReadValue", opset=6)
class ReadValue6(ReadValueBase):
    """The value last assigned to the variable; before that, and after a reset, `init_value`, or zeros without one.

    The declared type and shape must include the type and shape of `init_value`, which hold if neither is declared.

    >>> ops.read_value([1.0, 2.0], "state")
    [1. 2.]
    """

    arguments = "init_value= variable_id=None variable_type= variable_shape="
    variable_type: ElementType = attribute(default=dynamic, specified=True)
    variable_shape: PartialShape = attribute(default=PartialShape(None), specified=True)

    def infer(self, init_value: TensorType | None = None) -> TensorType:
        declared = TensorType(self.variable_type, self.variable_shape)
        if init_value is not None:
            message = "init_value is {}, but variable '{}' is declared as {}"
            fits = self.variable_type.merged_with(init_value.element_type) and _holds(declared, init_value)
            self.require(fits, message, init_value, self.variable_id, declared)
            if self.variable_type.is_dynamic and self.variable_shape.rank is None:
                return TensorType(init_value.element_type, init_value.shape)
        return declared


class FixedReadValue(ReadValue6):
    """A variable that is taken to hold values of one type, whatever its initial value is; for inference only."""

    def infer(self, init_value: TensorType | None = None) -> TensorType:
        return TensorType(self.variable_type, self.variable_shape)


def _holds(declared: TensorType, given: TensorType) -> bool:
    """Return whether every shape of ``given`` is a shape of ``declared``."""
    if declared.shape.rank is None or given.shape.rank is None:
        return declared.shape.rank is None
    return declared.shape == declared.shape.union(given.shape)


class AssignBase(StateBase):
    """Base of both versions of Assign, with the kernel."""

    def infer(self, new_value: TensorType) -> TensorType:
        return TensorType(new_value.element_type, new_value.shape)

    def run(self, new_value: Array, *, variable: Variable) -> Array:
        variable.value = new_value
        return new_value


@operator("Assign", opset=3)
class Assign3(AssignBase):
    """`new_value`, passed on unchanged; ReadValue returns it in the next call."""


@operator("Assign", opset=6)
class Assign6(AssignBase):
    """`new_value`, passed on unchanged; ReadValue returns it in the next call.

    >>> total = ops.read_value([1.0], "total")
    >>> ops.assign(ops.add(total, [2.0]), "total")
    [3.]
    """
