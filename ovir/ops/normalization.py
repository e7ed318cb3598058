"""Normalizations by the data's own statistics: MVN, GroupNormalization, NormalizeL2 and GRN.

f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels import half
from ovir.kernels.blocked import apply, compute_dtype, map_blocks, map_slices, result_array
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class NormalizationBase(Operator):
    """Base of normalizations: type rules, and axes given as an input."""

    inplace = (0,)

    def require_numbers(self, data: TensorType) -> None:
        self.require_numeric("data", data.element_type)

    def check_axes(self, data: TensorType, axes: TensorType, *ranks: int) -> None:
        """Raise unless ``axes`` has an allowed rank and, if it is known, names axes of the data."""
        self.require_integers("axes", axes.element_type)
        self.require_rank("axes", axes.shape, *ranks)
        if axes.constant is not None:
            self.axes(axes.constant, data.shape.rank)

    def axes(self, axes: Array | Sequence[int], rank: int | None) -> list[int]:
        """Return the axes counted from the front, each once."""
        listed = [int(axis) for axis in np.asarray(axes).ravel()]
        return sorted(set(self.normalize_axes(listed, rank, "axes", unique=False)))


def _mean_square(x: Array, axis: int) -> Array:
    if axis == 1:
        return np.asarray(np.vecdot(x, x)[:, np.newaxis] / x.shape[1])
    return np.asarray(np.square(x).sum(0, keepdims=True) / len(x))


# --------------------------------------------------------------------------- mean and variance


class MvnBase(NormalizationBase):
    """Base of MVN with its kernel."""

    def normalized(
        self, data: Array, axes: Sequence[int], variance: bool, eps: float, inside: bool, out: Array | None
    ) -> Array:
        """Return (x - mean) / sqrt(variance + eps), or / (sqrt(variance) + eps), over slices along the axes."""

        def block(x: Array, y: Array, axis: int) -> None:
            np.subtract(x, x.sum(axis, keepdims=True) / x.shape[axis], out=y)
            if variance:
                square = _mean_square(y, axis)
                np.divide(y, np.sqrt(square + eps) if inside else np.sqrt(square) + eps, out=y)

        return map_slices(block, data, axes, out)


@operator("MVN", opset=2)
class MVN2(MvnBase):
    """(x - mean) / sqrt(variance + eps); x - mean if ``normalize_variance`` is false.

    Mean and variance are taken of the slices along ``reduction_axes``; without it, along all axes except the batch and,
    unless ``across_channels``, the channels.

    Source: MVN-2
    """

    # The specification requires either across_channels or reduction_axes, so neither is ``specified``.
    across_channels: bool = attribute(default=True)
    normalize_variance: bool = attribute(default=False, specified=True)
    eps: float = attribute(default=1e-9, specified=True)
    reduction_axes: tuple[int, ...] = attribute(default=())

    def infer(self, data: TensorType) -> TensorType:
        self.require_numbers(data)
        self.normalize_axes(self.reduction_axes, data.shape.rank, "reduction_axes")
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return self.normalized(data, self.along(data.ndim), self.normalize_variance, self.eps, True, out)

    def along(self, rank: int) -> Sequence[int]:
        return self.axes(self.reduction_axes, rank) or range(1 if self.across_channels else 2, rank)


@operator("MVN", opset=6)
class MVN6(MvnBase):
    """MVN-2 with the axes as a 1-D input; eps is added to the variance or, with ``outside_sqrt``, to its root.

    Without axes each element is a slice of its own.

    Source: MVN-6
    """

    domains = by_input(axes=Axis("data"))
    eps: float = attribute(default=1e-6, specified=True)
    normalize_variance: bool = attribute(default=False, specified=True)
    eps_mode: str = attribute(default="inside_sqrt", choices=("inside_sqrt", "outside_sqrt"), specified=True)

    value_inputs = (1,)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        self.require_numbers(data)
        self.check_axes(data, axes, 1)
        count, rank = axes.shape[0], data.shape.rank
        message = "axes of shape {} has more elements than data of shape {} has dimensions"
        self.require(rank is None or count.lower <= rank, message, axes.shape, data.shape)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array, axes: Array, *, out: Array | None = None) -> Array:
        inside = self.eps_mode == "inside_sqrt"
        return self.normalized(data, self.axes(axes, data.ndim), self.normalize_variance, self.eps, inside, out)


# --------------------------------------------------------------------------- the Euclidean norm


@operator("NormalizeL2", opset=1)
class NormalizeL2(NormalizationBase):
    """x / sqrt(s + eps), or x / sqrt(max(s, eps)), where s is the sum of squares along ``axes`` (a scalar or 1-D).

    ``eps_mode`` add or max chooses the formula. Without axes each element is divided by itself, which gives 1 for
    everything except 0.

    Source: NormalizeL2-1
    """

    domains = by_input(axes=Axis("data"))
    eps: float = attribute(default=0.0, specified=True)
    eps_mode: str = attribute(default="add", choices=("add", "max"), specified=True)

    value_inputs = (1,)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        self.require_numbers(data)
        self.check_axes(data, axes, 0, 1)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array, axes: Array, *, out: Array | None = None) -> Array:
        along = self.axes(axes, data.ndim)
        if not along:
            return map_blocks(lambda x, y: np.divide(x, x + (x == 0), out=y), data, out)

        def block(x: Array, y: Array, axis: int) -> None:
            square = _mean_square(x, axis) * x.shape[axis]
            total = square + self.eps if self.eps_mode == "add" else np.maximum(square, self.eps)
            np.divide(x, np.sqrt(total), out=y)

        return map_slices(block, data, along, out)


@operator("GRN", opset=1)
class GRN(NormalizationBase):
    """x / sqrt(s + bias), where s is the sum of squares over the channels, the second of 2 to 4 dimensions.

    Source: GRN-1
    """

    bias: float = attribute(default=1.0, specified=True)

    def infer(self, data: TensorType) -> TensorType:
        self.require_numbers(data)
        self.require_rank("data", data.shape, 2, 3, 4)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        def block(x: Array, y: Array, axis: int) -> None:
            np.divide(x, np.sqrt(_mean_square(x, axis) * x.shape[axis] + self.bias), out=y)

        return map_slices(block, data, [1], out)


@operator("GroupNormalization", opset=12)
class GroupNormalization(MvnBase):
    """scale * (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance of a group of channels.

    The channels, the second dimension, are divided into ``num_groups`` equal groups; scale and bias have one value per
    channel.

    Source: GroupNormalization-12
    """

    num_groups: int = attribute(minimum=1)
    epsilon: float = attribute(default=0.0, specified=True)

    def infer(self, data: TensorType, scale: TensorType, bias: TensorType) -> TensorType:
        types = (data.element_type, scale.element_type, bias.element_type)
        element_type = self.merge_types(*types, names=("data", "scale", "bias"))
        self.require_real("data", element_type)
        shape = data.shape
        self.require_rank_at_least("data", shape, 2)
        for name, tensor in (("scale", scale), ("bias", bias)):
            self.require_rank(name, tensor.shape, 1)
        channels = self.merge_dims("channels", data=(shape, 1), scale=(scale.shape, 0), bias=(bias.shape, 0))
        self.require(
            not channels.is_static or channels.length % self.num_groups == 0,
            "{:channel} of data of shape {} cannot be divided into {} equal groups",
            channels,
            shape,
            self.num_groups,
        )
        return TensorType(element_type, shape.with_dim(1, channels))

    def run(self, data: Array, scale: Array, bias: Array, *, out: Array | None = None) -> Array:
        count, channels = data.shape[:2]
        message = "{:channel} cannot be divided into {} equal groups"
        self.require(channels % self.num_groups == 0, message, channels, self.num_groups)
        dtype = compute_dtype(data.dtype)
        x = half.converted(data, dtype)
        y = result_array(x, out)
        groups = (count * self.num_groups, channels // self.num_groups, *data.shape[2:])
        self.normalized(x.reshape(groups), range(1, data.ndim), True, self.epsilon, True, y.reshape(groups))

        def block(z: Array, factor: Array, shift: Array, *, out: Array) -> None:
            np.multiply(z, factor, out=out)
            np.add(out, shift, out=out)

        factors = (per_channel(p.astype(dtype, copy=False), data.ndim) for p in (scale, bias))
        apply(block, (y, *factors), y)
        if out is None or out is y:
            return y.astype(data.dtype, copy=False)
        half.copy(y, out)
        return out


def per_channel(parameter: Array, rank: int) -> Array:
    """Return one value per channel, shaped to be broadcast to data of the given rank."""
    return parameter.reshape(-1, *[1] * (rank - 2))
