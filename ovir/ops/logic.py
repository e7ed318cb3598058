"""Logical operations on booleans."""

from __future__ import annotations

from itertools import product

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_bounds
from ovir.ops.base.elementwise import BinaryBase, hull
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class LogicalBase(BinaryBase):
    """Base of operations on two booleans, which are broadcast."""

    inplace = (0, 1)

    def result_type(self, element_type: ElementType) -> ElementType:
        self.require_type("the inputs", element_type, lambda t: t == boolean, "boolean")
        return boolean

    def run(self, a: Array, b: Array) -> Array:
        return np.asarray(self.compute(a, self.aligned(a, b)))

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        return hull([self.run(x, y) for x, y in product(_ends(a), _ends(b))])


@operator("LogicalAnd", opset=1)
class LogicalAnd(LogicalBase):
    """Whether both elements are true.

    Source: LogicalAnd-1
    """

    function = np.logical_and


@operator("LogicalOr", opset=1)
class LogicalOr(LogicalBase):
    """Whether at least one element is true.

    Source: LogicalOr-1
    """

    function = np.logical_or


@operator("LogicalXor", opset=2, since=1)
class LogicalXor(LogicalBase):
    """Whether exactly one element is true.

    Source: LogicalXor-1
    """

    function = np.logical_xor


@operator("Xor", opset=1, until=1)
class Xor(LogicalXor):
    """Whether exactly one element is true: the name of LogicalXor in opset1.

    Source: LogicalXor-1
    """


@operator("LogicalNot", opset=1)
class LogicalNot(Operator):
    """Whether each element is false.

    Source: LogicalNot-1
    """

    arguments = "node:data"
    inplace = (0,)

    def infer(self, data: TensorType) -> TensorType:
        self.require_type("data", data.element_type, lambda t: t == boolean, "boolean")
        return TensorType(boolean, data.shape)

    def run(self, data: Array) -> Array:
        return np.asarray(np.logical_not(data))

    def infer_value(self, *inputs: TensorType) -> Value | None:
        value = inputs[0].bounds_or_unknown()
        if value is None:
            return None
        low, high = _ends(value)
        return from_bounds(boolean, ~high, ~low)


def _ends(value: Value) -> tuple[Array, Array]:
    """Return the bounds as booleans: the lower one is true if certainly true, the upper one false if certainly
    false."""
    return value.lower > 0, value.upper > 0
