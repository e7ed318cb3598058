"""ShapeOf, Reshape, Squeeze, Unsqueeze and Transpose: read or rearrange dimensions without moving data.

All except ShapeOf return views. They carry known values, so that a shape computed in the graph reaches the Reshape that
uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import gcd, inf, prod
from typing import TypeVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, product, unknown_sizes
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import Value, bound_text, from_dimensions
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import PATTERN, Axis, Domain, Inputs, by_input, dims_of
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

Size = TypeVar("Size", int, Dimension)


@operator("ShapeOf", opset=1)
class ShapeOf1(Operator):
    """The dimensions of a tensor as a 1-D tensor of i64; empty for a scalar."""

    recipe = "anything any"
    within = (0, inf)

    shape_inputs = (0,)

    def infer(self, data: TensorType) -> TensorType:
        return self._shape_of(data, i64)

    def run(self, data: Array) -> Array:
        return np.array(data.shape, self.output_types[0].to_dtype())

    def infer_value(self, *inputs: TensorType) -> Value | None:
        return from_dimensions(self.output_types[0], inputs[0].shape.dims)

    def _shape_of(self, data: TensorType, element_type: ElementType) -> TensorType:
        rank = data.shape.rank
        return TensorType(element_type, PartialShape([UNKNOWN if rank is None else rank]))


@operator("ShapeOf", opset=3, until=17)
class ShapeOf3(ShapeOf1):
    """The dimensions of a tensor as a 1-D tensor of ``output_type``; empty for a scalar.

    >>> ops.shape_of(np.zeros((2, 3, 4), np.float32))
    [2 3 4]
    """

    output_type: ElementType = attribute(default=i64)

    def infer(self, data: TensorType) -> TensorType:
        self.require_index_type("output_type", self.output_type, known=True)
        return self._shape_of(data, self.output_type)


class RearrangingBase(Operator):
    """Base of operations that give ``data`` the shape that follows from a second input."""

    rearranges = True
    decompresses = (0,)
    views = True
    moves_elements = (0,)
    value_inputs = (1,)

    def rows_from(self, inputs: Sequence[TensorType], output: PartialShape) -> tuple[int, ...] | None:
        shape, inner = output.to_tuple(), inputs[0].shape.to_tuple()
        if not shape or not inner or prod(shape[1:]) % max(prod(inner[1:]), 1):
            return None
        return (prod(shape[1:]) // max(prod(inner[1:]), 1), *[0] * (len(inputs) - 1))

    def run_rows(self, shape: tuple[int, ...], *inputs: Array) -> Array:
        return inputs[0].reshape(shape)


@operator("Reshape", opset=1)
class Reshape(RearrangingBase):
    """The elements of ``data``, in row-major order, with the dimensions given by ``shape``.

    One -1 in ``shape`` stands for the size that keeps the number of elements. With ``special_zero`` a 0 at position i
    copies dimension i of ``data``; otherwise it is a dimension of size 0.

    If the tensors are empty and any size would fit for -1, equal numbers of zeros in ``data`` and ``shape`` are left
    out before it is computed, so that [N, -1] makes of [N, 4] what it makes for every other N: [N, 4]. If no size
    results from that, it is 1.

    >>> ops.reshape([[1, 2, 3], [4, 5, 6]], [3, -1], False)
    [[1 2] [3 4] [5 6]]
    """

    arguments = "node:data output_shape:shape special_zero"
    domains = by_input(shape=PATTERN)
    special_zero: bool = attribute(default=False, specified=True)

    guards_sizes = True
    exact_inputs = (1,)

    def infer(self, data: TensorType, shape: TensorType) -> TensorType:
        self.require_integers("shape", shape, 1)
        known = shape.bounds_or_unknown()
        if known is None:
            return TensorType(data.element_type, PartialShape(None))
        pattern = [
            self._pattern_dimension(i, low, high, dim)
            for i, ((low, high), dim) in enumerate(zip(known.ranges(), known.dimensions(), strict=True))
        ]
        return TensorType(data.element_type, self._reshaped(data.shape, pattern))

    def run(self, data: Array, shape: Array) -> Array:
        target = shape.tolist()
        if data.size and min(target, default=0) >= -1:
            with suppress(IndexError, ValueError):  # inference explains what does not fit
                if self.special_zero:
                    target = [data.shape[i] if size == 0 else size for i, size in enumerate(target)]
                return data.reshape(target)
        return data.reshape(self.infer(constant_type(data), constant_type(shape)).shape.to_tuple())

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        shape = inputs[0].shape
        return f"it reshapes {shape} to {output.shape}" if shape.is_sure_to_equal(output.shape) else None

    def is_same_for(self, before: TensorType, inputs: Sequence[TensorType], output: TensorType) -> bool:
        data, pattern = inputs[0].shape, inputs[1].constant
        if pattern is None or before.shape.rank is None:
            return False
        for axis in np.flatnonzero(pattern == 0).tolist():  # what is copied must be the same size
            if not self.special_zero or axis >= before.shape.rank:
                return False
            if not PartialShape([before.shape[axis]]).is_sure_to_equal(PartialShape([data[axis]])):
                return False
        return self.infer(before, inputs[1]).shape == output.shape

    def _pattern_dimension(self, index: int, low: float, high: float, dim: Dimension) -> Dimension | None:
        """Return a pattern element as a size, as far as it is known; None stands for -1."""
        if low == high == -1:
            return None
        self.require(high >= 0, "shape[{}] must be at least -1, got {}", index, bound_text(high))
        return dim if low >= 0 else UNKNOWN

    def _reshaped(self, shape: PartialShape, pattern: Sequence[Dimension | None]) -> PartialShape:
        dims: list[Dimension] = []
        copied: list[int] = []
        for i, wanted in enumerate(pattern):
            if self.special_zero and wanted == Dimension(0, 0):
                self.require(shape.rank is None or i < shape.rank, _NOTHING_TO_COPY, i, shape)
                copied.append(i)
                dims.append(shape[i])
            elif self.special_zero and wanted is not None and wanted.contains(0):
                dims.append(self._copied_if_zero(wanted, shape, i))
            else:
                dims.append(UNKNOWN if wanted is None else wanted)
        inferred = [i for i, wanted in enumerate(pattern) if wanted is None]
        self.require(len(inferred) < 2, _TWO_INFERRED, *inferred[:2])
        # The number of elements also determines a single size that the pattern leaves open, unless both sides may be
        # empty whatever that size is.
        resolved = inferred or [i for i, dim in enumerate(dims) if not dim.is_static and i not in copied]
        if len(resolved) == 1 and not inferred:
            rest = product(dim for i, dim in enumerate(dims) if i not in resolved)
            if rest.contains(0) and shape.size().contains(0):
                resolved = []
        if shape.rank is not None and len(resolved) == 1:
            (index,) = resolved
            own = [dim for i, dim in enumerate(shape) if i not in copied]
            others = [dim for i, dim in enumerate(dims) if i not in (*copied, index)]
            size = _quotient(own, others, dims[index] if not inferred else None)
            dims[index] = self.require_known(size, _NOT_DIVISIBLE, shape, _shown(pattern))
        result = PartialShape(dims)
        self.require(shape.size().compatible(result.size()), _NO_FIT, shape, result)
        return result

    def _copied_if_zero(self, wanted: Dimension, shape: PartialShape, index: int) -> Dimension:
        """Return a dimension for a computed number, which copies that of data if it is 0. So the size of another tensor
        loses its symbol."""
        if shape.rank is None:
            return UNKNOWN
        return wanted.union(shape[index]) if index < shape.rank else wanted


_TWO_INFERRED = "shape has -1 at positions {} and {}: only one size can be inferred"
_NOTHING_TO_COPY = "shape[{}] is 0, which copies a dimension that data of shape {} does not have"
_NO_FIT = "data of shape {} cannot be reshaped to {}"
_NOT_DIVISIBLE = "the elements of data of shape {} cannot be divided evenly into the shape {}"


def _shown(pattern: Sequence[Dimension | None]) -> str:
    return "[" + ",".join("-1" if dim is None else str(dim) for dim in pattern) + "]"


def _missing_beside_zero(own: Sequence[Dimension], others: Sequence[Dimension]) -> Dimension | None:
    """Return the size that -1 stands for beside ``others`` that certainly are empty; None if there is none.

    Zeros on both sides cancel, as unknown sizes with one symbol do.
    """
    empty, other_empty = ([dim for dim in dims if dim.contains(0)] for dims in (own, others))
    if not empty:
        return None
    if (len(empty) > 1 and not all(dim.is_static for dim in empty)) or not all(dim.is_static for dim in other_empty):
        return UNKNOWN  # the numbers of zeros are not known
    if len(empty) != len(other_empty):
        return Dimension(int(len(empty) < len(other_empty)))
    left, right = ([dim for dim in dims if not dim.contains(0)] for dims in (own, others))
    size = _quotient(left, right, None) or Dimension(1)
    is_sure = product(right) == 1 or product((*left, *right)).is_static
    return size if is_sure else size.union(Dimension(1))


def _quotient(own: Sequence[Dimension], others: Sequence[Dimension], wanted: Dimension | None) -> Dimension | None:
    """Return the size that together with ``others`` gives as many elements as ``own``, or None if there is none.

    ``wanted`` is what is already known about that size, None for -1. Unknown sizes with one symbol on both sides
    cancel.
    """
    if product(others).upper == 0:
        return wanted or _missing_beside_zero(own, others)
    rest = list(others)
    left: list[Dimension] = []
    may_be_zero = False  # whether a size that cancels may be 0
    for dim in own:
        twin = next((i for i, other in enumerate(rest) if dim.symbol and dim.symbol == other.symbol), None)
        if twin is None:
            left.append(dim)
        else:
            may_be_zero |= dim.contains(0)
            del rest[twin]
    fixed = prod(dim.lower for dim in left if dim.is_static)
    divisor = prod(dim.lower for dim in rest if dim.is_static)
    common = gcd(fixed, divisor)
    total = product(dim for dim in left if not dim.is_static) * (fixed // common)
    parts = product(dim for dim in rest if not dim.is_static) * (divisor // common)
    if parts.is_static:
        size = total.exact_div(parts.length)
    else:
        lower = -(-total.lower // parts.upper) if parts.upper else int(total.lower > 0)
        upper = total.upper // parts.lower if total.upper is not None and parts.lower else None
        size = Dimension(lower, upper) if upper is None or lower <= upper else None
    if may_be_zero and size is not None and parts != 1:
        size = size.union(Dimension(1))  # for empty tensors; see _missing_beside_zero
    return size if wanted is None or size is None else wanted.merged_with(size)


def _axis_of_size_1(op: Operator, inputs: Inputs) -> Domain:
    """Return the first axis of size 1, which Squeeze can remove."""
    axes = (axis for axis, dim in enumerate(dims_of(inputs, "data")) if dim == Dimension(1, 1))
    return Domain(next(axes, 0), None, "counting")


@operator("Squeeze", opset=1)
class Squeeze1(RearrangingBase):
    """``data`` without those dimensions ``axes`` that are 1; without any dimension of 1 if there are no axes.

    Inference assumes that an unknown dimension among ``axes`` is 1 if it can be; without axes the rank is unknown.
    """

    arguments = "data axes"
    domains = by_input(axes=_axis_of_size_1)

    def infer(self, data: TensorType, axes: TensorType | None = None) -> TensorType:
        if axes is not None:
            self.require_integers("axes", axes, 0, 1)
        return TensorType(data.element_type, self._squeezed(data.shape, axes))

    def run(self, data: Array, axes: Array | None = None) -> Array:
        if axes is None or not axes.size:
            return data.squeeze()
        chosen = self.normalize_axes(axes.ravel().tolist(), data.ndim, "axes", unique=False)
        result = data.squeeze(tuple({axis for axis in chosen if data.ndim and data.shape[axis] == 1}))
        if self.output_shapes and self.output_shapes[0].rank not in (None, result.ndim):
            axis = next(axis for axis in chosen if data.shape[axis] != 1)
            message = "dimension {} of data {} is {}; it has to be 1, because the result was inferred as {}"
            self.fail(message, axis, data.shape, data.shape[axis], self.output_shapes[0])
        return result

    def _squeezed(self, shape: PartialShape, axes: TensorType | None) -> PartialShape:
        if shape.rank is None:
            return shape
        chosen: Sequence[int] = ()
        if axes is not None:
            if axes.constant is None:
                possible = any(dim.contains(1) for dim in shape)
                return self._squeezed_somewhere(shape, axes) if possible else shape
            chosen = self.normalize_axes(axes.constant.ravel().tolist(), shape.rank, "axes", unique=False)
        unsure = [i for i, dim in enumerate(shape) if dim.contains(1) and not dim.is_static]
        if any(self._stays_open(i, chosen) for i in unsure):
            return PartialShape(None)
        return PartialShape(dim for i, dim in enumerate(shape) if not dim.contains(1) or (chosen and i not in chosen))

    def _stays_open(self, axis: int, chosen: Sequence[int]) -> bool:
        """Return whether an unknown dimension that may be 1 leaves the rank of the result open."""
        return not chosen

    def _squeezed_somewhere(self, shape: PartialShape, axes: TensorType) -> PartialShape:
        """Return the shape of the result for unknown axes."""
        assert shape.rank is not None
        return PartialShape([UNKNOWN] * (shape.rank - 1) if axes.shape.size() == Dimension(1, 1) else None)


@operator("Squeeze", opset=15)
class Squeeze15(Squeeze1):
    """Squeeze-1 with ``allow_axis_skip``: inference then leaves the rank open if one of ``axes`` may or may not be 1.

    >>> ops.squeeze([[[1], [2]]], [0, 2])
    [1 2]
    """

    arguments = "data axes= allow_axis_skip="
    allow_axis_skip: bool = attribute(default=False)

    def _stays_open(self, axis: int, chosen: Sequence[int]) -> bool:
        return not chosen or (self.allow_axis_skip and axis in chosen)

    def _squeezed_somewhere(self, shape: PartialShape, axes: TensorType) -> PartialShape:
        return PartialShape(None)


@operator("Unsqueeze", opset=1)
class Unsqueeze(RearrangingBase):
    """``data`` with a dimension of 1 inserted at each of ``axes``, which refer to the result.

    >>> ops.unsqueeze([1, 2], [0])
    [[1 2]]
    """

    domains = by_input(axes=Axis("data"))

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        self.require_integers("axes", axes, 0, 1)
        if data.shape.rank is not None and axes.constant is not None:
            dims = self._unsqueezed(data.shape.dims, axes.constant, Dimension(1, 1))
            return TensorType(data.element_type, PartialShape(dims))
        if data.shape.rank is not None and axes.shape.size() == Dimension(1, 1):
            return TensorType(data.element_type, unknown_sizes(data.shape.rank + 1))
        return TensorType(data.element_type, PartialShape(None))

    def run(self, data: Array, axes: Array) -> Array:
        return data.reshape(self._unsqueezed(data.shape, axes, 1))

    def _unsqueezed(self, dims: Sequence[Size], axes: Array, one: Size) -> list[Size]:
        different = set(axes.ravel().tolist())
        self.require(different, "axes must not be empty")
        # An axis listed twice, even once from the front and once from the end, counts once. Negative axes count from
        # the end of the rank before such repetitions are removed.
        rank = len(dims) + len(different)
        places = sorted({self.normalize_axis(axis, rank, "axes") for axis in different})
        result = list(dims)
        for place in places:
            result.insert(place, one)
        return result


@operator("Transpose", opset=1)
class Transpose(Operator):
    """Dimension i of the result is dimension ``order[i]`` of ``data``; an empty order reverses all.

    >>> ops.transpose([[1, 2, 3], [4, 5, 6]], [1, 0])
    [[1 4] [2 5] [3 6]]
    """

    arguments = "data input_order:order"
    domains = by_input(order=Axis("data"))
    decompresses = (0,)
    views = True
    moves_elements = (0,)
    value_inputs = (1,)

    def infer(self, data: TensorType, order: TensorType) -> TensorType:
        self.require_integers("order", order, 1)
        rank = data.shape.rank
        length = order.shape[0]
        fits = rank is None or length.contains(rank) or length.contains(0)
        self.require(fits, "order must have {:element} or none for data of shape {}, got {}", rank, data.shape, length)
        if order.constant is not None and rank is not None:
            axes = self._axes(order.constant, rank)
            return TensorType(data.element_type, PartialShape(data.shape[axis] for axis in axes))
        if rank is None and length.is_static and length.length > 0:
            rank = length.length
        return TensorType(data.element_type, unknown_sizes(rank))

    def run(self, data: Array, order: Array) -> Array:
        return data.transpose(self._axes(order, data.ndim))

    def permutation(self, inputs: Sequence[TensorType]) -> list[int] | None:
        order = inputs[1].constant
        if order is None or not order.size:
            return None
        axes: list[int] = order.astype(np.int64, copy=False).ravel().tolist()
        return axes if sorted(axes) == list(range(len(axes))) else None

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        order = self.permutation(inputs)
        return f"it transposes by {order}" if order is not None and order == sorted(order) else None

    def rows_from(self, inputs: Sequence[TensorType], output: PartialShape) -> tuple[int, ...] | None:
        order = inputs[1].constant
        return (1, 0) if order is not None and order.size and order[0] == 0 else None

    def _axes(self, order: Array, rank: int) -> list[int]:
        axes = [int(axis) for axis in order] or list(reversed(range(rank)))
        self.require(sorted(axes) == list(range(rank)), "order {} is not a permutation of {} axes", axes, rank)
        return axes
