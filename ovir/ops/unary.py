"""Elementwise functions of one input of any numeric type, and Identity.

Functions whose values are not integers are computed in f64 for integers, and rounded; a result that does not fit in 8
bits saturates. f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, pi
from typing import Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_bounds
from ovir.kernels.erf import erf, erfinv
from ovir.kernels.precision import as_computed, as_native, integer_range, stored
from ovir.ops.base.attributes import attribute
from ovir.ops.base.elementwise import require_plain
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class UnaryBase(Operator):
    """Base of functions whose result has the type and shape of the input."""

    takes = "data T[D...]; T numeric"
    gives = "T[D...]"
    arguments = "node:data"
    inplace = (0,)
    function: ClassVar[Callable[..., Any]]
    """The NumPy function of the operation, or a function with the same signature, ``function(x, out)``.

    ``run`` calls it through ``compute``. The fast form of this class calls it directly, on float32 and float64, and
    never calls ``compute``. So a class that overrides ``compute`` either gives the same results for real numbers as its
    ``function``, or has a fast form of its own.
    """
    truncates = False
    """Whether results for 32- and 64-bit integers are truncated instead of rounded to nearest."""

    def run(self, data: Array) -> Array:
        require_plain(self)
        result, element_type = np.asarray(self.compute(as_computed(data))), self.output_types[0]
        if element_type.is_integral:
            result = np.trunc(result) if self.truncates and element_type.bits >= 32 else np.rint(result)
            if element_type.bits == 8:
                info = np.iinfo(data.dtype)
                result = np.clip(result, info.min, info.max)
        return stored(np.asarray(result), data.dtype)

    def compute(self, x: Array) -> Array:
        """Return the result for float32 or float64."""
        return type(self).function(x)


class ExactUnaryBase(UnaryBase):
    """Base of functions that map integers to integers, so that ``compute`` takes any type that NumPy computes in."""

    def run(self, data: Array) -> Array:
        require_plain(self)
        return stored(np.asarray(self.compute(as_native(data))), data.dtype)


class RoundingBase(ExactUnaryBase):
    """Base of rounding functions: integers stay as they are, and so do the known sizes in a converted shape."""

    moves_elements = (0,)
    steps = True

    def compute(self, x: Array) -> Array:
        return super().compute(x) if x.dtype.kind == "f" else x.copy()


# --------------------------------------------------------------------------- integers of integers


@operator("Abs", opset=1, alias="absolute")
class Abs(ExactUnaryBase):
    """The magnitude of each element; 127 for the smallest i8.

    >>> ops.abs([-2.0, 0.0, 3.0])
    [2. 0. 3.]
    """

    function = np.absolute

    def compute(self, x: Array) -> Array:
        return np.abs(_above_least(x))

    def infer_value(self, *inputs: TensorType) -> Value | None:
        value = inputs[0].bounds_or_unknown()
        if value is None:
            return None
        low, high = value.known_ends(self.output_types[0])
        ends = np.abs(low), np.abs(high)
        lower = np.where((low < 0) & (high > 0), 0, np.minimum(*ends))
        symbols = np.where(value.lower >= 0, value.symbols, 0)
        return from_bounds(self.output_types[0], lower, np.maximum(*ends), symbols, sizes=value.is_size)


@operator("Negative", opset=1)
class Negative(ExactUnaryBase):
    """The negative of each element, -x; 127 for the smallest i8, as on devices, which saturate.

    >>> ops.negative([1.0, -2.0])
    [-1. 2.]
    """

    function = np.negative

    monotone = (0,)

    def compute(self, x: Array) -> Array:
        return np.negative(_above_least(x))


@operator("Sign", opset=1)
class Sign(ExactUnaryBase):
    """The sign of each element: -1, 0 or 1; NaN for NaN.

    >>> ops.sign([-2.0, 0.0, 3.0])
    [-1. 0. 1.]
    """

    function = np.sign
    monotone = (0,)
    steps = True
    stays_in_type = True


@operator("Floor", opset=1)
class Floor(RoundingBase):
    """The greatest integer not above x.

    >>> ops.floor([-1.5, 0.2, 2.0])
    [-2. 0. 2.]
    """

    function = np.floor


@operator("Ceiling", opset=1, alias="ceil")
class Ceiling(RoundingBase):
    """The least integer not below x.

    >>> ops.ceil([-1.5, 0.2, 2.0])
    [-1. 1. 2.]
    """

    function = np.ceil


@operator("Round", opset=5)
class Round(RoundingBase):
    """The nearest integer; a half is rounded to even, or away from zero in mode half_away_from_zero.

    >>> ops.round([0.5, 1.5, -2.4])
    [ 0. 2. -2.]
    """

    arguments = "data mode="
    mode: str = attribute(default="half_to_even", choices=("half_to_even", "half_away_from_zero"))

    function = np.rint

    def compute(self, x: Array) -> Array:
        if self.mode == "half_to_even" or x.dtype.kind != "f":
            return super().compute(x)
        # Adding 0.5 would round the number just below 0.5 up to 1; the remainder is exact.
        whole = np.trunc(x)
        return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole), x)


@operator("Identity", opset=16)
class Identity(Operator):
    """The input, of any type, unchanged.

    >>> ops.identity([[1.0, 2.0]])
    [[1. 2.]]
    """

    recipe = "anything any"
    forwards_values = (0,)
    views = True
    moves_elements = (0,)

    def infer(self, data: TensorType) -> TensorType:
        return TensorType(data.element_type, data.shape)

    def run(self, data: Array) -> Array:
        return data

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        return "an Identity does nothing else"


def _above_least(x: Array) -> Array:
    return np.maximum(x, -127) if x.dtype == np.int8 else x


# --------------------------------------------------------------------------- real functions


@operator("Sqrt", opset=1)
class Sqrt(UnaryBase):
    """The square root of each element, NaN below 0.

    >>> ops.sqrt([4.0, 9.0])
    [2. 3.]
    """

    within = (0, inf)

    function = np.sqrt
    monotone = (0,)


@operator("Exp", opset=1)
class Exp(UnaryBase):
    """The exponential of each element, e^x.

    >>> ops.exp([0.0, 1.0])
    [1. 2.718282]
    """

    within = (0, inf)

    function = np.exp
    monotone = (0,)
    truncates = True


@operator("Log", opset=1)
class Log(UnaryBase):
    """The natural logarithm of each element, NaN below 0.

    >>> ops.log([1.0, 10.0])
    [0. 2.3025851]
    """

    function = np.log
    monotone = (0,)
    truncates = True


@operator("Sin", opset=1)
class Sin(UnaryBase):
    """The sine of each element, x in radians.

    >>> ops.sin([0.0, 1.0])
    [0. 0.841471]
    """

    within = (-1, 1)

    function = np.sin
    truncates = True


@operator("Cos", opset=1)
class Cos(UnaryBase):
    """The cosine of each element, x in radians.

    >>> ops.cos([0.0, 1.0])
    [1. 0.5403023]
    """

    within = (-1, 1)

    function = np.cos


@operator("Tan", opset=1)
class Tan(UnaryBase):
    """The tangent of each element, x in radians.

    >>> ops.tan([0.0, 1.0])
    [0. 1.5574077]
    """

    function = np.tan


@operator("Asin", opset=1)
class Asin(UnaryBase):
    """The inverse sine, from -pi/2 to pi/2; NaN outside of [-1, 1].

    >>> ops.asin([-1.0, 0.0, 1.0])
    [-1.5707964 0. 1.5707964]
    """

    within = (-pi / 2, pi / 2)

    function = np.arcsin
    truncates = True


@operator("Acos", opset=1)
class Acos(UnaryBase):
    """The inverse cosine, from 0 to pi; NaN outside of [-1, 1].

    >>> ops.acos([-1.0, 0.0, 1.0])
    [3.1415927 1.5707964 0. ]
    """

    within = (0, pi)

    function = np.arccos


@operator("Atan", opset=1)
class Atan(UnaryBase):
    """The inverse tangent, from -pi/2 to pi/2.

    >>> ops.atan([-1.0, 0.0, 1.0])
    [-0.7853982 0. 0.7853982]
    """

    within = (-pi / 2, pi / 2)

    function = np.arctan


@operator("Sinh", opset=1)
class Sinh(UnaryBase):
    """The hyperbolic sine of each element.

    >>> ops.sinh([0.0, 1.0])
    [0. 1.1752012]
    """

    function = np.sinh


@operator("Cosh", opset=1)
class Cosh(UnaryBase):
    """The hyperbolic cosine of each element.

    >>> ops.cosh([0.0, 1.0])
    [1. 1.5430807]
    """

    within = (1, inf)

    function = np.cosh


@operator("Asinh", opset=4)
class Asinh(UnaryBase):
    """The inverse hyperbolic sine of each element.

    >>> ops.asinh([-1.0, 0.0, 1.0])
    [-0.8813736 0. 0.8813736]

    Source: Asinh-3
    """

    function = np.arcsinh


@operator("Acosh", opset=4)
class Acosh(UnaryBase):
    """The inverse hyperbolic cosine, NaN below 1.

    >>> ops.acosh([1.0, 2.0])
    [0. 1.316958]

    Source: Acosh-3
    """

    within = (0, inf)

    function = np.arccosh


@operator("Atanh", opset=4)
class Atanh(UnaryBase):
    """The inverse hyperbolic tangent, NaN outside of [-1, 1]; nonzero integers give the limits of their type.

    >>> ops.atanh([-0.5, 0.0, 0.5])
    [-0.54930615 0. 0.54930615]

    Source: Atanh-3
    """

    function = np.arctanh

    def run(self, data: Array) -> Array:
        if not self.output_types[0].is_integral:
            return super().run(data)
        require_plain(self)
        x, (least, greatest) = as_native(data), integer_range(data.dtype)
        return np.where(x > 0, greatest, np.where(x < 0, least, x)).astype(data.dtype, copy=False)


@operator("Erf", opset=1)
class Erf(UnaryBase):
    """The Gauss error function of each element.

    >>> ops.erf([-1.0, 0.0, 1.0])
    [-0.8427008 0. 0.8427008]
    """

    within = (-1, 1)

    function = staticmethod(erf)


@operator("ErfInv", opset=17, function_name="erfinv")
class ErfInv(UnaryBase):
    """The inverse of the Gauss error function: infinite at -1 and 1, NaN outside.

    >>> ops.erfinv([-0.5, 0.0, 0.5])
    [-0.4769363 0. 0.4769363]
    """

    copies = 7

    function = staticmethod(erfinv)
    takes = "data T[D...]; T real"
