"""Matrix products of bound operations: which of them BLAS computes at once, and which threads share.

BLAS runs on one thread here (see ``ovir.kernels.blas``).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, Call, call_shares, cuts, shared_call
from ovir.fast.base.packed import SHARED, SMALL, packed, packed_calls, piece_calls
from ovir.kernels.blas import has_small_products
from ovir.kernels.parallel import threads


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


def by_rows(binder: Binder, b: Array, rows: int) -> Array:
    """Return constant matrices in an order that BLAS reads, and by rows if the product with many rows gains from it."""
    if is_readable(b) and (rows <= _FEW_ROWS or b.nbytes > _LARGEST_COPY or b.flags.c_contiguous):
        return b
    return binder.prepared("b", lambda: np.ascontiguousarray(b))


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


def bind_constant_product(binder: Binder, a: Array, b: Array, out: Array) -> None:
    """Bind ``out = a @ b`` for constant matrices ``b`` of input 1; leading axes are a batch and are broadcast."""
    rows = prod(a.shape[:-1])
    if prod(b.shape[:-2]) == 1 and a.dtype == np.float32:
        x, matrix, result = _as_one_matrix(a, b, out)
        if x.ndim == result.ndim == 2 and x.strides[1] == x.itemsize:
            found = packed(binder, lambda: matrix, matrix.shape, rows, "b")
            if found is not None:
                call_shares(binder, [packed_calls(x, found, result)])
                return
    bind_product(binder, a, by_rows(binder, b, rows), out)


def product_calls(a: Array, b: Array, out: Array) -> list[Call]:
    """Return the calls that compute ``out = a @ b``."""
    a, b, out = _as_one_matrix(a, b, out)
    work = out.size * a.shape[-1]
    workers = min(work // SHARED, threads())
    if not a.shape[-1]:
        return [(out.fill, (0,))]
    if workers < 2:
        return [(np.matmul, in_pieces(a, b, out))]
    return [shared_call([[(np.matmul, in_pieces(*part))] for part in _parts(a, b, out, workers)])]


def in_pieces(a: Array, b: Array, out: Array) -> tuple[Array, Array, Array]:
    """Return the operands of a product as batches of pieces that BLAS multiplies without packing ``b``; as given where
    there are none.

    Packing takes longer than the product if ``a`` has few rows or ``b`` few columns.
    """
    if a.ndim != 2 or b.ndim != 2 or out.dtype != np.float32 or not has_small_products():
        return a, b, out
    (rows, length), columns, size = a.shape, b.shape[1], out.itemsize
    if rows < 2 or rows * length * columns <= SMALL or a.strides[1] != size or out.strides[1] != size:
        return a, b, out
    if b.strides[1] == size:
        height = _divisor(rows, SMALL // (length * columns))
        if height >= _LEAST:
            return a.reshape(-1, height, length), b, out.reshape(-1, height, columns)
        most = SMALL // (rows * length)
    else:
        most = min(SMALL // (rows * length), _SMALL_TRANSPOSED // rows)
    width = _divisor(columns, most)
    if rows > _FEW_ROWS or width < _LEAST:
        return a, b, out
    pieces = columns // width
    if b.strides[1] == size:
        cut = b.reshape(length, pieces, width).swapaxes(0, 1)
    else:
        cut = b.T.reshape(pieces, width, length).swapaxes(1, 2)
    return a, cut, out.reshape(rows, pieces, width).swapaxes(0, 1)


def _divisor(count: int, most: int) -> int:
    """Return the largest divisor of a count that is at most ``most``, 0 if there is none."""
    return next((size for size in range(min(most, count), 0, -1) if count % size == 0), 0)


# OpenBLAS packs the second matrix if it lies by columns and the result has more elements than this.
_SMALL_TRANSPOSED = 1200
# Larger constants stay where they are.
_LARGEST_COPY = 4 << 20
# Smaller pieces, and pieces of columns for more rows, do not pay.
_LEAST, _FEW_ROWS = 8, 64


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
    """Split a product into parts of about the same size, a few for each thread."""
    if out.ndim > 2 and out.shape[0] >= workers:
        places = cuts(out.shape[0], workers)
        return [(_along_batch(a, out.ndim, cut), _along_batch(b, out.ndim, cut), out[cut]) for cut in places]
    if out.shape[-2] >= out.shape[-1]:
        return [(a[..., cut, :], b, out[..., cut, :]) for cut in cuts(out.shape[-2], workers)]
    return [(a, b[..., cut], out[..., cut]) for cut in cuts(out.shape[-1], workers)]


def _along_batch(x: Array, ndim: int, cut: slice) -> Array:
    return x if x.ndim < ndim or x.shape[0] == 1 else x[cut]


# --------------------------------------------------------------------------- products with filters

Product = Callable[[Array, Array, bool], list[Call]]
"""Returns the calls that multiply rows with the filters, shared among threads or not."""


def filter_product(
    binder: Binder, form: str, make: Callable[[], Array], shape: tuple[int, int, int], rows: Array
) -> Product:
    """Return what multiplies rows [rows, length], or [groups, rows, length], with matrices [groups, length, depth]."""
    groups, length, depth = shape
    if groups == 1 and rows.dtype == np.float32 and rows.itemsize in rows.strides:
        matrix = packed(binder, lambda: make()[0], (length, depth), len(rows), form)
        if matrix is not None:
            return lambda a, out, shared: (packed_calls if shared else piece_calls)(a, matrix, out)
    weights = binder.prepared(form, make)
    if groups > 1:
        return lambda a, out, shared: [(np.matmul, (a, weights, out))]
    return lambda a, out, shared: (
        product_calls(a, weights[0], out) if shared else [(np.matmul, in_pieces(a, weights[0], out))]
    )
