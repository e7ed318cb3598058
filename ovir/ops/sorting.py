"""TopK, NonZero and Unique: order, find or distinguish the elements of a tensor."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i32, i64
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL

# --------------------------------------------------------------------------- TopK


@operator("TopK", opset=3)
class TopK3(Operator):
    """The ``k`` largest (``mode`` max) or smallest (min) elements along ``axis``, and their indices.

    ``sort`` value orders the results by value, best first; index orders them by index; none leaves the order open, and
    here it is by value. If elements are equal, lower indices are taken and come first. NaN counts as less than
    any number.

    Source: TopK-3
    """

    domains = by_input(k=Length("data", axis="axis"))
    passes = (0,)
    axis: int = attribute(default=0, specified=True)
    mode: str = attribute(default="max", choices=("max", "min"), specified=True)
    sort: str = attribute(default="none", choices=("value", "index", "none"), specified=True)
    index_element_type: ElementType = attribute(default=i32)

    value_inputs = (1,)
    exact_inputs = (1,)

    def infer(self, data: TensorType, k: TensorType) -> tuple[TensorType, TensorType]:
        self.require_integers("k", k.element_type)
        self.require_rank("k", k.shape, 0)
        self.require_index_type("index_element_type", self.index_element_type, known=True)
        self.require_rank_at_least("data", data.shape, 1)
        axis = self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        shape = (
            data.shape.with_dim(axis, self._count(data.shape[axis], k)) if data.shape.rank is not None else data.shape
        )
        return TensorType(data.element_type, shape), TensorType(self.index_element_type, shape)

    def _count(self, size: Dimension, k: TensorType) -> Dimension:
        """Return the number of elements taken of a dimension."""
        count = self.count_of("k", k)
        fitting = count.merged_with(Dimension(0, size.upper))
        if fitting is None:
            self.fail("k is {}, more than the size {} of axis {}", count, size, self.axis)
        return fitting

    def run(self, data: Array, k: Array) -> tuple[Array, Array]:
        axis, count = self.normalize_axis(self.axis, data.ndim), int(k.item())
        message = "k is {}, but axis {} of data {} has {:element}"
        self.require(0 <= count <= data.shape[axis], message, count, axis, data.shape, data.shape[axis])
        rows = np.moveaxis(data, axis, -1)
        indices = _top(rows, count, self.mode == "max")
        if self.sort == "index":
            indices.sort(axis=-1)
        values = np.take_along_axis(rows, indices, -1)
        indices = indices.astype(self.index_element_type.to_dtype(), copy=False)
        return tuple(np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (values, indices))  # type: ignore[return-value]


@operator("TopK", opset=1)
class TopK1(TopK3):
    """The ``k`` largest or smallest elements along ``axis``, and their indices. See TopK-3.

    Source: TopK-1
    """


@operator("TopK", opset=11)
class TopK11(TopK3):
    """The ``k`` largest or smallest elements along ``axis``, and their indices. See TopK-3.

    ``stable`` guarantees the order of equal elements, which is the same here without it.

    Source: TopK-11
    """

    stable: bool = attribute(default=False)


# For rows this long, of which at most one part in _SMALL_PART is wanted, selecting first and sorting the selection is
# faster, unless there are few elements in all.
_LONG_ROW = 128
_FEW = 512
_SMALL_PART = 4


def _top(rows: Array, count: int, largest: bool) -> Array:
    """Return the indices of the first ``count`` elements of each row, ordered by value and then by index."""
    if count == 1 and rows.dtype.kind in "iubf":
        best: Array = rows.argmax(axis=-1, keepdims=True) if largest else rows.argmin(axis=-1, keepdims=True)
        if not _has_nan(np.take_along_axis(rows, best, -1)):
            return best
    keys = _keys(rows, largest)
    if _has_nan(keys):
        # NaN must come first among the smallest, but a sort would put it last.
        order: Array = np.lexsort((keys, keys == keys), -1) if not largest else np.argsort(keys, -1, kind="stable")
        return order[..., :count]
    return sorted_first(keys, count)


def sorted_first(keys: Array, count: int) -> Array:
    """Return the indices of the ``count`` smallest elements of each row, in order; there is no NaN."""
    size = keys.shape[-1]
    if count == 1:
        first: Array = keys.argmin(axis=-1, keepdims=True)
        return first
    if size < _LONG_ROW or keys.size < _FEW or count * _SMALL_PART > size or count == 0:
        return keys.argsort(-1, kind="stable")[..., :count]
    selected = _selected(keys, count)
    order = np.argsort(np.take_along_axis(keys, selected, -1), axis=-1, kind="stable")
    return np.take_along_axis(selected, order, -1)


def _selected(keys: Array, count: int) -> Array:
    """Return the indices of the ``count`` smallest elements of each row, ascending; of equal elements the first are
    taken."""
    last = np.partition(keys, count - 1, axis=-1)[..., count - 1 : count]
    chosen = keys <= last
    if np.count_nonzero(chosen) > prod(keys.shape[:-1]) * count:  # too many elements equal the last one
        less, equal = keys < last, keys == last
        wanted = count - less.sum(axis=-1, keepdims=True)
        chosen = less | (equal & (equal.cumsum(axis=-1) <= wanted))
    positions: Array = np.flatnonzero(chosen.reshape(-1)).reshape(*keys.shape[:-1], count)
    return np.remainder(positions, keys.shape[-1], out=positions)


def _keys(rows: Array, largest: bool) -> Array:
    """Return keys that order the rows when sorted ascending, in a type that NumPy sorts fast."""
    if rows.dtype.kind not in "iub" and rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float32 if ElementType.from_dtype(rows.dtype).is_real else np.int32)
    if not largest:
        return rows
    return -rows if rows.dtype.kind == "f" else ~rows


def _has_nan(array: Array) -> bool:
    return bool((array != array).any())


# --------------------------------------------------------------------------- NonZero


@operator("NonZero", opset=3)
class NonZero(Operator):
    """The indices of the nonzero elements: out[i, j] is the index in dimension i of the j-th, in row-major order.

    A scalar counts as one dimension of one element.

    Source: NonZero-3
    """

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
        if places.size and data.size < 1 << 32:
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
    occurrence. Each NaN is distinct.

    Source: Unique-10
    """

    domains = by_input(axis=Axis("data"))
    passes = (0,)
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
            # As in OpenVINO, a bounded axis is assumed not to be empty.
            least = min(searched.lower, 1) if axis is None or not searched.upper else 1
            found = Dimension(least, searched.upper)
            shape = PartialShape([found]) if axis is None else data.shape.with_dim(along or 0, found)
            shapes = [shape, PartialShape([found]), PartialShape([searched]), PartialShape([found])]
        index, count = self.index_element_type, self.count_element_type
        types = data.element_type, index, index, count
        return tuple(TensorType(t, shape) for t, shape in zip(types, shapes, strict=True))

    def _axis(self, axis: TensorType | None, data: PartialShape) -> int | None:
        """Return the axis counted from the front; None without an axis or if the rank of data is unknown."""
        if axis is None:
            return None
        self.require_index_type("axis", axis.element_type)
        self.require_one_element("axis", axis.shape)
        if axis.constant is None:
            self.fail("axis must be a constant")
        self.require_rank_at_least("data", data, 1)
        return None if data.rank is None else self.normalize_axis(int(axis.constant.item()), data.rank, of=data)

    def run(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        if axis is None:
            return self._unique(data, None)
        self.require_rank_at_least("data", data.shape, 1)
        return self._unique(data, self.normalize_axis(int(axis.item()), data.ndim))

    def _unique(self, data: Array, axis: int | None) -> tuple[Array, ...]:
        if axis is None:
            data, axis = data.reshape(-1), 0
        keys: Any = data
        if data.dtype.kind not in "biufT":
            keys = data.astype(np.float32 if ElementType.from_dtype(data.dtype).is_real else np.int64)
        one_dimensional = data.ndim == 1
        _, first, inverse, counts = np.unique(
            keys,
            return_index=True,
            return_inverse=True,
            return_counts=True,
            axis=None if one_dimensional else axis,
            equal_nan=False,
        )
        inverse = inverse.reshape(-1)
        if not self.sorted:
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            first, counts, inverse = first[order], counts[order], rank[inverse]
        index, count = self.index_element_type.to_dtype(), self.count_element_type.to_dtype()
        return np.take(data, first, axis), first.astype(index), inverse.astype(index), counts.astype(count)
