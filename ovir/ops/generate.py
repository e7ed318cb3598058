"""Range, Eye and OneHot: tensors made from a few numbers."""

from __future__ import annotations

from math import ceil, isfinite, trunc

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, dynamic
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import Outputs, TensorType
from ovir.core.values import Value
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, SMALL, ZERO, Below, Between, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL

Number = int | float


class RangeBase(Operator):
    """Base of Range, with the kernel, and the length of the result."""

    domains = by_input(start=ZERO, stop=Between(1, 8), step=ONE)
    value_inputs = ALL
    output_type: ElementType = dynamic

    def run(self, start: Array, stop: Array, step: Array) -> Array:
        element_type = self.output_types[0]
        first, last, stride = (
            self._number(name, array.item(), element_type)
            for name, array in (("start", start), ("stop", stop), ("step", step))
        )
        self.require(stride != 0, "step must not be 0{}", _after_rounding(step.item(), element_type))
        length = _count(first, last, stride)
        if element_type.is_integral:
            # In u64 the numbers of every integer type are right, because sums wrap around.
            factor, offset = (np.uint64(int(number) % (1 << 64)) for number in (stride, first))
            numbers: Array = np.arange(length, dtype=np.uint64) * factor + offset
        else:
            numbers = np.arange(length, dtype=np.float64) * stride + first
        return numbers.astype(element_type.to_dtype())

    def infer(self, start: TensorType, stop: TensorType, step: TensorType) -> Outputs:
        found = self.solved(start, stop, step)
        element_type = found.types.get("T", self.output_type)
        bounds = [
            self._bounds(name, tensor.value, element_type)
            for name, tensor in (("start", start), ("stop", stop), ("step", step))
        ]
        constant = step.constant
        if constant is not None:
            zero = bounds[2] == (0, 0)
            self.require(not zero, "step must not be 0{}", _after_rounding(constant.item(), element_type))
        first, last, stride = bounds
        if first is not None and last is not None and stride is not None and (stride[0] > 0 or stride[1] < 0):
            found.sizes["Length"] = _count_bounds(first, last, stride)
        # From 0 in steps of 1, the count is the stop itself, so it keeps its symbol.
        if first == (0, 0) and stride == (1, 1) and stop.value is not None and stop.constant is None:
            length = found["Length"]
            found.sizes["Length"] = Dimension(length.lower, length.upper, int(stop.value.symbols.item()))
        return found.outputs()

    def _bounds(self, name: str, value: Value | None, element_type: ElementType) -> tuple[Number, Number] | None:
        if value is None:
            return None
        if value.constant is not None:
            number = self._number(name, value.constant.item(), element_type)
            return number, number
        low, high = (
            trunc(bound) if element_type.is_integral and isfinite(bound) else bound
            for bound in (value.lower.item(), value.upper.item())
        )
        return low, high

    def _number(self, name: str, number: Number, element_type: ElementType) -> Number:
        number = number if isinstance(number, int) else float(number)
        self.require(isfinite(number), "{} must be finite, got {}", name, number)
        return trunc(number) if element_type.is_integral else number


@operator("Range", opset=1)
class Range1(RangeBase):
    """The numbers start, start + step, ... up to but excluding stop.

    There are ceil((stop - start) / step) numbers. A step of 0 is an error. Real numbers are computed in f64 and rounded
    once.
    """

    takes = "start T[]; stop T[]; step T[]; T numeric"
    gives = "T[Length]"
    same_types = ALL


@operator("Range", opset=4)
class Range4(RangeBase):
    """The numbers start, start + step, ... up to but excluding stop, of type ``output_type``.

    There are ceil((stop - start) / step) numbers. For an integer result the inputs are rounded towards zero first. A
    step of 0 is an error. Real numbers are computed in f64 and rounded once.

    >>> ops.range(0, 10, 3, "i32")
    [0 3 6 9]
    """

    takes = "start numeric[]; stop numeric[]; step numeric[]; output_type numeric"
    gives = "output_type[Length]"
    output_type: ElementType = attribute()


def _after_rounding(step: Number, element_type: ElementType) -> str:
    return f", which {step} becomes as {element_type}" if step != 0 else ""


def _count(start: Number, stop: Number, step: Number) -> int:
    span = stop - start
    if isinstance(span, int) and isinstance(step, int):
        return max(-(-span // step), 0)
    return max(ceil(span / step), 0)


def _count_bounds(start: tuple[Number, Number], stop: tuple[Number, Number], step: tuple[Number, Number]) -> Dimension:
    if step[1] < 0:
        start, stop, step = ((-high, -low) for low, high in (start, stop, step))
    fewest, most = (start[1], stop[0], step[1]), (start[0], stop[1], step[0])
    return Dimension(
        _count(*fewest) if all(map(isfinite, fewest)) else 0,
        _count(*most) if all(map(isfinite, most)) else None,
    )


@operator("Eye", opset=9)
class Eye(Operator):
    """Matrices with ones at [i, i + ``diagonal_index``] and zeros elsewhere.

    The shape is ``batch_shape`` (none by default) followed by ``num_rows`` and ``num_columns``.

    >>> ops.eye(2, 3, 1, "i32")
    [[0 1 0] [0 0 1]]
    """

    takes = (
        "num_rows index[]|[1]; num_columns index[]|[1]; diagonal_index index[]|[1]; ?batch_shape index[Rank]; "
        "output_type numeric"
    )
    gives = "output_type[Batch..., Rows, Columns]"
    recipe = (
        "num_rows = 0..7, num_columns = 0..7, diagonal_index = -4..7, batch_shape = 0..3; Rank=0|1|2 "
        "output_type=f32|i32|i64|u8|f16"
    )
    domains = by_input(num_rows=SMALL, num_columns=SMALL, diagonal_index=ZERO, batch_shape=SMALL)
    output_type: ElementType = attribute()

    value_inputs = (0, 1, 3)

    def infer(self, num_rows: TensorType, num_columns: TensorType, *others: TensorType) -> Outputs:
        found = self.solved(num_rows, num_columns, *others)
        found.sizes["Rows"] = self.count_of("num_rows", num_rows)
        found.sizes["Columns"] = self.count_of("num_columns", num_columns)
        if len(others) == 1:
            found.shapes["Batch"] = ()
        elif (known := others[1].bounds_or_unknown()) is not None:
            found.shapes["Batch"] = tuple(self.sizes_in("batch_shape", known))
        return found.outputs()

    def run(self, *inputs: Array) -> Array:
        rows, columns, diagonal = (int(array.item()) for array in inputs[:3])
        batch = inputs[3].tolist() if len(inputs) > 3 else []
        ones = np.eye(rows, columns, diagonal, np.bool_)
        return np.broadcast_to(ones, (*batch, rows, columns)).astype(self.output_type.to_dtype())


@operator("OneHot", opset=1)
class OneHot1(Operator):
    """A new dimension ``axis`` of size ``depth``: ``on_value`` at the position given by the index, ``off_value``
    elsewhere.

    result[..., d, ...] = on_value if indices[...] == d else off_value. An index that is negative or at least ``depth``
    sets nothing.
    """

    takes = "indices integer[D...]; depth integer[]; on_value T[]; off_value T[]; T any"
    gives = "T[Result...]"
    recipe = "indices index, depth = 1..6; axis=0|-1"
    arguments = "indices depth on_value off_value axis"
    domains = by_input(indices=Below("depth"), depth=Between(2, 8))
    axis: int = attribute(default=0, specified=True)

    value_inputs = (1,)
    exact_inputs = (1,)
    same_types = (2, 3)

    def infer(self, *inputs: TensorType) -> Outputs:
        found, indices = self.solved(*inputs), inputs[0].shape
        if indices.rank is not None:
            axis = self.normalize_axis(self.axis, indices.rank + 1)
            found.shapes["Result"] = (*indices.dims[:axis], self.count_of("depth", inputs[1]), *indices.dims[axis:])
        return found.outputs()

    def run(self, indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
        size = int(depth.item())
        axis = self.normalize_axis(self.axis, indices.ndim + 1)
        out = np.full((*indices.shape[:axis], size, *indices.shape[axis:]), off_value, on_value.dtype)
        rows = np.moveaxis(out, axis, -1)
        chosen = self._normalized(indices, size)
        if chosen.ndim == 0:  # np.nonzero rejects scalars
            chosen, rows = chosen[np.newaxis], rows[np.newaxis]
        places = np.nonzero((chosen >= 0) & (chosen < rows.shape[-1]))
        # NumPy 2.4 writes garbage where a scalar string is assigned to indices.
        rows[(*places, chosen[places].astype(np.int64))] = on_value.reshape(1)
        return out

    def _normalized(self, indices: Array, depth: int) -> Array:
        return indices


@operator("OneHot", opset=16)
class OneHot16(OneHot1):
    """OneHot-1 with ``negative_indices_mode``: in mode "normalize" the indices -depth to -1 count from the end.

    >>> ops.one_hot([2, 0], 3, 1.0, 0.0, -1)
    [[0. 0. 1.] [1. 0. 0.]]
    """

    arguments = OneHot1.arguments + " negative_indices_mode="
    negative_indices_mode: str = attribute(default="ignore_negative", choices=("ignore_negative", "normalize"))

    def _normalized(self, indices: Array, depth: int) -> Array:
        if self.negative_indices_mode == "ignore_negative" or indices.dtype.kind == "u":
            return indices
        # Use i64, because a small integer type may not hold the depth.
        return np.where(indices < 0, indices + np.int64(depth), indices)
