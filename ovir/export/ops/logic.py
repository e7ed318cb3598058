"""Logical operations on booleans, and bitwise operations."""

from __future__ import annotations

from ovir.core.element_types import ElementType, boolean, i64, u1, u3, u6, u8, u32, u64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops import logic as ops

_RANGE = "shifts by less than 0 or by more places than the type has are undefined"


@exports(ops.LogicalAnd, to="And")
@exports(ops.LogicalOr, to="Or")
@exports(ops.LogicalXor, ops.Xor, to="Xor")
@exports(ops.LogicalNot, to="Not")
@exports(ops.BitwiseAnd, to="{}; boolean: And")
@exports(ops.BitwiseOr, to="{}; boolean: Or")
@exports(ops.BitwiseXor, to="{}; boolean: Xor")
def logical(graph: Graph, op: ops.LogicalBase | ops.LogicalNot | ops.BitwiseBase, *inputs: Tensor) -> Tensor:
    operator = op.type.removeprefix("Logical")
    if inputs[0].element_type == boolean:
        operator = operator.removeprefix("Bitwise")
    return graph.node(operator, *inputs)[0]


@exports(ops.BitwiseNot, to="BitwiseNot; boolean: Not; before opset 18, and for narrow types: Sub")
def bitwise_not(graph: Graph, op: ops.BitwiseNot, data: Tensor) -> Tensor:
    element_type = op.output_types[0]
    if element_type == boolean:
        return graph.Not(data)
    if graph.has("BitwiseNot") and element_type.bits >= 8:
        return graph.BitwiseNot(data)
    if element_type.kind == "signed":
        return graph.Sub(graph.number(-1, element_type), data)
    return graph.Sub(graph.number((1 << element_type.bits) - 1, data.element_type), data)


@exports(ops.BitwiseLeftShift, to="BitShift", limits=_RANGE)
def left_shift(graph: Graph, op: ops.BitwiseLeftShift, a: Tensor, b: Tensor) -> Tensor:
    """Export as BitShift of the same bits as an unsigned type."""
    wide = _unsigned(a.element_type)
    shifted = graph.BitShift(graph.cast(a, wide), graph.cast(b, wide), direction="LEFT")
    return graph.wrapped(shifted, op.output_types[0])


@exports(ops.BitwiseRightShift, to="BitShift, with negative integers inverted before and after it", limits=_RANGE)
def right_shift(graph: Graph, op: ops.BitwiseRightShift, a: Tensor, b: Tensor) -> Tensor:
    """Export as BitShift; of a negative number, all bits are inverted before and after it."""
    element_type, wide = a.element_type, _unsigned(a.element_type)
    places = graph.cast(b, wide)
    if element_type.kind == "unsigned":
        return graph.BitShift(graph.cast(a, wide), places, direction="RIGHT")
    signed = graph.cast(a, i64)
    size = graph.Where(graph.Less(signed, 0), graph.Sub(-1, signed), signed)
    shifted = graph.cast(graph.BitShift(graph.cast(size, wide), places, direction="RIGHT"), i64)
    return graph.Where(graph.Less(signed, 0), graph.Sub(-1, shifted), shifted)


def _unsigned(element_type: ElementType) -> ElementType:
    """Return an unsigned type of at least as many bits for which onnxruntime shifts."""
    if element_type in (u1, u3, u6, u8):
        return u8
    return u64 if element_type.bits == 64 else u32
