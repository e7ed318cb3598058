"""SoftMax and LogSoftmax: normalize exponentials along one axis."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import map_slices, result_array
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
