"""Slice, StridedSlice, SliceScatter: every n-th element between two positions along each axis.

The kernels are NumPy's basic indexing, so Slice and StridedSlice return views. Most of the file infers a sliced
dimension from bounds of its size and of the two positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from itertools import product as combinations
from typing import NamedTuple

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, i32
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, as_dimension
from ovir.core.tensor_types import TensorType
from ovir.core.values import EXACT, bound_text
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, ZERO, Axis, Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

Index = int | slice | None

# Numbers for an infinite size and an infinite position: more than any file can hold, and no position within that size.
_ENDLESS = 1 << 70
_BEYOND = 4 * _ENDLESS


class Position(NamedTuple):
    """Bounds of a start or stop; a negative position counts from the end."""

    low: int
    high: int
    symbol: int = 0

    def extremes(self) -> set[int]:
        """Return the positions at which the length of the slice may be extreme, counted from the front or from the
        end."""
        return {p for p in (self.low, -1, 0, self.high) if self.low <= p <= self.high}


ANYWHERE = Position(-_BEYOND, _BEYOND)
END = Position(_BEYOND, _BEYOND)
BEFORE_BEGIN = Position(-_BEYOND, -_BEYOND)


def positions(tensor: TensorType, count: int) -> list[Position]:
    """Return the elements of a ``start`` or ``stop`` of ``count`` elements; an unknown element may be anywhere.

    The largest and the smallest number of i32 and i64, and all numbers too large for a dimension, mean the end and the
    beginning of any dimension.
    """
    known = tensor.bounds_or_unknown()
    if known is None:
        return [ANYWHERE] * count
    least, most = _limits(tensor.element_type)

    def finite(position: float) -> int:
        if position <= least:
            return -_BEYOND
        return _BEYOND if position >= most else int(position)

    return [
        Position(finite(low), finite(high), int(symbol))
        for low, high, symbol in zip(known.lower, known.upper, known.symbols, strict=True)
    ]


def _limits(element_type: ElementType) -> tuple[float, float]:
    if element_type == i32:
        return -(2.0**31), 2.0**31 - 1
    return -EXACT, EXACT


def sliced(dim: Dimension, start: Position, stop: Position, step: int | None) -> Dimension:
    """Return the number of elements from ``start`` to ``stop``, for every size and position within the bounds."""
    if step is None:
        return Dimension(0, dim.upper)
    # A position equal to the size, whatever the size is, is the end.
    start, stop = (END if dim.symbol and position.symbol == dim.symbol else position for position in (start, stop))
    if _keeps_all(dim, start, stop, step):
        return dim
    largest = _ENDLESS if dim.upper is None else dim.upper
    # For a given size the length is monotone in each position, as long as the position keeps its sign. In the size it
    # is piecewise linear; the pieces meet where a position enters or leaves the dimension.
    firsts, lasts = start.extremes(), stop.extremes()
    near = {abs(position) + d for position in firsts | lasts for d in (-1, 0, 1)}
    sizes = {dim.lower, largest} | {size for size in near if dim.lower < size < largest}
    lengths = [_length(first, last, step, size) for first, last, size in combinations(firsts, lasts, sizes)]
    longest = max(lengths)
    return Dimension(min(lengths), None if longest >= _ENDLESS // (2 * abs(step)) else longest)


def _length(first: int, last: int, step: int, size: int) -> int:
    """Return ``len(range(size)[first:last:step])``, which Python cannot compute beyond the machine's integers."""
    start, stop, _ = slice(clamped(first, step, size), last, step).indices(size)
    return max(0, -((start - stop) // step))


def clamped(first: int, step: int, size: int) -> int:
    """Return the start, moved to the first element if it lies before it.

    With a negative step Python would select nothing then.
    """
    return 0 if step < 0 and first < -size else first


def _keeps_all(dim: Dimension, start: Position, stop: Position, step: int) -> bool:
    """Return whether the slice has all elements of the dimension, whatever its size."""
    size = _ENDLESS if dim.upper is None else dim.upper
    if step == 1:
        return stop.low >= size and (start.low == start.high == 0 or start.high <= -size)
    if step == -1:
        return stop.high < -size and (start.low == start.high == -1 or start.low >= size - 1)
    return False


class SlicingBase(Operator):
    """Base of Slice, SliceScatter and StridedSlice."""

    def known_step(self, name: str, step: TensorType, index: int) -> int | None:
        """Return one element of ``step``, or None if it is unknown."""
        value = step.value
        if value is None or (value.constant is None and value.lower[index] != value.upper[index]):
            return None
        known = int(value.lower[index] if value.constant is None else value.constant[index])
        self.require(known, "{}[{}] must not be 0", name, index)
        return known


def _why_whole(data: TensorType, output: TensorType, step: TensorType | None) -> str | None:
    """Return the reason why slices with these steps, along axes that all remain, are the whole tensor."""
    by_one = step is None or (step.constant is not None and (step.constant == 1).all())
    return "the slice is the whole" if by_one and data.shape.is_sure_to_equal(output.shape) else None


_VECTORS = "start integer[K]; stop integer[K]; step integer[K]; ?axes integer[K]; T any"


class SliceOperatorBase(SlicingBase):
    """Base of slicing by four vectors, with ``start``, ``stop``, ``step`` and, optionally, ``axes``."""

    def sliced_shape(self, shape: PartialShape, count: Dimension, vectors: Sequence[TensorType]) -> PartialShape:
        """Return ``shape`` after slicing along ``count`` axes."""
        fits = shape.rank is None or count.lower <= shape.rank
        self.require(fits, "start has {:element}, more than the {:dimension} of data", count, shape.rank)
        start, stop, step = vectors[:3]
        if step.constant is not None:
            for i in range(step.constant.size):
                self.known_step("step", step, i)
        if shape.rank is None:
            return shape
        self.require(shape.rank > 0, "data is a scalar, which cannot be sliced")
        axes: list[int] | None = None
        if len(vectors) < 4:
            axes = list(range(count.length)) if count.is_static else None
        elif vectors[3].constant is not None:
            axes = self.normalize_axes(vectors[3].constant.tolist(), shape.rank, "axes")
        if axes is None:  # any dimension may be sliced
            return PartialShape(Dimension(0, dim.upper) for dim in shape)
        dims = list(shape)
        starts, stops = positions(start, len(axes)), positions(stop, len(axes))
        for i, (axis, first, last) in enumerate(zip(axes, starts, stops, strict=True)):
            dims[axis] = sliced(dims[axis], first, last, self.known_step("step", step, i))
        return PartialShape(dims)

    def index(self, shape: Sequence[int], vectors: Sequence[Array]) -> tuple[slice, ...]:
        """Return the index that NumPy slices by."""
        start, stop, step = (vector.tolist() for vector in vectors[:3])
        axes = vectors[3].tolist() if len(vectors) > 3 else range(len(start))
        result = [slice(None)] * len(shape)
        for i, axis in enumerate(self.normalize_axes(axes, len(shape), "axes")):
            self.require(step[i] != 0, "step[{}] must not be 0", i)
            first = clamped(int(start[i]), int(step[i]), shape[axis])
            result[axis] = slice(first, int(stop[i]), int(step[i]))
        return tuple(result)


@operator("Slice", opset=8)
class Slice(SliceOperatorBase):
    """``data[start[i]:stop[i]:step[i]]``, as in Python, along each of ``axes`` or by default along the first ones.

    Positions beyond the ends are clamped. Unlike in Python, this holds for a start before the first element with a
    negative step too.

    >>> ops.slice([0, 1, 2, 3, 4, 5], [1], [5], [2])
    [1 3]
    """

    takes = f"data T[D...]; {_VECTORS}"
    domains = by_input(start=ZERO, stop=Length("data", axis=None), step=ONE, axes=Axis("data"))
    views = True
    moves_elements = (0,)
    value_inputs = (1, 2, 3, 4)

    def infer(self, data: TensorType, *vectors: TensorType) -> TensorType:
        count = self.solved(data, *vectors)["K"]
        return TensorType(data.element_type, self.sliced_shape(data.shape, count, vectors))

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        return _why_whole(inputs[0], output, inputs[3])

    def run(self, data: Array, *vectors: Array) -> Array:
        return data[self.index(data.shape, vectors)]


@operator("SliceScatter", opset=15)
class SliceScatter(SliceOperatorBase):
    """A copy of ``data`` in which the elements that Slice would return are replaced by ``updates``.

    >>> ops.slice_scatter([0, 1, 2, 3], [10, 30], [1], [4], [2])
    [ 0 10 2 30]
    """

    takes = f"data T[D...]; updates T[...]; {_VECTORS}"
    domains = by_input(start=ZERO, stop=Length("data", axis=None), step=ONE, axes=Axis("data"))
    moves_elements = (0, 1)
    inplace = (0,)
    value_inputs = (2, 3, 4, 5)

    def infer(self, data: TensorType, updates: TensorType, *vectors: TensorType) -> TensorType:
        solution = self.solved(data, updates, *vectors)
        ranked = updates.shape.rank is not None and data.shape.rank is None
        shape = PartialShape([UNKNOWN] * len(updates.shape)) if ranked else data.shape
        wanted = self.sliced_shape(shape, solution["K"], vectors)
        message = "updates of shape {} must have the shape of the slice, {}"
        self.require(updates.shape.compatible(wanted), message, updates.shape, wanted)
        return TensorType(solution.types["T"], shape)

    def run(self, data: Array, updates: Array, *vectors: Array) -> Array:
        out = data.copy()
        self.write(out, updates, *vectors)
        return out

    def write(self, out: Array, updates: Array, *vectors: Array) -> None:
        """Write the updates into an array."""
        target = out[self.index(out.shape, vectors)]
        message = "updates of shape {} must have the shape of the slice, {}"
        self.require(target.shape == updates.shape, message, updates.shape, target.shape)
        target[...] = updates


@operator("StridedSlice", opset=1)
class StridedSlice(SlicingBase):
    """``data[begin[i]:end[i]:stride[i]]`` along successive axes, modified by masks, each a list of 0 and 1.

    Positions beyond the ends are clamped as in Slice. A 1 at position i of a mask has the following effect.
    ``begin_mask`` and ``end_mask``: the slice starts at the beginning, or stops at the end, of the dimension.
    ``new_axis_mask``: a dimension of 1 is inserted and nothing is sliced. ``shrink_axis_mask``: the element at
    ``begin[i]`` is taken and the dimension dropped. ``ellipsis_mask``: position i stands for all dimensions that the
    other positions leave. If several of the last three are set, ellipsis prevails over new axis, and new axis over
    shrink. Masks that are too short are continued with 0.

    >>> ops.strided_slice([0, 1, 2, 3, 4, 5], [1], [5], [2], [0], [0])
    [1 3]
    """

    arguments = "data begin end strides:stride begin_mask end_mask new_axis_mask= shrink_axis_mask= ellipsis_mask="
    takes = "data T[D...]; begin integer[K]; end integer[K]; ?stride integer[K]; T any"
    domains = by_input(begin=ZERO, end=Length("data", axis=None), stride=ONE)
    begin_mask: tuple[int, ...] = attribute()
    end_mask: tuple[int, ...] = attribute(default=(), specified=True)
    new_axis_mask: tuple[int, ...] = attribute(default=())
    shrink_axis_mask: tuple[int, ...] = attribute(default=())
    ellipsis_mask: tuple[int, ...] = attribute(default=())

    views = True
    moves_elements = (0,)
    value_inputs = (1, 2, 3)
    exact_inputs = (1, 2, 3)

    def infer(self, data: TensorType, *vectors: TensorType) -> TensorType:
        masks = {name: getattr(self, name) for name in self.attributes}
        for name, mask in masks.items():
            self.require(all(bit in (0, 1) for bit in mask), "{} must hold only 0 and 1, got {}", name, list(mask))
        ellipses = sum(self.ellipsis_mask)
        self.require(ellipses <= 1, "ellipsis_mask must have at most one 1, got {}", list(self.ellipsis_mask))
        count = self.solved(data, *vectors)["K"]
        if data.shape.rank is None or not count.is_static:
            return TensorType(data.element_type, PartialShape(None))
        steps = count.length
        begins, ends = (positions(vector, steps) for vector in vectors[:2])
        dims: list[Dimension] = []
        for role, i, axis in self.roles(steps, data.shape.rank):
            if role == "slice":
                step = self.known_step("stride", vectors[2], i) if len(vectors) > 2 else 1
                dims.append(sliced(data.shape[axis], *self._ends(i, step, begins[i], ends[i]), step))
            elif role == "shrink":
                self._check_shrunk(i, axis, data.shape[axis], begins[i])
            else:
                dims.append(data.shape[axis] if role == "whole" else Dimension(1, 1))
        return TensorType(data.element_type, PartialShape(dims))

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        if any(self.new_axis_mask) or any(self.shrink_axis_mask):
            return None
        return _why_whole(inputs[0], output, inputs[3] if len(inputs) > 3 else None)

    def run(self, data: Array, begin: Array, end: Array, stride: Array | None = None) -> Array:
        strides = [1] * len(begin) if stride is None else stride.tolist()
        index: list[Index] = []
        for role, i, axis in self.roles(len(begin), data.ndim):
            if role == "slice":
                step = int(strides[i])
                self.require(step != 0, "stride[{}] must not be 0", i)
                first = None if _is_set(self.begin_mask, i) else clamped(int(begin[i]), step, data.shape[axis])
                last = None if _is_set(self.end_mask, i) else int(end[i])
                index.append(slice(first, last, step))
            elif role == "shrink":
                place = int(begin[i])
                self._check_shrunk(i, axis, as_dimension(data.shape[axis]), Position(place, place))
                index.append(place)
            else:
                index.append(slice(None) if role == "whole" else None)
        return data[(*index, ...)]  # with the ellipsis, a single element is a view too

    def roles(self, count: int, rank: int) -> list[tuple[str, int, int]]:
        """Return the role of each dimension, "slice", "shrink", "whole" or "new axis", with the position of the inputs
        that asks for it and the axis of the data."""
        roles = []
        for i in range(count):
            if _is_set(self.ellipsis_mask, i):
                roles.append("whole")
            elif _is_set(self.new_axis_mask, i):
                roles.append("new axis")
            else:
                roles.append("shrink" if _is_set(self.shrink_axis_mask, i) else "slice")
        taken = len([role for role in roles if role in ("slice", "shrink")])
        self.require(taken <= rank, "begin and end slice {:dimension}, but data has {}", taken, rank)
        if "whole" not in roles:
            roles.append("whole")  # dimensions that no position names
        each = [(role, i) for i, role in enumerate(roles) for _ in range(rank - taken if role == "whole" else 1)]
        axes = accumulate((role != "new axis" for role, _ in each), initial=0)
        return [(role, i, axis) for (role, i), axis in zip(each, axes, strict=False)]

    def _ends(self, index: int, step: int | None, begin: Position, end: Position) -> tuple[Position, Position]:
        """Return the positions with the masks applied."""
        backwards = step is not None and step < 0
        if _is_set(self.begin_mask, index):
            begin = END if backwards else Position(0, 0)
        if _is_set(self.end_mask, index):
            end = BEFORE_BEGIN if backwards else END
        return begin, end

    def _check_shrunk(self, index: int, axis: int, dim: Dimension, place: Position) -> None:
        inside = dim.upper is None or (place.low < dim.upper and place.high >= -dim.upper)
        message = "begin[{0}] is {1}, outside of axis {3} of size {2}, which shrink_axis_mask drops"
        self.require(inside, message, index, bound_text(place.low), dim, axis)


def _is_set(mask: Sequence[int], index: int) -> bool:
    return index < len(mask) and mask[index] == 1
