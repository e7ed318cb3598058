"""LRN: normalization by the squares of neighbouring elements. f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import compute_dtype
from ovir.kernels.windows import Window, reduced_windows
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, by_input
from ovir.ops.base.registry import operator
from ovir.ops.normalization import NormalizationBase


@operator("LRN", opset=1)
class LRN(NormalizationBase):
    """x / (bias + alpha / size^n * s)^beta, where s is the sum of squares in a window of ``size`` along each of n axes.

    The window reaches (size - 1) / 2, rounded down, to either side and is cut at the borders of the data.

    Source: LRN-1
    """

    domains = by_input(axes=Axis("data"))
    alpha: float = attribute(default=1.0, specified=True)
    beta: float = attribute(default=0.5, specified=True)
    bias: float = attribute(default=1.0, specified=True)
    size: int = attribute(default=1, minimum=1, specified=True)

    value_inputs = (1,)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        self.require_numbers(data)
        self.check_axes(data, axes, 1)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array, axes: Array) -> Array:
        along = self.axes(axes, data.ndim)
        x = np.atleast_1d(data).astype(compute_dtype(data.dtype))
        sums = np.square(x)
        for axis in along:
            size = x.shape[axis]
            reach = min((self.size - 1) // 2, size)
            window = Window(2 * reach + 1, stride=1, dilation=1, pad_begin=reach, pad_end=reach)
            sums = reduced_windows(np.add, sums, axis, window, size)
        scales = (self.bias + self.alpha / float(self.size) ** len(along) * sums) ** self.beta
        return np.asarray((x / scales).astype(data.dtype).reshape(data.shape))
