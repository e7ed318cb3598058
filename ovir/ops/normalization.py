"""Normalizations: MVN, NormalizeL2, GRN and LRN by the data's own statistics, BatchNorm by given ones, GroupNorm by
both.

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

    Mean and variance are those of the slices along ``reduction_axes``; without it, along all axes except the batch and,
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
        axes = self.axes(self.reduction_axes, data.ndim) or range(1 if self.across_channels else 2, data.ndim)
        return self.normalized(data, axes, self.normalize_variance, self.eps, True, out)


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

    def run(self, data: Array, axes: Array, *, out: Array | None = None) -> Array:
        along = self.axes(axes, data.ndim)
        reach = (self.size - 1) // 2
        factor = self.alpha / float(self.size) ** len(along)

        def scale(x: Array, y: Array, square: Array) -> None:
            np.multiply(square, factor, out=y)
            np.add(y, self.bias, out=y)
            _raise(y, self.beta)
            np.divide(x, y, out=y)

        if len(along) == 1:
            return map_slices(lambda x, y, axis: scale(x, y, _window_sums(np.square, x, axis, reach)), data, along, out)
        x = half.converted(data, compute_dtype(data.dtype))
        with np.errstate(all="ignore"):
            total = np.square(x)
            for axis in along:
                total = _window_sums(np.positive, total, axis, reach)
        result = map_blocks(scale, x, out, total, heavy=True)
        if out is None or result is out:
            return result.astype(data.dtype, copy=False)
        half.copy(result, out)
        return out


def _raise(x: Array, exponent: float) -> None:
    """Raise x to a power, in place."""
    if exponent == 0.75:  # the value in nearly every model; two roots are much faster than a power
        root = np.sqrt(x)
        np.multiply(root, np.sqrt(root, out=x), out=x)
    else:
        np.power(x, exponent, out=x)


def _window_sums(each: np.ufunc, x: Array, axis: int, reach: int) -> Array:
    """Return the sums, along an axis, of each element and the ``reach`` elements on either side of it."""
    source = np.moveaxis(x, axis, 0)
    reach = min(reach, len(source))
    padded = np.zeros((len(source) + 2 * reach, *source.shape[1:]), x.dtype)
    each(source, out=padded[reach : reach + len(source)])
    # Windows begin at every position with 1 element; each step doubles them and adds one more where needed.
    sums, width = padded, 1
    for bit in bin(2 * reach + 1)[3:]:
        sums, width = np.add(sums[:-width], sums[width:]), 2 * width
        if bit == "1":
            np.add(sums[:-1], padded[width:], out=sums[:-1])
            sums, width = sums[:-1], width + 1
    return np.moveaxis(sums, 0, axis)


# --------------------------------------------------------------------------- given scale and shift


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
        gamma, beta, mean, variance = (_per_channel(p.astype(dtype, copy=False), data.ndim) for p in parameters)
        with np.errstate(all="ignore"):
            scale = gamma / np.sqrt(variance + dtype.type(self.epsilon))

        def block(x: Array, y: Array, centre: Array, factor: Array, shift: Array) -> None:
            np.subtract(x, centre, out=y)
            np.multiply(y, factor, out=y)
            np.add(y, shift, out=y)

        return map_blocks(block, data, out, mean, scale, beta)


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

        factors = (_per_channel(p.astype(dtype, copy=False), data.ndim) for p in (scale, bias))
        apply(block, (y, *factors), y)
        if out is None or out is y:
            return y.astype(data.dtype, copy=False)
        half.copy(y, out)
        return out


def _per_channel(parameter: Array, rank: int) -> Array:
    """Return one value per channel, shaped to be broadcast to data of the given rank."""
    return parameter.reshape(-1, *[1] * (rank - 2))
