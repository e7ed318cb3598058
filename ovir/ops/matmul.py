"""MatMul, GroupedMatMul, Einsum and Inverse: products and inverses of matrices, in batches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import dynamic
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, product
from ovir.core.tensor_types import Outputs, TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import compute_dtype, integer_range, is_integer
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Length, by_input
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

    >>> ops.matmul([[1, 2], [3, 4]], [[1], [10]], False, False)
    [[21] [43]]
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

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension:
        # Each element of the output is a dot product along the columns of a.
        a = inputs[0].shape
        return output.size() * a[-2 if self.transpose_a and a.rank != 1 else -1]

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element_type = self.shared_type(a=a, b=b)
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
        rows = b.shape[-2] if b.ndim > 1 else b.shape[0]
        message = "a and b have shapes {} and {} when they are multiplied: {:column} and {:row} do not match"
        self.require(a.shape[-1] == rows, message, a.shape, b.shape, a.shape[-1], rows)
        return matrix_product(a, b)


def oriented(x: Array, transpose: bool) -> Array:
    """Return matrices with the last two axes swapped, if ``transpose`` asks for it; a vector stays as it is."""
    return x.swapaxes(-1, -2) if transpose and x.ndim > 1 else x


def matrix_product(a: Array, b: Array) -> Array:
    """Return the matrix product of arrays of one element type in that type."""
    if not is_integer(a.dtype):
        computed = compute_dtype(a.dtype)
        product = np.matmul(a.astype(computed, copy=False), b.astype(computed, copy=False))
        return np.asarray(product).astype(a.dtype, copy=False)
    wide = np.dtype(np.int64) if a.dtype != np.uint64 else a.dtype
    return in_integers(np.matmul(a.astype(wide), b.astype(wide)), a.dtype)


def in_integers(product: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers in another type: 8 bits saturate, more bits wrap around."""
    low, high = integer_range(dtype)
    return np.asarray(np.clip(product, low, high) if high < 256 else product).astype(dtype)


@operator("GroupedMatMul", opset=17, function_name="grouped_matmul")
class GroupedMatMul(Operator):
    """The rows of ``a`` times the transposed matrix of their group.

    If ``a`` has two dimensions, group i consists of the rows from ``offsets[i - 1]`` (0 for the first) to
    ``offsets[i]``. The last offset should equal the number of rows; rows behind it give 0 and are reported. If ``a``
    has three dimensions, there are no ``offsets``, or they are empty.

    f16 and bf16 are summed in f32. The order of b's dimensions and the refusal of a 2-D ``b`` follow OpenVINO.

    >>> rows = np.float32([[1], [2], [3]])
    >>> matrices = np.float32([[[1], [1]], [[10], [10]]])
    >>> ops.grouped_matmul(rows, matrices, np.int32([1, 3]))
    [[ 1. 1.] [20. 20.] [30. 30.]]
    """

    unmatched = "multiply groups of rows whose sizes only a run shows"
    takes = "a T[Rows, K]|[G, Rows, K]; b T[G, Columns, K]; ?offsets index[Ends]; T numeric"
    gives = "T[Rows, Columns]|[G, Rows, Columns]"
    arguments = "mat_a:a mat_b:b offsets="
    domains = by_input(offsets=Length("a", axis=0, full=True))
    multiplied = ("a", "b")

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension:
        return output.size() * inputs[0].shape[-1]

    def python_steps(self, inputs: Sequence[TensorType]) -> Dimension:
        return inputs[1].shape.slice(0, 1).size()

    def infer(self, a: TensorType, b: TensorType, offsets: TensorType | None = None) -> Outputs:
        solution = self.solved(a, b, offsets)
        if a.shape.rank == 2:
            message = "offsets are missing: a of shape {} needs the ends of its groups"
            ends = self.require_known(offsets, message, a.shape)
            self.merge_dims("groups", offsets=(ends.shape, 0), b=(b.shape, 0))
        elif a.shape.rank == 3:
            unused = offsets is None or offsets.shape[0].contains(0)
            self.require(unused, "offsets are not allowed: a of shape {} is already divided into groups", a.shape)
        return solution.outputs()

    def run(self, a: Array, b: Array, offsets: Array | None = None) -> Array:
        shapes = (a.shape, b.shape) if offsets is None else (a.shape, b.shape, offsets.shape)
        self.infer(*(TensorType(dynamic, PartialShape(shape)) for shape in shapes))  # which checks the shapes
        result = np.zeros((*a.shape[:-1], b.shape[1]), a.dtype)
        if a.ndim == 3:
            for group, rows in enumerate(a):
                result[group] = matrix_product(rows, b[group].T)
            return result
        assert offsets is not None
        ends = [0, *offsets.tolist()]
        in_order = all(start <= end for start, end in pairwise(ends)) and ends[-1] <= len(a)
        self.require(in_order, "offsets must ascend from 0 to the number of rows, {}, got {}", len(a), ends[1:])
        if ends[-1] < len(a):
            report(f"the last offset is {ends[-1]}, but a has {len(a)} rows: rows after it are in no group and give 0")
        for group, (start, end) in enumerate(pairwise(ends)):
            if end > start:
                result[start:end] = matrix_product(a[start:end], b[group].T)
        return result


_SUBSCRIPT = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@operator("Einsum", opset=7)
class Einsum(Operator):
    """Sums of products in Einstein's notation: ``ij,jk->ik`` is a matrix product.

    Each input has a subscript with one letter per dimension. Dimensions of one letter are equal, or 1 and broadcast. A
    letter that is repeated in a subscript takes the diagonal, and letters missing in the output are summed over.
    ``...`` stands for any number of further dimensions, which are broadcast. Without ``->`` the output has ``...``
    followed by the letters that occur once, in alphabetical order with capitals first. Blanks are ignored.

    Real numbers are summed in f64.

    >>> ops.einsum([[[1, 2], [3, 4]], [1, 10]], "ij,j->i")
    [21 43]
    """

    bounded = False

    equation: str = attribute()

    def subscripts(self, count: int) -> tuple[list[str], str]:
        """Return the subscripts of the inputs and of the output; ``...`` is written as a single dot in them."""
        left, arrow, output = self.equation.replace(" ", "").partition("->")
        inputs = left.split(",")
        for subscript in (*inputs, output):
            message = "'{}' in equation '{}' is not a subscript: expected letters and at most one '...'"
            self.require(_SUBSCRIPT.fullmatch(subscript), message, subscript, self.equation)
        self.require(len(inputs) == count, "equation '{}' needs {:input}, got {}", self.equation, len(inputs), count)
        inputs, output = [s.replace("...", ".") for s in inputs], output.replace("...", ".")
        letters = "".join(inputs)
        if not arrow:
            once = sorted(label for label in set(letters) if label != "." and letters.count(label) == 1)
            return inputs, "." * ("." in letters) + "".join(once)
        for label in output:
            message = "'{}' of the output occurs in no input of equation '{}'"
            self.require(label == "." or label in letters, message, label, self.equation)
            message = "'{}' occurs twice in the output of equation '{}'"
            self.require(output.count(label) == 1, message, label, self.equation)
        return inputs, output

    def infer(self, *inputs: TensorType) -> TensorType:
        self.require(inputs, "expected at least one input, got none")
        names = [f"input {i}" for i in range(len(inputs))]
        element_type = self.shared_type(**dict(zip(names, inputs, strict=True)))
        self.require_numeric("input 0", element_type)
        subscripts, output = self.subscripts(len(inputs))
        sizes: dict[str, Dimension] = {}
        rest = PartialShape([])
        for name, subscript, tensor in zip(names, subscripts, inputs, strict=True):
            own, covered = self._sizes(name, subscript, tensor.shape)
            for label, dim in own.items():
                message = "{} of shape {} gives '{}' the size {}, but an earlier input gives it {}"
                both = dim if label not in sizes else sizes[label].broadcast_with(dim)
                sizes[label] = self.require_known(both, message, name, tensor.shape, label, dim, sizes.get(label))
            message = "{}: its '...' covers {}, which cannot be broadcast with {}"
            rest = self.require_known(rest.broadcast_with(covered), message, name, covered, rest)
        result = PartialShape([])
        for label in output:
            result = result + (rest if label == "." else PartialShape([sizes[label]]))
        return TensorType(element_type, result)

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension | None:
        """Count the products if the inputs are multiplied one after the other, each summed as soon as it can be."""
        subscripts, kept = self.subscripts(len(inputs))
        sizes: dict[str, Dimension] = {}
        left = Counter(kept)
        for subscript, tensor in zip(subscripts, inputs, strict=True):
            own, covered = self._sizes("an input", subscript, tensor.shape)
            for label, dim in {**own, ".": covered.size()}.items():
                sizes[label] = dim if label not in sizes else sizes[label].broadcast_with(dim) or dim
            left.update(set(subscript))
        total, held = Dimension(0), set[str]()
        for number, subscript in enumerate(subscripts):
            held |= set(subscript)
            if number:
                total = total + product(sizes[label] for label in sorted(held))
            left.subtract(set(subscript))
            held = {label for label in held if left[label] > 0}
        return total if len(subscripts) > 1 else None

    def _sizes(self, name: str, subscript: str, shape: PartialShape) -> tuple[dict[str, Dimension], PartialShape]:
        """Return the size of each letter of an input, and the shape that its ``...`` covers."""
        if shape.rank is None:
            covered = PartialShape(None) if "." in subscript else PartialShape([])
            return {label: UNKNOWN for label in subscript if label != "."}, covered
        hidden = shape.rank - len(subscript) + ("." in subscript)
        message = "{} of shape {} does not have the dimensions of subscript '{}'"
        fits = hidden >= 0 if "." in subscript else hidden == 0
        self.require(fits, message, name, shape, subscript.replace(".", "..."))
        sizes: dict[str, Dimension] = {}
        start = subscript.find(".")
        dims = list(shape.dims if start < 0 else shape.dims[:start] + shape.dims[start + hidden :])
        for label, dim in zip(subscript.replace(".", ""), dims, strict=True):
            message = "{} of shape {}: the dimensions of '{}' must be equal, got {} and {}"
            both = sizes.get(label, dim).merged_with(dim)
            sizes[label] = self.require_known(both, message, name, shape, label, sizes.get(label), dim)
        return sizes, PartialShape([]) if start < 0 else PartialShape(shape.dims[start : start + hidden])

    def run(self, *inputs: Array) -> Array:
        self.infer(*(TensorType(dynamic, PartialShape(x.shape)) for x in inputs))  # which checks the shapes
        operands = [x if x.dtype.kind in "iu" else x.astype(np.float64) for x in inputs]
        subscripts, output = self.subscripts(len(inputs))
        hidden = [x.ndim - len(s) + 1 for x, s in zip(inputs, subscripts, strict=True) if "." in s]
        dims = len({*"".join(subscripts)} - {"."}) + max(hidden, default=0)
        self.require(dims <= _MOST_DIMS, "the equation has {} dimensions in all; NumPy takes at most 52", dims)
        while len(operands) > _MOST_OPERANDS:
            first, subscripts = subscripts[:_MOST_OPERANDS], subscripts[_MOST_OPERANDS:]
            needed = {*output, *"".join(subscripts)}
            between = "".join(label for label in dict.fromkeys("".join(first)) if label == "." or label in needed)
            operands = [_sum_of_products(operands[:_MOST_OPERANDS], first, between), *operands[_MOST_OPERANDS:]]
            subscripts = [between, *subscripts]
        return np.array(_sum_of_products(operands, subscripts, output), inputs[0].dtype)


_MOST_OPERANDS = 32
"""So many operands are multiplied at once; NumPy takes fewer than 64."""
_MOST_DIMS = 52
"""NumPy names each dimension by a letter, those that ``...`` covers, too."""


def _sum_of_products(operands: Sequence[Array], subscripts: Sequence[str], output: str) -> Array:
    equation = f"{','.join(subscripts)}->{output}".replace(".", "...")
    result: Array = np.einsum(equation, *operands, optimize=True)
    return result


@operator("Inverse", opset=14)
class Inverse(Operator):
    """The inverse of the square matrices in the last two axes; transposed with ``adjoint``. Computed in f32.

    A singular matrix is an error.

    >>> ops.inverse([[2.0, 0.0], [0.0, 4.0]])
    [[0.5 0. ] [0. 0.25]]
    """

    takes = "data T[B..., K, K]; T real"
    gives = "T[B..., K, K]"
    recipe = "T narrow"
    copies = 3

    adjoint: bool = attribute(default=False)

    def work(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        return super().work(inputs, outputs) * max(inputs[0].shape[-1].upper or 0, 1)

    def run(self, data: Array) -> Array:
        self.require(data.shape[-1] == data.shape[-2], "data must hold square matrices, got shape {}", data.shape)
        matrices = data.astype(np.float32)
        try:
            result = np.linalg.inv(matrices)
        except np.linalg.LinAlgError:
            if data.ndim == 2:
                self.fail("the matrix has no inverse")
            singular = np.linalg.slogdet(matrices).sign == 0
            self.fail("the matrix at index {} has no inverse", np.argwhere(singular)[0].tolist())
        if self.adjoint:
            result = result.swapaxes(-1, -2)
        return np.array(result, data.dtype, order="C")
