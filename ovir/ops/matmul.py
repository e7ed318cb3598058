"""MatMul, always computed by BLAS: inputs that BLAS cannot take directly are copied, converted, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.base.binding import Binder
from ovir.fast.base.products import bind_constant_product, bind_product, readable
from ovir.kernels.blocked import integer_range
from ovir.kernels.parallel import run_blocks
from ovir.kernels.precision import stored
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Kernel, Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.rows import Rows

_ONE = Dimension(1, 1)
# BLAS multiplies matrices of up to this many products on one thread, so threads can share a batch of them.
_SINGLE_THREAD = 1 << 18
_PER_THREAD = 1 << 20
# Pieces of fewer rows than this take much longer than whole matrices.
_LEAST_ROWS = 8


@operator("MatMul", opset=1)
class MatMul(Operator):
    """The matrix product of the last two axes; the axes before them are a batch and are broadcast.

    ``transpose_a`` and ``transpose_b`` swap the last two axes of an input that has at least two. A 1-D first input is a
    row and a 1-D second input a column; that axis of length 1 does not appear in the output.

    f16 and bf16 are summed in f32. 8-bit integers, which OpenVINO's reference does not execute, saturate; wider
    integers wrap around.

    Source: MatMul-1
    """

    guards_sizes = True
    same_types = (0, 1)
    multiplied = ("a", "b")

    transpose_a: bool = attribute(default=False)
    transpose_b: bool = attribute(default=False)

    def scale_axes(self, position: int, rank: int) -> tuple[int, ...] | None:
        is_last = bool(position) != (self.transpose_b if position else self.transpose_a)
        return (rank - 1 if is_last else rank - 2,) if rank > 1 else ()

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension:
        # Each element of the output is a dot product along the columns of a.
        a = inputs["a"]
        return output.size() * a[-2 if self.transpose_a and (a.rank or 0) > 1 else -1] if a.rank else UNKNOWN

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element_type = self.merge_types(a.element_type, b.element_type, names=("a", "b"))
        self.require_numeric("a", element_type)
        if a.shape.rank is None or b.shape.rank is None:
            return TensorType(element_type, PartialShape(None))
        for name, tensor in (("a", a), ("b", b)):
            self.require_rank_at_least(name, tensor.shape, 1)
        x, y = list(a.shape), list(b.shape)
        if len(x) == 1:
            x = [_ONE, *x]
        elif self.transpose_a:
            x[-2:] = x[:-3:-1]
        if len(y) == 1:
            y = [*y, _ONE]
        elif self.transpose_b:
            y[-2:] = y[:-3:-1]
        self.require(
            x[-1].compatible(y[-2]) or not (x[-1].is_static and y[-2].is_static),
            "a of shape {}{} has {:column}, but b of shape {}{} has {:row}",
            a.shape,
            " transposed" if self.transpose_a else "",
            x[-1],
            b.shape,
            " transposed" if self.transpose_b else "",
            y[-2],
        )
        dims = self._batch(a.shape, b.shape, x[:-2], y[:-2])
        dims += [x[-2]] if len(a.shape) > 1 else []
        dims += [y[-1]] if len(b.shape) > 1 else []
        return TensorType(element_type, PartialShape(dims))

    def _batch(self, a: PartialShape, b: PartialShape, x: list[Dimension], y: list[Dimension]) -> list[Dimension]:
        length = max(len(x), len(y))
        dims = []
        for p, q in zip([_ONE] * (length - len(x)) + x, [_ONE] * (length - len(y)) + y, strict=True):
            both = p.broadcast_with(q)
            # Disjoint intervals are left to the run, as in OpenVINO.
            message = "the batch dimensions of a of shape {} and b of shape {} cannot be broadcast: {} and {}"
            self.require(both or not (p.is_static and q.is_static), message, a, b, p, q)
            dims.append(both or UNKNOWN)
        return dims

    def run(self, a: Array, b: Array, *, out: Array | None = None) -> Array:
        a, b = _oriented(a, self.transpose_a), _oriented(b, self.transpose_b)
        self._require_fit(a, b)
        return matrix_product(a, b, out)

    def prepare(self, *constants: Array | None) -> Kernel | None:
        """Return a kernel with the constant input transposed and converted once."""
        a, b = constants
        if (a is None) == (b is None):
            return None
        constant, transpose = (a, self.transpose_a) if a is not None else (b, self.transpose_b)
        assert constant is not None
        if not _is_real(constant.dtype):
            return None
        held = _as_float(_oriented(constant, transpose))

        def run(a: Array, b: Array, *, out: Array | None = None) -> Array:
            dtype = a.dtype
            x = _as_float(_oriented(a, self.transpose_a)) if constants[0] is None else held
            y = _as_float(_oriented(b, self.transpose_b)) if constants[1] is None else held
            self._require_fit(x, y)
            if x.dtype == dtype:
                return multiply(x, y, out)
            return _rounded(multiply(x, y), dtype, out)

        return run

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        if any(array.dtype not in (np.float32, np.float64) or not array.size for array in inputs):
            return False
        a, b = (_oriented(x, t) for x, t in zip(inputs, (self.transpose_a, self.transpose_b), strict=True))
        out = binder.output()
        a, b = (a[np.newaxis] if a.ndim == 1 else a), (b[:, np.newaxis] if b.ndim == 1 else b)
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, result = (
            readable(binder, a, "a" if binder.is_constant(0) else None),
            out.reshape(*lead, a.shape[-2], b.shape[-1]),
        )
        if binder.is_constant(1):
            bind_constant_product(binder, a, b, result)
        else:
            bind_product(binder, a, readable(binder, b), result)
        return True

    def _require_fit(self, a: Array, b: Array) -> None:
        rows = b.shape[-2] if b.ndim > 1 else b.shape[0]
        message = "a and b have shapes {} and {} when they are multiplied: {:column} and {:row} do not match"
        self.require(a.shape[-1] == rows, message, a.shape, b.shape, a.shape[-1], rows)

    def prepare_by_rows(self, position: int, rows: Rows, constants: Sequence[Array | None]) -> Kernel | None:
        if position != 1 or len(rows.shape) not in (2, 3) or rows.element_type != f32:
            return None
        multiply = _by_matrices if len(rows.shape) == 3 else _by_columns if self.transpose_b else _by_rows
        *batch, length, columns = rows.shape
        if self.transpose_b:
            length, columns = columns, length

        def run(a: Array, *, out: Array | None = None) -> Array:
            x = a.swapaxes(-1, -2) if self.transpose_a and a.ndim > 1 else a
            aligned = not batch or x.ndim < 3 or (x.ndim == 3 and x.shape[0] in (1, *batch))
            if x.shape[-1] != length or not aligned:
                return np.asarray(self.run(a, rows.whole(), out=out))  # which also reports shapes that do not match
            if out is None:
                lead = np.broadcast_shapes(x.shape[:-2], tuple(batch))
                out = np.empty((*lead, *x.shape[-2:-1], columns), np.float32)
            multiply(x, rows, self.transpose_b, out)
            return out

        return run


def _oriented(x: Array, transpose: bool) -> Array:
    return x.swapaxes(-1, -2) if transpose and x.ndim > 1 else x


def _is_real(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in "iu" and "int" not in dtype.name


def _as_float(x: Array) -> Array:
    """Return the values in a type that BLAS computes in."""
    return _blas_ready(x if x.dtype in (np.float32, np.float64) else x.astype(np.float32))


def _blas_ready(x: Array) -> Array:
    """Return x itself if BLAS can read its matrices by rows or by columns, else a copy."""
    if x.ndim < 2 or x.flags.c_contiguous:
        return x if x.ndim != 1 or x.flags.c_contiguous else np.ascontiguousarray(x)
    size = x.itemsize
    for step, across, length in ((-1, -2, x.shape[-1]), (-2, -1, x.shape[-2])):
        if x.strides[step] == size and x.strides[across] >= length * size and x.strides[across] % size == 0:
            return x
    return np.ascontiguousarray(x)


def matrix_product(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return the matrix product of arrays of one type, in that type, written to ``out`` if given."""
    if a.dtype in (np.float32, np.float64):
        return multiply(_blas_ready(a), _blas_ready(b), out)
    if _is_real(a.dtype):
        return _rounded(multiply(_as_float(a), _as_float(b)), a.dtype, out)
    return _multiply_integers(a, b, out)


def _rounded(product: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    with np.errstate(all="ignore"):  # numbers that are too large become infinite
        return stored(product, dtype, out)


def multiply(a: Array, b: Array, out: Array | None = None) -> Array:
    """Multiply float32 or float64 arrays that BLAS can read, with the rank rules of ``np.matmul``."""
    with np.errstate(all="ignore"):
        if a.ndim > 2 and prod(b.shape[:-2]) == 1 and 2 <= b.ndim <= a.ndim and a.flags.c_contiguous:
            # One matrix for the whole batch is one product with a taller matrix.
            *lead, length = a.shape
            if out is None:
                out = np.empty((*lead, b.shape[-1]), a.dtype)
            rows = prod(lead)
            np.matmul(a.reshape(rows, length), b.reshape(b.shape[-2:]), out=out.reshape(rows, b.shape[-1]))
            return out
        if a.ndim > 2 and b.ndim > 2:
            return _multiply_batch(a, b, out)
        return np.asarray(np.matmul(a, b, out=out))


def _multiply_batch(a: Array, b: Array, out: Array | None) -> Array:
    rows, length, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    work = rows * length * columns
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = prod(batch)
    # BLAS threads wait for one another after each matrix, which takes many times as long while another process occupies
    # the other core; so larger matrices are multiplied in pieces of rows.
    step = _SINGLE_THREAD // max(length * columns, 1)
    if step < min(rows, _LEAST_ROWS) or count * work < 2 * _PER_THREAD:
        return np.matmul(a, b, out=out)
    if out is None:
        out = np.empty((*batch, rows, columns), a.dtype)
    x = np.broadcast_to(a, (*batch, rows, length)).reshape(count, rows, length)
    y = np.broadcast_to(b, (*batch, length, columns)).reshape(count, length, columns)
    z = out.reshape(count, rows, columns)
    step = min(step, rows)
    cut = rows - rows % step

    def product(i: int, j: int) -> None:
        pieces = (j - i, cut // step, step)
        left, right = x[i:j, :cut].reshape(*pieces, length), y[i:j, np.newaxis]
        np.matmul(left, right, out=z[i:j, :cut].reshape(*pieces, columns))
        if cut < rows:
            np.matmul(x[i:j, cut:], y[i:j], out=z[i:j, cut:])

    run_blocks(product, count, _PER_THREAD // work)
    return out


def _multiply_integers(a: Array, b: Array, out: Array | None) -> Array:
    """Multiply integers with BLAS, in the smallest floating-point type that represents every sum exactly."""
    dtype = a.dtype
    length = a.shape[-1]
    largest = float(length) * _magnitude(a) * _magnitude(b)
    for computed, exact in ((np.float32, 1 << 24), (np.float64, 1 << 53)):
        if largest <= exact:
            product = multiply(_blas_ready(a.astype(computed)), _blas_ready(b.astype(computed)))
            break
    else:
        # A sum that may be too large for f64 wraps around here as it does in the type itself.
        product = np.asarray(np.matmul(a.astype(np.uint64), b.astype(np.uint64))).view(np.int64)
    low, high = integer_range(dtype)
    whole = np.clip(product, low, high) if high < 256 else product.astype(np.int64)
    return stored(np.asarray(whole), dtype, out)


def _magnitude(x: Array) -> float:
    wide = x if x.dtype.kind in "iu" else x.astype(np.int8)
    return max(abs(float(wide.max())), abs(float(wide.min()))) if wide.size else 0.0


# --------------------------------------------------------------------------- weights that come by rows

# The number of elements multiplied at a time: BLAS wakes its threads for each product, which is slow on a busy machine.
_PANEL = 1 << 22


def _by_columns(x: Array, weights: Rows, turned: bool, out: Array) -> None:
    """Compute one part of the result's columns from each block of weights."""
    rows = np.ascontiguousarray(x).reshape(-1, weights.shape[1])
    result = out.reshape(-1, weights.shape[0])
    for block in weights.blocks(weights.all, _PANEL):
        result[:, block] = np.matmul(rows, weights.slices(block).T)  # BLAS cannot write into parts of rows


def _by_rows(x: Array, weights: Rows, turned: bool, out: Array) -> None:
    """Add one term of the whole result for each block of weights."""
    rows = np.ascontiguousarray(x).reshape(-1, weights.shape[0])
    result = out.reshape(-1, weights.shape[1])
    result[...] = 0
    for block in weights.blocks(weights.all, _PANEL):
        np.add(result, np.matmul(rows[:, block], weights.slices(block)), out=result)


def _by_matrices(x: Array, weights: Rows, turned: bool, out: Array) -> None:
    """Compute one part of the batch from each block of weights."""
    alike = x.ndim < 3 or len(x) == 1
    for block in weights.blocks(weights.all, _PANEL):
        w = weights.slices(block)
        np.matmul(x if alike else x[block], w.swapaxes(-1, -2) if turned else w, out=out[block])
