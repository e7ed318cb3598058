"""Comparisons of two inputs of one type, which are broadcast, and tests for infinity and NaN; the result is boolean.

For partly known values a comparison is known where the bounds, or equal symbols, decide it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.kernels.blocked import apply
from ovir.ops.base.attributes import attribute
from ovir.ops.base.elementwise import BinaryBase, IsConstant
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class ComparisonBase(BinaryBase):
    """Base of comparisons: whether a relation holds between a and b."""

    function: ClassVar[Callable[..., Array]]

    def result_type(self, element_type: ElementType) -> ElementType:
        return boolean

    def run(self, a: Array, b: Array, *, out: Array | None = None) -> Array:
        return apply(type(self).function, (a, self.aligned(a, b)), out, np.dtype(np.bool_))

    def bound_function(self, inputs: tuple[Array, ...], is_constant: IsConstant) -> Callable[..., object] | None:
        return type(self).function

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        """Return whether the relation certainly holds, and whether it possibly holds."""
        b_ends = self.aligned(a.lower, b.lower), self.aligned(a.lower, b.upper)
        b_symbols = self.aligned(a.lower, b.symbols)
        same = (a.symbols != 0) & (a.symbols == b_symbols)
        sure, possible = self.decide(a.lower, a.upper, *b_ends)
        of_equals = bool(type(self).function(0, 0))
        return np.where(same, of_equals, sure), np.where(same, of_equals, possible)

    def decide(self, a_low: Array, a_high: Array, b_low: Array, b_high: Array) -> tuple[Array, Array]:
        raise NotImplementedError


@operator("Equal", opset=1)
class Equal(ComparisonBase):
    """Whether a = b, element by element.

    Source: Equal-1
    """

    function = np.equal

    def decide(self, a_low: Array, a_high: Array, b_low: Array, b_high: Array) -> tuple[Array, Array]:
        return (a_low == a_high) & (b_low == b_high) & (a_low == b_low), (a_low <= b_high) & (b_low <= a_high)


@operator("NotEqual", opset=1)
class NotEqual(ComparisonBase):
    """Whether a != b, element by element.

    Source: NotEqual-1
    """

    function = np.not_equal

    def decide(self, a_low: Array, a_high: Array, b_low: Array, b_high: Array) -> tuple[Array, Array]:
        return (a_low > b_high) | (b_low > a_high), (a_low != a_high) | (b_low != b_high) | (a_low != b_low)


@operator("Greater", opset=1)
class Greater(ComparisonBase):
    """Whether a > b, element by element.

    Source: Greater-1
    """

    function = np.greater

    def decide(self, a_low: Array, a_high: Array, b_low: Array, b_high: Array) -> tuple[Array, Array]:
        return a_low > b_high, a_high > b_low


@operator("GreaterEqual", opset=1)
class GreaterEqual(ComparisonBase):
    """Whether a >= b, element by element.

    Source: GreaterEqual-1
    """

    function = np.greater_equal

    def decide(self, a_low: Array, a_high: Array, b_low: Array, b_high: Array) -> tuple[Array, Array]:
        return a_low >= b_high, a_high >= b_low


@operator("Less", opset=1)
class Less(ComparisonBase):
    """Whether a < b, element by element.

    Source: Less-1
    """

    function = np.less

    def decide(self, a_low: Array, a_high: Array, b_low: Array, b_high: Array) -> tuple[Array, Array]:
        return a_high < b_low, a_low < b_high


@operator("LessEqual", opset=1)
class LessEqual(ComparisonBase):
    """Whether a <= b, element by element.

    Source: LessEqual-1
    """

    function = np.less_equal

    def decide(self, a_low: Array, a_high: Array, b_low: Array, b_high: Array) -> tuple[Array, Array]:
        return a_high <= b_low, a_low <= b_high


class FloatTestBase(Operator):
    """Base of tests for a property of floating-point numbers."""

    def infer(self, data: TensorType) -> TensorType:
        self.require_real("data", data.element_type)
        return TensorType(boolean, data.shape)

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        return apply(self.write, (data,), out, np.dtype(np.bool_))

    def write(self, x: Array, *, out: Array) -> object:
        """Fill out from x, float32 or float64."""
        raise NotImplementedError


@operator("IsFinite", opset=10)
class IsFinite(FloatTestBase):
    """Whether each number is neither infinite nor NaN.

    Source: IsFinite-10
    """

    def write(self, x: Array, *, out: Array) -> object:
        return np.isfinite(x, out=out)


@operator("IsNaN", opset=10, function_name="is_nan")
class IsNaN(FloatTestBase):
    """Whether each number is NaN.

    Source: IsNaN-10
    """

    def write(self, x: Array, *, out: Array) -> object:
        return np.isnan(x, out=out)


@operator("IsInf", opset=10)
class IsInf(FloatTestBase):
    """Whether each number is infinite; ``detect_negative`` and ``detect_positive`` restrict the test to one sign.

    Source: IsInf-10
    """

    arguments = "data attributes:**="
    detect_negative: bool = attribute(default=True)
    detect_positive: bool = attribute(default=True)

    def write(self, x: Array, *, out: Array) -> object:
        if self.detect_negative and self.detect_positive:
            return np.isinf(x, out=out)
        if self.detect_negative or self.detect_positive:
            return np.equal(x, -np.inf if self.detect_negative else np.inf, out=out)
        out.fill(False)
        return out
