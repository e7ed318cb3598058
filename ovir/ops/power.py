"""Power, with shorter forms for common exponents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.core.values import Value, product_bounds
from ovir.kernels.blocked import apply
from ovir.ops.arithmetic import ArithmeticBase
from ovir.ops.base.elementwise import hull
from ovir.ops.base.registry import operator


@operator("Power", opset=1)
class Power(ArithmeticBase):
    """a to the power of b. Integers are computed in f64, and the result is truncated to an integer.

    Source: Power-1
    """

    neutral = 1
    heavy = True

    def block(self, a: Array, b: Array, *, out: Array) -> object:
        if out.dtype.kind in "iu":
            return np.power(a, b, out=out, dtype=np.float64, casting="unsafe")
        # NumPy has no vector code for arrays that run backwards, and without it the last bits differ.
        a, b = (np.ascontiguousarray(x) if min(x.strides, default=0) < 0 else x for x in (a, b))
        return np.power(a, b, out=out)

    def run(self, a: Array, b: Array, *, out: Array | None = None) -> Array:
        if b.size == 1 and b.ndim <= a.ndim and not self.is_integral:
            simple = POWERS.get(float(b.item()))
            if simple is not None:
                return apply(simple, (a,), out, heavy=simple is square_root)
        return super().run(a, b, out=out)

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        lower, upper = hull(self.at_corners(a, b))
        monotone = (a.lower >= 0) & np.isfinite(self.aligned(a.lower, b.lower))
        lower, upper = np.where(monotone, lower, np.nan), np.where(monotone, upper, np.nan)
        return product_bounds(self.output_types[0], lower, upper, self.unchanged(a, b))


def square_root(x: Array, *, out: Array) -> object:
    # As a power, the root of -0 is 0 and the root of negative infinity is infinite, so signed inputs are searched for
    # first.
    if x.size and x.view(f"i{x.itemsize}").min() >= 0:
        return np.sqrt(x, out=out)
    np.add(x, 0, out=out)
    np.copyto(out, np.inf, where=out == -np.inf)
    return np.sqrt(out, out=out)


def _cube(x: Array, *, out: Array) -> object:
    return np.multiply(np.square(x), x, out=out)


POWERS: dict[float, Callable[..., object]] = {
    -1.0: lambda x, *, out: np.divide(1, x, out=out),
    0.5: square_root,
    1.0: np.positive,
    2.0: np.square,
    3.0: _cube,
}
