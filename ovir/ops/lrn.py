"""LRN: normalization by the squares of neighbouring elements. f16 and bf16 are computed in f32 and rounded once."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.kernels import half
from ovir.kernels.blocked import compute_dtype, map_blocks, map_slices
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, by_input
from ovir.ops.base.registry import operator
from ovir.ops.normalization import NormalizationBase


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
            raised(y, self.beta)
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


def raised(x: Array, exponent: float) -> None:
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
