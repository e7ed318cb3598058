"""Matrix products, which BLAS computes in f32 or f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import NATIVE_REALS, Binder, is_native
from ovir.fast.base.coalesce import strided
from ovir.fast.base.moves import bind_copy
from ovir.fast.base.products import bind_constant_product, bind_product, goes_by_columns, readable, transposed
from ovir.fast.base.sums import bind_sum
from ovir.fast.registry import fast, fast_kernel
from ovir.kernels.precision import is_integer
from ovir.ops.matmul import Einsum, MatMul, in_integers, oriented


@fast(MatMul, in_f32=True)
def matmul(op: MatMul, binder: Binder, *inputs: Array) -> bool:
    if any(not array.size for array in inputs):
        return False
    a, b = (oriented(x, t) for x, t in zip(inputs, (op.transpose_a, op.transpose_b), strict=True))
    if is_integer(a.dtype):
        binder.call(integer_product, a, b, binder.output())
        return True
    a, b = (a[np.newaxis] if a.ndim == 1 else a), (b[:, np.newaxis] if b.ndim == 1 else b)
    if binder.is_constant(1) and goes_by_columns(a, b):
        *rows, columns = range(len(binder.output_shape()))
        out = binder.output(order=[columns, *rows])
        bind_product(binder, *map(transposed, (b, a, out)))
        return True
    out = binder.output()
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrices = out.reshape(*lead, a.shape[-2], b.shape[-1])
    a = readable(binder, a, "a" if binder.is_constant(0) else None)
    if binder.is_constant(1):
        bind_constant_product(binder, a, b, matrices)
    else:
        bind_product(binder, a, readable(binder, b), matrices)
    return True


@fast_kernel(MatMul)
def one_product(op: MatMul) -> Callable[..., Array]:
    """Return a kernel that only calls NumPy, for types that it computes in."""
    if not op.input_types or not NATIVE_REALS.issuperset(op.input_types):
        return op.run

    def run(a: Array, b: Array) -> Array:
        try:
            return np.asarray(np.matmul(a.mT if op.transpose_a else a, b.mT if op.transpose_b else b))
        except ValueError:  # ``run`` says which sizes do not match, and takes a vector to transpose as it is
            return op.run(a, b)

    return run


def integer_product(a: Array, b: Array, out: Array) -> None:
    """Multiply integers with BLAS, in the smallest floating-point type that represents every sum exactly."""
    np.copyto(out, in_integers(_exact_product(a, b), out.dtype))


def _exact_product(a: Array, b: Array) -> Array:
    """Return the product of integers in int64, which wraps around."""
    largest = float(a.shape[-1]) * _magnitude(a) * _magnitude(b)
    for dtype, exact in ((np.float32, 1 << 24), (np.float64, 1 << 53)):
        if largest <= exact:
            return np.asarray(np.matmul(a.astype(dtype), b.astype(dtype)).astype(np.int64))
    return np.asarray(np.matmul(a.astype(np.int64), b.astype(np.int64)))


def _magnitude(x: Array) -> float:
    wide = x if x.dtype.kind in "iu" else x.astype(np.int8)
    return max(abs(float(wide.max())), abs(float(wide.min())))


@fast(Einsum, in_f32=True)
def einsum(op: Einsum, binder: Binder, *inputs: Array) -> bool:
    if len(inputs) > 2 or not is_native(inputs[0]) or not all(x.size for x in inputs):
        return False
    labels, wanted = _numbered(op, inputs)
    operands = [_diagonal(x, own) for x, own in zip(inputs, labels, strict=True)]
    if len(operands) == 1:
        return _bind_sum_of_one(binder, *operands[0], wanted)
    (a, left), (b, right) = operands
    if (set(left) ^ set(right)) - set(wanted):
        return False  # there are sums of one input
    form = _Contraction(a, b, left, right, set(wanted))
    out = binder.output(order=[wanted.index(label) for label in form.labels])
    result = out.transpose([wanted.index(label) for label in form.labels]).reshape(form.product_shape)
    matrices = []
    for matrix, operand in zip(form.matrices(), form.operands, strict=True):
        if not np.may_share_memory(matrix, operand):
            copy = binder.scratch(operand.shape, operand.dtype)
            binder.call(np.copyto, copy, operand)
            matrix = copy.reshape(matrix.shape)
        matrices.append(matrix)
    if result.dtype.kind in "iu":
        binder.call(_wrapped_product, *matrices, result)
    else:
        a, b = (readable(binder, matrix) for matrix in matrices)
        bind_product(binder, a, b, result)
    return True


def _diagonal(x: Array, own: list[int]) -> tuple[Array, list[int]]:
    """Return a view of the elements at equal indices of equal labels, and its labels, each of them once."""
    labels = list(dict.fromkeys(own))
    shape = [x.shape[own.index(label)] for label in labels]
    strides = [sum(s for s, other in zip(x.strides, own, strict=True) if other == label) for label in labels]
    return strided(x, shape, strides), labels


def _bind_sum_of_one(binder: Binder, x: Array, own: list[int], wanted: list[int]) -> bool:
    """Bind the sum of one input over the labels that are not wanted."""
    summed = [axis for axis, label in enumerate(own) if label not in wanted]
    if summed and x.dtype.kind in "iu":
        return False
    total = bind_sum(binder, x, summed) if summed else x
    order = [own.index(label) for label in wanted]
    bind_copy(binder, total.transpose(*order, *summed).reshape(binder.output_shape()), binder.output())
    return True


def _wrapped_product(a: Array, b: Array, out: Array) -> None:
    np.copyto(out, _exact_product(a, b), "unsafe")


def _numbered(op: Einsum, inputs: Sequence[Array]) -> tuple[list[list[int]], list[int]]:
    """Return the labels of the inputs and of the output as numbers: the code of a letter, and -1, -2, ... from the
    right for what ``...`` covers."""
    subscripts, output = op.subscripts(len(inputs))
    hidden = [max(x.ndim - len(s) + 1, 0) if "." in s else 0 for x, s in zip(inputs, subscripts, strict=True)]
    return [_labels(s, n) for s, n in zip(subscripts, hidden, strict=True)], _labels(output, max(hidden))


def _labels(subscript: str, hidden: int) -> list[int]:
    labels: list[int] = []
    for label in subscript:
        labels += range(-hidden, 0) if label == "." else [ord(label)]
    return labels


class _Contraction:
    """Two operands as batches of matrices, whose products sum over the labels that are not needed; no operand has
    such a label alone."""

    def __init__(self, a: Array, b: Array, left: list[int], right: list[int], needed: set[int]) -> None:
        shared = [label for label in left if label in right]
        batch = [label for label in shared if label in needed]
        inner = [label for label in shared if label not in needed]
        rows = [label for label in left if label not in shared]
        columns = [label for label in right if label not in shared]
        sizes = dict(zip(left, a.shape, strict=True))
        for label, length in zip(right, b.shape, strict=True):
            sizes[label] = length if sizes.get(label, 1) == 1 else sizes[label]
        self.labels = batch + rows + columns
        """The labels of the product."""
        self.shape = [sizes[label] for label in self.labels]
        count, height, length, width = (
            prod(sizes[label] for label in group) for group in (batch, rows, inner, columns)
        )
        self.product_shape = count, height, width
        self._shapes = (count, height, length), (count, length, width)
        self.operands = tuple(
            np.broadcast_to(x.transpose([own.index(label) for label in order]), [sizes[label] for label in order])
            for x, own, order in ((a, left, batch + rows + inner), (b, right, batch + inner + columns))
        )
        """The operands with their axes in the order in which the matrices have them."""

    def matrices(self) -> tuple[Array, Array]:
        """Return the operands as batches of matrices, copies if need be."""
        first, second = (x.reshape(shape) for x, shape in zip(self.operands, self._shapes, strict=True))
        return first, second
