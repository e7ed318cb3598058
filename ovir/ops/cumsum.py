"""CumSum: cumulative sums along an axis."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import map_slices, result_array
from ovir.kernels.coalesce import memory_order
from ovir.ops.base.attributes import attribute
from ovir.ops.base.binding import Binder, call_elementwise
from ovir.ops.base.domains import Axis, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_LONG = 256
# Rows of up to this many elements are summed side by side: many short rows make long columns.
_CUMULATED = 129


@operator("CumSum", opset=3)
class CumSum(Operator):
    """out[i] is the sum of the elements up to i along ``axis``; with ``exclusive`` the sum of those before i.

    With ``reverse`` the sums start at the end. Integers wrap around.

    Source: CumSum-3
    """

    domains = by_input(axis=Axis("data"))
    exclusive: bool = attribute(default=False)
    reverse: bool = attribute(default=False)
    monotone = (0,)
    value_inputs = (1,)

    def infer(self, data: TensorType, axis: TensorType) -> TensorType:
        self.require_numeric("data", data.element_type)
        self.require_index_type("axis", axis.element_type)
        self.require(axis.shape.size().contains(1), "axis must have one element, got shape {}", axis.shape)
        if axis.constant is not None:
            self.normalize_axis(int(axis.constant.item()), data.shape.rank, of=data.shape)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array, axis: Array, *, out: Array | None = None) -> Array:
        self.require(axis.size == 1, "axis must have one element, got shape {}", axis.shape)
        along = self.normalize_axis(int(axis.item()), data.ndim, of=data.shape)
        out = result_array(data, out)
        x, y = np.atleast_1d(data), np.atleast_1d(out)
        if data.dtype.kind in "iu":
            self._sums(x, y, along)
        else:
            map_slices(self._sums, x, [along], y, heavy=along == x.ndim - 1, short=_CUMULATED)
        return out

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        data, axis = inputs
        is_native = data.dtype.kind in "iu" or data.dtype in (np.float32, np.float64)
        if not is_native or not binder.is_constant(1) or not data.size or not data.ndim:
            return False
        along = self.normalize_axis(int(axis.item()), data.ndim, of=data.shape)
        x = np.moveaxis(data, along, 0)
        y = np.moveaxis(binder.output(order=memory_order(data)), along, 0)
        if self.reverse:
            x, y = x[::-1], y[::-1]
        if self.exclusive:
            binder.call(y[:1].fill, 0)
            x, y = x[:-1], y[1:]
        if _has_rows(y):
            binder.call(np.copyto, y[0], x[0])
            for i in range(1, len(y)):
                call_elementwise(binder, np.add, y[i - 1], x[i], y[i])
        elif len(y):
            binder.call(np.add.accumulate, x, 0, y.dtype, y)
        return True

    def _sums(self, x: Array, y: Array, axis: int) -> None:
        x, y = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
        if self.reverse:
            x, y = x[::-1], y[::-1]
        if self.exclusive and len(y):
            y[0] = 0
            x, y = x[:-1], y[1:]
        if not _has_rows(y):
            np.cumsum(x, axis=0, dtype=y.dtype, out=y)
            return
        # NumPy would iterate over elements instead of rows.
        np.copyto(y[0], x[0])
        for i in range(1, len(y)):
            np.add(y[i - 1], x[i], out=y[i])


def _has_rows(y: Array) -> bool:
    """Return whether adding whole rows is faster than adding up along the first axis."""
    return bool(y.strides[-1] == y.itemsize and y[:1].size >= _LONG)
