"""Matrix products: how they are shared among threads, and constant matrices in pieces that BLAS multiplies as they lie.

BLAS runs on one thread here (see ``ovir.core.blas``).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.core.blas import has_small_products
from ovir.core.fast_calls import Call
from ovir.core.parallel import contiguous_copy, copy_in_blocks, threads
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts, shared_call

SHARED = 3 << 20
"""With this many multiply-accumulates per thread, a product is shared among threads: handing over to another thread
takes as long as some 500,000 of them."""

_ROWS_OF_A_READ = 2
"""A product of one row counts as one of so many rows when it is shared, because it takes as long as reading the matrix
from memory. Counted as one, a token of a decoder in f32 takes 1.25 times as long."""

_LARGEST_COPY = 4 << 20
"""The most bytes of a constant matrix that is copied to be multiplied faster."""
_MANY_ROWS, _LARGEST_COPY_FOR_MANY_ROWS = 32, 1 << 19
"""The same for so many rows: without a copy a product of them takes at most 1.2 times as long, and 0.9 times if it is
computed by columns; one of fewer rows takes up to 1.5 times as long. With copies up to the other size, the first call
of BERT takes 1.4 times as long."""

_FEW_ROWS = 128
"""The most rows with which the order of the operands of BLAS matters more than a copy of the product by rows, which is
made if it is an output of the model."""


def readable(binder: Binder, x: Array, form: str | None = None) -> Array:
    """Return ``x`` in an order that BLAS reads: itself, or a copy made in each run, or once for a constant, which has
    the name ``form``."""
    if is_readable(x):
        return x
    if form is not None:
        return binder.prepared(form, lambda: np.ascontiguousarray(x))
    copy = binder.scratch(x.shape, x.dtype)
    binder.call(np.copyto, copy, x)
    return copy


def prepared_matrices(binder: Binder, form: str, make: Callable[[], Array], nbytes: int, rows: int) -> Array:
    """Return constant matrices for so many rows in an order that BLAS reads: by rows, or large ones as they lie."""
    is_large = nbytes > _largest_copy(rows)
    return binder.prepared(f"{form} as it lies" if is_large else form, lambda: by_rows(make(), is_large))


def _largest_copy(rows: int) -> int:
    """Return the most bytes of a constant matrix that is copied for products with so many rows."""
    return _LARGEST_COPY if rows < _MANY_ROWS else _LARGEST_COPY_FOR_MANY_ROWS


def by_rows(matrices: Array, is_large: bool) -> Array:
    """Return matrices by rows, unless they are large and BLAS reads them."""
    stay = matrices.flags.c_contiguous or (is_large and is_readable(matrices))
    return matrices if stay else contiguous_copy(matrices)


def is_readable(x: Array) -> bool:
    """Return whether BLAS reads the matrices in the last two axes of ``x`` by rows or by columns."""
    size = x.itemsize
    rows, columns = x.shape[-2:]
    down, along = x.strides[-2:]
    by_rows = (along == size or columns == 1) and (down >= columns * size or rows == 1) and down % size == 0
    by_columns = (down == size or rows == 1) and (along >= rows * size or columns == 1) and along % size == 0
    return by_rows or by_columns


def bind_product(binder: Binder, a: Array, b: Array, out: Array) -> None:
    """Bind ``out = a @ b`` for matrices that BLAS can read; leading axes are a batch and are broadcast."""
    call_shares(binder, [product_calls(a, b, out)])


def goes_by_columns(a: Array, b: Array) -> bool:
    """Return whether a product with a constant matrix ``b`` is computed as ``b.T @ a.T``, which is the product by
    columns: if ``b`` lies by columns, and so does ``a`` or ``b`` is too large for pieces.

    OpenBLAS packs such a matrix faster as its first operand where it has AVX-512. As the second one, a product of 2 to
    16 rows with a matrix of 768 x 3072 takes 1.4 to 2.6 times as long, and one of 128 rows 1.2 times.
    """
    rows = prod(a.shape[:-1])
    if b.size > prod(b.shape[-2:]) or not _may_go_by_columns(rows, b) or not has_small_products():
        return False
    return _lies_by_columns(a) or (a.flags.c_contiguous and b.nbytes > _largest_copy(rows))


def stays_by_columns(rows: int, matrix: Array) -> bool:
    """Return whether a constant matrix is multiplied as it lies, with rows that can be made to lie by columns."""
    return _may_go_by_columns(rows, matrix) and matrix.nbytes > _largest_copy(rows)


def _may_go_by_columns(rows: int, b: Array) -> bool:
    """Return whether a matrix lies by columns, and so many rows make a large product with it, but not too large."""
    return 1 < rows <= _FEW_ROWS and rows * b.size > _SMALL and _lies_by_columns(b)


def _lies_by_columns(x: Array) -> bool:
    """Return whether ``x`` [..., columns] fills its memory column by column."""
    return bool(np.moveaxis(x, -1, 0).flags.c_contiguous)


def transposed(x: Array) -> Array:
    """Return a view [columns, rows] of all rows of ``x`` [..., columns], which lie by rows or by columns."""
    return np.moveaxis(x, -1, 0).reshape(x.shape[-1], -1)


def bind_constant_product(binder: Binder, a: Array, b: Array, out: Array) -> None:
    """Bind ``out = a @ b`` for constant matrices ``b`` of input 1; leading axes are a batch and are broadcast."""
    rows = prod(a.shape[:-1])
    if prod(b.shape[:-2]) == 1 and a.dtype == np.float32:
        x, matrix, result = _as_one_matrix(a, b, out)
        if x.ndim == result.ndim == 2 and x.strides[1] == x.itemsize:
            pieces = packed(binder, lambda: matrix, matrix.shape, rows, "b")
            if pieces is not None:
                call_shares(binder, [packed_calls(x, pieces, result)])
                return
    rows_of_each = rows if prod(b.shape[:-2]) == 1 else a.shape[-2]
    bind_product(binder, a, prepared_matrices(binder, "b", lambda: b, b.nbytes, rows_of_each), out)


def product_calls(a: Array, b: Array, out: Array) -> list[Call]:
    """Return the calls that compute ``out = a @ b``."""
    a, b, out = _as_one_matrix(a, b, out)
    work = out.size * a.shape[-1] * (_ROWS_OF_A_READ if a.shape[-2] == 1 else 1)
    workers = min(work // SHARED, threads())
    if workers < 2:
        return [product_call(a, b, out)]
    return [shared_call([[product_call(*part)] for part in _parts(a, b, out, workers)])]


def product_call(a: Array, b: Array, out: Array) -> Call:
    """Return the call that computes ``out = a @ b`` on one thread.

    ``np.matmul`` holds the interpreter's lock while it computes up to 500 elements, ``np.dot`` does not.
    """
    is_one_row = a.ndim == b.ndim == 2 and len(a) == 1 and out.flags.c_contiguous
    return (np.dot if is_one_row else np.matmul), (a, b, out)


def _as_one_matrix(a: Array, b: Array, out: Array) -> tuple[Array, Array, Array]:
    """Return the operands without a batch, if one matrix ``b`` serves the whole batch and its rows lie evenly."""
    *lead, rows, length = a.shape
    if prod(b.shape[:-2]) != 1 or prod(lead) == 1:
        if prod(out.shape[:-2]) == 1:
            return a.reshape(a.shape[-2:]), b.reshape(b.shape[-2:]), out.reshape(out.shape[-2:])
        return a, b, out
    if a.flags.c_contiguous and out.flags.c_contiguous:
        count = prod(lead) * rows
        return a.reshape(count, length), b.reshape(b.shape[-2:]), out.reshape(count, b.shape[-1])
    return a, b, out


def _parts(a: Array, b: Array, out: Array, workers: int) -> list[tuple[Array, Array, Array]]:
    """Split a product into parts of about the same size, one for each thread."""
    if out.ndim > 2 and out.shape[0] >= workers:
        places = cuts(out.shape[0], workers)
        return [(_along_batch(a, out.ndim, cut), _along_batch(b, out.ndim, cut), out[cut]) for cut in places]
    if out.shape[-2] >= out.shape[-1]:
        return [(a[..., cut, :], b, out[..., cut, :]) for cut in cuts(out.shape[-2], workers)]
    return [(a, b[..., cut], out[..., cut]) for cut in cuts(out.shape[-1], workers)]


def _along_batch(x: Array, ndim: int, cut: slice) -> Array:
    return x if x.ndim < ndim or x.shape[0] == 1 else x[cut]


# --------------------------------------------------------------------------- matrices in pieces

# OpenBLAS packs the second matrix of a large product first, which takes longer than the product itself if the first one
# has few rows. It multiplies small matrices as they lie in memory. So a constant is packed once, in pieces of columns
# each of which lies in one stretch of memory, and each product is a batch of small ones. With products as they are,
# resnet18_thin takes 1.29 times as long, and minilm_l6_v2_int8w 1.77 times.

_SMALL = 1_000_000
"""OpenBLAS multiplies without packing up to so many multiply-accumulates."""

_WIDTHS, _WHOLE = (64, 32, 16), 128
"""Columns of a piece, the fastest number first, and of a matrix that stays in one piece."""
_LEAST_ROWS, _MOST_ROWS = 8, 96
"""Rows that are multiplied with a piece at a time."""


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
    work, size_in_bytes = rows * length * columns, length * columns * 4
    if rows < 2 or work <= _SMALL or size_in_bytes > _largest_copy(rows) or not has_small_products():
        return None
    width = _width(rows, length, columns)
    if not width:
        return None
    flat = binder.prepared(f"{form} in pieces of {width}", lambda: _flat(matrix(), width))
    cut = columns // width * width * length
    pieces = flat[:cut].reshape(-1, length, width)
    return Packed(pieces, flat[cut:].reshape(length, -1), _block_height(rows, _SMALL // (length * width)))


def _width(rows: int, length: int, columns: int) -> int:
    """Return the number of columns of a piece, 0 if there is none with which BLAS does not pack."""
    widths = (columns, *_WIDTHS) if columns <= _WHOLE else _WIDTHS
    return next((w for w in widths if w <= columns and min(rows, _LEAST_ROWS) * length * w <= _SMALL), 0)


def _block_height(rows: int, most: int) -> int:
    """Return the number of rows of a block, at most ``most``: all, a divisor of their number, or a number that BLAS
    takes well."""
    most = min(most, _MOST_ROWS, rows)
    return next((h for h in range(most, most // 2, -1) if rows % h == 0), most - most % 4)


def _flat(matrix: Array, width: int) -> Array:
    """Return the elements of the pieces of a matrix, one piece after the other, and then the elements of the rest."""
    length, columns = matrix.shape
    cut = columns // width * width
    flat = np.empty(matrix.size, matrix.dtype)
    pieces = flat[: length * cut].reshape(-1, length, width)
    copy_in_blocks(pieces, matrix[:, :cut].reshape(length, -1, width).swapaxes(0, 1))
    np.copyto(flat[length * cut :].reshape(length, -1), matrix[:, cut:])
    return flat


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


# --------------------------------------------------------------------------- products with constant filters

Product = Callable[[Array, Array, bool], list[Call]]
"""Returns the calls that multiply rows with the filters, shared among threads or not."""


def filter_product(binder: Binder, form: str, make: Callable[[], Array], depth: int, rows: Array) -> Product:
    """Return the product of rows [rows, length], or [groups, rows, length], with constant matrices [groups, length,
    depth], whose name is ``form``."""
    if rows.ndim == 2 and rows.dtype == np.float32 and rows.itemsize in rows.strides:
        matrix = packed(binder, lambda: make()[0], (rows.shape[1], depth), len(rows), form)
        if matrix is not None:
            return lambda a, out, shared: (packed_calls if shared else piece_calls)(a, matrix, out)
    size = prod(rows.shape[:-2]) * rows.shape[-1] * depth * rows.itemsize
    weights = prepared_matrices(binder, form, make, size, rows.shape[-2])
    return product_with(weights if rows.ndim > 2 else weights[0])


def product_with(weights: Array) -> Product:
    """Return the product of rows with matrices that stay as they lie in memory."""
    return lambda a, out, shared: product_calls(a, weights, out) if shared else [(np.matmul, (a, weights, out))]
