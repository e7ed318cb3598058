"""Bitwise operations on integers; most of them accept booleans too."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import as_native, stored
from ovir.ops.base.domains import Between, by_input
from ovir.ops.base.elementwise import HELD_IN_BYTES, BinaryBase, require_plain
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class BitwiseBase(BinaryBase):
    """Base of operations on the bits of two inputs of one integer type, which are broadcast."""

    inplace = (0, 1)

    def result_type(self, element_type: ElementType) -> ElementType:
        self.require_type("the inputs", element_type, _has_bits, "of an integer type or boolean")
        return element_type

    def run(self, a: Array, b: Array) -> Array:
        return stored(np.asarray(self.compute(as_native(a), as_native(self.aligned(a, b)))), a.dtype)

    def infer_value(self, *inputs: TensorType) -> Value | None:
        return None  # bounds say little about bits


@operator("BitwiseAnd", opset=13)
class BitwiseAnd(BitwiseBase):
    """The bits that are set in both inputs.

    Source: BitwiseAnd-13
    """

    function = np.bitwise_and


@operator("BitwiseOr", opset=13)
class BitwiseOr(BitwiseBase):
    """The bits that are set in at least one input.

    Source: BitwiseOr-13
    """

    function = np.bitwise_or


@operator("BitwiseXor", opset=13)
class BitwiseXor(BitwiseBase):
    """The bits in which the inputs differ.

    Source: BitwiseXor-13
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

    Source: BitwiseLeftShift-15
    """

    function = np.left_shift


@operator("BitwiseRightShift", opset=15)
class BitwiseRightShift(ShiftBase):
    """a / 2^b, rounded down.

    Source: BitwiseRightShift-15
    """

    function = np.right_shift


@operator("BitwiseNot", opset=13)
class BitwiseNot(Operator):
    """Every bit of the input inverted; a boolean negated.

    Source: BitwiseNot-13
    """

    arguments = "node:data"
    inplace = (0,)

    def infer(self, data: TensorType) -> TensorType:
        self.require_type("data", data.element_type, _has_bits, "of an integer type or boolean")
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array) -> Array:
        element_type = self.output_types[0]
        if element_type in HELD_IN_BYTES:  # only the low bits of a byte are significant
            return data ^ ((1 << element_type.bits) - 1)
        return stored(np.asarray(np.invert(as_native(data))), data.dtype)


def _has_bits(element_type: ElementType) -> bool:
    return element_type.is_integral or element_type == boolean
