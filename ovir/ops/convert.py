"""Convert, ConvertLike and ConvertPromoteTypes: convert numbers to another element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ovir.core import element_types as t
from ovir.core import float16
from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_bounds
from ovir.diagnostics.codes import NOT_SUPPORTED
from ovir.kernels.precision import fill_integers, is_foreign, to_integers
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

NF4 = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
], np.float32)  # fmt: skip
"""The numbers that the codes of nf4 represent."""
NF4_STEPS = (NF4[1:] + NF4[:-1]) / 2

_LOW_BITS = (t.u1, t.u2, t.u3, t.u4, t.u6)


class ConversionBase(Operator):
    """Base of conversions, with the kernel, and the inference of its result."""

    forwards_values: ClassVar[tuple[int, ...]] = (0,)

    def converted(self, data: Array, source: t.ElementType, target: t.ElementType) -> Array:
        """Convert the elements. The element types are given for arrays whose dtype does not determine them."""
        if t.string in (source, target) and source != target:
            self.fail("conversion of {} to {} is not supported", source, target, code=NOT_SUPPORTED)
        if target.is_dynamic:
            self.fail("destination_type is missing", code=NOT_SUPPORTED)
        out = np.empty(data.shape, target.to_dtype())
        fill_converted(data, source, target, out)
        return out

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        source, target = inputs[0].element_type, output.element_type
        return f"it converts {source} to {target}" if source == target and not source.is_dynamic else None

    def is_same_for(self, before: TensorType, inputs: Sequence[TensorType], output: TensorType) -> bool:
        first, between, last = before.element_type, inputs[0].element_type, output.element_type
        return is_exact(first, between) and (first == last or is_exact(between, last))

    def infer_value(self, *inputs: TensorType) -> Value | tuple[Value | None, ...] | None:
        return self.value_of(inputs[0], self.output_types[0])

    def value_of(self, data: TensorType, target: t.ElementType) -> Value | None:
        """Return the known value of the result."""
        value = data.bounds_or_unknown()
        if value is None or target == t.string:
            return None
        if value.constant is not None:
            return Value(self.converted(value.constant, data.element_type, target))
        if t.nf4 in (data.element_type, target) or target in (t.f4e2m1, t.f8e8m0):
            return None
        lower, upper = value.lower, value.upper
        if target == t.boolean:
            return from_bounds(t.boolean, (lower > 0) | (upper < 0), (lower != 0) | (upper != 0))
        lower, upper = value.known_ends(data.element_type)
        may_wrap = not (data.element_type.is_integral and _holds_all(target, data.element_type))
        return from_bounds(target, lower, upper, value.symbols, sizes=value.is_size, may_wrap=may_wrap)


@operator("Convert", opset=1, until=17)
class Convert(ConversionBase):
    """Every element converted to the type ``destination_type``.

    Real numbers are truncated to integers, and an integer that is too large keeps its low bits. Real numbers beyond i32
    (i64 for u32 and 64-bit types) and NaN have no defined integer: they become the least number of these 32 or 64 bits,
    of which the low bits are kept. u64 also holds what lies between 2^63 and 2^64; larger numbers become 0. Converted
    to boolean, everything except 0 is true, including NaN. Real numbers are rounded to nearest, ties to even; beyond
    the range they become infinite, NaN in f8e4m3, and the largest number in f4e2m1 and nf4.

    >>> ops.convert([1.9, -1.9], "i32")
    [ 1 -1]
    """

    arguments = "data destination_type"
    converts = True
    decompresses = (0,)
    destination_type: t.ElementType = attribute(default=t.dynamic, specified=True)

    def infer(self, data: TensorType) -> TensorType:
        return TensorType(self.destination_type, data.shape)

    def run(self, data: Array) -> Array:
        return self.converted(data, self.input_types[0], self.output_types[0])

    def rows_from(self, inputs: Sequence[TensorType], output: PartialShape) -> tuple[int, ...]:
        return (1,)


@operator("ConvertLike", opset=1)
class ConvertLike(ConversionBase):
    """``data`` converted to the type of ``like``, as by Convert.

    >>> ops.convert_like([1, 2], np.float32([0]))
    [1. 2.]
    """

    shape_inputs = (1,)

    def infer(self, data: TensorType, like: TensorType) -> TensorType:
        return TensorType(like.element_type, data.shape)

    def run(self, data: Array, like: Array) -> Array:
        return self.converted(data, self.input_types[0], self.output_types[0])


@operator("ConvertPromoteTypes", opset=14)
class ConvertPromoteTypes(ConversionBase):
    """Both inputs in one common type that holds their values.

    Floats take precedence over integers, integers over boolean. Between two floats, or two integers of the same
    signedness, the wider type wins (f16 for f8e4m3 with f8e5m2, f32 for f16 with bf16). A signed and an unsigned type
    promote to a signed type of twice the unsigned type's bits; ``u64_integer_promotion_target`` replaces i128. With
    ``pytorch_scalar_promotion`` a scalar takes the type of the other tensor if both are floats or both integers. Unless
    ``promote_unsafe`` is set, a promotion that may lose values, or that is wider than both types, is an error.

    >>> ops.convert_promote_types(np.int8([1]), np.int32([70000]))
    [1]
    [70000]
    """

    arguments = "left_node:a right_node:b promote_unsafe=False pytorch_scalar_promotion= u64_integer_promotion_target="
    forwards_values = (0, 1)
    promote_unsafe: bool = attribute()
    pytorch_scalar_promotion: bool = attribute(default=False)
    u64_integer_promotion_target: t.ElementType = attribute(default=t.f32)

    def infer(self, a: TensorType, b: TensorType) -> tuple[TensorType, TensorType]:
        common = self.common_type(a, b)
        return TensorType(common, a.shape), TensorType(common, b.shape)

    def run(self, a: Array, b: Array) -> tuple[Array, Array]:
        common = self.output_types[0]
        first, second = self.input_types
        return self.converted(a, first, common), self.converted(b, second, common)

    def infer_value(self, *inputs: TensorType) -> tuple[Value | None, ...]:
        return tuple(self.value_of(tensor, self.output_types[0]) for tensor in inputs)

    def common_type(self, a: TensorType, b: TensorType) -> t.ElementType:
        first, second = a.element_type, b.element_type
        for element_type in (first, second):
            unsupported = (t.u2, t.u3, t.u6, t.nf4, t.f8e8m0, t.f4e2m1, t.string)
            self.require(
                element_type not in unsupported, "promotion of {} to another type is not supported", element_type
            )
        if first.is_dynamic or second.is_dynamic:
            return t.dynamic
        if first == second or second == t.boolean:
            return first
        if first == t.boolean:
            return second
        if first.is_real != second.is_real:
            return self._of_real_and_integer(*((first, second) if first.is_real else (second, first)))
        if self.pytorch_scalar_promotion and (a.shape.rank == 0) != (b.shape.rank == 0):
            return self._of_scalar(*((first, second) if a.shape.rank == 0 else (second, first)))
        if first.kind != second.kind:
            return self._of_signed_and_unsigned(*((first, second) if first.kind == "signed" else (second, first)))
        if first.bits != second.bits:
            return max(first, second, key=lambda kind: kind.bits)
        self._require_unsafe(first, second)
        return t.f16 if {first, second} == {t.f8e4m3, t.f8e5m2} else t.f32

    def _of_real_and_integer(self, real: t.ElementType, integer: t.ElementType) -> t.ElementType:
        if real.bits < 2 * integer.bits:
            self._require_unsafe(integer, real)
        return real

    def _of_scalar(self, scalar: t.ElementType, other: t.ElementType) -> t.ElementType:
        fits = other.bits >= scalar.bits
        if other.kind != scalar.kind:
            fits = other.kind == "signed" and 2 * other.bits >= scalar.bits
        if not fits:
            self._require_unsafe(scalar, other)
        return other

    def _of_signed_and_unsigned(self, signed: t.ElementType, unsigned: t.ElementType) -> t.ElementType:
        if 2 * unsigned.bits > signed.bits:
            self._require_unsafe(signed, unsigned)
        if unsigned == t.u64:
            return self.u64_integer_promotion_target
        bits = max(2 * unsigned.bits, signed.bits)
        return next(kind for kind in (t.i4, t.i8, t.i16, t.i32, t.i64) if kind.bits >= bits)

    def _require_unsafe(self, first: t.ElementType, second: t.ElementType) -> None:
        message = (
            "{} and {} have no common type that holds the values of both; promote_unsafe "
            "allows a type that may lose values"
        )
        self.require(self.promote_unsafe, message, first, second)


def _holds_all(target: t.ElementType, source: t.ElementType) -> bool:
    """Return whether a type holds all numbers of an integer type."""
    (low, high), (least, greatest) = t.value_range(target), t.value_range(source)
    return low <= least and greatest <= high


_DIGITS = {t.f4e2m1: 2, t.f8e5m2: 3, t.f8e4m3: 4, t.bf16: 8, t.f16: 11, t.f32: 24, t.f64: 53}
"""The binary digits of real types."""


def is_exact(source: t.ElementType, target: t.ElementType) -> bool:
    """Return whether a conversion keeps every value of a type, infinities and NaN included; False if that is open."""
    if source == target:
        return not source.is_dynamic
    if source in _DIGITS and target in _DIGITS:
        return _DIGITS[source] <= _DIGITS[target] and t.value_range(source)[1] <= t.value_range(target)[1]
    if target.is_integral:
        return source == t.boolean or (source.is_integral and _holds_all(target, source))
    digits = 1 if source == t.boolean else source.bits - (source.kind == "signed")
    return (source == t.boolean or source.is_integral) and digits <= _DIGITS.get(target, 0)


def in_f32(data: Array, element_type: t.ElementType) -> Array:
    """Return numbers of ``element_type`` converted to f32 as by Convert."""
    return _TO_F32.converted(data, element_type, t.f32)


_TO_F32 = Convert(destination_type=t.f32)


# --------------------------------------------------------------------------- kernel


def fill_converted(x: Array, source: t.ElementType, target: t.ElementType, out: Array) -> None:
    """Fill ``out`` with the converted elements of ``x``."""
    if source == target:
        np.copyto(out, x)
        return
    if source == t.nf4:
        x = NF4[x]
    if target == t.nf4:
        x = x.astype(np.float32, copy=False)
        # The first step that is not below x; NaN, which NumPy sorts last, counts as the least.
        np.copyto(out, np.where(np.isnan(x), 0, np.searchsorted(NF4_STEPS, x)), casting="unsafe")
        return
    if target == t.boolean:
        np.not_equal(x, x.dtype.type(0), out=out)
        return
    if target.is_integral and source.is_real:
        if target not in _LOW_BITS:
            fill_integers(x, out)
            return
        x = to_integers(x, np.dtype(np.int32))
    if target in _LOW_BITS:
        x = np.bitwise_and(x.astype(np.int16 if is_foreign(x.dtype) else x.dtype, copy=False), (1 << target.bits) - 1)
    if target == t.f8e8m0:
        np.copyto(out, _scales(x))
        return
    if target == t.f4e2m1:
        x = np.nan_to_num(x.astype(np.float32, copy=False), nan=6, posinf=6, neginf=-6)
    if is_foreign(x.dtype) and is_foreign(out.dtype):  # ml_dtypes lacks some casts between its own types
        x = x.astype(np.float32 if source.is_real else np.int16)
    float16.copy(x, out)


def _scales(x: Array) -> Array:
    """Return the nearest powers of two, ties to the even exponent, clipped to [2^-127, 2^127]."""
    x = x.astype(np.float32, copy=False)
    bits = x.view(np.uint32)
    exponent = bits >> 23 & 255
    # The fraction exceeds a half, or it is a half and the exponent is odd.
    exponent += (bits & 0x7FFFFF) + (exponent & 1) > 0x400000
    codes = np.where(np.signbit(x), 0, np.minimum(exponent, 254))
    return np.where(np.isnan(x), 255, codes).astype(np.uint8).view(t.f8e8m0.to_dtype())
