"""TopK, NonZero, Unique, Bucketize and SearchSorted: order elements, find them, and tell which are equal."""

from __future__ import annotations

from math import inf
from typing import Literal

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i32, i64, string
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import as_native
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SORTED, Axis, Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL

# --------------------------------------------------------------------------- TopK


@operator("TopK", opset=3, function_name="topk")
class TopK3(Operator):
    """The ``k`` largest (``mode`` max) or smallest (min) elements along ``axis``, and their indices.

    ``sort`` value orders the results by value, best first; index orders them by index; none leaves the order open, and
    here it is by value. If elements are equal, lower indices are taken and come first. NaN counts as less than
    any number.
    """

    recipe = "number any1, index = 0..4; axis=axis"
    copies = 4

    arguments = "data k axis mode sort index_element_type="
    domains = by_input(k=Length("data", axis="axis"))
    forwards_values = (0,)
    axis: int = attribute(default=0, specified=True)
    mode: str = attribute(default="max", choices=("max", "min"), specified=True)
    sort: str = attribute(default="none", choices=("value", "index", "none"), specified=True)
    index_element_type: ElementType = attribute(default=i32)

    value_inputs = (1,)
    exact_inputs = (1,)

    def infer(self, data: TensorType, k: TensorType) -> tuple[TensorType, TensorType]:
        self.require_integers("k", k, 0)
        self.require_index_type("index_element_type", self.index_element_type, known=True)
        self.require_type("data", data, lambda t: t != string, "of a numeric type")
        self.require_rank_at_least("data", data.shape, 1)
        axis = self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        shape = (
            data.shape.with_dim(axis, self._count(data.shape[axis], k)) if data.shape.rank is not None else data.shape
        )
        return TensorType(data.element_type, shape), TensorType(self.index_element_type, shape)

    def _count(self, size: Dimension, k: TensorType) -> Dimension:
        """Return the number of elements taken of a dimension."""
        count = self.count_of("k", k)
        message = "k is {}, more than the size {} of axis {}"
        return self.require_known(count.merged_with(Dimension(0, size.upper)), message, count, size, self.axis)

    def run(self, data: Array, k: Array) -> tuple[Array, Array]:
        axis, count = self.normalize_axis(self.axis, data.ndim), int(k.item())
        message = "k is {}, but axis {} of data {} has {:element}"
        self.require(0 <= count <= data.shape[axis], message, count, axis, data.shape, data.shape[axis])
        rows = np.moveaxis(data, axis, -1)
        indices = _ranked(rows, self.mode == "max")[..., :count]
        if self.sort == "index":
            indices.sort(axis=-1)
        values = np.take_along_axis(rows, indices, -1)
        indices = indices.astype(self.index_element_type.to_dtype(), copy=False)
        return tuple(np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (values, indices))  # type: ignore[return-value]


@operator("TopK", opset=1, function_name="topk")
class TopK1(TopK3):
    """The ``k`` largest or smallest elements along ``axis``, and their indices. See TopK-3."""

    arguments = "data k axis mode sort"


@operator("TopK", opset=11, function_name="topk")
class TopK11(TopK3):
    """The ``k`` largest or smallest elements along ``axis``, and their indices. See TopK-3.

    ``stable`` guarantees the order of equal elements, which is the same here without it.

    >>> ops.topk([3, 1, 2], 2, 0, "max", "value")
    [3 2]
    [0 2]
    """

    arguments = TopK3.arguments + " stable="
    stable: bool = attribute(default=False)


def _ranked(rows: Array, largest: bool) -> Array:
    """Return the indices of the elements of each row, the largest or the smallest first, equal ones by index."""
    rows = as_native(rows)
    if not largest:  # NaN is the least
        return np.lexsort((rows, rows == rows), axis=-1)
    return np.argsort(-rows if rows.dtype.kind == "f" else ~rows, axis=-1, kind="stable")


# --------------------------------------------------------------------------- NonZero


@operator("NonZero", opset=3)
class NonZero(Operator):
    """The indices of the nonzero elements: out[i, j] is the index in dimension i of the j-th, in row-major order.

    A scalar counts as one dimension of one element.

    >>> ops.non_zero([[0, 5], [7, 0]])
    [[0 1] [1 0]]
    """

    recipe = "anything any"
    within = (0, inf)

    output_type: ElementType = attribute(default=i64)

    value_inputs = (0,)

    def infer(self, data: TensorType) -> TensorType:
        self.require_index_type("output_type", self.output_type, known=True)
        if data.shape.rank is None:
            return TensorType(self.output_type, PartialShape([UNKNOWN, UNKNOWN]))
        count: Dimension | int = Dimension(0, data.shape.size().upper)
        if data.constant is not None:
            count = int(np.count_nonzero(data.constant))
        return TensorType(self.output_type, PartialShape([max(data.shape.rank, 1), count]))

    def run(self, data: Array) -> Array:
        data = np.atleast_1d(data)
        # NumPy finds true elements ten times faster than nonzero ones, and divides small integers four times faster.
        places = np.flatnonzero(data != 0 if data.dtype.kind in "iuf" else data)
        found = np.empty((data.ndim, places.size), self.output_type.to_dtype())
        if data.size < 1 << 32:
            places = places.astype(np.uint32)
        for axis in reversed(range(1, data.ndim)):
            rows = places // data.shape[axis] if places.size else places
            found[axis] = places - rows * data.shape[axis]
            places = rows
        found[0] = places
        return found


# --------------------------------------------------------------------------- Unique


@operator("Unique", opset=10)
class Unique(Operator):
    """The distinct elements of data, or with ``axis`` its distinct slices along that axis.

    Further outputs are the index in data of the first occurrence of each distinct element (or slice), the index in the
    first output of each element of data, and the number of occurrences of each distinct element. If ``sorted``, the
    elements are in ascending order and slices in lexicographic order; otherwise both are in the order of their first
    occurrence. Each NaN is distinct, and comes after all numbers if the elements are sorted.

    >>> ops.unique([3, 1, 3, 2])
    [1 2 3]
    [1 3 0]
    [2 0 2 1]
    [1 1 2]
    """

    recipe = "number any1, ?index = axis"
    copies = 60

    domains = by_input(axis=Axis("data"))
    forwards_values = (0,)
    sorted: bool = attribute(default=True)
    index_element_type: ElementType = attribute(default=i64)
    count_element_type: ElementType = attribute(default=i64)

    value_inputs = ALL

    def infer(self, data: TensorType, axis: TensorType | None = None) -> tuple[TensorType, ...]:
        for name in ("index_element_type", "count_element_type"):
            self.require_index_type(name, getattr(self, name), known=True)
        along = self._axis(axis, data.shape)
        if data.constant is not None and (axis is None or along is not None):
            shapes = [PartialShape(array.shape) for array in self._unique(data.constant, along)]
        else:
            searched = data.shape.size() if axis is None else data.shape[along or 0]
            found = Dimension(min(searched.lower, 1), searched.upper)
            shape = PartialShape([found]) if axis is None else data.shape.with_dim(along or 0, found)
            shapes = [shape, PartialShape([found]), PartialShape([searched]), PartialShape([found])]
        index, count = self.index_element_type, self.count_element_type
        types = data.element_type, index, index, count
        return tuple(TensorType(t, shape) for t, shape in zip(types, shapes, strict=True))

    def _axis(self, axis: TensorType | None, data: PartialShape) -> int | None:
        """Return the axis counted from the front; None without an axis or if the rank of data is unknown."""
        if axis is None:
            return None
        self.require_index_type("axis", axis)
        self.require_one_element("axis", axis.shape)
        if axis.constant is None:
            self.fail("axis must be a constant")
        self.require_rank_at_least("data", data, 1)
        return None if data.rank is None else self.normalize_axis(axis.constant, data.rank, of=data)

    def run(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        if axis is None:
            return self._unique(data, None)
        self.require_rank_at_least("data", data.shape, 1)
        return self._unique(data, self.normalize_axis(axis, data.ndim))

    def _unique(self, data: Array, axis: int | None) -> tuple[Array, ...]:
        if axis is None:
            data, axis = data.ravel(), 0
        one_dimensional = data.ndim == 1
        _, first, inverse, counts = np.unique(
            as_native(data),
            return_index=True,
            return_inverse=True,
            return_counts=True,
            axis=None if one_dimensional else axis,
            equal_nan=False,
        )
        inverse = inverse.ravel()
        if not self.sorted:
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            first, counts, inverse = first[order], counts[order], rank[inverse]
        index, count = self.index_element_type.to_dtype(), self.count_element_type.to_dtype()
        return np.take(data, first, axis), first.astype(index), inverse.astype(index), counts.astype(count)


# --------------------------------------------------------------------------- search


@operator("Bucketize", opset=3)
class Bucketize(Operator):
    """The number of the bucket, between ascending boundaries, that each element of data lies in.

    Bucket i ends at buckets[i]; the boundary belongs to it if ``with_right_bound``, otherwise to the next bucket.

    >>> ops.bucketize([0, 5, 10, 20], [5, 10])
    [0 0 1 2]
    """

    takes = "data numeric[D...]; buckets numeric[K]; output_type index"
    gives = "output_type[D...]"
    arguments = "data buckets output_type='i64' with_right_bound="
    domains = by_input(buckets=SORTED)
    output_type: ElementType = attribute()
    with_right_bound: bool = attribute(default=True)

    def run(self, data: Array, buckets: Array) -> Array:
        side: Literal["left", "right"] = "left" if self.with_right_bound else "right"
        data = as_native(data)
        positions = np.asarray(np.searchsorted(as_native(buckets), data, side))
        if self.with_right_bound:
            positions = np.where(data != data, 0, positions)  # no boundary is less than NaN
        return positions.astype(self.output_type.to_dtype())


@operator("SearchSorted", opset=15)
class SearchSorted(Operator):
    """The position in a sorted sequence at which inserting each of values keeps the order.

    Among equal elements it is the first position, or with ``right_mode`` the one after the last. sorted_sequence is
    1-D, or has the dimensions of values except the last; then each row of values is searched in its own row.

    >>> ops.search_sorted([1, 3, 5], [3, 4])
    [1 2]
    """

    recipe = "number ... K, number ... V"
    arguments = "sorted_sequence values right_mode="
    domains = by_input(sorted_sequence=SORTED)
    output_type: ElementType = attribute(default=i64)
    right_mode: bool = attribute(default=False)

    def infer(self, sorted_sequence: TensorType, values: TensorType) -> TensorType:
        self.require_index_type("output_type", self.output_type, known=True)
        self.require_numeric("values", self.shared_type(sorted_sequence=sorted_sequence, values=values))
        rows, shape = sorted_sequence.shape, values.shape
        self.require_rank_at_least("sorted_sequence", rows, 1)
        if shape.rank is None:
            # A single row can be searched for values of any shape.
            known = rows.rank is not None and rows.rank > 1
            return TensorType(self.output_type, rows.with_dim(-1, UNKNOWN) if known else shape)
        message = "sorted_sequence {} must have one dimension, because values is a scalar"
        self.require(shape.rank != 0 or rows.rank in (None, 1), message, rows)
        if rows.rank is None or rows.rank == 1:
            return TensorType(self.output_type, shape)
        message = "sorted_sequence {} and values {} must have equal dimensions except the last"
        merged = self.require_known(shape.merged_with(rows, except_axis=shape.rank - 1), message, rows, shape)
        return TensorType(self.output_type, merged)

    def run(self, sorted_sequence: Array, values: Array) -> Array:
        rows, values = as_native(sorted_sequence), as_native(values)
        side: Literal["left", "right"] = "right" if self.right_mode else "left"
        if rows.ndim == 1:
            positions = np.asarray(np.searchsorted(rows, values, side))
        else:
            positions = np.empty(values.shape, np.intp)
            for i in np.ndindex(rows.shape[:-1]):
                positions[i] = np.searchsorted(rows[i], values[i], side)
        positions = np.where(values != values, 0, positions)  # no element is less than NaN
        return positions.astype(self.output_type.to_dtype())
