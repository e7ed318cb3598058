"""Operations on bits."""

from __future__ import annotations

from collections.abc import Callable

from ovir import opset7 as ops
from ovir.core.element_types import ElementType, boolean, i32, i64, u64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import scalar
from ovir.ops.logic import BitwiseBase, BitwiseLeftShift, BitwiseNot, BitwiseRightShift

_COMBINED: dict[str, tuple[Callable[..., Layer], Callable[[LayerOrPort, LayerOrPort], Layer]]] = {
    "BitwiseAnd": (ops.logical_and, ops.multiply),
    "BitwiseOr": (ops.logical_or, ops.maximum),
    "BitwiseXor": (ops.logical_xor, lambda x, y: ops.abs(ops.subtract(x, y))),
}
"""The operation on booleans, and the one on bits as numbers."""


@lowers("BitwiseAnd", 13)
@lowers("BitwiseOr", 13)
@lowers("BitwiseXor", 13)
def bitwise(op: BitwiseBase, a: Port, b: Port) -> Layer:
    logical, combine = _COMBINED[op.type]
    if a.element_type == boolean:
        return logical(a, b)
    return _bit_by_bit(a, b, combine)


@lowers("BitwiseNot", 13)
def bitwise_not(op: BitwiseNot, data: Port) -> Layer:
    """Subtract from -1, or from the largest number of an unsigned type."""
    if data.element_type == boolean:
        return ops.logical_not(data)
    _require_whole_bytes(data.element_type)
    highest = -1 if data.element_type.kind == "signed" else 2**data.element_type.bits - 1
    return ops.subtract(scalar(highest, data.element_type), data)


@lowers("BitwiseLeftShift", 15)
def left_shift(op: BitwiseLeftShift, a: Port, b: Port) -> Layer:
    """Multiply in a wider type, and keep the low bits."""
    _require_whole_bytes(a.element_type)
    wide = a.element_type if a.element_type.bits >= 32 else i32
    factor = ops.power(scalar(2, wide), ops.convert(b, wide))
    product = ops.multiply(ops.convert(a, wide), factor)
    if wide == a.element_type:
        return product
    count = 2**a.element_type.bits
    below = scalar(count // 2 if a.element_type.kind == "signed" else 0, wide)
    kept = ops.subtract(ops.floor_mod(ops.add(product, below), scalar(count, wide)), below)
    return ops.convert(kept, a.element_type)


@lowers("BitwiseRightShift", 15)
def right_shift(op: BitwiseRightShift, a: Port, b: Port) -> Layer:
    _require_whole_bytes(a.element_type)
    wide = a.element_type if a.element_type.bits >= 32 else i32
    data, step = ops.convert(a, wide), ops.power(scalar(2, wide), ops.convert(b, wide))
    rest = ops.floor_mod(data, step)
    quotient = ops.divide(ops.subtract(data, rest), step)
    return ops.convert(quotient, a.element_type)


def _bit_by_bit(a: Port, b: Port, combine: Callable[[LayerOrPort, LayerOrPort], Layer]) -> Layer:
    """Combine the bits of two integers, each of which is a number in a new last dimension; the sign is the last one."""
    element_type = a.element_type
    _require_whole_bytes(element_type)
    if element_type == u64:
        refuse("older operations do not divide u64 into bits")
    bits, is_signed = element_type.bits, element_type.kind == "signed"
    wide = i32 if bits < 32 or element_type == i32 else i64
    steps = [2**bit for bit in range(bits - is_signed)]
    (first, below), (second, under) = (_bits(ops.convert(port, wide), steps, wide, is_signed) for port in (a, b))
    found = combine(first, second)
    if not is_signed:
        return ops.convert(_number(found, steps, wide), element_type)
    sign = combine(below, under)
    number = _number(_flipped(found, sign), steps, wide)
    flag = ops.equal(ops.squeeze(sign, [-1]), scalar(1, wide))
    return ops.convert(ops.select(flag, ops.subtract(scalar(-1, wide), number), number), element_type)


def _bits(item: Layer, steps: list[int], wide: ElementType, is_signed: bool) -> tuple[Layer, Layer]:
    """Return the bits of numbers in a new last dimension, and their signs.

    The bits of a negative number x are the inverse of those of -1 - x. So small numbers need small numbers only, as
    devices that compute with integers in f32 require.
    """
    column, step = ops.unsqueeze(item, [-1]), ops.constant(steps, wide)
    below = ops.less(column, scalar(0, wide))
    if is_signed:
        column = ops.select(below, ops.subtract(scalar(-1, wide), column), column)
    quotient = ops.divide(ops.subtract(column, ops.floor_mod(column, step)), step)
    found, sign = ops.floor_mod(quotient, scalar(2, wide)), ops.convert(below, wide)
    return (_flipped(found, sign) if is_signed else found), sign


def _flipped(bits: LayerOrPort, sign: LayerOrPort) -> Layer:
    """Return the bits, the other way round where the sign is 1."""
    return ops.abs(ops.subtract(bits, sign))


def _number(bits: LayerOrPort, steps: list[int], wide: ElementType) -> Layer:
    return ops.reduce_sum(ops.multiply(bits, ops.constant(steps, wide)), [-1], keep_dims=False)


def _require_whole_bytes(element_type: ElementType) -> None:
    if element_type.bits not in (8, 16, 32, 64):
        refuse(f"older operations do not compute with {element_type}")
