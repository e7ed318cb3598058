"""Activation functions: elementwise operations whose output has the type and shape of the data input.

Kernels work on blocks (see ``blocked``): ``y`` is filled from ``x``, both float32 or float64. They use ``np.clip`` even
where one bound is infinite, because it is three times faster than ``np.maximum`` of an array and a number.
"""

from __future__ import annotations

from math import inf, pi, sqrt

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import map_blocks
from ovir.kernels.erf import gelu
from ovir.kernels.fast_calls import clipping
from ovir.ops.base.attributes import attribute
from ovir.ops.base.binding import Binder, bind_block, bind_elementwise
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class ActivationBase(Operator):
    """Base of the activation functions."""

    inplace = (0,)
    real_only = False
    """Whether integers are refused. Other functions round their result to the nearest integer."""

    def output_type(self, data: TensorType, element_type: ElementType) -> TensorType:
        """Return the output's type, given the element type that all inputs share."""
        if self.real_only:
            self.require_real("data", element_type)
        else:
            self.require_numeric("data", element_type)
        return TensorType(element_type, data.shape)

    def one_number(self, name: str, array: Array) -> float:
        """Return the single element of a parameter tensor."""
        self.require(array.size == 1, "{} must have one element, got shape {}", name, array.shape)
        return float(array.item())


class UnaryActivationBase(ActivationBase):
    """Base of activation functions of one input, defined by a kernel for blocks."""

    def infer(self, data: TensorType) -> TensorType:
        return self.output_type(data, data.element_type)

    heavy = True
    """Whether the kernel contains an exponential or a similarly expensive function (see ``blocked``)."""

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return map_blocks(self.block, data, out, heavy=self.heavy)

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        if inputs[0].dtype not in (np.float32, np.float64):
            return False
        bind_block(binder, self.block, *inputs, heavy=self.heavy)
        return True

    def block(self, x: Array, y: Array) -> None:
        """Fill y from x."""
        raise NotImplementedError


@operator("ReLU", opset=1)
class ReLU(UnaryActivationBase):
    """max(0, x); NaN stays NaN.

    Source: ReLU-1
    """

    monotone = (0,)

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return clipped(data, 0, inf, out)

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        if inputs[0].dtype not in (np.float32, np.float64):
            return False
        bind_elementwise(binder, clipping(0, inf, inputs[0].dtype), *inputs)
        return True


@operator("Clamp", opset=1)
class Clamp(UnaryActivationBase):
    """min(max(x, min), max); NaN stays NaN.

    For integers ``min`` is rounded up, ``max`` is rounded down, and both are clipped to the type's range.

    Source: Clamp-1
    """

    min: float = attribute()
    max: float = attribute()
    monotone = (0,)

    def infer(self, data: TensorType) -> TensorType:
        self.require(self.min <= self.max, "min {} must not be above max {}", self.min, self.max)
        return super().infer(data)

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        low, high = self.min, self.max
        if self.output_types[0].is_integral:
            low, high = np.ceil(low), np.floor(high)
        return clipped(data, low, high, out)

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        dtype = inputs[0].dtype
        if dtype not in (np.float32, np.float64):
            return False
        bind_elementwise(binder, clipping(self.min, self.max, dtype), *inputs)
        return True


def clipped(data: Array, low: float, high: float, out: Array | None = None) -> Array:
    """Compute min(max(data, low), high).

    NaN stays NaN. A bound outside the type's range is replaced by the end of the range.
    """
    if data.dtype.kind in "iu":
        info = np.iinfo(data.dtype)
        ends = (int(min(max(bound, info.min), info.max)) for bound in (low, high))
        return np.clip(data, *ends, out=np.empty_like(data, order="C") if out is None else out)
    return map_blocks(lambda x, y: np.clip(x, low, high, out=y), data, out)


@operator("Sigmoid", opset=1)
class Sigmoid(UnaryActivationBase):
    """1 / (1 + e^-x).

    Source: Sigmoid-1
    """

    def block(self, x: Array, y: Array) -> None:
        np.negative(x, out=y)
        np.exp(y, out=y)
        np.add(y, 1, out=y)
        np.divide(1, y, out=y)  # NumPy's reciprocal takes twice as long


@operator("Tanh", opset=1)
class Tanh(UnaryActivationBase):
    """The hyperbolic tangent of each element.

    Source: Tanh-1
    """

    def block(self, x: Array, y: Array) -> None:
        np.tanh(x, out=y)


@operator("HSigmoid", opset=5)
class HSigmoid(UnaryActivationBase):
    """min(max(x + 3, 0), 6) / 6.

    Source: HSigmoid-5
    """

    heavy = False

    def block(self, x: Array, y: Array) -> None:
        np.add(x, 3, out=y)
        np.clip(y, 0, 6, out=y)
        np.divide(y, 6, out=y)


@operator("HSwish", opset=4)
class HSwish(UnaryActivationBase):
    """x * min(max(x + 3, 0), 6) / 6.

    Source: HSwish-4
    """

    heavy = False

    def block(self, x: Array, y: Array) -> None:
        np.add(x, 3, out=y)
        np.clip(y, 0, 6, out=y)
        np.multiply(x, y, out=y)
        np.divide(y, 6, out=y)


@operator("HardSigmoid", opset=1)
class HardSigmoid(ActivationBase):
    """max(0, min(1, alpha * x + beta)), which is 1 for NaN; alpha and beta are scalars of the data's type.

    Source: HardSigmoid-1
    """

    def infer(self, data: TensorType, alpha: TensorType, beta: TensorType) -> TensorType:
        element_type = self.merge_types(
            data.element_type, alpha.element_type, beta.element_type, names=("data", "alpha", "beta")
        )
        self.require_rank("alpha", alpha.shape, 0)
        self.require_rank("beta", beta.shape, 0)
        return self.output_type(data, element_type)

    def run(self, data: Array, alpha: Array, beta: Array, *, out: Array | None = None) -> Array:
        a, b = self.one_number("alpha", alpha), self.one_number("beta", beta)

        def block(x: Array, y: Array) -> None:
            np.multiply(x, a, out=y)
            np.add(y, b, out=y)
            np.clip(y, 0, 1, out=y)
            if np.isnan(y.max(initial=0)):  # NumPy's fmin, which needs no such test, takes several times as long
                np.copyto(y, 1, where=np.isnan(y))

        return map_blocks(block, data, out)


@operator("Elu", opset=1)
class Elu(UnaryActivationBase):
    """x for x > 0, else alpha * (e^x - 1).

    Source: Elu-1
    """

    alpha: float = attribute(default=0.0, specified=True)

    def block(self, x: Array, y: Array) -> None:
        _exponential_unit(x, y, self.alpha)


@operator("Selu", opset=1)
class Selu(ActivationBase):
    """lambda * (x for x > 0, else alpha * (e^x - 1)); alpha and lambda hold one element each.

    Source: Selu-1
    """

    real_only = True

    def infer(self, data: TensorType, alpha: TensorType, lambda_: TensorType) -> TensorType:
        element_type = self.merge_types(
            data.element_type, alpha.element_type, lambda_.element_type, names=("data", "alpha", "lambda")
        )
        for name, tensor in (("alpha", alpha), ("lambda", lambda_)):
            single = tensor.shape.size().contains(1)
            self.require(single, "{} must have one element, got shape {}", name, tensor.shape)
        return self.output_type(data, element_type)

    def run(self, data: Array, alpha: Array, lambda_: Array, *, out: Array | None = None) -> Array:
        a, scale = self.one_number("alpha", alpha), self.one_number("lambda", lambda_)

        def block(x: Array, y: Array) -> None:
            _exponential_unit(x, y, a)
            np.multiply(y, scale, out=y)

        return map_blocks(block, data, out, heavy=True)


@operator("Swish", opset=4)
class Swish(ActivationBase):
    """x / (1 + e^(-beta x)); beta is a scalar of the data's type, 1 if it is missing.

    Source: Swish-4
    """

    real_only = True

    def infer(self, data: TensorType, beta: TensorType | None = None) -> TensorType:
        if beta is not None:
            self.merge_types(data.element_type, beta.element_type, names=("data", "beta"))
            self.require_rank("beta", beta.shape, 0)
        return self.output_type(data, data.element_type)

    def run(self, data: Array, beta: Array | None = None, *, out: Array | None = None) -> Array:
        factor = 1.0 if beta is None else self.one_number("beta", beta)

        def block(x: Array, y: Array) -> None:
            np.multiply(x, -factor, out=y)
            np.exp(y, out=y)
            np.add(y, 1, out=y)
            np.divide(x, y, out=y)

        return map_blocks(block, data, out, heavy=True)


@operator("Mish", opset=4)
class Mish(UnaryActivationBase):
    """x * tanh(ln(1 + e^x)).

    Source: Mish-4
    """

    real_only = True

    def block(self, x: Array, y: Array) -> None:
        # With n = e^x (e^x + 2), the tanh equals n / (n + 2), which is 1 in every type from x = 40 on.
        np.clip(x, -inf, 40, out=y)
        np.exp(y, out=y)
        more = y + 2
        np.multiply(y, more, out=y)
        np.divide(y, np.add(y, 2, out=more), out=y)
        np.multiply(x, y, out=y)


@operator("SoftPlus", opset=4)
class SoftPlus(UnaryActivationBase):
    """ln(1 + e^x); equal to x for large x.

    Source: SoftPlus-4
    """

    real_only = True

    def block(self, x: Array, y: Array) -> None:
        np.clip(x, -inf, 40, out=y)
        np.exp(y, out=y)
        np.add(y, 1, out=y)
        np.log(y, out=y)
        np.maximum(x, y, out=y)


@operator("SoftSign", opset=9)
class SoftSign(UnaryActivationBase):
    """x / (1 + |x|).

    Source: SoftSign-9
    """

    real_only = True
    heavy = False

    def block(self, x: Array, y: Array) -> None:
        np.absolute(x, out=y)
        np.add(y, 1, out=y)
        np.divide(x, y, out=y)


@operator("Gelu", opset=2)
class Gelu2(UnaryActivationBase):
    """x / 2 * (1 + erf(x / sqrt(2))).

    Source: Gelu-2
    """

    real_only = True

    def block(self, x: Array, y: Array) -> None:
        gelu(x, y)


@operator("Gelu", opset=7)
class Gelu7(Gelu2):
    """Gelu-2, or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), depending on ``approximation_mode``.

    Source: Gelu-7
    """

    approximation_mode: str = attribute(default="erf", choices=("erf", "tanh"))

    def block(self, x: Array, y: Array) -> None:
        if self.approximation_mode == "erf":
            super().block(x, y)
            return
        # (1 + tanh(t)) / 2 is 1 / (1 + e^(-2t)), which is faster and does not cancel where x is negative.
        np.multiply(x, x, out=y)
        np.multiply(y, -2 * 0.044715 * sqrt(2 / pi), out=y)
        np.subtract(y, 2 * sqrt(2 / pi), out=y)
        np.multiply(x, y, out=y)
        np.exp(y, out=y)
        np.add(y, 1, out=y)
        np.divide(x, y, out=y)


def _exponential_unit(x: Array, y: Array, alpha: float) -> None:
    np.clip(x, -inf, 0, out=y)
    np.exp(y, out=y)
    np.subtract(y, 1, out=y)
    if alpha != 1:
        np.multiply(y, alpha, out=y)
    if 0 <= alpha <= 1:  # x is then the smaller of the two where it is negative
        np.maximum(x, y, out=y)
    else:
        np.add(y, np.clip(x, 0, inf), out=y)
