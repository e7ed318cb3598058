"""BatchNormInference: normalization by given statistics. f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import compute_dtype, map_blocks
from ovir.kernels.fast_calls import Call
from ovir.kernels.passes import Spare, run_passes
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import operator
from ovir.ops.normalization import NormalizationBase, per_channel


class BatchNormBase(NormalizationBase):
    """Base of BatchNormInference: types and kernel for inputs in either order."""

    epsilon: float = attribute(default=0.0, minimum=0, specified=True)

    def normalized_type(self, data: TensorType, *channels: TensorType) -> TensorType:
        names = ("data", "gamma", "beta", "mean", "variance")
        element_type = self.merge_types(*(t.element_type for t in (data, *channels)), names=names)
        self.require_real("data", element_type)
        shape = data.shape
        self.require_rank_at_least("data", shape, 2)
        per_channel = dict(zip(names[1:], (t.shape for t in channels), strict=True))
        for name, given in per_channel.items():
            self.require_rank(name, given, 1)
        count = self.merge_dims(
            "channels", data=(shape, 1), **{name: (given, 0) for name, given in per_channel.items()}
        )
        self.require(count.upper != 0, "data of shape {} must have at least one channel", shape)
        return TensorType(element_type, shape.with_dim(1, count))

    def normalized(self, data: Array, parameters: Sequence[Array], out: Array | None) -> Array:
        dtype = compute_dtype(data.dtype)
        gamma, beta, mean, variance = (per_channel(p.astype(dtype, copy=False), data.ndim) for p in parameters)
        with np.errstate(all="ignore"):
            scale = gamma / np.sqrt(variance + dtype.type(self.epsilon))

        def block(x: Array, y: Array, centre: Array, factor: Array, shift: Array) -> None:
            run_passes(scaled, x, centre, factor, shift, y)

        return map_blocks(block, data, out, mean, scale, beta)


def scaled(x: Array, centre: Array, factor: Array, shift: Array, y: Array, spare: Spare) -> list[Call]:
    return [(np.subtract, (x, centre, y)), (np.multiply, (y, factor, y)), (np.add, (y, shift, y))]


@operator("BatchNormInference", opset=1)
class BatchNormInference1(BatchNormBase):
    """BatchNormInference-5 with the data as third input.

    Source: BatchNormInference-1
    """

    inplace = (2,)

    def infer(
        self, gamma: TensorType, beta: TensorType, data: TensorType, mean: TensorType, variance: TensorType
    ) -> TensorType:
        return self.normalized_type(data, gamma, beta, mean, variance)

    def run(
        self, gamma: Array, beta: Array, data: Array, mean: Array, variance: Array, *, out: Array | None = None
    ) -> Array:
        return self.normalized(data, (gamma, beta, mean, variance), out)


@operator("BatchNormInference", opset=5)
class BatchNormInference5(BatchNormBase):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, with one value of each per channel, the second dimension.

    Source: BatchNormInference-5
    """

    def infer(
        self, data: TensorType, gamma: TensorType, beta: TensorType, mean: TensorType, variance: TensorType
    ) -> TensorType:
        return self.normalized_type(data, gamma, beta, mean, variance)

    def run(
        self, data: Array, gamma: Array, beta: Array, mean: Array, variance: Array, *, out: Array | None = None
    ) -> Array:
        return self.normalized(data, (gamma, beta, mean, variance), out)
