"""Activation functions: elementwise operations whose output has the type and shape of the data input.

Each is a list of passes (see ``ovir.kernels.passes``) that fill ``y`` from ``x``, both float32 or float64. They clip
even where one bound is infinite, because that is three times faster than ``np.maximum`` of an array and a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import map_blocks
from ovir.kernels.fast_calls import Call, clip, maximum
from ovir.kernels.passes import Passes, Spare, number, run_passes
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL


class ActivationBase(Operator):
    """Base of the activation functions."""

    inplace = (0,)
    same_types = ALL
    real_only = False
    """Whether integers are refused. Other functions round their result to the nearest integer."""
    heavy = True
    """Whether the function contains an exponential or something similarly expensive (see ``blocked``)."""

    def output_type(self, data: TensorType, element_type: ElementType) -> TensorType:
        """Return the output's type, given the element type that all inputs share."""
        if self.real_only:
            self.require_real("data", element_type)
        else:
            self.require_numeric("data", element_type)
        return TensorType(element_type, data.shape)

    def numbers(self, names: Sequence[str], parameters: Sequence[Array | None]) -> list[float]:
        """Return the single elements of parameter tensors."""
        found = []
        for name, array in zip(names, parameters, strict=False):
            assert array is not None
            self.require(array.size == 1, "{} must have one element, got shape {}", name, array.shape)
            found.append(float(array.item()))
        return found

    def calls_for(self, *parameters: Array | None) -> Passes:
        """Return the passes for given parameters, the inputs besides the data."""
        raise NotImplementedError

    def run(self, data: Array, *parameters: Array | None, out: Array | None = None) -> Array:
        return map_blocks(partial(run_passes, self.calls_for(*parameters)), data, out, heavy=self.heavy)


class UnaryActivationBase(ActivationBase):
    """Base of activation functions of one input."""

    def infer(self, data: TensorType) -> TensorType:
        return self.output_type(data, data.element_type)

    def calls_for(self, *parameters: Array | None) -> Passes:
        return self.calls

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        """Return the passes that fill y from x."""
        raise NotImplementedError


@operator("ReLU", opset=1, function_name="relu")
class ReLU(UnaryActivationBase):
    """max(0, x); NaN stays NaN.

    Source: ReLU-1
    """

    arguments = "node:data"
    monotone = (0,)

    heavy = False

    def run(self, data: Array, *parameters: Array | None, out: Array | None = None) -> Array:
        return clipped(data, 0, inf, out)

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return [_clip(x, 0, inf, y)]


@operator("Clamp", opset=1)
class Clamp(UnaryActivationBase):
    """min(max(x, min), max); NaN stays NaN.

    For integers ``min`` is rounded up, ``max`` is rounded down, and both are clipped to the type's range.

    Source: Clamp-1
    """

    arguments = "data min_value:min max_value:max"
    min: float = attribute()
    max: float = attribute()
    monotone = (0,)
    heavy = False

    def infer(self, data: TensorType) -> TensorType:
        self.require(self.min <= self.max, "min {} must not be above max {}", self.min, self.max)
        return super().infer(data)

    def run(self, data: Array, *parameters: Array | None, out: Array | None = None) -> Array:
        low, high = self.min, self.max
        if self.output_types[0].is_integral:
            low, high = np.ceil(low), np.floor(high)
        return clipped(data, low, high, out)

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return [_clip(x, self.min, self.max, y)]


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

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        one = number(1, x)
        return [
            (np.negative, (x, y)),
            (np.exp, (y, y)),
            (np.add, (y, one, y)),
            (np.divide, (one, y, y)),  # NumPy's reciprocal takes twice as long
        ]


@operator("Tanh", opset=1)
class Tanh(UnaryActivationBase):
    """The hyperbolic tangent of each element.

    Source: Tanh-1
    """

    arguments = "node:data"

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return [(np.tanh, (x, y))]


@operator("HSigmoid", opset=5, function_name="hsigmoid")
class HSigmoid(UnaryActivationBase):
    """min(max(x + 3, 0), 6) / 6.

    Source: HSigmoid-5
    """

    heavy = False

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return [(np.add, (x, number(3, x), y)), _clip(y, 0, 6, y), (np.divide, (y, number(6, x), y))]


@operator("HSwish", opset=4, function_name="hswish")
class HSwish(UnaryActivationBase):
    """x * min(max(x + 3, 0), 6) / 6.

    Source: HSwish-4
    """

    heavy = False

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return [
            (np.add, (x, number(3, x), y)),
            _clip(y, 0, 6, y),
            (np.multiply, (x, y, y)),
            (np.divide, (y, number(6, x), y)),
        ]


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

    heavy = False

    def calls_for(self, *parameters: Array | None) -> Passes:
        a, b = self.numbers(("alpha", "beta"), parameters)

        def passes(x: Array, y: Array, spare: Spare) -> list[Call]:
            return [
                (np.multiply, (x, number(a, x), y)),
                (np.add, (y, number(b, x), y)),
                *_between_0_and_1(y),
            ]

        return passes


@operator("Elu", opset=1)
class Elu(UnaryActivationBase):
    """x for x > 0, else alpha * (e^x - 1).

    Source: Elu-1
    """

    arguments = "data alpha"
    alpha: float = attribute(default=0.0, specified=True)

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return _exponential_unit(x, y, spare, self.alpha)


@operator("Selu", opset=1)
class Selu(ActivationBase):
    """lambda * (x for x > 0, else alpha * (e^x - 1)); alpha and lambda hold one element each.

    Source: Selu-1
    """

    arguments = "data alpha lambda_value:lambda_"
    real_only = True

    def infer(self, data: TensorType, alpha: TensorType, lambda_: TensorType) -> TensorType:
        element_type = self.merge_types(
            data.element_type, alpha.element_type, lambda_.element_type, names=("data", "alpha", "lambda")
        )
        for name, tensor in (("alpha", alpha), ("lambda", lambda_)):
            single = tensor.shape.size().contains(1)
            self.require(single, "{} must have one element, got shape {}", name, tensor.shape)
        return self.output_type(data, element_type)

    def calls_for(self, *parameters: Array | None) -> Passes:
        alpha, scale = self.numbers(("alpha", "lambda"), parameters)

        def passes(x: Array, y: Array, spare: Spare) -> list[Call]:
            return [*_exponential_unit(x, y, spare, alpha), (np.multiply, (y, number(scale, x), y))]

        return passes


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

    def calls_for(self, *parameters: Array | None) -> Passes:
        (beta,) = self.numbers(("beta",), [beta for beta in parameters if beta is not None]) or (1.0,)

        def passes(x: Array, y: Array, spare: Spare) -> list[Call]:
            return [
                (np.multiply, (x, number(-beta, x), y)),
                (np.exp, (y, y)),
                (np.add, (y, number(1, x), y)),
                (np.divide, (x, y, y)),
            ]

        return passes


@operator("Mish", opset=4)
class Mish(UnaryActivationBase):
    """x * tanh(ln(1 + e^x)).

    Source: Mish-4
    """

    real_only = True

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        # With n = e^x (e^x + 2), the tanh equals n / (n + 2), which is 1 in every type from x = 40 on.
        two, more = number(2, x), spare()
        return [
            _clip(x, -inf, 40, y),
            (np.exp, (y, y)),
            (np.add, (y, two, more)),
            (np.multiply, (y, more, y)),
            (np.add, (y, two, more)),
            (np.divide, (y, more, y)),
            (np.multiply, (x, y, y)),
        ]


@operator("SoftPlus", opset=4, function_name="softplus")
class SoftPlus(UnaryActivationBase):
    """ln(1 + e^x); equal to x for large x.

    Source: SoftPlus-4
    """

    real_only = True

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return [
            _clip(x, -inf, 40, y),
            (np.exp, (y, y)),
            (np.add, (y, number(1, x), y)),
            (np.log, (y, y)),
            (maximum, (x, y, y)),
        ]


@operator("SoftSign", opset=9, function_name="softsign")
class SoftSign(UnaryActivationBase):
    """x / (1 + |x|).

    Source: SoftSign-9
    """

    arguments = "node:data"
    real_only = True
    heavy = False

    def calls(self, x: Array, y: Array, spare: Spare) -> list[Call]:
        return [(np.absolute, (x, y)), (np.add, (y, number(1, x), y)), (np.divide, (x, y, y))]


def _clip(x: Array, low: float, high: float, y: Array) -> Call:
    return clip, (x, number(low, x), number(high, x), y)


def _exponential_unit(x: Array, y: Array, spare: Spare, alpha: float) -> list[Call]:
    passes: list[Call] = [_clip(x, -inf, 0, y), (np.exp, (y, y)), (np.subtract, (y, number(1, x), y))]
    if alpha != 1:
        passes.append((np.multiply, (y, number(alpha, x), y)))
    if 0 <= alpha <= 1:  # x is then the smaller of the two where it is negative
        return [*passes, (maximum, (x, y, y))]
    above = spare()
    return [*passes, _clip(x, 0, inf, above), (np.add, (y, above, y))]


def _between_0_and_1(y: Array) -> list[Call]:
    """Return the passes that clip y in place; NaN becomes 1."""
    if y.size <= _FEW:
        return [(np.fmin, (y, number(1, y), y)), _clip(y, 0, 1, y)]
    return [_clip(y, 0, 1, y), (_replace_nan, (y,))]


_FEW = 1 << 12
"""Up to this number of elements NumPy's fmin, which takes three times as long as clipping, is faster than a test."""


def _replace_nan(y: Array) -> None:
    """Set NaN to 1; other elements lie between 0 and 1."""
    if np.isnan(y.max(initial=0)):
        np.copyto(y, 1, where=np.isnan(y))
