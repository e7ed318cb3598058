"""Products with weights that stay as the file holds them: blocks of them become f32 in the cache of a core, where they
are multiplied.

They take an eighth to half of the memory of f32. To turn them into f32 takes longer than the product, so one row takes
1.2 to 2.5 times as long as with f32.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import accumulate
from math import prod
from typing import Protocol, TypeVar

import numpy as np

from ovir.core import float16
from ovir.core.arrays import Array
from ovir.core.parallel import run_blocks
from ovir.fast.base.binder_protocol import cuts
from ovir.fast.registry import fast_kernel
from ovir.ops.base.operator import Kernel
from ovir.ops.compressed import Codes, CompressedMatMul, CompressedWeights, JoinedMatMul, blocks
from ovir.ops.matmul import oriented

T = TypeVar("T")

_ROWS = 10
"""The sums of groups are scaled, and not their codes, if a group has at least so many bytes of codes for each row."""
_BLOCK = 3 << 17
"""The weights of a block, which are 1.5 MB in f32. Threads that work on smaller ones wait for each other, because each
NumPy call takes the lock of the interpreter, and larger ones are not in a core's cache when they are multiplied."""
_SHARED = 5 << 17
"""The number of weights that one row is multiplied with in the time that a thread takes to start and end. If threads
share fewer, a token with codes of 4 bits takes 1.04 times as long."""
_COLUMNS, _LARGEST_BLOCK = 512, 3 << 19
"""The columns of a block for many rows, which BLAS arranges anew for each block, and its most weights. A product of 128
rows and 4096 x 4096 codes of 4 bits takes 0.77 times as long as in blocks of ``_BLOCK``."""
_SUMS = 1 << 20
"""The sums of groups that one thread scales together. If each thread scaled the sums of its blocks, the threads would
wait for each other, and a token with codes of 8 bits would take 1.2 times as long."""


@fast_kernel(CompressedMatMul, JoinedMatMul)
def compressed_matmul(op: CompressedMatMul | JoinedMatMul) -> Kernel:
    products = op.products if isinstance(op, JoinedMatMul) else (op,)
    return partial(_multiply, products, cache(partial(_matrix_of, products)))


def _multiply(
    products: Sequence[CompressedMatMul], matrix: Callable[[], _Matrix | None], a: Array
) -> tuple[Array, ...]:
    """Return products of one array; ``matrix`` returns the matrices side by side."""
    first = products[0]
    x, shapes = oriented(a, first.transpose_a), [op.weights.shape for op in products]
    length, columns = (1, 0) if first.transpose_b else (0, 1)
    stops = list(accumulate(shape[columns] for shape in shapes))
    fits = len(shapes[0]) == 2 and x.shape[-1] == shapes[0][length]
    shape = *x.shape[:-1], stops[-1]
    if fits and not a.size:
        out = np.zeros(shape, np.float32)
    elif fits and stops[-1] and (ready := matrix()) is not None:
        out = np.empty(shape, np.float32)
        ready.multiply(np.ascontiguousarray(x).reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1]))
    else:
        return tuple([_by_panels(op, x) for op in products])
    return (out,) if len(products) == 1 else tuple(np.split(out, stops[:-1], -1))


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
    """A matrix [length, columns]."""

    def multiply(self, x: Array, out: Array) -> None:
        """Write the product with rows [rows, length] to ``out``."""


def _matrix_of(products: Sequence[CompressedMatMul]) -> _Matrix | None:
    op, weights = products[0], products[0].weights
    if weights.numbers is not None:
        return _Narrow(weights.numbers.T if op.transpose_b else weights.numbers)
    if not op.transpose_b:
        return None
    if op.form is not None:
        return _Groups([codes for op in products if (codes := op.weights.codes) is not None])
    return _Slices(weights) if weights.has_slices else None


def _places(shape: tuple[int, int], block: int) -> list[slice]:
    """Return blocks of the columns of a matrix [length, columns], each of about so many elements."""
    elements = prod(shape)
    # Two threads have the same work.
    return cuts(shape[1], 2 * -(-elements // (2 * block)) if elements > _BLOCK else 1)


def _for_blocks(work: Callable[[T], None], blocks: Sequence[T], least: int = 1) -> None:
    """Call a function on blocks; no thread is started for fewer than ``least`` of them."""

    def run(start: int, stop: int) -> None:
        for block in blocks[start:stop]:
            work(block)

    run_blocks(run, len(blocks), least)


_local = threading.local()


def _workspace(shape: tuple[int, ...]) -> Array:
    """Return an f32 array of this thread, whose contents last until the next call."""
    size = prod(shape)
    array: Array | None = getattr(_local, "array", None)
    if array is None or array.size < size:
        array = _local.array = np.empty(size, np.float32)
    return array[:size].reshape(shape)


# --------------------------------------------------------------------------- weights in any form, and of 16 bits


class _Slices:
    """Weights whose slices along the first axis are columns of the matrix."""

    def __init__(self, weights: CompressedWeights) -> None:
        self._weights = weights

    def multiply(self, x: Array, out: Array) -> None:
        def work(block: slice) -> None:
            columns = _workspace((block.stop - block.start, x.shape[1]))
            self._weights.fill(block.start, columns)
            out[:, block] = np.matmul(columns, x.T).T

        _for_blocks(work, _places((x.shape[1], out.shape[1]), _BLOCK))


class _Narrow:
    """A matrix in f16 or bf16, by rows or by columns.

    The bits of finite f16, shifted into place, represent 2^-112 of them in f32; the rows make up for it.
    """

    def __init__(self, matrix: Array) -> None:
        self._is_transposed = matrix.strides[0] < matrix.strides[1]
        self._matrix = matrix
        self._is_finite: bool | None = None if matrix.dtype == np.float16 else False

    def multiply(self, x: Array, out: Array) -> None:
        if self._is_finite is None:
            self._is_finite = _is_finite(self._matrix)
        scaled = x * float16.OFFSET if self._is_finite else x
        shifts = self._is_finite and bool(np.isfinite(scaled).all())
        rows, fill = (scaled, float16.shift) if shifts else (x, float16.copy)

        def work(block: slice) -> None:
            source = self._matrix[:, block].T if self._is_transposed else self._matrix[:, block]
            target = _workspace(source.shape)
            fill(source, target)
            out[:, block] = np.matmul(target, rows.T).T if self._is_transposed else np.matmul(rows, target)

        _for_blocks(work, _places(self._matrix.shape, _BLOCK))


def _is_finite(matrix: Array) -> bool:
    """Return whether f16 have neither infinities nor NaN, whose bits are the largest of each sign."""
    rows = matrix if matrix.flags.c_contiguous else matrix.T
    bits = rows.view(np.int16)
    parts = cuts(len(bits), -(-bits.size // _BLOCK))
    return all(bits[b].max() < 0x7C00 and bits[b].view(np.uint16).max() < 0xFC00 for b in parts)


# --------------------------------------------------------------------------- weights in groups of 4 or 8 bits


def _blocks_of(matrices: Sequence[Array], length: int, block: int) -> list[tuple[slice, Array]]:
    """Return blocks of the columns of matrices side by side, each of about so many codes or less, and their codes."""
    most = _places((length, sum(map(len, matrices))), block)[0].stop
    found, first = [], 0
    for numbers in matrices:
        for place in cuts(len(numbers), -(-len(numbers) // most)):
            found.append((slice(first + place.start, first + place.stop), numbers[place]))
        first += len(numbers)
    return found


class _Groups:
    """Codes with scales and zero points for groups, whose columns are rows of the file.

    A byte of two 4-bit codes is two *planes*: the lower halves of all bytes, and the upper halves. Codes of 8 bits are
    one plane.
    """

    def __init__(self, matrices: Sequence[Codes]) -> None:
        first = matrices[0]
        self._is_unsigned = first.element_type.kind == "unsigned"
        self._type = np.dtype(np.uint8 if self._is_unsigned else np.int8)
        self._planes = 8 // first.element_type.bits
        self._groups, self._size = first.numbers.shape[1:]
        self._numbers = [codes.numbers.view(self._type) for codes in matrices]
        # Codes of 4 bits are read as the upper half of a byte, which is 16 times as large.
        factor = np.float32(16 if self._planes > 1 else 1)
        self._scale = np.concatenate([codes.scale.T for codes in matrices], 1) / factor
        zero_point = np.concatenate([codes.zero_point.T for codes in matrices], 1) * factor
        self._zero_point = zero_point if zero_point.any() else None
        self._total: Array | None = None
        """The sums of the columns, from the first product on."""
        self._blocks = cache(partial(_blocks_of, self._numbers, self._planes * self._groups * self._size))

    def multiply(self, x: Array, out: Array) -> None:
        # Finite squares, so that sums cannot overflow before they are scaled.
        if _ROWS * len(x) > self._size or not np.vdot(x, x) < np.inf:
            self._multiply_weights(x, out)
        elif self._zero_point is None:
            self._multiply_codes(x, out)
        else:
            self._multiply_centered(x, out)

    def _multiply_centered(self, x: Array, out: Array) -> None:
        """Write the product with rows whose mean is 0, where sums lose no digits to the zero point, and add the rest.

        To move the codes would take as long as to multiply them.
        """
        if self._total is None:
            total = np.empty((1, out.shape[1]), np.float32)
            self._multiply_codes(np.ones_like(x[:1]), total)
            self._total = total
        means = np.add.reduce(x, 1, keepdims=True) / np.float32(x.shape[1])
        self._multiply_codes(x - means, out, means)

    def _multiply_codes(self, x: Array, out: Array, means: Array | None = None) -> None:
        """Write the product, for which the sums of the groups are scaled, with rows to which ``means`` are added."""
        rows, blocks = self._in_planes(x), self._blocks(_BLOCK)
        totals = np.add.reduce(rows, (0, 2))[:, np.newaxis]
        for part in cuts(len(blocks), -(-rows[:, :, 0].size * out.shape[1] // _SUMS)):
            columns = slice(blocks[part.start][0].start, blocks[part.stop - 1][0].stop)
            sums = np.empty((self._planes, self._groups, columns.stop - columns.start, len(x)), np.float32)

            def work(block: tuple[slice, Array], sums: Array = sums, first: int = columns.start) -> None:
                place, numbers = block
                target = sums[:, :, place.start - first : place.stop - first]
                np.matmul(self._in_f32(numbers).swapaxes(1, 2), rows, out=target)

            _for_blocks(work, blocks[part], -(-_SHARED * len(blocks) // (out.size * x.shape[1])))
            products = sums[0]
            for plane in sums[1:]:
                products += plane
            if self._zero_point is not None:
                products -= totals * self._zero_point[:, columns, np.newaxis]
            products *= self._scale[:, columns, np.newaxis]
            np.add.reduce(products, 0, out=out[:, columns].T)
            if means is not None and self._total is not None:
                out[:, columns] += means * self._total[:, columns]

    def _multiply_weights(self, x: Array, out: Array) -> None:
        """Write the product, for which the weights are scaled."""
        rows = self._in_planes(x).reshape(self._planes, -1, len(x))

        def work(block: tuple[slice, Array]) -> None:
            place, numbers = block
            weights = self._in_f32(numbers)
            if self._zero_point is not None:
                weights -= self._zero_point.T[place, :, np.newaxis]
            weights *= self._scale.T[place, :, np.newaxis]
            out[:, place] = np.matmul(weights.reshape(*weights.shape[:2], -1), rows).sum(0).T

        _for_blocks(work, self._blocks(min(max(_COLUMNS * x.shape[1], _BLOCK), _LARGEST_BLOCK)))

    def _in_planes(self, x: Array) -> Array:
        """Return rows as [planes, groups, size, rows]."""
        rows = x.reshape(len(x), self._groups, self._size, self._planes)
        return np.ascontiguousarray(rows.transpose(3, 1, 2, 0))

    def _in_f32(self, codes: Array) -> Array:
        """Return the codes of some columns [planes, columns, groups, size], in the workspace of this thread."""
        weights = _workspace((self._planes, *codes.shape))
        if self._planes == 1:
            np.copyto(weights[0], codes)
            return weights
        # NumPy multiplies bytes ten times as fast as it shifts them. It converts the results while they are in the
        # innermost cache, so that threads wait for each other less often than with a call for each conversion.
        lower, upper = weights
        np.multiply(codes, 16, out=lower, casting="unsafe", dtype=self._type)
        np.bitwise_and(codes, 0xF0 if self._is_unsigned else -16, out=upper, casting="unsafe", dtype=self._type)
        return weights
