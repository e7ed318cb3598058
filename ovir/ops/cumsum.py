"""CumSum: cumulative sums along an axis."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import compute_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("CumSum", opset=3, alias="cumsum")
class CumSum(Operator):
    """out[i] is the sum of the elements up to i along ``axis``; with ``exclusive`` the sum of those before i.

    With ``reverse`` the sums start at the end. Integers wrap around.

    Source: CumSum-3
    """

    arguments = "arg:data axis exclusive= reverse="
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

    def run(self, data: Array, axis: Array) -> Array:
        self.require(axis.size == 1, "axis must have one element, got shape {}", axis.shape)
        along = self.normalize_axis(int(axis.item()), data.ndim, of=data.shape)
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
