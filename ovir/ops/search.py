"""Bucketize and SearchSorted: positions of elements in a sorted sequence."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i64
from ovir.core.shapes import UNKNOWN
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import apply
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SORTED, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

# With up to this many boundaries, comparing with each is several times faster than searching.
_FEW = 64


class SearchSortedBase(Operator):
    """Base of searches in sorted sequences; ``output_type`` is the type of the positions."""

    output_type: ElementType = attribute(default=i64)

    def require_types(self, **inputs: TensorType) -> None:
        self.require_index_type("output_type", self.output_type, known=True)
        for name, tensor in inputs.items():
            self.require_numeric(name, tensor.element_type)


@operator("Bucketize", opset=3)
class Bucketize(SearchSortedBase):
    """The number of the bucket, between ascending boundaries, that each element of data lies in.

    Bucket i ends at buckets[i]; the boundary belongs to it if ``with_right_bound``, otherwise to the next bucket.

    Source: Bucketize-3
    """

    domains = by_input(buckets=SORTED)
    output_type: ElementType = attribute()
    with_right_bound: bool = attribute(default=True)

    def infer(self, data: TensorType, buckets: TensorType) -> TensorType:
        self.require_types(data=data, buckets=buckets)
        self.require_rank("buckets", buckets.shape, 1)
        return TensorType(self.output_type, data.shape)

    def run(self, data: Array, buckets: Array) -> Array:
        data, buckets = _comparable(data), _comparable(buckets)

        def search(x: Array, *, out: Array) -> None:
            positions = np.searchsorted(buckets, x, "left" if self.with_right_bound else "right")
            if self.with_right_bound and x.dtype.kind == "f":
                positions[np.isnan(x)] = 0  # no boundary is less than NaN
            np.copyto(out, positions, casting="unsafe")

        def count(x: Array, *, out: Array) -> None:
            found = np.zeros(x.shape, np.uint8)
            for bound in buckets:  # NaN lies behind the last boundary, or before the first one if with_right_bound
                found += x > bound if self.with_right_bound else ~(x < bound)
            np.copyto(out, found)

        few = len(buckets) <= _FEW and data.dtype == buckets.dtype
        return apply(count if few else search, (data,), None, self.output_type.to_dtype(), types=None, heavy=True)


@operator("SearchSorted", opset=15)
class SearchSorted(SearchSortedBase):
    """The position in a sorted sequence at which inserting each of values keeps the order.

    Among equal elements it is the first position, or with ``right_mode`` the one after the last. sorted is 1-D, or has
    the dimensions of values except the last; then each row of values is searched in its own row.

    Source: SearchSorted-15
    """

    domains = by_input(sorted_sequence=SORTED)
    right_mode: bool = attribute(default=False)

    def infer(self, sorted_sequence: TensorType, values: TensorType) -> TensorType:
        self.require_types(sorted=sorted_sequence, values=values)
        self.merge_types(sorted_sequence.element_type, values.element_type, names=("sorted", "values"))
        rows, shape = sorted_sequence.shape, values.shape
        self.require_rank_at_least("sorted", rows, 1)
        if shape.rank is None:
            # A single row can be searched for values of any shape.
            known = rows.rank is not None and rows.rank > 1
            return TensorType(self.output_type, rows.with_dim(-1, UNKNOWN) if known else shape)
        self.require(
            shape.rank != 0 or rows.rank in (None, 1),
            "sorted {} must have one dimension, because values is a scalar",
            rows,
        )
        if rows.rank is None or rows.rank == 1:
            return TensorType(self.output_type, shape)
        merged = shape.merged_with(rows, except_axis=shape.rank - 1)
        if merged is None:
            self.fail("sorted {} and values {} must have equal dimensions except the last", rows, shape)
        return TensorType(self.output_type, merged)

    def run(self, sorted_sequence: Array, values: Array) -> Array:
        rows, values = _comparable(sorted_sequence), _comparable(values)
        if rows.ndim > 1:
            return _positions(rows, values, self.right_mode).astype(self.output_type.to_dtype())
        positions = np.asarray(np.searchsorted(rows, values, "right" if self.right_mode else "left"))
        if values.dtype.kind == "f":
            positions = np.where(np.isnan(values), 0, positions)  # no element is less than NaN
        return positions.astype(self.output_type.to_dtype())


def _positions(rows: Array, values: Array, right: bool) -> Array:
    """Run all binary searches at once, each in its row."""
    precedes = np.less_equal if right else np.less
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, rows.shape[-1])
    while (open_ := low < high).any():
        middle = np.minimum((low + high) // 2, rows.shape[-1] - 1)
        after = precedes(np.take_along_axis(rows, middle, -1), values)
        np.copyto(low, middle + 1, where=open_ & after)
        np.copyto(high, middle, where=open_ & ~after)
    return low


def _comparable(array: Array) -> Array:
    """Return the array in a type that NumPy compares fast."""
    if array.dtype.kind in "iu" or array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if ElementType.from_dtype(array.dtype).is_real else np.int64)
