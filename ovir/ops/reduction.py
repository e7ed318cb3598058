"""Reductions, which combine the elements along some axes into one, and CumSum.

The specifications do not say how integers are reduced. Types of 32 and 64 bits wrap around, as in OpenVINO's reference;
narrower types, which the reference does not execute, are computed exactly and saturate.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean, value_range
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_bounds, product_bounds
from ovir.kernels.precision import compute_dtype, fill_saturated, integer_range, is_integer, lowest_finite, native_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_ONE = Dimension(1, 1)


def is_wide(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" and dtype.itemsize >= 4


class ReductionBase(Operator):
    """Base of reductions: ``axes`` is a scalar or 1-D; negative axes count from the end, and empty axes change nothing.

    With ``keep_dims`` the reduced dimensions become 1, otherwise they are removed.
    """

    arguments = "node:data reduction_axes:axes keep_dims="
    domains = by_input(axes=Axis("data"))
    keep_dims: bool = attribute(default=False)

    value_inputs = (1,)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        self.check_type(data.element_type)
        self.require_integers("axes", axes, 0, 1)
        return TensorType(data.element_type, self._reduced(data.shape, axes))

    def check_type(self, element_type: ElementType) -> None:
        self.require_numeric("data", element_type)

    def _reduced(self, data: PartialShape, axes: TensorType) -> PartialShape:
        rank = data.rank
        if rank is None:
            return PartialShape(None)
        if axes.constant is None:
            if self.keep_dims:
                return PartialShape([-1] * rank)
            # One axis cannot repeat; of several, the number of distinct ones is unknown.
            one = axes.shape.is_static and axes.shape.size() == _ONE
            return PartialShape([-1] * (rank - 1)) if one else PartialShape(None)
        reduced = self.axes(axes.constant, rank)
        if self.keep_dims:
            return PartialShape(_ONE if axis in reduced else dim for axis, dim in enumerate(data))
        return PartialShape(dim for axis, dim in enumerate(data) if axis not in reduced)

    def axes(self, axes: Array, rank: int) -> tuple[int, ...]:
        """Return the axes in ascending order, each once."""
        normal = self.normalize_axes(axes.ravel().tolist(), rank, "axes", unique=False)
        return tuple(sorted({axis for axis in normal if axis < rank}))

    def run(self, data: Array, axes: Array) -> Array:
        along = self.axes(axes, data.ndim)
        others = [axis for axis in range(data.ndim) if axis not in along]
        # NumPy sums pairwise, with small errors, only along the last axis of an array in C order.
        rows = np.ascontiguousarray(data.transpose([*others, *along]))
        kept = rows.shape[: len(others)]
        result = np.asarray(self.reduce(rows.reshape(*kept, prod(rows.shape[len(others) :]))))
        if not self.keep_dims:
            return result
        return result.reshape([1 if axis in along else size for axis, size in enumerate(data.shape)])

    def reduce(self, rows: Array) -> Array:
        """Return the results of all rows, which lie along the last axis, in the type of the rows."""
        raise NotImplementedError


class ArithmeticReductionBase(ReductionBase):
    """Base of reductions whose result does not decrease when an element increases, so that bounds give bounds."""

    recipe = "number any1, index = axes"
    rises_from = -np.inf
    """The element value from which on the result does not decrease."""

    def infer_value(self, *inputs: TensorType) -> Value | None:
        data, axes = inputs
        value = data.bounds_or_unknown()
        if value is None or not value.size or axes.constant is None or (value.lower < self.rises_from).any():
            return None
        lower, upper = self.bounds(value, axes.constant)
        symbols = value.symbols.reshape(lower.shape) if lower.size == value.size else None
        sizes, may_wrap = bool(value.is_size.all()), not self.stays_in_type
        return from_bounds(self.output_types[0], lower, upper, symbols, sizes=sizes, may_wrap=may_wrap)

    def bounds(self, value: Value, axes: Array) -> tuple[Array, Array]:
        """Return the least and the greatest result, NaN if unknown."""
        return self.run(value.lower, axes), self.run(value.upper, axes)

    def reduce(self, rows: Array) -> Array:
        dtype = rows.dtype
        result = self.combine(rows if is_wide(dtype) else rows.astype(compute_dtype(dtype), copy=False))
        if not is_integer(dtype) or result.dtype == dtype:
            return np.asarray(result).astype(dtype, copy=False)
        out = np.empty(result.shape, dtype)
        fill_saturated(result, out)  # of a product, NaN is infinity times 0
        return out

    def combine(self, rows: Array) -> Array:
        """Return the results of rows of real numbers, or of integers of 32 or 64 bits."""
        raise NotImplementedError


# --------------------------------------------------------------------------- the operations


@operator("ReduceSum", opset=1)
class ReduceSum(ArithmeticReductionBase):
    """The sum of the elements along ``axes``; 0 for no elements.

    >>> ops.reduce_sum([[1, 5], [3, 2]], [1], keep_dims=True)
    [[6] [5]]
    """

    def combine(self, rows: Array) -> Array:
        return _sum(rows)


def _sum(rows: Array) -> Array:
    return np.asarray(rows.sum(-1, dtype=rows.dtype))


@operator("ReduceMean", opset=1)
class ReduceMean(ArithmeticReductionBase):
    """The arithmetic mean of the elements along ``axes``, truncated for integers; 0 for no elements.

    >>> ops.reduce_mean([[1.0, 5.0], [3.0, 2.0]], [1])
    [3. 2.5]
    """

    def bounds(self, value: Value, axes: Array) -> tuple[Array, Array]:
        lower, upper = super().bounds(value, axes)
        element_type, count = self.output_types[0], value.size // max(lower.size, 1)
        if element_type.is_integral and element_type.bits >= 32:  # the sum may wrap around before it is divided
            least, greatest = value_range(element_type)
            may_wrap = (lower * count < least) | (upper * count > greatest)
            lower, upper = np.where(may_wrap, np.nan, lower), np.where(may_wrap, np.nan, upper)
        return lower, upper

    def combine(self, rows: Array) -> Array:
        total, count = _sum(rows), rows.dtype.type(max(rows.shape[-1], 1))
        if rows.dtype.kind == "f":
            return np.asarray(total / count)
        quotient = total // count
        # Division rounds down; a negative total that does not divide evenly must be rounded up.
        return np.asarray(quotient + ((total < 0) & (quotient * count != total)).astype(total.dtype))


@operator("ReduceProd", opset=1)
class ReduceProd(ArithmeticReductionBase):
    """The product of the elements along ``axes``; 1 for no elements.

    >>> ops.reduce_prod([[1, 5], [3, 2]], [1])
    [5 6]
    """

    rises_from = 0

    def bounds(self, value: Value, axes: Array) -> tuple[Array, Array]:
        # A factor that can only be 0 makes the product 0, however large the others are; 0 * inf would be NaN.
        huge = np.finfo(value.upper.dtype).max
        upper = self.run(np.minimum(value.upper, huge), axes)
        lower, upper = self.run(value.lower, axes), np.where(upper >= huge, np.inf, upper)
        return product_bounds(self.output_types[0], lower, upper, np.full(upper.shape, value.size == upper.size))

    def combine(self, rows: Array) -> Array:
        return np.asarray(rows.prod(-1, dtype=rows.dtype))


@operator("ReduceMax", opset=1)
class ReduceMax(ArithmeticReductionBase):
    """The largest element along ``axes``; NaN counts only if there is nothing else.

    For no elements it is the lowest finite value of the type.

    >>> ops.reduce_max([[1, 5], [3, 2]], [1])
    [5 3]
    """

    forwards_values = (0,)
    stays_in_type = True

    def reduce(self, rows: Array) -> Array:
        return _extreme(np.fmax, rows, lowest_finite(rows.dtype))


@operator("ReduceMin", opset=1)
class ReduceMin(ArithmeticReductionBase):
    """The smallest element along ``axes``; NaN counts only if there is nothing else.

    For no elements it is infinity, or the highest value of an integer type.

    >>> ops.reduce_min([[1, 5], [3, 2]], [1])
    [1 2]
    """

    forwards_values = (0,)
    stays_in_type = True

    def reduce(self, rows: Array) -> Array:
        is_real = native_dtype(rows.dtype).kind == "f"
        highest = np.inf if is_real else integer_range(rows.dtype)[1]
        return _extreme(np.fmin, rows, highest)


def _extreme(choose: np.ufunc, rows: Array, empty: float) -> Array:
    """Return the largest or smallest element of each row, ``empty`` for rows without elements."""
    if not rows.shape[-1]:
        return np.full(rows.shape[:-1], empty, rows.dtype)
    computed = rows.astype(native_dtype(rows.dtype), copy=False)
    return np.asarray(choose.reduce(computed, axis=-1)).astype(rows.dtype, copy=False)


@operator("ReduceL1", opset=4)
class ReduceL1(ArithmeticReductionBase):
    """The sum of the absolute values along ``axes``.

    >>> ops.reduce_l1([[3.0, -4.0]], [1])
    [7.]
    """

    within = (0, inf)

    rises_from = 0

    def combine(self, rows: Array) -> Array:
        return _sum(np.absolute(rows))


@operator("ReduceL2", opset=4)
class ReduceL2(ArithmeticReductionBase):
    """The square root of the sum of squares along ``axes``, truncated for integers.

    >>> ops.reduce_l2([[3.0, -4.0]], [1])
    [5.]
    """

    within = (0, inf)

    rises_from = 0

    def combine(self, rows: Array) -> Array:
        reals = rows.astype(compute_dtype(rows.dtype), copy=False)
        return np.asarray(np.sqrt(_sum(np.square(reals))))


class LogicalReductionBase(ReductionBase):
    """Base of reductions of booleans."""

    recipe = "boolean any1, index = axes"

    def check_type(self, element_type: ElementType) -> None:
        self.require_type("data", element_type, lambda t: t == boolean, "boolean")


@operator("ReduceLogicalAnd", opset=1)
class ReduceLogicalAnd(LogicalReductionBase):
    """Whether all elements along ``axes`` are true; true for no elements.

    >>> ops.reduce_logical_and([[True, False]], [1])
    [False]
    """

    def reduce(self, rows: Array) -> Array:
        return np.asarray(rows.all(-1))


@operator("ReduceLogicalOr", opset=1)
class ReduceLogicalOr(LogicalReductionBase):
    """Whether any element along ``axes`` is true; false for no elements.

    >>> ops.reduce_logical_or([[True, False]], [1])
    [ True]
    """

    def reduce(self, rows: Array) -> Array:
        return np.asarray(rows.any(-1))


# --------------------------------------------------------------------------- cumulative sums


@operator("CumSum", opset=3, alias="cumsum")
class CumSum(Operator):
    """out[i] is the sum of the elements up to i along ``axis``; with ``exclusive`` the sum of those before i.

    With ``reverse`` the sums start at the end. Integers wrap around.

    >>> ops.cum_sum([1, 2, 3, 4], 0)
    [ 1 3 6 10]
    """

    recipe = "number any1, index = axis"
    arguments = "arg:data axis exclusive= reverse="
    domains = by_input(axis=Axis("data"))
    exclusive: bool = attribute(default=False)
    reverse: bool = attribute(default=False)
    monotone = (0,)
    value_inputs = (1,)

    def infer(self, data: TensorType, axis: TensorType) -> TensorType:
        self.require_numeric("data", data)
        self.require_index_type("axis", axis)
        self.require(axis.shape.size().contains(1), "axis must have one element, got shape {}", axis.shape)
        if axis.constant is not None:
            self.normalize_axis(axis.constant, data.shape.rank, of=data.shape)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array, axis: Array) -> Array:
        along = self.normalize_axis(axis, data.ndim, of=data.shape)
        x = np.atleast_1d(data if data.dtype.kind in "iu" else data.astype(compute_dtype(data.dtype)))
        if self.reverse:
            x = np.flip(x, along)
        sums = np.cumsum(x, axis=along, dtype=x.dtype)
        if self.exclusive:
            sums = np.roll(sums, 1, along)
            sums[(slice(None),) * along + (slice(0, 1),)] = 0
        if self.reverse:
            sums = np.flip(sums, along)
        return sums.astype(data.dtype).reshape(data.shape)
