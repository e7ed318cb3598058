"""Activation functions: elementwise operations whose output has the type and shape of the data input.

Integers are computed in f64 and rounded to the nearest; f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, pi, sqrt

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, value_range
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import Outputs, TensorType
from ovir.kernels.erf import erf
from ovir.kernels.precision import as_computed, as_native, rounded, stored
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL


class ActivationBase(Operator):
    """Base of the activation functions. Those of several inputs declare other ones than ``data``."""

    takes = "data T[D...]; T numeric"
    gives = "T[D...]"
    inplace = (0,)
    same_types = ALL

    def run(self, data: Array, *parameters: Array | None) -> Array:
        return rounded(self.compute(as_computed(data), *parameters), data.dtype)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        """Return the result for float32 or float64."""
        raise NotImplementedError


@operator("ReLU", opset=1, function_name="relu")
class ReLU(ActivationBase):
    """max(0, x); NaN stays NaN.

    >>> ops.relu([-2.0, 0.0, 3.0])
    [0. 0. 3.]
    """

    arguments = "node:data"
    monotone = (0,)
    stays_in_type = True

    def run(self, data: Array, *parameters: Array | None) -> Array:
        return stored(np.asarray(self.compute(as_native(data))), data.dtype)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return np.maximum(x, 0)


@operator("Clamp", opset=1)
class Clamp(ActivationBase):
    """min(max(x, min), max); NaN stays NaN.

    For integers ``min`` is rounded up, ``max`` is rounded down, and both are clipped to the type's range.

    >>> ops.clamp([-3.0, 0.5, 9.0], 0.0, 6.0)
    [0. 0.5 6. ]
    """

    recipe = "T mostly_real, data T ... A; min=-1|0|-2.5|-1e9 max=0|1|0.5|1e12"
    arguments = "data min_value:min max_value:max"
    min: float = attribute()
    max: float = attribute()
    monotone = (0,)
    stays_in_type = True

    def infer(self, *inputs: TensorType) -> Outputs:
        self.require(self.min <= self.max, "min {} must not be above max {}", self.min, self.max)
        return super().infer(*inputs)

    def run(self, data: Array, *parameters: Array | None) -> Array:
        return stored(np.asarray(self.compute(as_native(data))), data.dtype)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return np.clip(x, *self.ends(self.output_types[0]))  # the data may be bounds, which are real

    def ends(self, element_type: ElementType) -> tuple[float, float]:
        """Return the least and the largest result of an element type."""
        if not element_type.is_integral:
            return self.min, self.max
        least, greatest = value_range(element_type)
        low, high = (int(min(max(bound, least), greatest)) for bound in (np.ceil(self.min), np.floor(self.max)))
        return low, high


@operator("Sigmoid", opset=1)
class Sigmoid(ActivationBase):
    """1 / (1 + e^-x).

    >>> ops.sigmoid([-1.0, 0.0, 1.0])
    [0.2689414 0.5 0.7310586]
    """

    within = (0, 1)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return 1 / (1 + np.exp(-x))


@operator("Tanh", opset=1)
class Tanh(ActivationBase):
    """The hyperbolic tangent of each element.

    >>> ops.tanh([-1.0, 0.0, 1.0])
    [-0.7615942 0. 0.7615942]
    """

    within = (-1, 1)

    arguments = "node:data"

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return np.tanh(x)


@operator("HSigmoid", opset=5, function_name="hsigmoid")
class HSigmoid(ActivationBase):
    """min(max(x + 3, 0), 6) / 6.

    >>> ops.hsigmoid([-3.0, 0.0, 3.0])
    [0. 0.5 1. ]
    """

    within = (0, 1)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return np.clip(x + 3, 0, 6) / 6


@operator("HSwish", opset=4, function_name="hswish")
class HSwish(ActivationBase):
    """x * min(max(x + 3, 0), 6) / 6.

    >>> ops.hswish([-3.0, 0.0, 3.0])
    [-0. 0. 3.]
    """

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return x * (np.clip(x + 3, 0, 6) / 6)


@operator("HardSigmoid", opset=1)
class HardSigmoid(ActivationBase):
    """max(0, min(1, alpha * x + beta)), which is 1 for NaN.

    >>> ops.hard_sigmoid([-3.0, 0.0, 3.0], 0.2, 0.5)
    [0. 0.5 1. ]
    """

    takes = "data T[D...]; alpha T[]; beta T[]; T numeric"
    recipe = "T real"
    within = (0, 1)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return np.fmin(self.clipped(x, *parameters), 1)

    def clipped(self, x: Array, *parameters: Array | None) -> Array:
        """Return the result, which is still NaN for NaN."""
        alpha, beta = _numbers(parameters)
        return np.clip(alpha * x + beta, 0, 1)


@operator("Elu", opset=1)
class Elu(ActivationBase):
    """x for x > 0, else alpha * (e^x - 1).

    >>> ops.elu([-1.0, 0.0, 2.0], 1.0)
    [-0.6321206 0. 2. ]
    """

    recipe = "T mostly_real, data T ... A; alpha=0.1|1|2.5"
    arguments = "data alpha"
    alpha: float = attribute(default=0.0, specified=True)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return _exponential_unit(x, self.alpha)


@operator("Selu", opset=1)
class Selu(ActivationBase):
    """lambda * (x for x > 0, else alpha * (e^x - 1)); alpha and lambda hold one element each.

    >>> ops.selu([-1.0, 1.0], [1.6733], [1.0507])
    [-1.1113542 1.0507 ]
    """

    takes = "data T[D...]; alpha T[...]; lambda T[...]; T real"
    recipe = "T real, alpha T 1, lambda T 1"
    arguments = "data alpha lambda_value:lambda"

    def infer(self, *inputs: TensorType) -> Outputs:
        for name, tensor in zip(("alpha", "lambda"), inputs[1:], strict=True):
            single = tensor.shape.size().contains(1)
            self.require(single, "{} must have one element, got shape {}", name, tensor.shape)
        return super().infer(*inputs)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        alpha, scale = _numbers(parameters)
        return scale * _exponential_unit(x, alpha)


@operator("Swish", opset=4)
class Swish(ActivationBase):
    """x / (1 + e^(-beta x)); beta is a scalar of the data's type, 1 if it is missing.

    >>> ops.swish([-1.0, 0.0, 1.0])
    [-0.2689414 0. 0.7310586]
    """

    takes = "data T[D...]; ?beta T[]; T real"
    recipe = "T real, data T ... A"

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        (beta,) = _numbers(parameters) or (1.0,)
        return x / (1 + np.exp(-beta * x))


@operator("Mish", opset=4)
class Mish(ActivationBase):
    """x * tanh(ln(1 + e^x)).

    >>> ops.mish([-1.0, 0.0, 1.0])
    [-0.30340144 0. 0.8650984 ]
    """

    takes = "data T[D...]; T real"

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        # With n = e^x (e^x + 2), the tanh equals n / (n + 2), which is 1 in every type from x = 40 on.
        power = np.exp(np.clip(x, -inf, 40))
        n = power * (power + 2)
        return x * (n / (n + 2))


@operator("SoftPlus", opset=4, function_name="softplus")
class SoftPlus(ActivationBase):
    """ln(1 + e^x); equal to x for large x.

    >>> ops.softplus([-1.0, 0.0, 1.0])
    [0.31326166 0.6931472 1.3132617 ]
    """

    within = (0, inf)

    takes = "data T[D...]; T real"

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return np.maximum(x, np.log1p(np.exp(np.clip(x, -inf, 40))))  # ln(1 + y) would lose the digits of small y


@operator("SoftSign", opset=9, function_name="softsign")
class SoftSign(ActivationBase):
    """x / (1 + |x|).

    >>> ops.softsign([-1.0, 0.0, 1.0])
    [-0.5 0. 0.5]
    """

    within = (-1, 1)

    arguments = "node:data"
    takes = "data T[D...]; T real"

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        return x / (1 + np.abs(x))


@operator("Gelu", opset=2)
class Gelu2(ActivationBase):
    """x / 2 * (1 + erf(x / sqrt(2)))."""

    arguments = "node:data"
    takes = "data T[D...]; T real"
    approximation_mode: str = "erf"

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        wide = x.astype(np.float64)  # the sum cancels where x is negative
        return (wide / 2 * (1 + erf(wide * sqrt(0.5)))).astype(x.dtype)


@operator("Gelu", opset=7)
class Gelu7(Gelu2):
    """Gelu-2, or x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), depending on ``approximation_mode``.

    >>> ops.gelu([-1.0, 0.0, 1.0], "erf")
    [-0.15865526 0. 0.8413448 ]
    """

    arguments = "data approximation_mode"
    approximation_mode: str = attribute(default="erf", choices=("erf", "tanh"))

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        if self.approximation_mode == "erf":
            return super().compute(x)
        # (1 + tanh(t)) / 2 is 1 / (1 + e^(-2t)), which does not cancel where x is negative.
        factor = -2 * sqrt(2 / pi)
        return x / (1 + np.exp(x * (factor + 0.044715 * factor * (x * x))))


@operator("PReLU", opset=1, function_name="prelu")
class PReLU(ActivationBase):
    """x for x >= 0, else slope * x.

    A 1-D slope with the length of the data's second dimension is one slope per channel; any other slope is broadcast to
    the data as in NumPy.

    >>> ops.prelu([-2.0, 3.0], 0.1)
    [-0.2 3. ]
    """

    takes = "data T[D...]; slope numeric[...]; T numeric"
    recipe = "T real, data T N C ..., slope T C | 1 | N C ..."

    def infer(self, *inputs: TensorType) -> Outputs:
        data, slope = inputs
        if slope.element_type != data.element_type:
            self.require_real("slope", slope)
        self.require(
            _slope_fits(slope.shape, data.shape),
            "slope of shape {} does not match data of shape {}: expected one number per channel "
            "or a shape that can be broadcast",
            slope.shape,
            data.shape,
        )
        return super().infer(*inputs)

    def compute(self, x: Array, *parameters: Array | None) -> Array:
        slope = aligned(parameters[0], x.ndim, x.shape).astype(x.dtype)
        return np.where(x >= 0, x, slope * x)


def _numbers(parameters: Sequence[Array | None]) -> list[float]:
    """Return the elements of the parameters of one element that are given."""
    return [float(array.item()) for array in parameters if array is not None]


def _exponential_unit(x: Array, alpha: float) -> Array:
    if not isfinite(alpha):
        return np.where(x > 0, x, alpha * (np.exp(x) - 1))
    below = alpha * (np.exp(np.clip(x, -inf, 0)) - 1)
    # With these alpha, x is the smaller of the two where it is negative.
    return np.maximum(x, below) if 0 <= alpha <= 1 else below + np.clip(x, 0, inf)


def aligned(slope: Array | None, rank: int, shape: tuple[int, ...]) -> Array:
    """Return the slopes in a shape that NumPy broadcasts to the data."""
    assert slope is not None
    if slope.size == 1:
        return slope.reshape(())
    if rank > 1 and slope.shape == shape[1:2]:
        return slope.reshape(-1, *[1] * (rank - 2))
    return slope


def _slope_fits(slope: PartialShape, data: PartialShape) -> bool:
    if slope.rank is None or data.rank is None or slope.size().contains(1):
        return True
    if len(slope) == 1 and len(data) > 1 and slope[0].compatible(data[1]):
        return True
    pairs = zip(reversed(slope.dims), reversed(data.dims), strict=False)
    return len(slope) <= len(data) and all(s.contains(1) or s.compatible(d) for s, d in pairs)
