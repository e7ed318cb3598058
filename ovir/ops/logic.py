"""Logical operations on booleans, and bitwise operations on integers and booleans."""

from __future__ import annotations

from itertools import product

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_bounds
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import as_native, stored
from ovir.ops.base.domains import Between, by_input
from ovir.ops.base.elementwise import HELD_IN_BYTES, BinaryBase, hull, require_plain
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

    >>> ops.logical_and([True, True, False], [True, False, False])
    [ True False False]
    """

    function = np.logical_and


@operator("LogicalOr", opset=1)
class LogicalOr(LogicalBase):
    """Whether at least one element is true.

    >>> ops.logical_or([True, True, False], [True, False, False])
    [ True True False]
    """

    function = np.logical_or


@operator("LogicalXor", opset=2, since=1)
class LogicalXor(LogicalBase):
    """Whether exactly one element is true.

    >>> ops.logical_xor([True, True, False], [True, False, False])
    [False True False]

    Source: LogicalXor-1
    """

    function = np.logical_xor


@operator("Xor", opset=1, until=1)
class Xor(LogicalXor):
    """Whether exactly one element is true: the name of LogicalXor in opset1.

    >>> ops.xor([True, True, False], [True, False, False])
    [False True False]

    Source: LogicalXor-1
    """


@operator("LogicalNot", opset=1)
class LogicalNot(Operator):
    """Whether each element is false.

    >>> ops.logical_not([True, False])
    [False True]
    """

    takes = "data boolean[D...]"
    gives = "boolean[D...]"
    function = np.logical_not
    arguments = "node:data"
    inplace = (0,)

    def run(self, data: Array) -> Array:
        return np.asarray(self.function(data))

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


class BitwiseBase(BinaryBase):
    """Base of operations on the bits of two inputs of one integer type, which are broadcast."""

    inplace = (0, 1)

    def result_type(self, element_type: ElementType) -> ElementType:
        self.require_type(
            "the inputs", element_type, lambda t: t.is_integral or t == boolean, "of an integer type or boolean"
        )
        return element_type

    def run(self, a: Array, b: Array) -> Array:
        return stored(np.asarray(self.compute(as_native(a), as_native(self.aligned(a, b)))), a.dtype)

    def infer_value(self, *inputs: TensorType) -> Value | None:
        return None  # bounds say little about bits


@operator("BitwiseAnd", opset=13)
class BitwiseAnd(BitwiseBase):
    """The bits that are set in both inputs.

    >>> ops.bitwise_and([0b1100], [0b1010])
    [8]
    """

    function = np.bitwise_and


@operator("BitwiseOr", opset=13)
class BitwiseOr(BitwiseBase):
    """The bits that are set in at least one input.

    >>> ops.bitwise_or([0b1100], [0b1010])
    [14]
    """

    function = np.bitwise_or


@operator("BitwiseXor", opset=13)
class BitwiseXor(BitwiseBase):
    """The bits in which the inputs differ.

    >>> ops.bitwise_xor([0b1100], [0b1010])
    [6]
    """

    function = np.bitwise_xor


class ShiftBase(BitwiseBase):
    """Base of operations that shift the bits of ``a`` by ``b`` positions, each element by its own number.

    A negative shift, or one by at least as many positions as the type has bits, is undefined and reported. As on
    processors, only its lowest 5 bits count, or the lowest 6 for 64-bit types.
    """

    arguments = "arg0:a arg1:b auto_broadcast="
    domains = by_input(b=Between(0, 3))

    def result_type(self, element_type: ElementType) -> ElementType:
        self.require_integers("the inputs", element_type)
        return element_type

    def run(self, a: Array, b: Array) -> Array:
        require_plain(self)
        bits = self.output_types[0].bits
        places = as_native(b)
        if b.size and (places.min() < 0 or places.max() >= bits):
            report(f"a shift of {self.output_types[0]} by less than 0 or more than {bits - 1} places is undefined")
            b = (places & (max(bits, 32) - 1)).astype(b.dtype)
        return super().run(a, b)


@operator("BitwiseLeftShift", opset=15)
class BitwiseLeftShift(ShiftBase):
    """a * 2^b; bits beyond the type's width are lost.

    >>> ops.bitwise_left_shift([1, 3], [4, 1])
    [16 6]
    """

    def compute(self, a: Array, b: Array) -> Array:
        return np.left_shift(a, b)


@operator("BitwiseRightShift", opset=15)
class BitwiseRightShift(ShiftBase):
    """a / 2^b, rounded down.

    >>> ops.bitwise_right_shift([16, 7], [4, 1])
    [1 3]
    """

    def compute(self, a: Array, b: Array) -> Array:
        return np.right_shift(a, b)


@operator("BitwiseNot", opset=13)
class BitwiseNot(Operator):
    """Every bit of the input inverted; a boolean negated.

    >>> ops.bitwise_not([0, 5])
    [-1 -6]
    """

    takes = "data T[D...]; T integer|boolean"
    gives = "T[D...]"
    recipe = "T bits"
    function = np.invert
    arguments = "node:data"
    inplace = (0,)

    def run(self, data: Array) -> Array:
        element_type = self.output_types[0]
        if element_type in HELD_IN_BYTES:  # only the low bits of a byte are significant
            return data ^ ((1 << element_type.bits) - 1)
        return stored(np.asarray(self.function(as_native(data))), data.dtype)
