"""Matrices of codes in blocks, as the operators take them that onnxruntime contributes."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import i4, i8, u4, u8
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.compressed import Codes

_SIZES = 256, 128, 64, 32, 16
"""The sizes of blocks that onnxruntime takes."""
_USUAL = 128
"""The size of blocks where whole rows share a scale."""


class Blocks(NamedTuple):
    """A matrix ``(codes - zero_point) * scale`` with unsigned codes and one scale and zero point for each block."""

    codes: Codes
    bits: int
    size: int
    """The number of neighbors in a row that are a block; the last block of a row may be shorter."""
    columns: int
    scale: Array
    """f32 [rows, blocks]."""
    zero_point: Array
    """u8 [rows, blocks]."""

    def shape(self, bits: int) -> tuple[int, int, int]:
        """Return the shape of ``filled``."""
        return *self.scale.shape, self.size * bits // 8

    @property
    def rows(self) -> int:
        return len(self.scale)

    def numbers(self) -> Array:
        """Return the codes, unsigned, by row; with 4 bits two in a byte, the first one in the lower half."""
        found = self.codes.numbers.reshape(self.rows, -1).view(np.uint8)
        sign = {i4: 0x88, i8: 0x80}.get(self.codes.element_type)
        return found if sign is None else found ^ np.uint8(sign)

    def filled(self, bits: int, shift: int = 0) -> Array:
        """Return some bits of each code, from ``shift`` on, as [rows, blocks, bytes] of whole blocks."""
        numbers = self.numbers()
        if bits < self.bits:
            numbers = packed(numbers >> shift & 15)
        missing = prod(self.shape(bits)[1:]) - numbers.shape[1]
        return (np.pad(numbers, ((0, 0), (0, missing))) if missing else numbers).reshape(self.shape(bits))


def in_blocks(codes: Codes) -> Blocks | None:
    """Return codes of 4 or 8 bits in blocks; None if their groups have other sizes, or their zero points are not
    codes."""
    if codes.element_type not in (i4, u4, i8, u8):
        return None
    bits = codes.element_type.bits
    rows, groups, width = codes.numbers.shape
    group = width * 8 // bits
    is_signed = codes.element_type in (i4, i8)
    zero_point = codes.zero_point + (1 << bits - 1 if is_signed else 0)
    size = _USUAL if groups == 1 else next((size for size in _SIZES if group % size == 0), None)
    is_code = (zero_point == np.rint(zero_point)) & (zero_point >= 0) & (zero_point < 1 << bits)
    if size is None or not is_code.all():
        return None
    repeats = -(-group // size)
    scale, point = (np.repeat(values, repeats, axis=1) for values in (codes.scale, zero_point))
    return Blocks(codes, bits, size, groups * group, scale.reshape(rows, -1), point.astype(np.uint8))


def packed(numbers: Array) -> Array:
    """Return rows of numbers below 16, two in a byte, the first one in the lower half."""
    even = np.pad(numbers, ((0, 0), (0, 1))) if numbers.shape[1] % 2 else np.ascontiguousarray(numbers)
    pairs = even.view("<u2")
    return np.asarray(pairs | pairs >> 4).astype(np.uint8)


# --------------------------------------------------------------------------- nodes


def product(graph: Graph, a: Tensor, blocks: Blocks) -> Tensor:
    """Return the product of ``a``, f32 [..., columns], with the transposed matrix.

    onnxruntime computes products with 4-bit codes in f32 fast; with 8-bit codes it either rounds ``a`` to 8 bits or
    decompresses the matrix in each call. So 8-bit codes become two matrices of 4 bits, ``16 * high + low``.
    """
    scale, point = blocks.scale, blocks.zero_point
    if graph.rounds_products:
        return _product(graph, a, blocks, blocks.bits, 0, scale, point, accuracy_level=_INT8)
    if blocks.bits == 4:
        return _product(graph, a, blocks, 4, 0, scale, point)
    high = _product(graph, a, blocks, 4, 4, scale * np.float32(16), point >> 4)
    return graph.Add(high, _product(graph, a, blocks, 4, 0, scale, point & 15))


def _product(
    graph: Graph, a: Tensor, blocks: Blocks, bits: int, shift: int, scale: Array, point: Array, **attributes: Any
) -> Tensor:
    """Return the product with a matrix of some bits of each code, from ``shift`` on."""
    is_default = not (point != 1 << bits - 1).any()
    return graph.contributed(
        "MatMulNBits",
        a,
        graph.deferred(partial(blocks.filled, bits, shift), u8, blocks.shape(bits)),
        scale,
        None if is_default else _stored(point, bits),
        K=blocks.columns,
        N=blocks.rows,
        bits=bits,
        block_size=blocks.size,
        **attributes,
    )


def _stored(point: Array, bits: int) -> Array:
    return point if bits == 8 else packed(point)


_INT8 = 4
"""The level of accuracy of MatMulNBits that allows integers of 8 bits."""


def rows(graph: Graph, indices: Tensor, blocks: Blocks) -> Tensor:
    """Return the rows of the matrix that ``indices`` pick, in f32."""
    shape = blocks.rows, blocks.columns * blocks.bits // 8
    return graph.contributed(
        "GatherBlockQuantized",
        graph.deferred(blocks.numbers, u8, shape),
        indices,
        blocks.scale,
        _stored(blocks.zero_point, blocks.bits),
        bits=blocks.bits,
        block_size=blocks.size,
        gather_axis=0,
        quantize_axis=1,
    )
