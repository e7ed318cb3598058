"""Linear algebra: Einsum and Inverse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import dynamic
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.base.binding import Binder
from ovir.fast.base.products import bind_product, readable
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.matmul import matrix_product

_SUBSCRIPT = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@operator("Einsum", opset=7)
class Einsum(Operator):
    """Sums of products in Einstein's notation: ``ij,jk->ik`` is a matrix product.

    Each input has a subscript with one letter per dimension. Dimensions of one letter are equal, or 1 and broadcast. A
    letter that is repeated in a subscript takes the diagonal, and letters missing in the output are summed over.
    ``...`` stands for any number of further dimensions, which are broadcast. Without ``->`` the output has ``...``
    followed by the letters that occur once, in alphabetical order with capitals first. Blanks are ignored.

    Source: Einsum-7
    """

    bounded = False

    equation: str = attribute()

    def subscripts(self, count: int) -> tuple[list[str], str]:
        """Return the subscripts of the inputs and of the output; ``...`` is written as a single dot in them."""
        left, arrow, output = self.equation.replace(" ", "").partition("->")
        inputs = left.split(",")
        for subscript in (*inputs, output):
            self.require(
                _SUBSCRIPT.fullmatch(subscript),
                "'{}' in equation '{}' is not a subscript: expected letters and at most one '...'",
                subscript,
                self.equation,
            )
        self.require(len(inputs) == count, "equation '{}' needs {:input}, got {}", self.equation, len(inputs), count)
        inputs, output = [s.replace("...", ".") for s in inputs], output.replace("...", ".")
        letters = "".join(inputs)
        if not arrow:
            once = sorted(label for label in set(letters) if label != "." and letters.count(label) == 1)
            return inputs, "." * ("." in letters) + "".join(once)
        for label in output:
            self.require(
                label == "." or label in letters,
                "'{}' of the output occurs in no input of equation '{}'",
                label,
                self.equation,
            )
            self.require(
                output.count(label) == 1, "'{}' occurs twice in the output of equation '{}'", label, self.equation
            )
        return inputs, output

    def infer(self, *inputs: TensorType) -> TensorType:
        self.require(inputs, "expected at least one input, got none")
        names = [f"input {i}" for i in range(len(inputs))]
        element_type = self.merge_types(*(t.element_type for t in inputs), names=names)
        self.require_numeric("input 0", element_type)
        subscripts, output = self.subscripts(len(inputs))
        sizes: dict[str, Dimension] = {}
        rest = PartialShape([])
        for name, subscript, tensor in zip(names, subscripts, inputs, strict=True):
            own, covered = self._sizes(name, subscript, tensor.shape)
            for label, dim in own.items():
                both = dim if label not in sizes else sizes[label].broadcast_with(dim)
                if both is None:
                    self.fail(
                        "{} of shape {} gives '{}' the size {}, but an earlier input gives it {}",
                        name,
                        tensor.shape,
                        label,
                        dim,
                        sizes[label],
                    )
                sizes[label] = both
            merged = rest.broadcast_with(covered)
            if merged is None:
                self.fail("{}: its '...' covers {}, which cannot be broadcast with {}", name, covered, rest)
            rest = merged
        result = PartialShape([])
        for label in output:
            result = result + (rest if label == "." else PartialShape([sizes[label]]))
        return TensorType(element_type, result)

    def _sizes(self, name: str, subscript: str, shape: PartialShape) -> tuple[dict[str, Dimension], PartialShape]:
        """Return the size of each letter of an input, and the shape that its ``...`` covers."""
        if shape.rank is None:
            covered = PartialShape(None) if "." in subscript else PartialShape([])
            return {label: UNKNOWN for label in subscript if label != "."}, covered
        hidden = shape.rank - len(subscript) + ("." in subscript)
        self.require(
            hidden >= 0 if "." in subscript else hidden == 0,
            "{} of shape {} does not have the dimensions of subscript '{}'",
            name,
            shape,
            subscript.replace(".", "..."),
        )
        sizes: dict[str, Dimension] = {}
        start = subscript.find(".")
        dims = list(shape.dims if start < 0 else shape.dims[:start] + shape.dims[start + hidden :])
        for label, dim in zip(subscript.replace(".", ""), dims, strict=True):
            both = sizes.get(label, dim).merged_with(dim)
            if both is None:
                self.fail(
                    "{} of shape {}: the dimensions of '{}' must be equal, got {} and {}",
                    name,
                    shape,
                    label,
                    sizes[label],
                    dim,
                )
            sizes[label] = both
        return sizes, PartialShape([]) if start < 0 else PartialShape(shape.dims[start : start + hidden])

    def run(self, *inputs: Array) -> Array:
        dtype = inputs[0].dtype
        self.infer(*(TensorType(dynamic, PartialShape(x.shape)) for x in inputs))  # which checks the shapes
        labelled, wanted = self._numbered(inputs)
        result, labels = _diagonal(_computed(inputs[0]), labelled[0])
        for i, (x, own) in enumerate(zip(inputs[1:], labelled[1:], strict=True), 1):
            needed = set(wanted).union(*labelled[i + 1 :])
            result, labels = _contract(result, labels, *_diagonal(_computed(x), own), needed)
        result, labels = _summed(result, labels, set(wanted))
        result = result.transpose([labels.index(label) for label in wanted])
        if len(inputs) > 1:  # a product is already a new array
            return np.asarray(result, dtype, order="C")
        return np.array(result, dtype, order="C")

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        if len(inputs) != 2 or any(x.dtype not in (np.float32, np.float64) or not x.size for x in inputs):
            return False
        (left, right), wanted = self._numbered(inputs)
        if any(len(set(own)) < len(own) for own in (left, right)) or (set(left) ^ set(right)) - set(wanted):
            return False  # there are diagonals, or sums of one input
        form = _Contraction(*inputs, left, right, set(wanted))
        out = binder.output(order=[wanted.index(label) for label in form.labels])
        result = out.transpose([wanted.index(label) for label in form.labels]).reshape(form.product_shape)
        matrices = []
        for matrix, operand in zip(form.matrices(), form.operands, strict=True):
            if not np.may_share_memory(matrix, operand):
                copy = binder.scratch(operand.shape, operand.dtype)
                binder.call(np.copyto, copy, operand)
                matrix = copy.reshape(matrix.shape)
            matrices.append(readable(binder, matrix))
        a, b = matrices
        bind_product(binder, a, b, result)
        return True

    def _numbered(self, inputs: Sequence[Array]) -> tuple[list[list[int]], list[int]]:
        """Return the labels of the inputs and of the output as numbers: the code of a letter, and -1, -2, ... from the
        right for what ``...`` covers."""
        subscripts, output = self.subscripts(len(inputs))
        hidden = [max(x.ndim - len(s) + 1, 0) if "." in s else 0 for x, s in zip(inputs, subscripts, strict=True)]
        return [_labels(s, n) for s, n in zip(subscripts, hidden, strict=True)], _labels(output, max(hidden))


def _computed(x: Array) -> Array:
    is_exact = x.dtype in (np.float32, np.float64) or x.dtype.kind in "iu"
    return x if is_exact else x.astype(np.float32)


def _labels(subscript: str, hidden: int) -> list[int]:
    labels: list[int] = []
    for label in subscript:
        labels += range(-hidden, 0) if label == "." else [ord(label)]
    return labels


def _diagonal(x: Array, labels: Sequence[int]) -> tuple[Array, list[int]]:
    """Merge labels that occur twice by taking the diagonal."""
    names = list(dict.fromkeys(labels))
    if len(names) < len(labels):
        x = np.einsum(x, [names.index(label) for label in labels], list(range(len(names))))
    return x, names


def _summed(x: Array, labels: list[int], needed: set[int]) -> tuple[Array, list[int]]:
    """Sum over the labels that are not needed."""
    gone = tuple(i for i, label in enumerate(labels) if label not in needed)
    return (np.asarray(x.sum(gone, dtype=x.dtype)) if gone else x), [label for label in labels if label in needed]


def _contract(a: Array, left: list[int], b: Array, right: list[int], needed: set[int]) -> tuple[Array, list[int]]:
    """Multiply two operands as a batch of matrix products, summed over the labels that are no longer needed."""
    a, left = _summed(a, left, needed.union(right))
    b, right = _summed(b, right, needed.union(left))
    form = _Contraction(a, b, left, right, needed)
    return matrix_product(*form.matrices()).reshape(form.shape), form.labels


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


@operator("Inverse", opset=14)
class Inverse(Operator):
    """The inverse of the square matrices in the last two axes; transposed with ``adjoint``. Computed in f32.

    A singular matrix is an error.

    Source: Inverse-14
    """

    adjoint: bool = attribute(default=False)

    def infer(self, data: TensorType) -> TensorType:
        self.require_real("data", data.element_type)
        shape = data.shape
        if shape.rank is None:
            return TensorType(data.element_type, shape)
        self.require_rank_at_least("data", shape, 2)
        side = shape[-2].merged_with(shape[-1])
        if side is None:
            self.fail("data must hold square matrices, got shape {}", shape)
        return TensorType(data.element_type, shape.with_dim(-2, side).with_dim(-1, side))

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
