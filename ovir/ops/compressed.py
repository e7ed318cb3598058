"""Operations on weights that stay compressed: they decompress the parts that they need.

No file has these operations. A plan puts each in place of one that reads compressed weights; it has the attributes of
that one, and the weights are no longer an input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import as_native
from ovir.ops.base.operator import Operator
from ovir.ops.base.replacement import Op, Replacement, replaces
from ovir.ops.gather import GatherBase
from ovir.ops.matmul import GroupedMatMul, MatMul

Selection = slice | Array
"""Slices along the first axis: a range (start and stop given), or one for each index of a 1-D array."""


class Codes(NamedTuple):
    """A matrix as a file holds it: ``(codes - zero_point) * scale``, with one scale and zero point for each group of
    neighbors in a row."""

    element_type: ElementType
    numbers: Array
    """The codes, [rows, groups, size]; with 4 bits as bytes of two, [rows, groups, size / 2], the first one in the
    lower half."""
    scale: Array
    """f32 [rows, groups]."""
    zero_point: Array
    """f32 [rows, groups]."""


class CompressedWeights(Protocol):
    """A constant tensor that is decompressed in parts. Parts that arithmetic needs are decompressed to f32."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def element_type(self) -> ElementType: ...

    @property
    def has_slices(self) -> bool:
        """Return whether slices along the first axis can be decompressed without the rest."""

    @property
    def codes(self) -> Codes | None:
        """Return the codes of a matrix; None if the file holds them in another form."""

    @property
    def numbers(self) -> Array | None:
        """Return the elements of a matrix in f16 or bf16; None if the file holds them in another form."""

    def stored(self) -> list[Array]:
        """Return the arrays that the weights are decompressed from, as the file holds them."""

    def slices(self, which: Selection) -> Array:
        """Return slices along the first axis."""

    def fill(self, first: int, out: Array) -> None:
        """Fill an f32 array with the slices along the first axis from ``first`` on; threads share large ones."""

    def whole(self) -> Array:
        """Return all elements."""


def blocks(shape: tuple[int, ...], elements: int) -> Iterator[slice]:
    """Yield ranges of slices along the first axis of a shape, each of about the given number of elements."""
    step = max(elements // max(prod(shape[1:]), 1), 1)
    return (slice(i, min(i + step, shape[0])) for i in range(0, shape[0], step))


class Compressed(Replacement[Op]):
    """An operation that decompresses the parts of ``weights`` that it needs; these are no longer an input."""

    position: ClassVar[int]
    """The input of the replaced operation that the weights are."""

    def __init__(self, op: Op, weights: CompressedWeights) -> None:
        """Take the place of ``op``, one of whose inputs is ``weights``."""
        super().__init__(op)
        self.weights = weights

    @classmethod
    def serves(cls, op: Any, weights: CompressedWeights, inputs: Sequence[TensorType]) -> bool:
        """Return whether the class can take the place of an operation with these inputs."""
        raise NotImplementedError

    def infer(self, *inputs: Any, **others: Any) -> Any:
        return super().infer(*inputs[: self.position], _type_of(self.weights), *inputs[self.position :], **others)


class Decompress(Compressed[Operator]):
    """The tensor of compressed weights, in place of the last layer that computes it from constants."""

    def infer(self) -> TensorType:
        return _type_of(self.weights)

    def run(self) -> Array:
        return self.weights.whole()


_FEW = 64
"""To find out which of so many indices are equal takes longer than to decompress their slices."""


@replaces(GatherBase)
class CompressedGather(Compressed[GatherBase]):
    """A Gather along the first axis, which decompresses the slices that it picks."""

    value_inputs = (1,)
    position = 0

    @classmethod
    def serves(cls, op: GatherBase, weights: CompressedWeights, inputs: Sequence[TensorType]) -> bool:
        axis = inputs[2].constant
        is_first = axis is not None and axis.item() in (0, -len(weights.shape))
        return is_first and weights.has_slices and not op.batch_dims

    def run(self, indices: Array, axis: Array) -> Array:
        length, *rest = self.weights.shape
        wanted = as_native(indices).reshape(-1)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= length):
            return self.replaced.run(self.weights.whole(), indices, axis)
        if wanted.size <= _FEW:
            return self.weights.slices(wanted.astype(np.int64)).reshape(*indices.shape, *rest)
        wanted, places = np.unique(wanted, return_inverse=True)
        return self.replaced.run(self.weights.slices(wanted.astype(np.int64)), places.reshape(indices.shape), axis)


@replaces(MatMul)
class CompressedMatMul(Compressed[MatMul]):
    """A product with compressed weights [rows, columns] or [batch, rows, columns] as the second input."""

    position = 1
    transpose_a: bool
    transpose_b: bool

    @classmethod
    def serves(cls, op: MatMul, weights: CompressedWeights, inputs: Sequence[TensorType]) -> bool:
        return weights.element_type == f32 and len(weights.shape) in (2, 3)

    @property
    def form(self) -> tuple[object, ...] | None:
        """Return the form of the codes of the file, if the fast kernel multiplies these, without a copy in f32; None if
        not."""
        codes = self.weights.codes if self.transpose_b else None
        return None if codes is None else (self.transpose_a, codes.element_type, codes.numbers.shape[1:])

    def run(self, a: Array) -> Array:
        return self.replaced.run(a, self.weights.whole())


class JoinedMatMul(Replacement[CompressedMatMul]):
    """Products of one input with several weights whose codes have the same form, such as the queries, keys and values
    of attention. Computed together, they start threads only once."""

    def __init__(self, products: Sequence[CompressedMatMul]) -> None:
        """Take the place of ``products``."""
        super().__init__(products[0])
        self.products = tuple(products)

    def infer(self, a: TensorType) -> tuple[TensorType, ...]:
        return tuple(product.infer(a) for product in self.products)

    def run(self, a: Array) -> tuple[Array, ...]:
        return tuple(product.run(a) for product in self.products)


@replaces(GroupedMatMul)
class CompressedGroupedMatMul(Compressed[GroupedMatMul]):
    """A GroupedMatMul with compressed matrices; each is decompressed when its rows are multiplied."""

    position = 1

    @classmethod
    def serves(cls, op: GroupedMatMul, weights: CompressedWeights, inputs: Sequence[TensorType]) -> bool:
        return weights.element_type == f32 and len(weights.shape) == 3 and weights.has_slices

    def run(self, a: Array, offsets: Array | None = None) -> Array:
        matrices: Any = _Matrices(self.weights)
        return self.replaced.run(a, matrices, offsets)


class _Matrices:
    """Compressed matrices that look like an array [groups, columns, length]."""

    def __init__(self, weights: CompressedWeights) -> None:
        self.shape = weights.shape
        self._weights = weights

    def __getitem__(self, group: int) -> Array:
        return self._weights.slices(slice(group, group + 1)).reshape(self.shape[1:])


def _type_of(weights: CompressedWeights) -> TensorType:
    return TensorType(weights.element_type, PartialShape(weights.shape))
