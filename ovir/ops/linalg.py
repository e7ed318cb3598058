"""Linear algebra: Einsum and Inverse."""

from __future__ import annotations

import re

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import dynamic
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_SUBSCRIPT = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@operator("Einsum", opset=7)
class Einsum(Operator):
    """Sums of products in Einstein's notation: ``ij,jk->ik`` is a matrix product.

    Each input has a subscript with one letter per dimension. Dimensions of one letter are equal, or 1 and broadcast. A
    letter that is repeated in a subscript takes the diagonal, and letters missing in the output are summed over.
    ``...`` stands for any number of further dimensions, which are broadcast. Without ``->`` the output has ``...``
    followed by the letters that occur once, in alphabetical order with capitals first. Blanks are ignored.

    Real numbers are summed in f64.

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
        self.infer(*(TensorType(dynamic, PartialShape(x.shape)) for x in inputs))  # which checks the shapes
        operands = [x if x.dtype.kind in "iu" else x.astype(np.float64) for x in inputs]
        result = np.einsum(self.equation.replace(" ", ""), *operands, optimize=True)
        return np.array(result, inputs[0].dtype)


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
