"""Arithmetic of two inputs: Add, Subtract, Multiply, Divide, FloorMod, Mod, Maximum, Minimum,
SquaredDifference, Power.

Both inputs have the same numeric type, which is also the type of the result, and are broadcast (see
``ElementwiseBase``). Integers wrap around unless an operation says otherwise. f16 and bf16 are computed in f32 and
rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import inf
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import symbol_of_sum
from ovir.core.tensor_types import TensorType
from ovir.core.values import Mask, Value, product_bounds
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import to_integers
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Divisor, Domain, by_input, ordered, shifted
from ovir.ops.base.elementwise import BinaryBase, hull
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL


class ArithmeticBase(BinaryBase):
    """Base of operations whose inputs and result have one numeric type."""

    inplace = (0, 1)

    def result_type(self, element_type: ElementType) -> ElementType:
        self.require_numeric("the inputs", element_type)
        return element_type

    def domain_before(self, position: int, inputs: Sequence[TensorType], wanted: Domain) -> Domain | None:
        other = inputs[1 - position].constant
        if other is None:
            return self.domain_of_both(wanted)
        if other.dtype.kind not in "iuf" or not other.size:
            return None
        return self.domain_beside(float(other.min()), float(other.max()), position, wanted)

    def domain_of_both(self, wanted: Domain) -> Domain | None:
        """Return a domain for two unknown inputs whose result must lie in ``wanted``, or None if it is unknown."""
        return None

    def domain_beside(self, least: float, largest: float, position: int, wanted: Domain) -> Domain | None:
        """Return the domain of the input at ``position`` if the other input is constant, in ``[least, largest]``."""
        return None

    @property
    def is_integral(self) -> bool:
        """Return whether the operation computes integers. Bounds of integers are float64 arrays, which do not tell."""
        return self.output_types[0].is_integral


@operator("Add", opset=1)
class Add(ArithmeticBase):
    """The sum a + b, element by element.

    >>> ops.add([1, 2, 3], [10])
    [11 12 13]
    """

    decompresses = ALL
    function = np.add
    neutral = 0
    commutes = True

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        return self.run(a.lower, b.lower), self.run(a.upper, b.upper)

    def symbols(self, a: Value, b: Value) -> Array | None:
        if not self.is_integral:
            return super().symbols(a, b)
        aligned = (self.aligned(a.lower, part) for part in (b.lower, b.upper, b.symbols))
        columns = np.broadcast_arrays(a.lower, a.upper, a.symbols, *aligned)
        sums = [_symbol_of_sum(*numbers) for numbers in zip(*(c.ravel().tolist() for c in columns), strict=True)]
        return np.array(sums, np.int64).reshape(columns[0].shape)

    def domain_of_both(self, wanted: Domain) -> Domain:
        # Both inputs share the range.
        return Domain(0, 0 if wanted.high is None else wanted.high // 2, why=wanted.why)

    def domain_beside(self, least: float, largest: float, position: int, wanted: Domain) -> Domain:
        return shifted(wanted, -least, -largest)


def _symbol_of_sum(low: float, high: float, symbol: int, low_b: float, high_b: float, symbol_b: int) -> int:
    """Return the symbol of a sum of two numbers with bounds and symbols, if one is known."""
    if low_b == high_b:
        return symbol_of_sum(symbol, int(low_b))
    return symbol_of_sum(symbol_b, int(low)) if low == high else 0


@operator("Subtract", opset=1)
class Subtract(ArithmeticBase):
    """The difference a - b, element by element.

    >>> ops.subtract([5, 7], [2])
    [3 5]
    """

    decompresses = ALL
    offsets = True
    function = np.subtract
    neutral = 0

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        return self.run(a.lower, b.upper), self.run(a.upper, b.lower)

    def domain_of_both(self, wanted: Domain) -> Domain:
        return Domain(0, 0, why=wanted.why)

    def domain_beside(self, least: float, largest: float, position: int, wanted: Domain) -> Domain:
        if position == 0:
            return shifted(wanted, largest, least)
        low = None if wanted.high is None else largest - wanted.high
        high = None if wanted.low is None else least - wanted.low
        return ordered(low, high, wanted.why)


@operator("Multiply", opset=1)
class Multiply(ArithmeticBase):
    """The product a * b, element by element; 8-bit integers saturate, as on the only device that multiplies them.

    >>> ops.multiply([1, 2, 3], [10])
    [10 20 30]
    """

    decompresses = ALL
    scales = True
    neutral = 1
    commutes = True

    def domain_of_both(self, wanted: Domain) -> Domain:
        return Domain(0, 0, why=wanted.why)

    def domain_beside(self, least: float, largest: float, position: int, wanted: Domain) -> Domain:
        if least <= 0:
            return Domain(0, 0, why=wanted.why)
        low = None if wanted.low is None else float(np.ceil(wanted.low / (least if wanted.low > 0 else largest)))
        high = None if wanted.high is None else float(wanted.high // largest)
        return ordered(low, high, wanted.why)

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype not in (np.int8, np.uint8):
            return np.multiply(a, b)
        info = np.iinfo(a.dtype)
        return np.clip(np.multiply(a, b, dtype=np.int32), info.min, info.max)

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        # 0 * inf counts as 0: the infinite bound means that a size has no upper bound, not that it is infinite.
        ends = hull([np.nan_to_num(c, nan=0, posinf=np.inf, neginf=-np.inf) for c in self.at_corners(a, b)])
        return product_bounds(self.output_types[0], *ends, self.unchanged(a, b))


@operator("Divide", opset=1)
class Divide(ArithmeticBase):
    """The quotient a / b, element by element; integers round down, or towards 0 if ``m_pythondiv`` is false.

    Dividing an integer by 0 is undefined; the result is 0, and a warning is reported.

    >>> ops.divide([7.0, 8.0], [2.0])
    [3.5 4. ]
    """

    domains = by_input(b=Divisor("a"))
    decompresses = ALL
    m_pythondiv: bool = attribute(default=True)
    neutral = 1

    def compute(self, a: Array, b: Array) -> Array:
        if not self.is_integral:
            return np.divide(a, b)
        if a.dtype.kind == "f":  # bounds
            return (np.floor if self.m_pythondiv else np.trunc)(np.divide(a, b))
        report_zeros(b)
        return np.floor_divide(a if self.m_pythondiv else a - np.fmod(a, b), b)

    def may_wrap(self, a: Value, b: Value) -> Mask:
        # Only the least integer divided by -1 leaves its type.
        return np.isneginf(a.lower) & self.aligned(a.lower, (b.lower <= -1) & (b.upper >= -1))

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        low, high = self.aligned(a.lower, b.lower), self.aligned(a.lower, b.upper)
        has_zero = (low <= 0) & (high >= 0)
        unknown = (low < 0) & (high > 0) | (low == 0) & (high == 0) if self.is_integral else has_zero
        # On each side of 0 the quotient is monotone. If the divisor may be 0, the closest integer beside it is 1.
        beside = 1.0 if self.is_integral else 0.0
        ends = (np.where(low == 0, beside, low), np.where(high == 0, -beside, high))
        quotients = [self.compute(*corner) for corner in product((a.lower, a.upper), ends)]
        # 0 / 0 and inf / inf can be any value from 0 on; the other corners hold the other end.
        lower, upper = hull([np.where(np.isnan(q), 0, q) for q in quotients])
        if self.is_integral:
            lower = np.where(has_zero, np.minimum(lower, 0), lower)
            upper = np.where(has_zero, np.maximum(upper, 0), upper)
        return np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper)


class RemainderBase(ArithmeticBase):
    """Base of Mod and FloorMod, whose bounds they share (below the divisor nothing changes)."""

    domains = by_input(b=Divisor("a"))
    steps = True

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu":
            report_zeros(b)
            return self.of_integers(a, b)
        return self.of_reals(a, b)

    of_integers: ClassVar[Callable[..., Array]]

    def of_reals(self, a: Array, b: Array) -> Array:
        raise NotImplementedError

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        low, high = self.aligned(a.lower, b.lower), self.aligned(a.lower, b.upper)
        least = np.where(a.lower >= 0, 0.0, self.least_below_zero(a.lower, high))
        greatest = high - 1 if self.is_integral else high
        upper = np.where(a.lower >= 0, np.minimum(greatest, a.upper), greatest)
        # Between two multiples of a fixed divisor the remainder increases.
        grows = (low == high) & (np.floor(a.lower / low) == np.floor(a.upper / low)) & (a.lower >= 0)
        first, last = (self.compute(end, low) for end in (a.lower, a.upper))
        lower, upper = np.where(grows, first, least), np.where(grows, last, upper)
        unchanged = (a.lower >= 0) & (a.upper < low)
        lower, upper = np.where(unchanged, a.lower, lower), np.where(unchanged, a.upper, upper)
        return np.where(low > 0, lower, np.nan), np.where(low > 0, upper, np.nan)

    def symbols(self, a: Value, b: Value) -> Array:
        return np.where((a.lower >= 0) & (a.upper < self.aligned(a.lower, b.lower)), a.symbols, 0)

    def may_wrap(self, a: Value, b: Value) -> Mask:
        return False

    def least_below_zero(self, a: Array, divisor: Array) -> Array:
        """Return the least remainder of a negative ``a`` and a positive divisor."""
        raise NotImplementedError


@operator("FloorMod", opset=1)
class FloorMod(RemainderBase):
    """a - b * floor(a / b), which has the sign of b. Floats are computed in f64. Modulo 0 is undefined; for integers it
    is 0.

    >>> ops.floor_mod([-7, 7], [3])
    [2 1]
    """

    of_integers = staticmethod(np.remainder)

    def of_reals(self, a: Array, b: Array) -> Array:
        # In f32 the quotient of 0.7 and 0.1 is 7, which would make the remainder 0 instead of 0.1.
        x, y = a.astype(np.float64), b.astype(np.float64)
        return (x - y * np.floor(x / y)).astype(a.dtype)

    def least_below_zero(self, a: Array, divisor: Array) -> Array:
        return np.zeros_like(a)


@operator("Mod", opset=1)
class Mod(RemainderBase):
    """a - b * trunc(a / b), which has the sign of a. Modulo 0 is undefined; for integers it is 0.

    >>> ops.mod([-7, 7], [3])
    [-1 1]
    """

    of_integers = staticmethod(np.fmod)

    def of_reals(self, a: Array, b: Array) -> Array:
        return a - b * np.trunc(a / b)

    def least_below_zero(self, a: Array, divisor: Array) -> Array:
        return np.maximum(a, -divisor)


class ExtremeBase(ArithmeticBase):
    """Base of Maximum and Minimum, whose results are elements of the inputs."""

    monotone = (0, 1)

    def may_wrap(self, a: Value, b: Value) -> Mask:
        return False


@operator("Maximum", opset=1)
class Maximum(ExtremeBase):
    """The greater of a and b; a where b is NaN.

    >>> ops.maximum([1, 5], [3])
    [3 5]
    """

    def compute(self, a: Array, b: Array) -> Array:
        return np.where(np.isnan(b), a, np.maximum(a, b))


@operator("Minimum", opset=1)
class Minimum(ExtremeBase):
    """The lesser of a and b; a where b is NaN.

    >>> ops.minimum([1, 5], [3])
    [1 3]
    """

    def compute(self, a: Array, b: Array) -> Array:
        return np.where(np.isnan(b), a, np.minimum(a, b))

    def sizes(self, a: Value, b: Value) -> Mask:
        # A number not larger than a size, and not far below 0, fits wherever the size does.
        b_is_size, b_is_above = self.aligned(a.lower, b.is_size), self.aligned(a.lower, b.lower >= 0)
        return (a.is_size & (b_is_size | b_is_above)) | (b_is_size & (a.lower >= 0))


@operator("SquaredDifference", opset=1)
class SquaredDifference(ArithmeticBase):
    """The square of the difference, (a - b)^2, element by element.

    >>> ops.squared_difference([1, 5], [3])
    [4 4]
    """

    within = (0, inf)

    arguments = "x1:a x2:b auto_broadcast="

    def compute(self, a: Array, b: Array) -> Array:
        return np.square(np.subtract(a, b))

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        lower, upper = hull(self.at_corners(a, b))
        meet = (a.lower <= self.aligned(a.lower, b.upper)) & (self.aligned(a.lower, b.lower) <= a.upper)
        lower = np.where(meet, 0, lower)
        return product_bounds(self.output_types[0], lower, upper, np.zeros(lower.shape, bool))


@operator("Power", opset=1)
class Power(ArithmeticBase):
    """a to the power of b. Integers wrap around; with a negative exponent the result is truncated to an integer, and is
    that of infinity for 0 (see Convert).

    >>> ops.power([1.0, 2.0, 3.0], [2.0])
    [1. 4. 9.]
    """

    neutral = 1

    def compute(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu":
            if b.dtype.kind == "u" or not (b < 0).any():
                return np.power(a, b)
            inverse = np.where(np.abs(a) == 1, np.where(b & 1, a, 1), 0)
            inverse = np.where(a == 0, to_integers(np.asarray(np.inf), a.dtype), inverse)
            return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0))).astype(a.dtype)
        # For one exponent of 0.5 NumPy takes the square root, which differs from the power at -0 and -infinity.
        power = np.power(a, b)
        return np.where(b == 0.5, np.where(np.isneginf(a), np.inf, power + 0), power).astype(a.dtype)

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        lower, upper = hull(self.at_corners(a, b))
        least = self.aligned(a.lower, b.lower)
        monotone = (a.lower >= 0) & (least >= 0 if self.is_integral else np.isfinite(least))
        lower, upper = np.where(monotone, lower, np.nan), np.where(monotone, upper, np.nan)
        return product_bounds(self.output_types[0], lower, upper, self.unchanged(a, b))


def report_zeros(divisor: Array) -> None:
    """Report divisors of integers that are 0."""
    if not divisor.all():
        report("an integer is divided by 0, which is undefined", "the result here is 0")
