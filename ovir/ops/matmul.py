"""MatMul: matrix products with broadcast batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import compute_dtype, integer_range
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_ONE = Dimension(1, 1)


@operator("MatMul", opset=1, function_name="matmul")
class MatMul(Operator):
    """The matrix product of the last two axes; the axes before them are a batch and are broadcast.

    ``transpose_a`` and ``transpose_b`` swap the last two axes of an input that has at least two. A 1-D first input is a
    row and a 1-D second input a column; that axis of length 1 does not appear in the output.

    f16 and bf16 are summed in f32. 8-bit integers, which OpenVINO's reference does not execute, saturate; wider
    integers wrap around.

    Source: MatMul-1
    """

    arguments = "data_a:a data_b:b transpose_a transpose_b"
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

    def run(self, a: Array, b: Array) -> Array:
        a, b = oriented(a, self.transpose_a), oriented(b, self.transpose_b)
        self.require_fit(a, b)
        return matrix_product(a, b)

    def require_fit(self, a: Array, b: Array) -> None:
        rows = b.shape[-2] if b.ndim > 1 else b.shape[0]
        message = "a and b have shapes {} and {} when they are multiplied: {:column} and {:row} do not match"
        self.require(a.shape[-1] == rows, message, a.shape, b.shape, a.shape[-1], rows)


def oriented(x: Array, transpose: bool) -> Array:
    """Return matrices with the last two axes swapped, if ``transpose`` asks for it; a vector stays as it is."""
    return x.swapaxes(-1, -2) if transpose and x.ndim > 1 else x


def matrix_product(a: Array, b: Array) -> Array:
    """Return the matrix product of arrays of one element type in that type."""
    if not is_integer(a.dtype):
        computed = compute_dtype(a.dtype)
        return np.asarray(np.matmul(a.astype(computed, copy=False), b.astype(computed, copy=False))).astype(a.dtype)
    wide = np.dtype(np.int64) if a.dtype != np.uint64 else a.dtype
    return in_integers(np.matmul(a.astype(wide), b.astype(wide)), a.dtype)


def in_integers(product: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers in another type: 8 bits saturate, more bits wrap around."""
    low, high = integer_range(dtype)
    return np.asarray(np.clip(product, low, high) if high < 256 else product).astype(dtype)


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Return whether a type of NumPy or ml_dtypes is an integer type."""
    return dtype.kind in "iu" or "int" in dtype.name
