"""SoftMax and LogSoftmax: normalize exponentials along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.fast.base.binding import HEAVY, Binder, call_elementwise, call_shares, parts_of
from ovir.fast.base.sums import bind_sum, same_order, scratch_like
from ovir.kernels.blocked import map_slices, result_array
from ovir.kernels.coalesce import memory_order
from ovir.kernels.parallel import threads
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class AlongAxisBase(Operator):
    """Base of operations that normalize the slices along one axis."""

    axis: int
    inplace = (0,)

    def infer(self, data: TensorType) -> TensorType:
        element_type = data.element_type
        self.require_numeric("data", element_type)
        self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        return TensorType(element_type, data.shape)

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        out = result_array(data, out)
        axis = self.normalize_axis(self.axis, data.ndim, of=data.shape)
        map_slices(self.block, np.atleast_1d(data), [axis], np.atleast_1d(out))
        return out

    def block(self, x: Array, y: Array, axis: int) -> None:
        """Fill y from the slices of x along an axis."""
        raise NotImplementedError


class SoftMaxBase(AlongAxisBase):
    """Base of SoftMax with its kernel, which first subtracts the maximum of the slice so that nothing overflows."""

    def block(self, x: Array, y: Array, axis: int) -> None:
        np.subtract(x, x.max(axis, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(axis, keepdims=True), out=y)

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        data = inputs[0]
        if data.dtype not in (np.float32, np.float64) or not data.size or not data.ndim:
            return False
        out = binder.output(order=memory_order(data))
        totals = bind_softmax(binder, data, out, self.normalize_axis(self.axis, data.ndim, of=data.shape))
        binder.call(redo_if_lost, totals, self.run, inputs, out)
        return True


def bind_softmax(binder: Binder, x: Array, y: Array, axis: int) -> Array:
    """Bind the softmax of x along an axis to y, and return the sums, which ``redo_if_lost`` must examine."""
    total = scratch_like(binder, x, [axis])
    parts = parts_of((x, y, total), max(min(x.size // HEAVY, total.size, threads()), 1))
    call_shares(binder, [[(exponentials, (source, target, axis))] for source, target, _ in parts])
    bind_sum(binder, y, [axis], out=total)
    call_elementwise(binder, np.divide, y, total, y)
    return total.transpose(memory_order(x)).reshape(-1)


def exponentials(x: Array, y: Array, axis: int) -> None:
    """Fill y with e^x, divided by a number for each slice along ``axis`` where it would be too large.

    Softmax does not need the largest element of each slice, which takes NumPy as long as all the rest, as long as the
    sums of the exponentials are ordinary numbers.
    """
    if np.maximum.reduce(x, None) < _LARGE:
        np.exp(x, y)
    else:  # large, or NaN
        np.subtract(x, np.maximum.reduce(x, axis, keepdims=True), y)
        np.exp(y, y)


def redo_if_lost(totals: Array, run: Callable[..., Array], inputs: Sequence[Array], out: Array) -> None:
    """Compute ``out`` again by ``run`` if a sum of exponentials is so small that some of them may have underflowed."""
    if not np.minimum.reduce(totals) > _LEAST:
        np.copyto(out, run(*inputs))


_LARGE, _LEAST = 60.0, 1e-20
"""Sums of many exponentials of ``_LARGE`` are finite; what underflows does not count beside ``_LEAST``."""


@operator("SoftMax", opset=1)
class SoftMax1(SoftMaxBase):
    """e^x / sum(e^x) along ``axis``; a slice with +inf, or of -inf only, is NaN.

    Source: SoftMax-1
    """

    axis: int = attribute(default=1, minimum=0)


@operator("SoftMax", opset=8)
class SoftMax8(SoftMaxBase):
    """e^x / sum(e^x) along ``axis``, which may be negative; a slice with +inf, or of -inf only, is NaN.

    Source: SoftMax-8
    """

    axis: int = attribute(default=1)


@operator("LogSoftmax", opset=5)
class LogSoftmax(AlongAxisBase):
    """t - ln(sum(e^t)) with t = x - max(x), along ``axis``.

    Source: LogSoftmax-5
    """

    axis: int = attribute(default=1)

    def block(self, x: Array, y: Array, axis: int) -> None:
        np.subtract(x, x.max(axis, keepdims=True), out=y)
        total = np.exp(y).sum(axis, keepdims=True)
        np.subtract(y, np.log(total), out=y)

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        data = inputs[0]
        if data.dtype not in (np.float32, np.float64) or not data.size or not data.ndim:
            return False
        axis = self.normalize_axis(self.axis, data.ndim, of=data.shape)
        y, largest = same_order(binder, data), scratch_like(binder, data, [axis])
        binder.call(np.maximum.reduce, data, axis, None, largest, True)
        call_elementwise(binder, np.subtract, data, largest, y)
        exponentials = scratch_like(binder, data)
        call_elementwise(binder, np.exp, y, exponentials, heavy=True)
        total = bind_sum(binder, exponentials, [axis])
        call_elementwise(binder, np.log, total, total)
        call_elementwise(binder, np.subtract, y, total, y)
        return True
