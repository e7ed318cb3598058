"""Normalizations: SoftMax, MVN, NormalizeL2, GRN, GroupNormalization and LRN by the data's own statistics, and
BatchNormInference by given ones.

f16 and bf16 are computed in f32, integers in f64, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import Outputs, TensorType
from ovir.kernels.precision import compute_dtype, rounded
from ovir.kernels.windows import Window, reduced_windows
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class NormalizationBase(Operator):
    """Base of normalizations."""

    inplace = (0,)

    def axes(self, axes: Array | Sequence[int], rank: int | None) -> list[int]:
        """Return the axes counted from the front, each once."""
        listed = [int(axis) for axis in np.asarray(axes).ravel()]
        return sorted(set(self.normalize_axes(listed, rank, "axes", unique=False)))


class OverAxesBase(NormalizationBase):
    """Base of normalizations over axes that an input lists."""

    takes = "data T[D...]; axes integer[K]; T numeric"
    gives = "T[D...]"
    domains = by_input(axes=Axis("data"))
    value_inputs = (1,)

    def infer(self, *inputs: TensorType) -> Outputs:
        data, axes = inputs
        if axes.constant is not None:
            self.axes(axes.constant, data.shape.rank)
        return super().infer(*inputs)


def _computed(data: Array) -> Array:
    """Return the data in the type that it is computed in, in C order and with at least one axis."""
    return np.ascontiguousarray(data, compute_dtype(data.dtype))


def _mean(x: Array, axes: Sequence[int]) -> Array:
    """Return the means of slices along axes, which keep size 1."""
    return np.asarray(x.sum(tuple(axes), keepdims=True) / prod(x.shape[axis] for axis in axes))


def _sum_of_squares(x: Array, axes: Sequence[int]) -> Array:
    """Return the sums of squares of slices along axes, which keep size 1."""
    return np.asarray(np.square(x).sum(tuple(axes), keepdims=True))


# --------------------------------------------------------------------------- exponentials


class AlongAxisBase(NormalizationBase):
    """Base of operations that normalize the slices along one axis."""

    arguments = "data axis"
    axis: int

    def infer(self, data: TensorType) -> TensorType:
        self.require_numeric("data", data)
        self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array) -> Array:
        axis = self.normalize_axis(self.axis, data.ndim, of=data.shape)
        return rounded(self.normalized(_computed(data), axis), data.dtype).reshape(data.shape)

    def normalized(self, x: Array, axis: int) -> Array:
        """Return the normalized slices of x along an axis."""
        raise NotImplementedError


class SoftMaxBase(AlongAxisBase):
    """Base of SoftMax, which first subtracts the maximum of the slice so that nothing overflows."""

    within = (0, 1)

    def normalized(self, x: Array, axis: int) -> Array:
        exponentials = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
        return np.asarray(exponentials / exponentials.sum(axis, keepdims=True))


@operator("SoftMax", opset=1, function_name="softmax")
class SoftMax1(SoftMaxBase):
    """e^x / sum(e^x) along ``axis``; a slice with +inf, or of -inf only, is NaN."""

    recipe = "real A ... | A B ...; axis=0|1"
    axis: int = attribute(default=1, minimum=0, misread="0")


@operator("SoftMax", opset=8, function_name="softmax")
class SoftMax8(SoftMaxBase):
    """e^x / sum(e^x) along ``axis``, which may be negative; a slice with +inf, or of -inf only, is NaN.

    >>> ops.softmax([1.0, 2.0, 3.0], 0)
    [0.09003057 0.24472846 0.66524094]
    """

    recipe = "real any1; axis=axis"
    axis: int = attribute(default=1)


@operator("LogSoftmax", opset=5)
class LogSoftmax(AlongAxisBase):
    """t - ln(sum(e^t)) with t = x - max(x), along ``axis``.

    >>> ops.log_softmax([1.0, 2.0, 3.0], 0)
    [-2.4076061 -1.407606 -0.407606 ]
    """

    recipe = "real any1; axis=axis"
    within = (-inf, 0)

    axis: int = attribute(default=1)

    def normalized(self, x: Array, axis: int) -> Array:
        t = x - x.max(axis, keepdims=True, initial=-np.inf)
        return np.asarray(t - np.log(np.exp(t).sum(axis, keepdims=True)))


# --------------------------------------------------------------------------- mean and variance


def _standardized(
    x: Array, axes: Sequence[int], eps: float, variance: bool = True, eps_mode: str = "inside_sqrt"
) -> Array:
    """Return (x - mean) / sqrt(variance + eps) over slices along axes; eps is added inside or outside of the root.

    Without ``variance`` nothing is divided.
    """
    centered = x - _mean(x, axes)
    if not variance:
        return np.asarray(centered)
    mean_square = _mean(np.square(centered), axes)
    return np.asarray(
        centered / (np.sqrt(mean_square + eps) if eps_mode == "inside_sqrt" else np.sqrt(mean_square) + eps)
    )


@operator("MVN", opset=2, since=1)
class MVN2(NormalizationBase):
    """(x - mean) / sqrt(variance + eps); x - mean if ``normalize_variance`` is false.

    Mean and variance are taken of the slices along ``reduction_axes``; without it, along all axes except the batch and,
    unless ``across_channels``, the channels.

    Source: MVN-1
    """

    recipe = "narrow any2; eps=1e-9|1e-5|1|1e12 reduction_axes=|axes"
    arguments = "data across_channels=False normalize_variance= eps="
    across_channels: bool = attribute(default=False, specified=True, instead="reduction_axes")
    normalize_variance: bool = attribute(default=False, specified=True)
    eps: float = attribute(default=1e-9, specified=True)
    eps_mode = "inside_sqrt"
    reduction_axes: tuple[int, ...] = attribute(default=())

    def infer(self, data: TensorType) -> TensorType:
        self.require_numeric("data", data)
        self.normalize_axes(self.reduction_axes, data.shape.rank, "reduction_axes")
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array) -> Array:
        result = _standardized(_computed(data), self.along(data.ndim), self.eps, self.normalize_variance)
        return rounded(result, data.dtype).reshape(data.shape)

    def along(self, rank: int) -> Sequence[int]:
        return self.axes(self.reduction_axes, rank) or range(1 if self.across_channels else 2, rank)


@operator("MVN", opset=6)
class MVN6(OverAxesBase):
    """MVN-2 with the axes as a 1-D input; eps is added to the variance or, with ``outside_sqrt``, to its root.

    Without axes each element is a slice of its own.

    >>> ops.mvn([[1.0, 2.0, 3.0]], [1], True, 1e-6, "inside_sqrt")
    [[-1.224744 0. 1.224744]]
    """

    recipe = "T narrow, data T any2, axes = axes; eps=1e-9|1e-5|1|1e12"
    arguments = "data axes normalize_variance eps eps_mode"
    eps: float = attribute(default=1e-6, specified=True)
    normalize_variance: bool = attribute(default=False, specified=True)
    eps_mode: str = attribute(default="inside_sqrt", choices=("inside_sqrt", "outside_sqrt"), specified=True)

    def infer(self, *inputs: TensorType) -> Outputs:
        result = super().infer(*inputs)
        data, axes = (tensor.shape for tensor in inputs)
        message = "axes of shape {} has more elements than data of shape {} has dimensions"
        self.require(data.rank is None or axes[0].lower <= data.rank, message, axes, data)
        return result

    def run(self, data: Array, axes: Array) -> Array:
        along = self.along(data.ndim, axes)
        result = _standardized(_computed(data), along, self.eps, self.normalize_variance, self.eps_mode)
        return rounded(result, data.dtype).reshape(data.shape)

    def along(self, rank: int, axes: Array) -> Sequence[int]:
        return self.axes(axes, rank)


# --------------------------------------------------------------------------- the Euclidean norm


@operator("NormalizeL2", opset=1)
class NormalizeL2(OverAxesBase):
    """x / sqrt(s + eps), or x / sqrt(max(s, eps)), where s is the sum of squares along ``axes`` (a scalar or 1-D).

    ``eps_mode`` add or max chooses the formula. Without axes each element is divided by itself, which gives 1 for
    everything except 0.

    >>> ops.normalize_l2([[3.0, 4.0]], [1], 1e-6, "add")
    [[0.6 0.8]]
    """

    takes = "data T[D...]; axes integer[]|[K]; T numeric"
    arguments = "data axes eps eps_mode"
    eps: float = attribute(default=0.0, specified=True)
    eps_mode: str = attribute(default="add", choices=("add", "max"), specified=True)

    def run(self, data: Array, axes: Array) -> Array:
        along, x = self.axes(axes, data.ndim), _computed(data)
        if along:
            square = _sum_of_squares(x, along)
            norm = np.sqrt(square + self.eps if self.eps_mode == "add" else np.maximum(square, self.eps))
        else:
            norm = np.where(x == 0, 1, x)
        return rounded(x / norm, data.dtype).reshape(data.shape)


@operator("GRN", opset=1)
class GRN(NormalizationBase):
    """x / sqrt(s + bias), where s is the sum of squares over the channels, the second of 2 to 4 dimensions.

    >>> ops.grn([[3.0, 4.0]], 1e-6)
    [[0.6 0.8]]
    """

    recipe = "real N C ...; bias=0.1|1e-6|1"
    arguments = "data bias"
    bias: float = attribute(default=1.0, specified=True)

    def infer(self, data: TensorType) -> TensorType:
        self.require_numeric("data", data, 2, 3, 4)
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array) -> Array:
        x = _computed(data)
        return rounded(x / np.sqrt(_sum_of_squares(x, [1]) + self.bias), data.dtype)


@operator("GroupNormalization", opset=12)
class GroupNormalization(NormalizationBase):
    """scale * (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance of a group of channels.

    >>> ops.group_normalization([[[1.0, 3.0], [5.0, 7.0]]], [1.0, 1.0], [0.0, 0.0], 1, 0.0)
    [[[-1.3416407 -0.4472136] [ 0.4472136 1.3416407]]]
    """

    takes = "data T[N, num_groups*C, Rest...]; scale T[num_groups*C]; bias T[num_groups*C]; T real"
    gives = "T[N, num_groups*C, Rest...]"
    recipe = "T real; C=1|2|3 num_groups=1|2|3 epsilon=1e-5|0.1"
    arguments = "data scale bias num_groups epsilon"
    num_groups: int = attribute(minimum=1)
    epsilon: float = attribute(default=0.0, specified=True)

    def run(self, data: Array, scale: Array, bias: Array) -> Array:
        count, channels = data.shape[:2]
        groups = (count, self.num_groups, channels // self.num_groups, *data.shape[2:])
        x = _computed(data).reshape(groups)
        normalized = _standardized(x, range(2, x.ndim), self.epsilon).reshape(data.shape)
        factor, shift = (per_channel(_computed(p), data.ndim) for p in (scale, bias))
        return rounded(normalized * factor + shift, data.dtype)


def per_channel(parameter: Array, rank: int) -> Array:
    """Return one value per channel [..., channels], shaped to be broadcast to data of the given rank."""
    return parameter.reshape(*parameter.shape, *[1] * (rank - 2))


# --------------------------------------------------------------------------- neighboring elements


@operator("LRN", opset=1)
class LRN(OverAxesBase):
    """x / (bias + alpha / size^n * s)^beta, where s is the sum of squares in a window of ``size`` along each of n axes.

    The window reaches (size - 1) / 2, rounded down, to either side and is cut at the borders of the data.

    >>> ops.lrn([[1.0, 2.0, 3.0]], [1], alpha=1.0, beta=0.5, bias=1.0, size=3)
    [[0.6123724 0.840168 1.2990382]]
    """

    arguments = "data axes alpha= beta= bias= size=5"
    alpha: float = attribute(default=1.0, specified=True)
    beta: float = attribute(default=0.5, specified=True)
    bias: float = attribute(default=1.0, specified=True)
    size: int = attribute(default=1, minimum=1, specified=True)

    def run(self, data: Array, axes: Array) -> Array:
        along = self.axes(axes, data.ndim)
        x = _computed(data)
        sums = np.square(x)
        for axis in along:
            size = x.shape[axis]
            reach = min((self.size - 1) // 2, size)
            window = Window(2 * reach + 1, stride=1, dilation=1, pad_begin=reach, pad_end=reach)
            sums = reduced_windows(np.add, sums, axis, window, size)
        scales = (self.bias + self.alpha / float(self.size) ** len(along) * sums) ** self.beta
        return rounded(x / scales, data.dtype).reshape(data.shape)


# --------------------------------------------------------------------------- given statistics


@operator("BatchNormInference", opset=5)
class BatchNormInference5(NormalizationBase):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the values of each channel.

    >>> ops.batch_norm_inference([[1.0, 2.0]], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [1.0, 4.0], 0.0)
    [[1. 0.5]]
    """

    takes = "data T[N, C, Rest...]; gamma T[C]; beta T[C]; mean T[C]; variance T[C]; T real"
    gives = "T[N, C, Rest...]"
    recipe = "T real; epsilon=0|1e-5|0.1"
    arguments = "data gamma beta mean variance epsilon"
    epsilon: float = attribute(default=0.0, minimum=0, specified=True)

    def infer(self, *inputs: TensorType) -> Outputs:
        solution = self.solved(*inputs)
        shape = self.named(inputs)["data"].shape
        self.require(solution["C"].upper != 0, "data of shape {} must have at least one channel", shape)
        return solution.outputs()

    def run(self, data: Array, *parameters: Array) -> Array:
        gamma, beta, mean, variance = (per_channel(_computed(p), data.ndim) for p in parameters)
        scale = gamma / np.sqrt(variance + self.epsilon)
        return rounded((_computed(data) - mean) * scale + beta, data.dtype)


@operator("BatchNormInference", opset=1)
class BatchNormInference1(BatchNormInference5):
    """BatchNormInference-5 with the data as third input."""

    takes = "gamma T[C]; beta T[C]; data T[N, C, Rest...]; mean T[C]; variance T[C]; T real"
    inplace = (2,)

    def run(self, *inputs: Array) -> Array:
        gamma, beta, data, mean, variance = inputs
        return super().run(data, gamma, beta, mean, variance)
