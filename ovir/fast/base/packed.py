"""Products with a constant matrix whose columns are stored in pieces, each of which lies in one stretch of memory.

OpenBLAS packs the second matrix of a large product first, which takes longer than the product itself if the first one
has few rows. It multiplies small matrices as they lie in memory. So the constant is packed once, and each product is a
batch of small ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, Call, cuts, shared_call
from ovir.kernels.blas import has_small_products
from ovir.kernels.parallel import threads

SHARED = 3 << 20
"""With this many multiply-accumulates per thread, a product is shared among threads: handing over to another thread
takes as long as some 500,000 of them."""
SMALL = 1_000_000
"""OpenBLAS multiplies without packing up to so many multiply-accumulates."""

# Below this many multiply-accumulates, one product is as fast, even if the rows of the matrix are long.
_LEAST = 400_000
# Columns of a piece, the fastest number first, and of a matrix that stays in one piece.
_WIDTHS, _WHOLE = (64, 32, 16), 128
# The most rows that are multiplied with a piece at a time.
_MOST_ROWS = 96
# So few rows are multiplied with each piece at once, more rows in blocks of at least so many.
_FEW_ROWS, _LEAST_ROWS = 16, 8
# Constants of more bytes than this are not copied: with few rows, where packing takes most of the time, and with many.
_LARGEST, _LARGEST_MANY, _MANY_ROWS = 16 << 20, 4 << 20, 64


class Packed(NamedTuple):
    """A constant matrix [length, columns] as pieces of columns [pieces, length, width], and the columns left over."""

    pieces: Array
    rest: Array
    height: int
    """The number of rows that are multiplied with a piece at a time."""


def packed(binder: Binder, matrix: Callable[[], Array], size: tuple[int, int], rows: int, form: str) -> Packed | None:
    """Return the constant f32 matrix of a size for products with so many rows; None if this does not pay.

    ``form`` is the name of the matrix among the constants of the layer.
    """
    length, columns = size
    limit = _LARGEST if rows <= _MANY_ROWS else _LARGEST_MANY
    least = SMALL if columns <= _WHOLE else _LEAST
    if rows < 2 or rows * length * columns <= least or length * columns * 4 > limit or not has_small_products():
        return None
    width = _width(rows, length, columns)
    if not width:
        return None
    flat = binder.prepared(f"{form} in pieces of {width}", lambda: _flat(matrix(), width))
    cut = columns // width * width * length
    pieces = flat[:cut].reshape(-1, length, width)
    return Packed(pieces, flat[cut:].reshape(length, -1), block_height(rows, SMALL // (length * width)))


def _width(rows: int, length: int, columns: int) -> int:
    """Return the number of columns of a piece, 0 if there is none with which BLAS does not pack."""
    widths = (columns, *_WIDTHS) if columns <= _WHOLE else _WIDTHS
    least = rows if rows <= _FEW_ROWS else _LEAST_ROWS
    return next((w for w in widths if w <= columns and least * length * w <= SMALL), 0)


def block_height(rows: int, most: int) -> int:
    """Return the number of rows of a block, at most ``most``: all, a divisor of their number, or a number that BLAS
    takes well."""
    most = min(most, _MOST_ROWS)
    if rows <= most:
        return rows
    return next((h for h in range(most, most // 2, -1) if rows % h == 0), most - most % 4)


def _flat(matrix: Array, width: int) -> Array:
    """Return the elements of the pieces of a matrix, one piece after the other, and then the elements of the rest."""
    cut = matrix.shape[1] // width * width
    pieces = matrix[:, :cut].reshape(len(matrix), -1, width).swapaxes(0, 1)
    return np.concatenate([pieces.reshape(-1), matrix[:, cut:].reshape(-1)], dtype=np.float32)


def packed_calls(a: Array, matrix: Packed, out: Array) -> list[Call]:
    """Return the calls that compute ``out = a @ matrix`` for matrices by rows; large products are shared among
    threads."""
    work = out.size * a.shape[1]
    workers = min(work // SHARED, threads())
    if workers < 2:
        return piece_calls(a, matrix, out)
    if len(a) >= out.shape[1] or len(matrix.pieces) < workers:
        return [shared_call([piece_calls(a[rows], matrix, out[rows]) for rows in cuts(len(a), workers)])]
    width = matrix.pieces.shape[-1]
    shares = []
    for place in cuts(len(matrix.pieces), workers):
        stop = place.stop * width if place.stop < len(matrix.pieces) else out.shape[1]
        rest = matrix.rest if stop == out.shape[1] else matrix.rest[:, :0]
        part = Packed(matrix.pieces[place], rest, matrix.height)
        shares.append(piece_calls(a, part, out[:, place.start * width : stop]))
    return [shared_call(shares)]


def piece_calls(a: Array, matrix: Packed, out: Array) -> list[Call]:
    """Return the calls that compute ``out = a @ matrix`` on one thread."""
    pieces, rest, height = matrix
    count, length, width = pieces.shape
    height = min(height, len(a))
    calls: list[Call] = []
    for place in (slice(0, len(a) // height * height), slice(len(a) // height * height, len(a))):
        rows, into = a[place], out[place]
        if not len(rows):
            continue
        each = min(height, len(rows))
        blocks = rows.reshape(-1, each, length)
        target = into[:, : count * width].reshape(-1, each, count, width).transpose(2, 0, 1, 3)
        calls.append((np.matmul, (blocks, pieces[:, np.newaxis], target)))
        if rest.size:
            calls.append((np.matmul, (blocks, rest, into[:, count * width :].reshape(-1, each, rest.shape[1]))))
    return calls
