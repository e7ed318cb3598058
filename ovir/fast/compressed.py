"""Products with weights that stay as the file holds them: blocks of them become f32 in the cache of a core, where they
are multiplied.

One row times a matrix takes as long as reading the matrix from memory. Codes of 4, 8 and 16 bits are read in an eighth
to half of the time, and what turns them into f32 works in the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import prod
from typing import Protocol

import numpy as np

from ovir.core import float16
from ovir.core.arrays import Array
from ovir.core.element_types import u4, u8
from ovir.core.parallel import run_blocks
from ovir.fast.base.binder_protocol import cuts
from ovir.fast.registry import fast_kernel
from ovir.ops.base.operator import Kernel
from ovir.ops.compressed import Codes, CompressedMatMul, CompressedWeights, blocks
from ovir.ops.matmul import oriented

_FEW = 8
"""With up to so many rows, the sums of each group of codes are scaled, and with more rows the codes."""
_LARGEST_FACTOR = np.float32(2.0**90)
"""Sums of larger numbers might overflow before they are scaled."""
_BLOCK_BYTES = 1 << 19
"""The bytes of the weights of a block. Threads that work on smaller ones wait for each other, because each NumPy call
takes the lock of the interpreter. In blocks twice as large, a product with f16 takes 1.3 times as long."""
_CODE_BYTES = 3 << 18
"""The same for codes of 4 and 8 bits, which need more calls: in blocks of 512 kB, a token of a decoder with codes of 4
bits takes 1.1 times as long. Larger blocks take more memory than they gain."""


@fast_kernel(CompressedMatMul)
def compressed_matmul(op: CompressedMatMul) -> Kernel:
    return partial(_product, op, cache(partial(_matrix_of, op)))


def _product(op: CompressedMatMul, matrix: Callable[[], _Matrix | None], a: Array) -> Array:
    weights, x = op.weights, oriented(a, op.transpose_a)
    fits = len(weights.shape) == 2 and x.shape[-1] == weights.shape[1 if op.transpose_b else 0]
    ready = matrix() if fits and a.size else None
    if ready is None:
        return _by_panels(op, x)
    out = np.empty((*x.shape[:-1], weights.shape[0 if op.transpose_b else 1]), np.float32)
    _multiply(ready, np.ascontiguousarray(x).reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1]))
    return out


_PANEL = 1 << 22
"""The number of elements that are decompressed at a time where no form of a matrix serves."""


def _by_panels(op: CompressedMatMul, x: Array) -> Array:
    """Return the product. A panel of slices of the weights gives columns of it, a term, or a part of the batch."""
    weights = op.weights
    *batch, length, columns = weights.shape
    if op.transpose_b:
        length, columns = columns, length
    is_aligned = not batch or x.ndim < 3 or (x.ndim == 3 and x.shape[0] in (1, *batch))
    if x.shape[-1] != length or not is_aligned or not weights.has_slices:
        return op.run(oriented(x, op.transpose_a))  # which also reports shapes that do not match
    result = np.zeros((*np.broadcast_shapes(x.shape[:-2], batch), *x.shape[-2:-1], columns), np.float32)
    for rows in blocks(weights.shape, _PANEL):
        panel = weights.slices(rows)
        if batch:
            part = x if x.ndim < 3 or len(x) == 1 else x[rows]
            result[rows] = np.matmul(part, oriented(panel, op.transpose_b))
        elif op.transpose_b:
            result[..., rows] = np.matmul(x, panel.T)
        else:
            result += np.matmul(x[..., rows], panel)
    return result


class _Matrix(Protocol):
    """A matrix [length, columns] that is multiplied in blocks of columns."""

    nbytes: int
    """The bytes of its weights."""
    block_bytes: int
    """The bytes of the weights of a block."""

    def terms(self, x: Array) -> tuple[Array, ...]:
        """Return arrays made from the rows [rows, length] that all blocks share."""

    def multiply(self, terms: tuple[Array, ...], block: slice, out: Array) -> None:
        """Write the product with a block of columns to ``out``."""


def _matrix_of(op: CompressedMatMul) -> _Matrix | None:
    weights = op.weights
    if weights.numbers is not None:
        return _Narrow(weights.numbers.T if op.transpose_b else weights.numbers)
    if not op.transpose_b:
        return None
    if weights.codes is not None:
        return _Groups(weights.codes)
    return _Slices(weights) if weights.has_slices else None


def _multiply(matrix: _Matrix, x: Array, out: Array) -> None:
    # Two threads have the same work.
    count = 2 * -(-matrix.nbytes // (2 * matrix.block_bytes)) if matrix.nbytes > _BLOCK_BYTES else 1
    places = cuts(out.shape[1], count)
    terms = matrix.terms(x)

    def run(start: int, stop: int) -> None:
        for place in places[start:stop]:
            matrix.multiply(terms, place, out[:, place])

    run_blocks(run, len(places))


_local = threading.local()


def _workspace(shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> Array:
    """Return an array of this thread, whose contents last until the next call for the same type."""
    arrays: dict[str, Array] = vars(_local)
    array = arrays.get(dtype.__name__)
    if array is None or array.size < prod(shape):
        array = arrays[dtype.__name__] = np.empty(prod(shape), dtype)
    return array[: prod(shape)].reshape(shape)


# --------------------------------------------------------------------------- weights in any form, and of 16 bits


class _Slices:
    """Weights whose slices along the first axis are columns of the matrix."""

    block_bytes = _BLOCK_BYTES

    def __init__(self, weights: CompressedWeights) -> None:
        self._weights = weights
        self.nbytes = sum(array.nbytes for array in weights.stored())

    def terms(self, x: Array) -> tuple[Array, ...]:
        return (x,)

    def multiply(self, terms: tuple[Array, ...], block: slice, out: Array) -> None:
        columns = _workspace((block.stop - block.start, self._weights.shape[1]))
        self._weights.fill(block.start, columns)
        np.matmul(terms[0], columns.T, out=out)


class _Narrow:
    """A matrix in f16 or bf16, by rows or by columns.

    The bits of finite f16, shifted into place, represent 2^-112 of them in f32; the rows make up for it.
    """

    block_bytes = _BLOCK_BYTES

    def __init__(self, matrix: Array) -> None:
        self._is_transposed = matrix.strides[0] < matrix.strides[1]
        self._matrix = matrix
        self.nbytes = matrix.nbytes
        self._is_finite: bool | None = None if matrix.dtype == np.float16 else False

    def terms(self, x: Array) -> tuple[Array, ...]:
        if self._is_finite is None:
            self._is_finite = _is_finite(self._matrix)
        scaled = x * float16.OFFSET if self._is_finite else x
        return (x, scaled) if self._is_finite and np.isfinite(scaled).all() else (x,)

    def multiply(self, terms: tuple[Array, ...], block: slice, out: Array) -> None:
        source = self._matrix[:, block].T if self._is_transposed else self._matrix[:, block]
        target = _workspace(source.shape)
        (float16.shift if len(terms) > 1 else float16.copy)(source, target)
        np.matmul(terms[-1], target.T if self._is_transposed else target, out=out)


def _is_finite(matrix: Array) -> bool:
    """Return whether f16 have neither infinities nor NaN, whose bits are the largest of each sign."""
    rows = matrix if matrix.flags.c_contiguous else matrix.T
    bits = rows.view(np.int16)
    parts = cuts(len(bits), -(-bits.nbytes // _BLOCK_BYTES))
    return all(bits[b].max() < 0x7C00 and bits[b].view(np.uint16).max() < 0xFC00 for b in parts)


# --------------------------------------------------------------------------- weights in groups of 4 or 8 bits


class _Groups:
    """Codes with scales and zero points for groups, whose columns are rows of the file.

    A byte of two 4-bit codes is two *planes*: the lower halves of all bytes, and the upper halves. Codes of 8 bits are
    one plane.
    """

    block_bytes = _CODE_BYTES

    def __init__(self, codes: Codes) -> None:
        self._numbers = codes.numbers
        self.nbytes = codes.numbers.nbytes
        self._type = codes.element_type
        self._planes = 8 // codes.element_type.bits
        self._groups, self._size = codes.numbers.shape[1:]
        # Codes of 4 bits are read as the upper half of a byte, which is 16 times as large. Unsigned ones are moved to
        # the middle of their range, so that sums lose no digits to the zero point.
        middle, factor = (8 if codes.element_type == u4 else 0), (16 if self._planes > 1 else 1)
        zero_point = (codes.zero_point - middle) * factor
        self._scale = np.ascontiguousarray(codes.scale.T) / np.float32(factor)
        self._zero_point = np.ascontiguousarray(zero_point.T, np.float32) if zero_point.any() else None
        # To move codes of 8 bits would take as long as to multiply them. So the rows are moved, until their mean is 0.
        self._moves_rows = codes.element_type == u8
        self._totals: dict[tuple[int, int], Array] = {}

    def terms(self, x: Array) -> tuple[Array, ...]:
        """Return the rows in planes, and if the sums are scaled and not the codes, the sums of the groups of the rows
        as they are now, and what the rows have been moved by."""
        rows = x.reshape(len(x), self._groups, self._size, self._planes)
        planes = np.ascontiguousarray(rows.transpose(3, 1, 0, 2))
        is_small = x.max() < _LARGEST_FACTOR and x.min() > -_LARGEST_FACTOR
        if not is_small or (len(x) > _FEW and self._groups > 1):
            return (planes,)
        if not self._moves_rows:
            return planes, planes.sum((0, 3))
        means = planes.mean(3, keepdims=True)
        planes = planes - means
        return planes, planes.sum((0, 3)), means[0]

    def multiply(self, terms: tuple[Array, ...], block: slice, out: Array) -> None:
        planes, *sums = terms
        scale = self._scale[:, block]
        zero_point = None if self._zero_point is None else self._zero_point[:, block]
        parts = zip(planes, self._codes(self._numbers[block]), strict=True)
        if sums:
            products = sum(_products(rows, codes) for rows, codes in parts)
            if zero_point is not None:
                products -= sums[0][:, :, np.newaxis] * zero_point[:, np.newaxis]
            if self._moves_rows:
                products += sums[1] * self._total(block)
            products *= scale[:, np.newaxis]
            products.sum(0, out=out)
            return
        out[...] = 0
        for rows, codes in parts:
            weights = _in_f32(codes)
            if zero_point is not None:
                np.subtract(weights, zero_point.T[:, :, np.newaxis], out=weights)
            np.multiply(weights, scale.T[:, :, np.newaxis], out=weights)
            out += rows.swapaxes(0, 1).reshape(rows.shape[1], -1) @ weights.reshape(len(weights), -1).T

    def _total(self, block: slice) -> Array:
        """Return the sums of groups of a block's weights before they are scaled [groups, 1, columns].

        The first time, its codes are in the workspace as f32."""
        place = block.start, block.stop
        if place not in self._totals:
            codes = _workspace(self._numbers[block].shape).transpose(1, 2, 0)
            total = np.matmul(np.ones((self._groups, 1, self._size), np.float32), codes)
            if self._zero_point is not None:
                total -= self._zero_point[:, np.newaxis, block] * np.float32(self._size)
            self._totals[place] = total
        return self._totals[place]

    def _codes(self, numbers: Array) -> Iterator[Array]:
        """Yield the codes of some columns, bytes [columns, groups, size], plane by plane in the same memory."""
        if self._planes == 1:
            yield numbers.view(np.uint8 if self._type == u8 else np.int8)
            return
        if self._type == u4:
            numbers = np.bitwise_xor(numbers, 0x88, out=_workspace(numbers.shape, np.uint8))
        moved = _workspace(numbers.shape, np.int8)
        # NumPy multiplies bytes ten times as fast as it shifts them, with which a product takes 1.45 times as long.
        np.multiply(numbers, 16, out=moved.view(np.uint8))
        yield moved
        np.bitwise_and(numbers, 0xF0, out=moved.view(np.uint8))
        yield moved


def _products(rows: Array, codes: Array) -> Array:
    """Return the products [groups, rows, columns] of rows [groups, rows, size] and codes [columns, groups, size]."""
    products: Array = np.matmul(rows, _in_f32(codes).transpose(1, 2, 0))
    return products


def _in_f32(codes: Array) -> Array:
    weights = _workspace(codes.shape)
    np.copyto(weights, codes)
    return weights
