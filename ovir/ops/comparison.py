"""Comparisons of two inputs of one type, which are broadcast, and tests for infinity and NaN; the result is boolean.

For partly known values a comparison is known where the bounds, or equal symbols, decide it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean
from ovir.core.values import Value
from ovir.kernels.precision import as_native
from ovir.ops.base.attributes import attribute
from ovir.ops.base.elementwise import BinaryBase, hull
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class ComparisonBase(BinaryBase):
    """Base of comparisons: whether a relation holds between a and b."""

    def result_type(self, element_type: ElementType) -> ElementType:
        return boolean

    def run(self, a: Array, b: Array) -> Array:
        return np.asarray(self.compute(as_native(a), as_native(self.aligned(a, b))))

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        """Return whether the relation certainly holds, and whether it possibly holds."""
        b_symbols = self.aligned(a.lower, b.symbols)
        same = (a.symbols != 0) & (a.symbols == b_symbols)
        sure, possible = self.decide(a, b)
        of_equals = bool(type(self).function(0, 0))
        return np.where(same, of_equals, sure), np.where(same, of_equals, possible)

    def decide(self, a: Value, b: Value) -> tuple[Array, Array]:
        """Return the same without regard to symbols, for a relation that is monotone in both inputs."""
        return hull(self.at_corners(a, b))

    def equality(self, a: Value, b: Value) -> tuple[Array, Array]:
        """Return whether elements are certainly equal, and whether they are possibly equal."""
        low, high = self.aligned(a.lower, b.lower), self.aligned(a.lower, b.upper)
        return (a.lower == a.upper) & (low == high) & (a.lower == low), (a.lower <= high) & (low <= a.upper)


@operator("Equal", opset=1)
class Equal(ComparisonBase):
    """Whether a = b, element by element.

    >>> ops.equal([1, 2, 3], [1, 0, 3])
    [ True False True]
    """

    function = np.equal

    def decide(self, a: Value, b: Value) -> tuple[Array, Array]:
        return self.equality(a, b)


@operator("NotEqual", opset=1)
class NotEqual(ComparisonBase):
    """Whether a != b, element by element.

    >>> ops.not_equal([1, 2, 3], [1, 0, 3])
    [False True False]
    """

    function = np.not_equal

    def decide(self, a: Value, b: Value) -> tuple[Array, Array]:
        sure, possible = self.equality(a, b)
        return ~possible, ~sure


@operator("Greater", opset=1)
class Greater(ComparisonBase):
    """Whether a > b, element by element.

    >>> ops.greater([1, 2, 3], [2])
    [False False True]
    """

    function = np.greater


@operator("GreaterEqual", opset=1)
class GreaterEqual(ComparisonBase):
    """Whether a >= b, element by element.

    >>> ops.greater_equal([1, 2, 3], [2])
    [False True True]
    """

    function = np.greater_equal


@operator("Less", opset=1)
class Less(ComparisonBase):
    """Whether a < b, element by element.

    >>> ops.less([1, 2, 3], [2])
    [ True False False]
    """

    function = np.less


@operator("LessEqual", opset=1)
class LessEqual(ComparisonBase):
    """Whether a <= b, element by element.

    >>> ops.less_equal([1, 2, 3], [2])
    [ True True False]
    """

    function = np.less_equal


class FloatTestBase(Operator):
    """Base of tests for a property of floating-point numbers."""

    takes = "data real[D...]"
    gives = "boolean[D...]"

    @property
    def function(self) -> Callable[..., Array]:
        """Return the test, which is called as ``function(x, out)`` or without ``out``."""
        raise NotImplementedError

    def run(self, data: Array) -> Array:
        return np.asarray(self.function(as_native(data)))


@operator("IsFinite", opset=10)
class IsFinite(FloatTestBase):
    """Whether each number is neither infinite nor NaN.

    >>> ops.is_finite([1.0, np.inf, np.nan])
    [ True False False]
    """

    function = np.isfinite


@operator("IsNaN", opset=10, function_name="is_nan")
class IsNaN(FloatTestBase):
    """Whether each number is NaN.

    >>> ops.is_nan([1.0, np.inf, np.nan])
    [False False True]
    """

    function = np.isnan


@operator("IsInf", opset=10)
class IsInf(FloatTestBase):
    """Whether each number is infinite; ``detect_negative`` and ``detect_positive`` restrict the test to one sign.

    >>> ops.is_inf([1.0, np.inf, np.nan])
    [False True False]
    """

    arguments = "data attributes:**="
    detect_negative: bool = attribute(default=True)
    detect_positive: bool = attribute(default=True)

    @property
    def function(self) -> Callable[..., Array]:
        if self.detect_negative:
            return np.isinf if self.detect_positive else np.isneginf
        return np.isposinf if self.detect_positive else lambda x, out=None: np.less(x, x, out=out)
